// SPDX-License-Identifier: Apache-2.0
#include "cuda/stage_lists.cuh"

#include "cuda/dependent_launch.cuh"
#include "cuda/launch.cuh"
#include "cuda/row_bounds.h"

namespace sparsek::cuda {

// Named, since the symbols that nvcc makes for an unnamed namespace differ from build to build.
namespace lists_stages {

constexpr int kThreads = 256, kWarps = kThreads / 32;

// A warp has a quarter of a stage, and those of a CTA neighbouring stages.
__global__ void __launch_bounds__(kThreads)
    lists_kernel(ListedIndex index, ListSizes sizes, const int32_t* bounds, StageLists to, uint32_t reciprocal) {
  wait_for_previous_launch();
  const int ctas_of_quarter = (int(sizes.stages) + kWarps - 1) / kWarps;
  const int stage = blockIdx.x % ctas_of_quarter * kWarps + threadIdx.x / 32;
  if (stage >= sizes.stages) return;
  make_list(index, sizes, bounds, to, reciprocal, blockIdx.x / ctas_of_quarter, stage, threadIdx.x % 32);
}

// A warp has a row group.
__global__ void __launch_bounds__(32) steps_kernel(ListSizes sizes, StageLists to) {
  wait_for_previous_launch();
  leave_out_empty(sizes, to, blockIdx.x, threadIdx.x);
}

}  // namespace lists_stages

cudaError_t prepare_stage_lists() {
  using namespace lists_stages;
  cudaFuncAttributes attributes;
  cudaError_t error = prepare_row_bounds();
  if (error == cudaSuccess) error = cudaFuncGetAttributes(&attributes, lists_kernel);
  return error == cudaSuccess ? cudaFuncGetAttributes(&attributes, steps_kernel) : error;
}

cudaError_t list_stages(const ListedIndex& index, const ListSizes& sizes, const StageLists& to, void* bounds,
                        cudaStream_t stream) {
  using namespace lists_stages;
  constexpr LaunchWay kWay = {/*overlap=*/true};
  auto* const of_rows = static_cast<int32_t*>(bounds);
  const BoundedRows rows = {index.row_ptr, index.entry_k, sizes.block_rows, uint32_t(sizes.columns), sizes.stages};
  cudaError_t error = bound_rows(rows, sizes.elements / (int64_t{index.block_m} * index.block_k), of_rows, stream);
  if (error != cudaSuccess) return error;
  const int64_t quarters = sizes.groups * kQuarters;
  error = launch_kernel(lists_kernel, static_cast<int>(quarters * ((sizes.stages + kWarps - 1) / kWarps)), kThreads, 0,
                        stream, kWay, index, sizes, of_rows, to, reciprocal_of(index.block_k));
  if (error != cudaSuccess) return error;
  return launch_kernel(steps_kernel, static_cast<int>(sizes.groups), 32, 0, stream, kWay, sizes, to);
}

}  // namespace sparsek::cuda
