// SPDX-License-Identifier: Apache-2.0
#include "cuda/dmma_packed_row.cuh"

namespace sparsek::cuda {
namespace dmma_packed_kernel {

constexpr int kJoinWarps = 4;

// A warp has 32 columns of a row.
__global__ void __launch_bounds__(32 * kJoinWarps) join_kernel(const __grid_constant__ Params p, int tile_n) {
  const LaunchArgs& args = p.args;
  const int64_t warp = int64_t(blockIdx.x) * kJoinWarps + threadIdx.x / 32;
  const int lane = threadIdx.x % 32, chunks = int((args.n + 31) / 32), chunk = int(warp % chunks);
  // Every thread waits: the kernel launched after this one relies on the kernel before it as well.
  wait_for_previous_launch();
  const int64_t row = warp / chunks;
  if (row >= args.rows) return;
  const int64_t tile = row / kTileM + int64_t(p.groups) * (chunk * 32 / tile_n);
  const double* const from = p.sums + (tile * kTileM + row % kTileM) * tile_n + chunk * 32 % tile_n + lane;
  const int64_t to_next = int64_t(p.groups) * p.panels * kTileM * tile_n;
  double sum = 0;
#pragma unroll 4
  for (int part = 0; part < p.parts; ++part) sum += __ldcg(from + part * to_next);
  const bool again =
      store_row(p, row, chunk * 32 + lane, sum, is_plain<double>(args.epilogue), alpha_of(args.epilogue));
  if (again && lane == 0) atomicAdd(args.recomputed, 1ull);
}

cudaError_t prepare_join() {
  cudaFuncAttributes unused;
  return cudaFuncGetAttributes(&unused, join_kernel);
}

cudaError_t join(const Params& p, int tile_n) {
  const int64_t warps = p.args.rows * ((p.args.n + 31) / 32);
  return launch_kernel(join_kernel, static_cast<int>((warps + kJoinWarps - 1) / kJoinWarps), 32 * kJoinWarps, 0,
                       p.args.stream, {/*overlap=*/true}, p, tile_n);
}

}  // namespace dmma_packed_kernel
}  // namespace sparsek::cuda
