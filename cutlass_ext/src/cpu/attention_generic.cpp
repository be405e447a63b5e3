// SPDX-License-Identifier: Apache-2.0
// Attention for every x86-64: a product is rounded before it is added.
#include <emmintrin.h>

#include "cpu/attention_kernel.h"

namespace sparsek::cpu {
namespace {

constexpr int kVectorBytes = 16;
constexpr int kVectorsAtOnce = 2;  // by 6 rows: the sums that fit the registers
// a * b + c
inline __m128 fused(__m128 a, __m128 b, __m128 c) { return a * b + c; }
inline __m128d fused(__m128d a, __m128d b, __m128d c) { return a * b + c; }

}  // namespace
}  // namespace sparsek::cpu

#include "cpu/attention_tile.h"

namespace sparsek::cpu {

const AttentionKernel kGenericAttention = all_functions();

}  // namespace sparsek::cpu
