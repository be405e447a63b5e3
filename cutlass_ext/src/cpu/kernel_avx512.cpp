// SPDX-License-Identifier: Apache-2.0
// The CPU kernel for AVX-512 (F, BW, VL, DQ).

// GCC 12 wrongly warns that the unused pass-through operand of its intrinsics is uninitialised.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#include <immintrin.h>

#include "cpu/attention_kernel.h"
#include "cpu/element.h"
#include "cpu/kernel.h"

namespace sparsek::cpu {
namespace {

struct Isa {
  using Vector = __m512;
  using Part = __mmask16;  // the first lanes of a vector
  static constexpr int kLanes = 16;
  static constexpr int kMaxRows = 8;
  static constexpr int kMaxVectors = 6;
  // The vectors of a strip for `rows` rows: rows x vectors sums, a row of B and a factor must fit 32 registers.
  static constexpr int vectors(int rows) { return rows <= 4 ? 6 : 3; }

  static constexpr bool kPermutes = true;
  static constexpr bool kFusesMultiplyAdd = true;  // multiply_add rounds once

  static Vector zero() { return _mm512_setzero_ps(); }
  static Vector broadcast(float x) { return _mm512_set1_ps(x); }
  static Vector multiply(Vector a, Vector b) { return _mm512_mul_ps(a, b); }
  static Vector add(Vector a, Vector b) { return _mm512_add_ps(a, b); }
  static Vector multiply_add(Vector a, Vector b, Vector c) { return _mm512_fmadd_ps(a, b, c); }
  static Vector divide(Vector a, Vector b) { return _mm512_div_ps(a, b); }
  static Vector absolute(Vector v) { return _mm512_andnot_ps(_mm512_set1_ps(-0.0f), v); }
  // Returns b where one of the two is NaN.
  static Vector max(Vector a, Vector b) { return _mm512_max_ps(a, b); }
  // a where x is below the limit; else, and for NaN, b.
  static Vector where_below(Vector x, float limit, Vector a, Vector b) {
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(x, broadcast(limit), _CMP_LT_OQ), b, a);
  }
  // 2^n for n in [-126, 127] in the last bits of v.
  static Vector power_of_two(Vector v) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_add_epi32(_mm512_castps_si512(v), _mm512_set1_epi32(127)), 23));
  }

  static Vector load(const float* p) { return _mm512_loadu_ps(p); }
  static Vector load(const Bf16* p) {
    const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
  }
  static Vector load(const Fp16* p) { return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))); }

  static void store(float* p, Vector v) { _mm512_storeu_ps(p, v); }
  static void store(double* p, Vector v) {
    _mm512_storeu_pd(p, _mm512_cvtps_pd(_mm512_castps512_ps256(v)));
    _mm512_storeu_pd(p + kLanes / 2, _mm512_cvtps_pd(_mm512_extractf32x8_ps(v, 1)));
  }
  // Adds half of the last place less one, plus its parity: the carry into the upper half rounds to nearest even.
  static __m256i to_bf16(Vector v) {
    const __m512i bits = _mm512_castps_si512(v);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    const __m512i quiet = _mm512_or_si512(bits, _mm512_set1_epi32(0x400000));
    const __mmask16 nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
    const __m512i upper = _mm512_srli_epi32(_mm512_mask_blend_epi32(nan, rounded, quiet), 16);
    return _mm512_cvtepi32_epi16(upper);
  }
  static __m256i to_fp16(Vector v) { return _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT); }
  static void store(Bf16* p, Vector v) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), to_bf16(v)); }
  static void store(Fp16* p, Vector v) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), to_fp16(v)); }

  static Part part(int count) { return static_cast<Part>((1u << count) - 1); }
  static Vector load(const float* p, Part part) { return _mm512_maskz_loadu_ps(part, p); }
  static Vector load(const Bf16* p, Part part) {
    const __m256i bits = _mm256_maskz_loadu_epi16(part, p);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
  }
  static Vector load(const Fp16* p, Part part) { return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(part, p)); }
  static void store(float* p, Vector v, Part part) { _mm512_mask_storeu_ps(p, part, v); }
  static void store(Bf16* p, Vector v, Part part) { _mm256_mask_storeu_epi16(p, part, to_bf16(v)); }
  static void store(Fp16* p, Vector v, Part part) { _mm256_mask_storeu_epi16(p, part, to_fp16(v)); }

  // The lanes of a whole vector of sums.
  template <typename Sum>
  static constexpr int lanes() {
    return 64 / static_cast<int>(sizeof(Sum));
  }

  static float to_float(float x) { return x; }
  static float to_float(Bf16 x) { return _mm_cvtss_f32(_mm_castsi128_ps(_mm_cvtsi32_si128(x.bits << 16))); }
  static float to_float(Fp16 x) { return _cvtsh_ss(x.bits); }
};

// Vectors of sums of `kLanes` lanes.
template <typename Sum, int kLanes>
struct Lanes;

template <>
struct Lanes<float, 16> : Isa {
  using Places = __m512i;
  static Places places(const int32_t* at) { return _mm512_loadu_si512(at); }
  static Vector permute(Vector v, Places places) { return _mm512_permutexvar_ps(places, v); }
  static Vector widen(__m128 v) { return _mm512_castps128_ps512(v); }
  static Vector widen(__m256 v) { return _mm512_castps256_ps512(v); }
  static Vector widen(__m512 v) { return v; }
  static Vector gather(const float* p, const int32_t* at) { return _mm512_i32gather_ps(_mm512_loadu_si512(at), p, 4); }
  static Vector gather(const float* p, const int32_t* at, Part part) {
    return _mm512_mask_i32gather_ps(zero(), part, _mm512_maskz_loadu_epi32(part, at), p, 4);
  }
  static float add_up(Vector v) { return _mm512_reduce_add_ps(v); }
};

