// SPDX-License-Identifier: Apache-2.0
// SPARSEK_SDD on ordinary cores: a thread an element.
#include <algorithm>

#include "cuda/dependent_launch.cuh"
#include "cuda/epilogue_fp64.cuh"
#include "cuda/launch.cuh"
#include "cuda/sampled_tiles.cuh"
#include "cutlass/bfloat16.h"
#include "cutlass/half.h"

namespace sparsek::cuda {
// Named, since the symbols that nvcc makes for an unnamed namespace differ from build to build.
namespace sampled_simt_kernel {

using sampled::block_of;
using sampled::row_of;

constexpr int kThreads = 256;
constexpr int64_t kMostCtas = 132 * 16;

// Element (i, j) of an entry's block.
struct Place {
  int64_t row, col;  // of A
  int64_t at;        // of c

  __device__ Place(const SampledArgs& p, int32_t block_row, int32_t entry, int32_t i, int32_t j)
      : row(int64_t(block_row) * p.block_m + i),
        col(int64_t(p.index.col_idx[entry]) * p.block_k + j),
        at((block_of(p, entry) * p.block_m + i) * p.block_k + j) {}
  __device__ bool is_in_matrix(const SampledArgs& p) const { return row < p.rows && col < p.cols; }
};

__device__ inline void store(const SampledArgs& p, const Place& to, float sum) {
  const Epilogue& e = p.epilogue;
  const float beta = beta_of(e);
  const float c_old = beta == 0.f ? 0.f : load_element(e.dtype_c, e.c_in, to.at);
  const float value = to.is_in_matrix(p) ? finish(e, alpha_of(e), beta, sum, c_old, 0.f) : 0.f;
  store_element(e.dtype_c, p.c, to.at, value);
}

__device__ inline void store(const SampledArgs& p, const Place& to, double sum) {
  double value = 0;
  if (to.is_in_matrix(p)) {
    const Epilogue& e = p.epilogue;
    const double beta = beta_of(e);
    value = double(alpha_of(e)) * sum;
    if (beta != 0) value = fma(beta, static_cast<const double*>(e.c_in)[to.at], value);
    value = activated(e.activation, value);
  }
  static_cast<double*>(p.c)[to.at] = value;
}

template <class T>
struct SumOf {
  using Type = float;
};
template <>
struct SumOf<double> {
  using Type = double;
};

template <class T>
__global__ void __launch_bounds__(kThreads) kernel(SampledArgs p) {
  using Sum = typename SumOf<T>::Type;
  wait_for_previous_launch();
  if (!is_good(p.index)) return;
  const int64_t size = int64_t(p.block_m) * p.block_k, count = p.index.row_ptr[p.block_rows] * size;
  const int64_t step = int64_t(gridDim.x) * kThreads;
  for (int64_t at = int64_t(blockIdx.x) * kThreads + threadIdx.x; at < count; at += step) {
    const auto entry = static_cast<int32_t>(at / size);
    const auto in_block = static_cast<int32_t>(at % size);
    const Place to(p, row_of(p, entry), entry, in_block / p.block_k, in_block % p.block_k);
    Sum sum = 0;
    if (to.is_in_matrix(p)) {
      const T* const x = static_cast<const T*>(p.x) + to.row * p.ldx;
      const T* const y = static_cast<const T*>(p.y) + to.col * p.ldy;
#pragma unroll 8
      for (int64_t k = 0; k < p.n; ++k) sum = fma(Sum(x[k]), Sum(y[k]), sum);
    }
    store(p, to, sum);
  }
}

template <class T>
Prepared prepared;

template <class T>
cudaError_t prepare() {
  cudaFuncAttributes attributes;
  return cudaFuncGetAttributes(&attributes, kernel<T>);
}

template <class T>
cudaError_t launch(const SampledArgs& args, cudaStream_t stream) {
  const int64_t elements = args.nnzb * args.block_m * args.block_k;
  int64_t ctas = std::min(kMostCtas, (elements + kThreads - 1) / kThreads);
  if (args.workers > 0) ctas = std::min<int64_t>(ctas, args.workers);
  return launch_kernel(kernel<T>, static_cast<int>(ctas), kThreads, 0, stream, {/*overlap=*/true}, args);
}

template <class T>
constexpr SampledOps ops() {
  return {&prepared<T>, prepare<T>, launch<T>};
}

__global__ void __launch_bounds__(kThreads) number(int32_t* to, int64_t count) {
  for (int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x; i < count; i += int64_t(gridDim.x) * kThreads) {
    to[i] = static_cast<int32_t>(i);
  }
}

}  // namespace sampled_simt_kernel

SampledOps sampled_simt(sparsek_dtype dtype, int32_t) {
  namespace k = sampled_simt_kernel;
  switch (dtype) {
    case SPARSEK_BF16:
      return k::ops<cutlass::bfloat16_t>();
    case SPARSEK_FP16:
      return k::ops<cutlass::half_t>();
    case SPARSEK_FP32:
      return k::ops<float>();
    default:
      return k::ops<double>();
  }
}

cudaError_t prepare_number_blocks() {
  cudaFuncAttributes attributes;
  return cudaFuncGetAttributes(&attributes, sampled_simt_kernel::number);
}

cudaError_t number_blocks(int32_t* to, int64_t count, cudaStream_t stream) {
  namespace k = sampled_simt_kernel;
  if (count == 0) return cudaSuccess;
  const int64_t ctas = std::min(k::kMostCtas, (count + k::kThreads - 1) / k::kThreads);
  return launch_kernel(k::number, static_cast<int>(ctas), k::kThreads, 0, stream, {}, to, count);
}

}  // namespace sparsek::cuda
