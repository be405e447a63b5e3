// SPDX-License-Identifier: Apache-2.0
#include "cuda/stage_tiles.h"

#include "cuda/launch.cuh"
#include "cuda/marked_pairs.cuh"

namespace sparsek::cuda {

// Named, since the symbols that nvcc makes for an unnamed namespace differ from build to build.
namespace stage_tiles {

constexpr int kThreads = 32 * kQuarters;
constexpr int kVectors = kQuarterTileBytes / 16;

// A CTA writes a stage of a row group, and each of its warps a quarter of it.
__global__ void __launch_bounds__(kThreads)
    kernel(ListSizes sizes, StageLists lists, const uint16_t* __restrict__ values, uint4* __restrict__ to) {
  __shared__ alignas(16) uint16_t tiles[kQuarters][kQuarterTileBytes / sizeof(uint16_t)];
  const int64_t group = blockIdx.x / sizes.stages, step = blockIdx.x % sizes.stages;
  if (step >= __ldg(lists.counts + group)) return;
  const int quarter = threadIdx.x / 32, lane = threadIdx.x % 32;
  auto* const vectors = reinterpret_cast<uint4*>(tiles[quarter]);
  for (int i = lane; i < kVectors; i += 32) vectors[i] = uint4{};
  __syncwarp();
  const Step list = lists.steps[(group * kQuarters + quarter) * sizes.stages + step];
  const int64_t first = int64_t(list.begin) * kUnit;
  for (int i = lane; i < list.units() * kUnit; i += 32) {
    const uint32_t source = __ldg(lists.sources + first + i);
    // Those behind the last one have its place and its value.
    if (source != kNoSource)
      tiles[quarter][__ldg(lists.places + first + i) / sizeof(uint16_t)] = present(__ldg(values + source));
  }
  __syncwarp();
  uint4* const out = to + (int64_t(blockIdx.x) * kQuarters + quarter) * kVectors;
  for (int i = lane; i < kVectors; i += 32) out[i] = vectors[i];
}

}  // namespace stage_tiles

cudaError_t prepare_stage_tiles() {
  cudaFuncAttributes attributes;
  return cudaFuncGetAttributes(&attributes, stage_tiles::kernel);
}

cudaError_t write_stage_tiles(const ListSizes& sizes, const StageLists& lists, const void* values, void* to,
                              cudaStream_t stream) {
  return launch_kernel(stage_tiles::kernel, static_cast<int>(sizes.groups * sizes.stages), stage_tiles::kThreads, 0,
                       stream, {}, sizes, lists, static_cast<const uint16_t*>(values), static_cast<uint4*>(to));
}

}  // namespace sparsek::cuda
