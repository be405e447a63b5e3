// SPDX-License-Identifier: Apache-2.0
// The CPU kernel for every x86-64: SSE2. A product is rounded before it is added, which the error bound covers too.
#include <emmintrin.h>

#include "cpu/attention_kernel.h"
#include "cpu/element.h"
#include "cpu/kernel.h"

namespace sparsek::cpu {
namespace {

inline __m128 select(__m128i mask, __m128i if_set, __m128i if_clear) {
  return _mm_castsi128_ps(_mm_or_si128(_mm_and_si128(mask, if_set), _mm_andnot_si128(mask, if_clear)));
}

// fp16 in the low half of each lane to fp32.
inline __m128 widen(__m128i half) {
  const __m128i sign = _mm_slli_epi32(_mm_and_si128(half, _mm_set1_epi32(0x8000)), 16);
  const __m128i magnitude = _mm_slli_epi32(_mm_and_si128(half, _mm_set1_epi32(0x7fff)), 13);
  // Read as fp32, the exponent is 112 too low; the multiplication corrects that exactly, for subnormals too.
  const __m128 scale = _mm_castsi128_ps(_mm_set1_epi32((127 + 112) << 23));
  const __m128i finite = _mm_castps_si128(_mm_mul_ps(_mm_castsi128_ps(magnitude), scale));
  const __m128i special = _mm_cmpgt_epi32(magnitude, _mm_set1_epi32((0x7c00 << 13) - 1));
  const __m128i exponent = _mm_or_si128(magnitude, _mm_set1_epi32(0x7f800000));
  return _mm_or_ps(select(special, exponent, finite), _mm_castsi128_ps(sign));
}

// fp32 to fp16 in the low half of each lane, rounded to nearest even.
inline __m128i narrow(__m128 v) {
  const __m128i bits = _mm_castps_si128(v);
  const __m128i sign = _mm_and_si128(bits, _mm_set1_epi32(static_cast<int>(0x80000000u)));
  const __m128i magnitude = _mm_xor_si128(bits, sign);
  // Below 2^-14 the last place is 2^-24, which is also the last place of 1/2: adding 1/2 rounds there.
  const __m128 half = _mm_set1_ps(0.5f);
  const __m128i subnormal =
      _mm_sub_epi32(_mm_castps_si128(_mm_add_ps(_mm_castsi128_ps(magnitude), half)), _mm_castps_si128(half));
  const __m128i odd = _mm_and_si128(_mm_srli_epi32(magnitude, 13), _mm_set1_epi32(1));
  const __m128i rounded = _mm_add_epi32(magnitude, _mm_add_epi32(odd, _mm_set1_epi32(0xfff - (112 << 23))));
  const __m128i normal = _mm_srli_epi32(rounded, 13);
  const __m128i is_subnormal = _mm_cmplt_epi32(magnitude, _mm_set1_epi32(113 << 23));
  const __m128i overflows = _mm_cmpgt_epi32(magnitude, _mm_set1_epi32(0x477fefff));  // 65520 and above
  const __m128i is_nan = _mm_cmpgt_epi32(magnitude, _mm_set1_epi32(0x7f800000));
  __m128 result = select(is_subnormal, subnormal, normal);
  result = select(overflows, _mm_set1_epi32(0x7c00), _mm_castps_si128(result));
  result = select(is_nan, _mm_set1_epi32(0x7e00), _mm_castps_si128(result));
  return _mm_or_si128(_mm_castps_si128(result), _mm_srli_epi32(sign, 16));
}

// The low halves of four lanes to 8 bytes.
inline void store_halves(void* p, __m128i v) {
  const __m128i extended =
      _mm_srai_epi32(_mm_slli_epi32(v, 16), 16);  // sign-extended, so that the signed packing keeps the bits
  _mm_storel_epi64(reinterpret_cast<__m128i*>(p), _mm_packs_epi32(extended, extended));
}

// The first elements of a vector. SSE2 has no masks: they are copied one by one.
struct PartCount {
  int count;
};

struct Isa {
  using Vector = __m128;
  using Part = PartCount;
  static constexpr int kLanes = 4;
  static constexpr int kMaxRows = 6;
  static constexpr int kMaxVectors = 4;
  // The vectors of a strip for `rows` rows: rows x vectors sums, a row of B and a factor must fit 16 registers.
  static constexpr int vectors(int rows) { return rows <= 2 ? 4 : rows == 3 ? 3 : 2; }

  static constexpr bool kPermutes = false;
  static constexpr bool kFusesMultiplyAdd = false;  // multiply_add rounds once

  static Vector zero() { return _mm_setzero_ps(); }
  static Vector broadcast(float x) { return _mm_set1_ps(x); }
  static Vector multiply(Vector a, Vector b) { return _mm_mul_ps(a, b); }
  static Vector add(Vector a, Vector b) { return _mm_add_ps(a, b); }
  static Vector multiply_add(Vector a, Vector b, Vector c) { return _mm_add_ps(_mm_mul_ps(a, b), c); }
  static Vector divide(Vector a, Vector b) { return _mm_div_ps(a, b); }
  static Vector absolute(Vector v) { return _mm_andnot_ps(_mm_set1_ps(-0.0f), v); }
  // Returns b where one of the two is NaN.
  static Vector max(Vector a, Vector b) { return _mm_max_ps(a, b); }
  // a where x is below the limit; else, and for NaN, b.
  static Vector where_below(Vector x, float limit, Vector a, Vector b) {
    return select(_mm_castps_si128(_mm_cmplt_ps(x, broadcast(limit))), _mm_castps_si128(a), _mm_castps_si128(b));
  }
  // 2^n for n in [-126, 127] in the last bits of v.
  static Vector power_of_two(Vector v) {
    return _mm_castsi128_ps(_mm_slli_epi32(_mm_add_epi32(_mm_castps_si128(v), _mm_set1_epi32(127)), 23));
  }

