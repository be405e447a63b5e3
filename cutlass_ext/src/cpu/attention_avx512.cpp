// SPDX-License-Identifier: Apache-2.0
// Attention for AVX-512.
#include <immintrin.h>

#include "cpu/attention_kernel.h"

namespace sparsek::cpu {
namespace {

constexpr int kVectorBytes = 64;
constexpr int kVectorsAtOnce = 4;  // by 6 rows: the sums that fit the registers
// a * b + c
inline __m512 fused(__m512 a, __m512 b, __m512 c) { return _mm512_fmadd_ps(a, b, c); }
inline __m512d fused(__m512d a, __m512d b, __m512d c) { return _mm512_fmadd_pd(a, b, c); }

}  // namespace
}  // namespace sparsek::cpu

#include "cpu/attention_tile.h"

namespace sparsek::cpu {

const AttentionKernel kAvx512Attention = all_functions();

}  // namespace sparsek::cpu
