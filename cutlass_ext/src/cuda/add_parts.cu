// SPDX-License-Identifier: Apache-2.0
#include "cuda/add_parts.h"

#include "cuda/dependent_launch.cuh"
#include "cuda/launch.cuh"
#include "cuda/part_sums.cuh"
#include "cuda/row_store.cuh"

namespace sparsek::cuda {
namespace {

constexpr int kWarps = 4;
// Groups of 8 columns of a warp, which has 16 rows: few, so that the parts of one tile occupy many SMs, but enough to
// write whole 32-byte sectors of C.
constexpr int kGroups = 2;
constexpr int kAhead = 8;  // parts that are loaded before the first is added, to hide the latency of L2

}  // namespace

// Named, since the symbols that nvcc makes for an unnamed namespace differ from build to build.
namespace adding {

__global__ void __launch_bounds__(kWarps * 32)
    add_parts_kernel(const __grid_constant__ LaunchArgs args, const SplitTile* tiles, int32_t count, int32_t tile_n) {
  const int chunks = (args.parts.groups + kGroups - 1) / kGroups;
  const int turn = blockIdx.x * kWarps + threadIdx.x / 32, lane = threadIdx.x % 32;
  const int chunk = turn % chunks, slab = turn / chunks % args.parts.slabs, at = turn / chunks / args.parts.slabs;
  // Every thread waits: the kernel launched after this one relies on the kernel before it as well.
  wait_for_previous_launch();
  if (at >= count) return;
  const SplitTile split = tiles[at];
  const int64_t first_col = int64_t(split.n_tile) * tile_n + chunk * kGroups * 8;
  if (first_col >= args.n) return;

  const int groups = min(kGroups, int((args.n - first_col + 7) / 8));  // groups that were stored
  float sums[kGroups][4] = {};
  for (int first = 0; first < split.parts; first += kAhead) {
    float4 loaded[kAhead][kGroups] = {};
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      const float4* const from =
          slab_of_part(args.parts, split.first_part + first + i, slab) + chunk * kGroups * 32 + lane;
#pragma unroll
      for (int g = 0; g < kGroups; ++g) {
        if (first + i < split.parts && g < groups) loaded[i][g] = __ldcg(from + g * 32);
      }
    }
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
#pragma unroll
      for (int g = 0; g < kGroups; ++g) {
        sums[g][0] += loaded[i][g].x;
        sums[g][1] += loaded[i][g].y;
        sums[g][2] += loaded[i][g].z;
        sums[g][3] += loaded[i][g].w;
      }
    }
  }

  const int slot_rows = args.parts.slabs * 16 / args.slots;
  uint32_t row[2];  // rows of C
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const int in_tile = slab * 16 + h * 8;
    const int64_t first_row = args.slot_row[int64_t(split.m_tile) * args.slots + in_tile / slot_rows];
    row[h] = uint32_t(first_row) + in_tile % slot_rows + lane / 4;
  }
  store_any(args, sums,
            {{row[0], row[1]}, uint32_t(first_col), int(min(int64_t(kGroups * 8), args.n - first_col)), lane % 4 * 2});
}

}  // namespace adding

cudaError_t prepare_add_parts() {
  cudaFuncAttributes unused;
  return cudaFuncGetAttributes(&unused, adding::add_parts_kernel);
}

cudaError_t add_parts(const LaunchArgs& args, const SplitTile* tiles, int32_t count, int32_t tile_n) {
  const int chunks = (args.parts.groups + kGroups - 1) / kGroups;
  const int ctas = (count * args.parts.slabs * chunks + kWarps - 1) / kWarps;
  return launch_kernel(adding::add_parts_kernel, ctas, kWarps * 32, 0, args.stream, {true}, args, tiles, count, tile_n);
}

}  // namespace sparsek::cuda
