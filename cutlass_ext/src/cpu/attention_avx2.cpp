// SPDX-License-Identifier: Apache-2.0
// Attention for AVX2 with FMA.
#include <immintrin.h>

#include "cpu/attention_kernel.h"

namespace sparsek::cpu {
namespace {

constexpr int kVectorBytes = 32;
constexpr int kVectorsAtOnce = 2;  // by 6 rows: the sums that fit the registers
// a * b + c
inline __m256 fused(__m256 a, __m256 b, __m256 c) { return _mm256_fmadd_ps(a, b, c); }
inline __m256d fused(__m256d a, __m256d b, __m256d c) { return _mm256_fmadd_pd(a, b, c); }

}  // namespace
}  // namespace sparsek::cpu

#include "cpu/attention_tile.h"

namespace sparsek::cpu {

const AttentionKernel kAvx2Attention = all_functions();

}  // namespace sparsek::cpu
