// SPDX-License-Identifier: Apache-2.0
// The epilogue of a kernel that has its sums in registers, element by element. The error bound of sparsek.h counts
// these operations: a change here needs a change of cpu/check_activation.cpp.
//
// Branches on the Epilogue are uniform over all threads, so they cost little; a kernel that wants none calls
// activated<kActivation>.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "cuda/launch_args.h"

namespace sparsek::cuda {

// Each maps NaN to NaN, Inf to Inf, and -Inf to 0 or -0.
template <Activation kActivation>
__device__ inline float activated(float x) {
  if constexpr (kActivation == Activation::kRelu) {
    return x < 0.f ? 0.f : x;  // fmaxf would map NaN to 0
  } else if constexpr (kActivation == Activation::kGelu) {
    constexpr float kSqrtHalf = 0.707106781f;
    const float y = 0.5f * x * (1.f + erff(x * kSqrtHalf));
    return x == -INFINITY ? -0.f : y;  // the formula gives Inf * 0
  } else if constexpr (kActivation == Activation::kSilu) {
    // exp(-|x|) does not overflow, and keeps its digits where the result is small.
    const float decay = expf(-fabsf(x));
    const float y = (x < 0.f ? x * decay : x) / (1.f + decay);
    return x == -INFINITY ? -0.f : y;
  } else {
    return x;
  }
}

__device__ inline float activated(Activation activation, float x) {
  switch (activation) {
    case Activation::kRelu:
      return activated<Activation::kRelu>(x);
    case Activation::kGelu:
      return activated<Activation::kGelu>(x);
    case Activation::kSilu:
      return activated<Activation::kSilu>(x);
    default:
      return x;
  }
}

// The factors of a product.
__device__ inline float alpha_of(const Epilogue& e) {
  return e.alpha_device == nullptr ? e.alpha : e.alpha * *e.alpha_device;
}
__device__ inline float beta_of(const Epilogue& e) {
  return e.beta_device == nullptr || e.beta == 0.f ? e.beta : e.beta * *e.beta_device;
}

// The element of C before it is rounded to C's type. c_old is not used where beta is 0, and may be any value; bias is 0
// where there is none.
__device__ inline float finish(const Epilogue& e, float alpha, float beta, float sum, float c_old, float bias) {
  float x = alpha * sum;
  if (beta != 0.f) x = fmaf(beta, c_old, x);
  return activated(e.activation, x + bias);
}

// Element `at` of an array of C's type.
__device__ inline float load_element(ElementType dtype, const void* from, int64_t at) {
  switch (dtype) {
    case ElementType::kBf16:
      return __bfloat162float(static_cast<const __nv_bfloat16*>(from)[at]);
    case ElementType::kFp16:
      return __half2float(static_cast<const __half*>(from)[at]);
    default:
      return static_cast<const float*>(from)[at];
  }
}

// Rounds to nearest, ties to even.
__device__ inline void store_element(ElementType dtype, void* to, int64_t at, float value) {
  switch (dtype) {
    case ElementType::kBf16:
      static_cast<__nv_bfloat16*>(to)[at] = __float2bfloat16_rn(value);
      break;
    case ElementType::kFp16:
      static_cast<__half*>(to)[at] = __float2half_rn(value);
      break;
    default:
      static_cast<float*>(to)[at] = value;
  }
}

// The bias of an element of C; 0 where there is none.
__device__ inline float bias_at(const Epilogue& e, int64_t row, int64_t col) {
  if (e.bias_kind == BiasKind::kNone) return 0.f;
  return load_element(e.dtype_c, e.bias, e.bias_kind == BiasKind::kRow ? row : col);
}

// One element of C from its sum.
__device__ inline void write_element(const LaunchArgs& args, int64_t row, int64_t col, float sum) {
  const Epilogue& e = args.epilogue;
  const float beta = beta_of(e);
  const float c_old = beta == 0.f ? 0.f : load_element(e.dtype_c, e.c_in, row * e.ldc_in + col);
  store_element(e.dtype_c, args.c, row * args.ldc + col,
                finish(e, alpha_of(e), beta, sum, c_old, bias_at(e, row, col)));
}

}  // namespace sparsek::cuda
