// SPDX-License-Identifier: Apache-2.0
#include "cuda/attention_join.h"

#include <cutlass/bfloat16.h>
#include <cutlass/half.h>

#include <cmath>

#include "cuda/launch.cuh"

namespace sparsek::cuda {
namespace {

constexpr int kThreads = 128;

// A CTA for each query, a thread for each column.
template <class Element>
__global__ void __launch_bounds__(kThreads) join_kernel(const __grid_constant__ AttentionJoinArgs args) {
  const int64_t row = blockIdx.x, rows = int64_t(args.batch) * args.heads_q * args.seq_q;
  float top = -INFINITY;
  for (int i = 0; i < args.parts; ++i) top = fmaxf(top, args.part_lse[i * rows + row]);
  const bool sees_none = top == -INFINITY;
  float sum = 0;
  if (!sees_none) {
    for (int i = 0; i < args.parts; ++i) sum += __expf(args.part_lse[i * rows + row] - top);
  }
  const int64_t batch = row / args.seq_q / args.heads_q, head = row / args.seq_q % args.heads_q;
  Element* const to = static_cast<Element*>(args.o) + batch * args.stride_o.batch + head * args.stride_o.head +
                      row % args.seq_q * args.stride_o.row;
  for (int column = threadIdx.x; column < args.head_size; column += kThreads) {
    float o = 0;
    for (int i = 0; i < args.parts && !sees_none; ++i) {
      const float lse = args.part_lse[i * rows + row];
      // What a part without keys has is 0.
      o = fmaf(__expf(lse - top), args.part_o[(i * rows + row) * args.head_size + column], o);
    }
    to[column] = Element(sees_none ? 0.f : o / sum);
  }
  if (args.lse != nullptr && threadIdx.x == 0) args.lse[row] = sees_none ? -INFINITY : top + logf(sum);
}

template <class Element>
cudaError_t join(const AttentionJoinArgs& args, cudaStream_t stream) {
  const int64_t rows = int64_t{args.batch} * args.heads_q * args.seq_q;
  if (rows == 0) return cudaSuccess;
  return launch_kernel(join_kernel<Element>, static_cast<int>(rows), kThreads, 0, stream, {}, args);
}

}  // namespace

cudaError_t prepare_attention_join(sparsek_dtype dtype) {
  cudaFuncAttributes loaded;
  return dtype == SPARSEK_BF16 ? cudaFuncGetAttributes(&loaded, join_kernel<cutlass::bfloat16_t>)
                               : cudaFuncGetAttributes(&loaded, join_kernel<cutlass::half_t>);
}

cudaError_t join_attention(const AttentionJoinArgs& args, sparsek_dtype dtype, cudaStream_t stream) {
  return dtype == SPARSEK_BF16 ? join<cutlass::bfloat16_t>(args, stream) : join<cutlass::half_t>(args, stream);
}

}  // namespace sparsek::cuda
