// SPDX-License-Identifier: Apache-2.0
// A CTA pools one block of rows, or, of long rows, some of their columns. Reading is all that counts: each thread has
// kAtOnce vectors of one column in flight, of rows that follow each other in the CTA.
//
//   x    (batch, heads, seq, head_size):(strides, 1)
//   out  (batch, heads, blocks, 3, head_size)
#include "cuda/attention_pool.h"

#include <algorithm>

#include "cuda/cuda_matrix.h"
#include "cuda/dependent_launch.cuh"
#include "cuda/elements.cuh"
#include "cuda/launch_dependent.h"

namespace sparsek::cuda {
// Named, since the symbols of kernels in an unnamed namespace depend on the path of the checkout.
namespace attention_pool {

constexpr int kThreads = 128, kAtOnce = 4;

struct Params {
  const void* x;
  void* out;
  int64_t stride_batch, stride_head, stride_row;
  int32_t heads, seq, head_size, block, blocks;
  int32_t lanes;  // that have one row, of the first CTAs of a block
};

// NaN where there is one.
__device__ inline float larger(float a, float b) {
  float y;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
  return y;
}
__device__ inline float smaller(float a, float b) {
  float y;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
  return y;
}
__device__ inline double larger(double a, double b) { return a > b || a != a ? a : b; }
__device__ inline double smaller(double a, double b) { return a < b || a != a ? a : b; }

template <class S>
__device__ void combine(S (&to)[kPooled], S sum, S most, S least) {
  to[0] = plus(to[0], sum);
  to[1] = larger(to[1], most);
  to[2] = smaller(to[2], least);
}

// Vector: elements of a load.
template <class T, int Vector>
__global__ void __launch_bounds__(kThreads) pool(Params p) {
  using S = Wide<T>;
  __shared__ S parts[kPooled][kThreads * Vector];  // (row of threads, column)
  start_dependent();
  const int64_t at = blockIdx.x;
  const int32_t line = static_cast<int32_t>(at / p.blocks), block = static_cast<int32_t>(at % p.blocks);
  const int32_t first = block * p.block, rows = min(p.block, p.seq - first);
  const int32_t lane_begin = blockIdx.y * p.lanes, lanes = min(p.lanes, p.head_size / Vector - lane_begin);
  const int32_t lane = threadIdx.x % lanes, begin = threadIdx.x / lanes, thread_rows = kThreads / lanes;
  const int32_t columns = lanes * Vector, column = (lane_begin + lane) * Vector;

  if (begin < thread_rows) {
    const T* const x = static_cast<const T*>(p.x) + line / p.heads * p.stride_batch + line % p.heads * p.stride_head +
                       first * p.stride_row + column;
    S pooled[Vector][kPooled];
#pragma unroll
    for (int v = 0; v < Vector; ++v) {
      pooled[v][0] = 0;
      pooled[v][1] = -INFINITY;
      pooled[v][2] = INFINITY;
    }
    for (int64_t row = begin; row < rows; row += kAtOnce * thread_rows) {
      ElementVector<T> loaded[kAtOnce];
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        const T* const from = x + (row + i * thread_rows) * p.stride_row;
        if (row + i * thread_rows >= rows) break;
        if constexpr (Vector > 1) {
          loaded[i].whole = __ldcs(reinterpret_cast<const uint4*>(from));
        } else {
          loaded[i].element[0] = *from;
        }
      }
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        if (row + i * thread_rows >= rows) break;
#pragma unroll
        for (int v = 0; v < Vector; ++v) {
          const S value = load(loaded[i].element[v]);
          combine(pooled[v], value, value, value);
        }
      }
    }
#pragma unroll
    for (int v = 0; v < Vector; ++v) {
#pragma unroll
      for (int what = 0; what < kPooled; ++what) parts[what][begin * columns + lane * Vector + v] = pooled[v][what];
    }
  }
  __syncthreads();
  S* const out = static_cast<S*>(p.out) + at * kPooled * p.head_size + lane_begin * Vector;
  for (int32_t j = threadIdx.x; j < columns; j += kThreads) {
    S pooled[kPooled] = {parts[0][j], parts[1][j], parts[2][j]};
    for (int32_t i = 1; i < thread_rows; ++i) {
      const int32_t of = i * columns + j;
      combine(pooled, parts[0][of], parts[1][of], parts[2][of]);
    }
    out[j] = pooled[0] / static_cast<S>(rows);
    out[p.head_size + j] = pooled[1];
    out[2 * p.head_size + j] = pooled[2];
  }
}

template <class T, int Vector>
void launch(const RowPool& job) {
  const auto kernel = pool<T, Vector>;
  cudaFuncAttributes attributes;  // loads the kernel, which a capture does not allow
  check(cudaFuncGetAttributes(&attributes, kernel), "pooling of rows");
  const int64_t lanes = job.head_size / Vector, ctas = (lanes + kThreads - 1) / kThreads;
  const int64_t lines = job.batch * job.heads, most = INT32_MAX / job.blocks();
  const auto size = static_cast<int64_t>(sizeof(Wide<T>)) * kPooled * job.head_size * job.blocks();
  // A grid has at most 2^31 - 1 CTAs along x.
  if (lines > most && job.batch > 1) {
    for (int64_t batch = 0; batch < job.batch; ++batch) {
      RowPool one = job;
      one.batch = 1;
      one.x = static_cast<const T*>(job.x) + batch * job.stride[0];
      one.out = static_cast<char*>(job.out) + batch * job.heads * size;
      launch<T, Vector>(one);
    }
    return;
  }
  if (lines > most) fail(SPARSEK_BAD_SIZE, "args->heads * ceil(seq / block) is above 2^31 - 1");
  const Params params = {job.x,
                         job.out,
                         job.stride[0],
                         job.stride[1],
                         job.stride[2],
                         static_cast<int32_t>(job.heads),
                         static_cast<int32_t>(job.seq),
                         static_cast<int32_t>(job.head_size),
                         static_cast<int32_t>(job.block),
                         static_cast<int32_t>(job.blocks()),
                         static_cast<int32_t>((lanes + ctas - 1) / ctas)};
  launch_dependent<Params>("pooling of rows", kernel,
                           dim3(static_cast<unsigned>(lines * job.blocks()), static_cast<unsigned>(ctas)), kThreads, 0,
                           static_cast<cudaStream_t>(job.stream), params);
}

}  // namespace attention_pool

void pool_rows(const RowPool& job, int device) {
  check_memory(job.x, SPARSEK_DEVICE, device, "x");
  check_memory(job.out, SPARSEK_DEVICE, device, "out");
  with_element(job.dtype, [&](auto* element) {
    using T = std::remove_pointer_t<decltype(element)>;
    const auto in_vectors = [](int64_t elements) { return elements % kVector<T> == 0; };
    const bool whole =
        is_vector_aligned(job.x) && in_vectors(job.head_size) && std::all_of(job.stride, job.stride + 3, in_vectors);
    whole ? attention_pool::launch<T, kVector<T>>(job) : attention_pool::launch<T, 1>(job);
  });
}

}  // namespace sparsek::cuda