template <>
struct Lanes<float, 8> {
  using Vector = __m256;
  using Part = __mmask8;
  static Part part(int count) { return static_cast<Part>((1u << count) - 1); }
  static Vector zero() { return _mm256_setzero_ps(); }
  static Vector broadcast(float x) { return _mm256_set1_ps(x); }
  static Vector multiply(Vector a, Vector b) { return _mm256_mul_ps(a, b); }
  static Vector multiply_add(Vector a, Vector b, Vector c) { return _mm256_fmadd_ps(a, b, c); }
  static Vector load(const float* p) { return _mm256_loadu_ps(p); }
  static Vector load(const float* p, Part part) { return _mm256_maskz_loadu_ps(part, p); }
  static Vector load(const Bf16* p, Part part) {
    const __m128i bits = _mm_maskz_loadu_epi16(part, p);
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
  }
  static Vector load(const Fp16* p, Part part) { return _mm256_cvtph_ps(_mm_maskz_loadu_epi16(part, p)); }
  static void store(float* p, Vector v) { _mm256_storeu_ps(p, v); }
  static void store(float* p, Vector v, Part part) { _mm256_mask_storeu_ps(p, part, v); }
};

template <>
struct Lanes<float, 4> {
  using Vector = __m128;
  using Part = __mmask8;
  static Part part(int count) { return static_cast<Part>((1u << count) - 1); }
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
  static Vector load(const float* p, Part part) { return _mm_maskz_loadu_ps(part, p); }
  static Vector load(const Bf16* p, Part part) {
    return _mm_castsi128_ps(_mm_slli_epi32(_mm_cvtepu16_epi32(_mm_maskz_loadu_epi16(part, p)), 16));
  }
  static Vector load(const Fp16* p, Part part) { return _mm_cvtph_ps(_mm_maskz_loadu_epi16(part, p)); }
  static void store(float* p, Vector v) { _mm_storeu_ps(p, v); }
  static void store(float* p, Vector v, Part part) { _mm_mask_storeu_ps(p, part, v); }
};

template <>
struct Lanes<double, 8> {
  using Vector = __m512d;
  using Part = __mmask8;
  using Places = __m512i;
  static Places places(const int32_t* at) {
    return _mm512_cvtepi32_epi64(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(at)));
  }
  static Vector permute(Vector v, Places places) { return _mm512_permutexvar_pd(places, v); }
  static Vector widen(__m256d v) { return _mm512_castpd256_pd512(v); }
  static Vector widen(__m512d v) { return v; }
  static Vector gather(const double* p, const int32_t* at) {
    return _mm512_i32gather_pd(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(at)), p, 8);
  }
  static Vector gather(const double* p, const int32_t* at, Part part) {
    return _mm512_mask_i32gather_pd(zero(), part, _mm256_maskz_loadu_epi32(part, at), p, 8);
  }
  static double add_up(Vector v) { return _mm512_reduce_add_pd(v); }
  static Part part(int count) { return static_cast<Part>((1u << count) - 1); }
  static Vector zero() { return _mm512_setzero_pd(); }
  static Vector broadcast(double x) { return _mm512_set1_pd(x); }
  static Vector multiply(Vector a, Vector b) { return _mm512_mul_pd(a, b); }
  static Vector add(Vector a, Vector b) { return _mm512_add_pd(a, b); }
  static Vector multiply_add(Vector a, Vector b, Vector c) { return _mm512_fmadd_pd(a, b, c); }
  static Vector load(const double* p) { return _mm512_loadu_pd(p); }
  static Vector load(const double* p, Part part) { return _mm512_maskz_loadu_pd(part, p); }
  static void store(double* p, Vector v) { _mm512_storeu_pd(p, v); }
  static void store(double* p, Vector v, Part part) { _mm512_mask_storeu_pd(p, part, v); }
};

template <>
struct Lanes<double, 4> {
  using Vector = __m256d;
  using Part = __mmask8;
  static Part part(int count) { return static_cast<Part>((1u << count) - 1); }
  static Vector zero() { return _mm256_setzero_pd(); }
  static Vector broadcast(double x) { return _mm256_set1_pd(x); }
  static Vector multiply(Vector a, Vector b) { return _mm256_mul_pd(a, b); }
  static Vector add(Vector a, Vector b) { return _mm256_add_pd(a, b); }
  static Vector multiply_add(Vector a, Vector b, Vector c) { return _mm256_fmadd_pd(a, b, c); }
  using Places = __m256i;
  static Places places(const int32_t* at) {
    return _mm256_cvtepi32_epi64(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at)));
  }
  static Vector permute(Vector v, Places places) { return _mm256_permutexvar_pd(places, v); }
  static Vector widen(Vector v) { return v; }
  static Vector load(const double* p) { return _mm256_loadu_pd(p); }
  static Vector load(const double* p, Part part) { return _mm256_maskz_loadu_pd(part, p); }
  static void store(double* p, Vector v) { _mm256_storeu_pd(p, v); }
  static void store(double* p, Vector v, Part part) { _mm256_mask_storeu_pd(p, part, v); }
};

}  // namespace
}  // namespace sparsek::cpu

#include "cpu/row_kernel.h"
#include "cpu/tile_kernel.h"

namespace sparsek::cpu {

const Kernel kAvx512Kernel = {"cpu_avx512",
                              "avx512",
                              "processors with AVX-512: strips of 48 columns, 8 rows at a time",
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
                              &kAvx512Attention};

}  // namespace sparsek::cpu
