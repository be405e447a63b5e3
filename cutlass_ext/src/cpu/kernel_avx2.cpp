// SPDX-License-Identifier: Apache-2.0
// The CPU kernel for AVX2 with FMA and F16C.
#include <immintrin.h>

#include "cpu/attention_kernel.h"
#include "cpu/element.h"
#include "cpu/kernel.h"

namespace sparsek::cpu {
namespace {

// The first elements of a vector.
struct PartMask {
  int count;
  __m256i floats, doubles;  // all bits of the lanes that are there
};

inline PartMask part_mask(int count) {
  const __m256i floats = _mm256_cmpgt_epi32(_mm256_set1_epi32(count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  return {count, floats, _mm256_cvtepi32_epi64(_mm256_castsi256_si128(floats))};
}

// The same of elements of 16 bits, for which there is no mask.
template <typename T>
struct CopiedPart {
  T at[8] = {};
  CopiedPart(const T* p, int count) {
    for (int i = 0; i < count; ++i) at[i] = p[i];
  }
};

struct Isa {
  using Vector = __m256;
  using Part = PartMask;
  static constexpr int kLanes = 8;
  static constexpr int kMaxRows = 6;
  static constexpr int kMaxVectors = 4;
  // The vectors of a strip for `rows` rows: rows x vectors sums, a row of B and a factor must fit 16 registers.
  static constexpr int vectors(int rows) { return rows <= 2 ? 4 : rows == 3 ? 3 : 2; }

  static constexpr bool kPermutes = true;
  static constexpr bool kFusesMultiplyAdd = true;  // multiply_add rounds once

  static Vector zero() { return _mm256_setzero_ps(); }
  static Vector broadcast(float x) { return _mm256_set1_ps(x); }
  static Vector multiply(Vector a, Vector b) { return _mm256_mul_ps(a, b); }
  static Vector add(Vector a, Vector b) { return _mm256_add_ps(a, b); }
  static Vector multiply_add(Vector a, Vector b, Vector c) { return _mm256_fmadd_ps(a, b, c); }
  static Vector divide(Vector a, Vector b) { return _mm256_div_ps(a, b); }
  static Vector absolute(Vector v) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), v); }
  // Returns b where one of the two is NaN.
  static Vector max(Vector a, Vector b) { return _mm256_max_ps(a, b); }
  // a where x is below the limit; else, and for NaN, b.
  static Vector where_below(Vector x, float limit, Vector a, Vector b) {
    return _mm256_blendv_ps(b, a, _mm256_cmp_ps(x, broadcast(limit), _CMP_LT_OQ));
  }
  // 2^n for n in [-126, 127] in the last bits of v.
  static Vector power_of_two(Vector v) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(_mm256_castps_si256(v), _mm256_set1_epi32(127)), 23));
  }

  static Vector load(const float* p) { return _mm256_loadu_ps(p); }
  static Vector load(const Bf16* p) {
    const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
  }
  static Vector load(const Fp16* p) { return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))); }

  static void store(float* p, Vector v) { _mm256_storeu_ps(p, v); }
  static void store(double* p, Vector v) {
    _mm256_storeu_pd(p, _mm256_cvtps_pd(_mm256_castps256_ps128(v)));
    _mm256_storeu_pd(p + kLanes / 2, _mm256_cvtps_pd(_mm256_extractf128_ps(v, 1)));
  }
  // Adds half of the last place less one, plus its parity: the carry into the upper half rounds to nearest even.
  static void store(Bf16* p, Vector v) {
    const __m256i bits = _mm256_castps_si256(v);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
    const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
    const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
    const __m256i upper = _mm256_srli_epi32(_mm256_blendv_epi8(rounded, quiet, nan), 16);
    const __m128i packed = _mm_packus_epi32(_mm256_castsi256_si128(upper), _mm256_extracti128_si256(upper, 1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), packed);
  }
  static void store(Fp16* p, Vector v) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
  }

  static Part part(int count) { return part_mask(count); }
  static Vector load(const float* p, const Part& part) { return _mm256_maskload_ps(p, part.floats); }
  template <typename T>
  static Vector load(const T* p, const Part& part) {
    return part.count == kLanes ? load(p) : load(CopiedPart<T>(p, part.count).at);
  }
  template <typename T>
  static void store(T* p, Vector v, const Part& part) {
    if (part.count == kLanes) return store(p, v);
    T all[kLanes];
    store(all, v);
    for (int i = 0; i < part.count; ++i) p[i] = all[i];
  }

  // The lanes of a whole vector of sums.
  template <typename Sum>
  static constexpr int lanes() {
    return 32 / static_cast<int>(sizeof(Sum));
  }

  static float to_float(float x) { return x; }
  static float to_float(Bf16 x) { return _mm_cvtss_f32(_mm_castsi128_ps(_mm_cvtsi32_si128(x.bits << 16))); }
  static float to_float(Fp16 x) { return _cvtsh_ss(x.bits); }
};

// Vectors of sums of `kLanes` lanes.
template <typename Sum, int kLanes>
struct Lanes;

