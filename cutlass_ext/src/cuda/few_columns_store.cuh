// SPDX-License-Identifier: Apache-2.0
// How the few_columns family writes C.
#pragma once

#include "cuda/epilogue.cuh"
#include "cuda/epilogue_fp64.cuh"
#include "cuda/few_columns_elements.cuh"

namespace sparsek::cuda::few_columns {

// Not inlined, so that the loops around it stay short.
template <class Number>
__device__ __noinline__ void write_any(const LaunchArgs& args, int64_t row, int64_t col, Number sum) {
  write_element(args, row, col, sum);
}

template <int kCount>
__device__ inline void store(cutlass::bfloat16_t* to, const float (&from)[kCount]) {
  Vector<kCount, __nv_bfloat16> rounded;
#pragma unroll
  for (int j = 0; j < kCount; ++j) rounded.of[j] = __float2bfloat16_rn(from[j]);
  *reinterpret_cast<Vector<kCount, __nv_bfloat16>*>(to) = rounded;
}
template <int kCount>
__device__ inline void store(cutlass::half_t* to, const float (&from)[kCount]) {
  Vector<kCount, __half> rounded;
#pragma unroll
  for (int j = 0; j < kCount; ++j) rounded.of[j] = __float2half_rn(from[j]);
  *reinterpret_cast<Vector<kCount, __half>*>(to) = rounded;
}
template <int kCount, class Number>
__device__ inline void store(Number* to, const Number (&from)[kCount]) {
  Vector<kCount, Number> whole;
#pragma unroll
  for (int j = 0; j < kCount; ++j) whole.of[j] = from[j];
  *reinterpret_cast<Vector<kCount, Number>*>(to) = whole;
}

// Whether C is but alpha times the sums, in A's type.
__host__ __device__ inline bool only_scales(const Epilogue& e, ElementType dtype) {
  return e.beta == 0.f && e.bias_kind == BiasKind::kNone && e.activation == Activation::kNone && e.dtype_c == dtype;
}

template <class Element>
constexpr ElementType kTypeOf = ElementType::kFp32;
template <>
constexpr ElementType kTypeOf<cutlass::bfloat16_t> = ElementType::kBf16;
template <>
constexpr ElementType kTypeOf<cutlass::half_t> = ElementType::kFp16;
template <>
constexpr ElementType kTypeOf<double> = kFp64;

// Elements of C from their sums, one row of them.
template <class Element, int kTileN>
__device__ inline void write_row(const LaunchArgs& args, bool plain, float alpha, int64_t row, int64_t col, int columns,
                                 const Sum<Element> (&sums)[kTileN]) {
  Element* const to = static_cast<Element*>(args.c) + row * args.ldc + col;
  if (plain && columns == kTileN && reinterpret_cast<uintptr_t>(to) % (kTileN * sizeof(Element)) == 0) {
    Sum<Element> results[kTileN];
#pragma unroll
    for (int j = 0; j < kTileN; ++j) results[j] = alpha * sums[j];
    return store<kTileN>(to, results);
  }
#pragma unroll
  for (int j = 0; j < kTileN; ++j) {
    if (j < columns) write_any(args, row, col + j, sums[j]);
  }
}

}  // namespace sparsek::cuda::few_columns
