// SPDX-License-Identifier: Apache-2.0
// Elements of any type on a GPU: their value in the type of their sums, and back, rounded to nearest even; and vectors
// of them.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "pattern/sum_order.h"
#include "sparsek.h"

namespace sparsek::cuda {

__device__ inline float load(__nv_bfloat16 x) { return __bfloat162float(x); }
__device__ inline float load(__half x) { return __half2float(x); }
__device__ inline float load(float x) { return x; }
__device__ inline double load(double x) { return x; }

__device__ inline void store(__nv_bfloat16* to, float x) { *to = __float2bfloat16_rn(x); }
__device__ inline void store(__half* to, float x) { *to = __float2half_rn(x); }
__device__ inline void store(float* to, float x) { *to = x; }
__device__ inline void store(double* to, double x) { *to = x; }

template <class T>
struct WideType {
  using Type = float;
};
template <>
struct WideType<double> {
  using Type = double;
};
template <class T>
using Wide = typename WideType<T>::Type;

// Not contracted to a fused operation, which the host may not have.
__device__ inline float times(float a, float b) { return __fmul_rn(a, b); }
__device__ inline double times(double a, double b) { return __dmul_rn(a, b); }
__device__ inline float plus(float a, float b) { return __fadd_rn(a, b); }
__device__ inline double plus(double a, double b) { return __dadd_rn(a, b); }

template <class T>
constexpr int kVector = pattern::kVectorBytes / static_cast<int>(sizeof(T));

template <class T>
union ElementVector {
  uint4 whole;
  T element[kVector<T>];
  __device__ ElementVector() : whole{0, 0, 0, 0} {}
};

template <class T>
__device__ inline ElementVector<T> load_vector(const T* from) {
  ElementVector<T> vector;
  vector.whole = *reinterpret_cast<const uint4*>(from);
  return vector;
}

// The first `count` elements; zeros behind them. whole: all of them, at a multiple of 16 bytes.
template <class T>
__device__ inline ElementVector<T> load_some(const T* from, int64_t count, bool whole) {
  if (whole) return load_vector(from);
  ElementVector<T> vector;
#pragma unroll
  for (int i = 0; i < kVector<T>; ++i) {
    if (i < count) vector.element[i] = from[i];
  }
  return vector;
}

// Calls work with a null pointer to the type of a dtype.
template <class Work>
void with_element(sparsek_dtype dtype, Work work) {
  switch (dtype) {
    case SPARSEK_BF16:
      return work(static_cast<__nv_bfloat16*>(nullptr));
    case SPARSEK_FP16:
      return work(static_cast<__half*>(nullptr));
    case SPARSEK_FP32:
      return work(static_cast<float*>(nullptr));
    case SPARSEK_FP64:
      return work(static_cast<double*>(nullptr));
  }
}

inline bool is_vector_aligned(const void* pointer) {
  return reinterpret_cast<uintptr_t>(pointer) % pattern::kVectorBytes == 0;
}

}  // namespace sparsek::cuda