template <>
struct Lanes<float, 8> : Isa {
  using Places = __m256i;
  static Places places(const int32_t* at) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at)); }
  static Vector permute(Vector v, Places places) { return _mm256_permutevar8x32_ps(v, places); }
  static Vector widen(__m128 v) { return _mm256_castps128_ps256(v); }
  static Vector widen(__m256 v) { return v; }
  static Vector gather(const float* p, const int32_t* at) {
    const __m256 all = _mm256_castsi256_ps(_mm256_set1_epi32(-1));
    return _mm256_mask_i32gather_ps(zero(), p, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at)), all, 4);
  }
  static Vector gather(const float* p, const int32_t* at, const Part& part) {
    const __m256i places = _mm256_maskload_epi32(at, part.floats);
    return _mm256_mask_i32gather_ps(zero(), p, places, _mm256_castsi256_ps(part.floats), 4);
  }
  static float add_up(Vector v) {
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
  }
};

template <>
struct Lanes<float, 4> {
  using Vector = __m128;
  using Part = PartMask;
  static Part part(int count) { return part_mask(count); }
  static Vector zero() { return _mm_setzero_ps(); }
  static Vector broadcast(float x) { return _mm_set1_ps(x); }
  static Vector multiply(Vector a, Vector b) { return _mm_mul_ps(a, b); }
  static Vector add(Vector a, Vector b) { return _mm_add_ps(a, b); }
  static Vector multiply_add(Vector a, Vector b, Vector c) { return _mm_fmadd_ps(a, b, c); }
  using Places = __m128i;
  static Places places(const int32_t* at) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at)); }
  static Vector permute(Vector v, Places places) { return _mm_permutevar_ps(v, places); }
  static Vector widen(Vector v) { return v; }
  static Vector load(const float* p) { return _mm_loadu_ps(p); }
  static Vector load(const float* p, const Part& part) {
    return _mm_maskload_ps(p, _mm256_castsi256_si128(part.floats));
  }
  template <typename T>
  static Vector load(const T* p, const Part& part) {
    return _mm256_castps256_ps128(Isa::load(CopiedPart<T>(p, part.count).at));
  }
  static void store(float* p, Vector v) { _mm_storeu_ps(p, v); }
  static void store(float* p, Vector v, const Part& part) {
    _mm_maskstore_ps(p, _mm256_castsi256_si128(part.floats), v);
  }
};

template <>
struct Lanes<double, 4> {
  using Vector = __m256d;
  using Part = PartMask;
  using Places = __m256i;
  // Of the halves of elements: a permutation of elements takes constants alone.
  static Places places(const int32_t* at) {
    const __m256i of_elements = _mm256_cvtepi32_epi64(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at)));
    const __m256i low = _mm256_slli_epi64(of_elements, 1);
    return _mm256_or_si256(low, _mm256_slli_epi64(_mm256_add_epi64(low, _mm256_set1_epi64x(1)), 32));
  }
  static Vector permute(Vector v, Places places) {
    return _mm256_castps_pd(_mm256_permutevar8x32_ps(_mm256_castpd_ps(v), places));
  }
  static Vector widen(__m256d v) { return v; }
  static Vector gather(const double* p, const int32_t* at) {
    // With a mask, since g++ takes what the other form leaves undefined for a fault.
    const __m256d all = _mm256_castsi256_pd(_mm256_set1_epi64x(-1));
    return _mm256_mask_i32gather_pd(zero(), p, _mm_loadu_si128(reinterpret_cast<const __m128i*>(at)), all, 8);
  }
  static Vector gather(const double* p, const int32_t* at, const Part& part) {
    const __m128i places = _mm_maskload_epi32(at, _mm256_castsi256_si128(part.floats));
    return _mm256_mask_i32gather_pd(zero(), p, places, _mm256_castsi256_pd(part.doubles), 8);
  }
  static double add_up(Vector v) {
    const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(v), _mm256_extractf128_pd(v, 1));
    return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
  }
  static Part part(int count) { return part_mask(count); }
  static Vector zero() { return _mm256_setzero_pd(); }
  static Vector broadcast(double x) { return _mm256_set1_pd(x); }
  static Vector multiply(Vector a, Vector b) { return _mm256_mul_pd(a, b); }
  static Vector add(Vector a, Vector b) { return _mm256_add_pd(a, b); }
  static Vector multiply_add(Vector a, Vector b, Vector c) { return _mm256_fmadd_pd(a, b, c); }
  static Vector load(const double* p) { return _mm256_loadu_pd(p); }
  static Vector load(const double* p, const Part& part) { return _mm256_maskload_pd(p, part.doubles); }
  static void store(double* p, Vector v) { _mm256_storeu_pd(p, v); }
  static void store(double* p, Vector v, const Part& part) { _mm256_maskstore_pd(p, part.doubles, v); }
};

}  // namespace
}  // namespace sparsek::cpu

#include "cpu/row_kernel.h"
#include "cpu/tile_kernel.h"

namespace sparsek::cpu {

const Kernel kAvx2Kernel = {"cpu_avx2",
                            "avx2",
                            "processors with AVX2 and FMA: strips of 16 columns, 6 rows at a time",
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
                            &kAvx2Attention};

}  // namespace sparsek::cpu
