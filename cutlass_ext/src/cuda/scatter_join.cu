// SPDX-License-Identifier: Apache-2.0
#include "cuda/column_store.cuh"
#include "cuda/dependent_launch.cuh"
#include "cuda/launch.cuh"
#include "cuda/nan_sums.cuh"
#include "cuda/planes_packed_again.cuh"
#include "cuda/row_store.cuh"
#include "cuda/scatter_join.cuh"
#include "cuda/stage_parts.h"

namespace sparsek::cuda {
namespace wgmma_scatter_kernel {

constexpr int kJoinWarps = 4, kJoinGroups = 2;  // a warp has 16 rows by so many groups

// As Place has the tiles. Together: parts that are loaded before the first is added. AnyC: as of Storage.
template <class Element, int Together, bool AnyC>
__global__ void __launch_bounds__(kJoinWarps * 32, 4) join_kernel(const __grid_constant__ Joined p) {
  const LaunchArgs& args = p.args;
  constexpr int kColumns = kJoinGroups * 8;
  const int warp = int(blockIdx.x) * kJoinWarps + int(threadIdx.x) / 32, lane = threadIdx.x % 32;
  const int chunks = int((args.n + kColumns - 1) / kColumns), chunk = warp % chunks, slab = warp / chunks;
  // Every thread waits: the kernel launched after this one relies on the kernel before it as well.
  wait_for_previous_launch();
  const uint32_t first_row = slab * kStoreRows, first_col = chunk * kColumns;
  if (first_row >= args.rows) return;

  const int first_group = chunk * kJoinGroups, panel = first_group / p.groups;
  const int tile = slab / kSlabs + p.row_groups * panel;
  const float4* const from =
      p.sums + first_sum(tile, slab % kSlabs, p.groups) + (first_group - panel * p.groups) * 32 + lane;
  const int64_t to_next = first_sum(p.tiles, 0, p.groups);
  float sums[kJoinGroups][4] = {};
#pragma unroll 1
  for (int first = 0; first < p.parts; first += Together) {
    float4 of_part[Together][kJoinGroups] = {};
#pragma unroll
    for (int i = 0; i < Together; ++i) {
#pragma unroll
      for (int g = 0; g < kJoinGroups; ++g) {
        const bool is_there = first + i < p.parts && int64_t(first_col) + g * 8 < args.n;
        if (is_there) of_part[i][g] = __ldcg(from + (first + i) * to_next + g * 32);
      }
    }
#pragma unroll
    for (int i = 0; i < Together; ++i) {
#pragma unroll
      for (int g = 0; g < kJoinGroups; ++g) {
        sums[g][0] += of_part[i][g].x;
        sums[g][1] += of_part[i][g].y;
        sums[g][2] += of_part[i][g].z;
        sums[g][3] += of_part[i][g].w;
      }
    }
  }

  const uint32_t row[2] = {first_row + lane / 4, first_row + lane / 4 + 8};
  uint32_t with_nan = 0;
  if constexpr (std::is_same_v<Element, float>) {
#pragma unroll
    for (int i = 0; i < kJoinGroups * 4; ++i) sums[i / 4][i % 4] += sums[i / 4][i % 4] * 0.f;
    if (any_nan(args, sums, row, first_col, lane)) {
      with_nan = groups_with_nan(args, sums, row, first_col);
      if (lane == 0) atomicAdd(args.recomputed, 1ull);
    }
  }
  if constexpr (AnyC) {
    write_either_major(args, sums, row, first_col, lane, with_nan);
  } else {
    store_rows<Element, true>(args, sums, row, first_col, lane, with_nan);
  }
  if (with_nan != 0) planes_packed_kernel::compute_again(args, p.rows, first_row, first_col, lane, with_nan);
}

// Where there are more than kFew parts, all are under way at once; else fewer registers leave room for more warps.
constexpr int kFew = 4;

// Kernel family "planes_packed" reads and writes rows alone.
template <class Element>
constexpr bool kTakesAnyC = !std::is_same_v<Element, float>;

template <class Element, bool AnyC>
constexpr decltype(&join_kernel<Element, kFew, AnyC>) kJoin[] = {join_kernel<Element, kFew, AnyC>,
                                                                 join_kernel<Element, int{kMostStageParts}, AnyC>};

template <class Element>
cudaError_t prepare_join() {
  cudaFuncAttributes unused;
  constexpr auto &rows = kJoin<Element, false>, &any = kJoin<Element, kTakesAnyC<Element>>;
  for (const auto kernel : {rows[0], rows[1], any[0], any[1]}) {
    const cudaError_t error = cudaFuncGetAttributes(&unused, kernel);
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

template <class Element>
cudaError_t join(const Joined& p) {
  constexpr int kColumns = kJoinGroups * 8;
  const int64_t warps = (p.args.rows + kStoreRows - 1) / kStoreRows * ((p.args.n + kColumns - 1) / kColumns);
  const bool any_c = p.args.c_m_major || p.args.epilogue.input_across;
  const auto kernel = (any_c ? kJoin<Element, kTakesAnyC<Element>> : kJoin<Element, false>)[p.parts > kFew];
  return launch_kernel(kernel, static_cast<int>((warps + kJoinWarps - 1) / kJoinWarps), kJoinWarps * 32, 0,
                       p.args.stream, {/*overlap=*/true}, p);
}

template cudaError_t prepare_join<float>();
template cudaError_t prepare_join<cutlass::bfloat16_t>();
template cudaError_t prepare_join<cutlass::half_t>();
template cudaError_t join<float>(const Joined&);
template cudaError_t join<cutlass::bfloat16_t>(const Joined&);
template cudaError_t join<cutlass::half_t>(const Joined&);

}  // namespace wgmma_scatter_kernel
}  // namespace sparsek::cuda