  static Vector load(const float* p) { return _mm_loadu_ps(p); }
  static Vector load(const Bf16* p) {
    const __m128i bits = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
    return _mm_castsi128_ps(_mm_unpacklo_epi16(_mm_setzero_si128(), bits));
  }
  static Vector load(const Fp16* p) {
    const __m128i bits = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
    return widen(_mm_unpacklo_epi16(bits, _mm_setzero_si128()));
  }

  static void store(float* p, Vector v) { _mm_storeu_ps(p, v); }
  static void store(double* p, Vector v) {
    _mm_storeu_pd(p, _mm_cvtps_pd(v));
    _mm_storeu_pd(p + kLanes / 2, _mm_cvtps_pd(_mm_movehl_ps(v, v)));
  }
  // Adds half of the last place less one, plus its parity: the carry into the upper half rounds to nearest even.
  static void store(Bf16* p, Vector v) {
    const __m128i bits = _mm_castps_si128(v);
    const __m128i odd = _mm_and_si128(_mm_srli_epi32(bits, 16), _mm_set1_epi32(1));
    const __m128i rounded = _mm_add_epi32(bits, _mm_add_epi32(odd, _mm_set1_epi32(0x7fff)));
    const __m128i quiet = _mm_or_si128(bits, _mm_set1_epi32(0x400000));
    const __m128i nan = _mm_castps_si128(_mm_cmpunord_ps(v, v));
    store_halves(p, _mm_srli_epi32(_mm_castps_si128(select(nan, quiet, rounded)), 16));
  }
  static void store(Fp16* p, Vector v) { store_halves(p, narrow(v)); }

  static Part part(int count) { return {count}; }
  template <typename T>
  static Vector load(const T* p, Part part) {
    if (part.count == kLanes) return load(p);
    T all[kLanes] = {};
    for (int i = 0; i < part.count; ++i) all[i] = p[i];
    return load(all);
  }
  template <typename T>
  static void store(T* p, Vector v, Part part) {
    if (part.count == kLanes) return store(p, v);
    T all[kLanes];
    store(all, v);
    for (int i = 0; i < part.count; ++i) p[i] = all[i];
  }

  // The lanes of a whole vector of sums.
  template <typename Sum>
  static constexpr int lanes() {
    return 16 / static_cast<int>(sizeof(Sum));
  }

  static float to_float(float x) { return x; }
  static float to_float(Bf16 x) { return _mm_cvtss_f32(_mm_castsi128_ps(_mm_cvtsi32_si128(x.bits << 16))); }
  static float to_float(Fp16 x) { return _mm_cvtss_f32(widen(_mm_cvtsi32_si128(x.bits))); }
};

// Vectors of sums of `kLanes` lanes.
template <typename Sum, int kLanes>
struct Lanes;

template <>
struct Lanes<float, 4> : Isa {};

template <>
struct Lanes<double, 2> {
  using Vector = __m128d;
  using Part = PartCount;
  static Part part(int count) { return {count}; }
  static Vector zero() { return _mm_setzero_pd(); }
  static Vector broadcast(double x) { return _mm_set1_pd(x); }
  static Vector multiply(Vector a, Vector b) { return _mm_mul_pd(a, b); }
  static Vector multiply_add(Vector a, Vector b, Vector c) { return _mm_add_pd(_mm_mul_pd(a, b), c); }
  static Vector load(const double* p) { return _mm_loadu_pd(p); }
  static Vector load(const double* p, Part part) { return part.count == 2 ? load(p) : _mm_load_sd(p); }
  static void store(double* p, Vector v) { _mm_storeu_pd(p, v); }
  static void store(double* p, Vector v, Part part) { part.count == 2 ? store(p, v) : _mm_store_sd(p, v); }
};

}  // namespace
}  // namespace sparsek::cpu

#include "cpu/row_kernel.h"
#include "cpu/tile_kernel.h"

namespace sparsek::cpu {

const Kernel kGenericKernel = {"cpu_generic",
                               "generic",
                               "every x86-64 processor: SSE2",
                               run_tile<Bf16>,
                               run_tile<Fp16>,
                               run_tile<float>,
                               run_rows<Bf16>,
                               run_rows<Fp16>,
                               run_rows<float>,
                               run_rows<double>,
                               run_blocks<Bf16>,
                               run_blocks<Fp16>,
                               run_blocks<float>,
                               run_blocks<double>,
                               run_rows<Bf16, float>,
                               run_rows<Fp16, float>,
                               run_rows<Bf16, double>,
                               run_rows<Fp16, double>,
                               run_rows<float, double>,
                               &kGenericAttention};

}  // namespace sparsek::cpu
