// SPDX-License-Identifier: Apache-2.0
// SPARSEK_SDD by wgmma, of the tiles of cuda/sampled_tile.h, which cuda/sampled_list.h lists. Of a CTA's first
// warpgroup, one warp takes tiles and the others start the loads of a ring of stages. Each of the other two warpgroups
// multiplies its strip by its columns of Y, which follow each other in a stage, and stores its cells while the next
// tile is loaded.
//
// X and Y are read as they lie, 64 deep, with 128-byte swizzle. A stage has as many such turns as there is room for, so
// that loads of small tiles are not too few to hide their latency:
//
//   stage   (turn)  x   (strip, 64, 64)      MN-major: (strip, depth, 64)
//                   y   (column, Width, 64)  MN-major: (column, depth, 64), of a Width of 64 only
#pragma once

#include "cuda/dependent_launch.cuh"
#include "cuda/launch.cuh"
#include "cuda/sampled_loads.cuh"
#include "cuda/tensor_map.h"
#include "cuda/wgmma.cuh"
#include "cute/arch/cluster_sm90.hpp"
#include "cutlass/arch/reg_reconfig.h"
#include "plan/work_tile.h"

namespace sparsek::cuda {
namespace sampled_wgmma_kernel {

// From a depth of kMmaDepth of an operand to the next.
template <Major M>
constexpr uint32_t kStepBytes = M == Major::K ? kMmaDepth * 2 : kMmaDepth * 64 * 2;

constexpr int kMostGroups = 32;  // of a wgmma

template <class C>
using TileOfWarp = Tile<C, WordsOfWarp>;

// What a warp knows of itself.
struct Place {
  int warpgroup, warp, lane;  // warp: of the warpgroup
};

// The ring as a consumer warp sees it.
template <class C>
struct FullStages {
  RingState<kStages> state;
  int in_stage = 0;  // turns
  uint32_t first_full, first_empty, first_stage;

  __device__ explicit FullStages(Shared<C>& shared)
      : first_full(shared_address(shared.full)),
        first_empty(shared_address(shared.empty)),
        first_stage(shared_address(shared.stages)) {}
  // The next turn, of `bytes`.
  __device__ uint32_t wait(uint32_t bytes) const {
    if (in_stage == 0) wait_for_phase(first_full + state.stage * kBarrierBytes, state.phase);
    return first_stage + state.stage * kStageBytes + in_stage * bytes;
  }
  __device__ void release(int stage, int lane) const {
    __syncwarp();
    if (lane == 0) arrive_in_cluster<1>(first_empty + stage * kBarrierBytes);
  }
  __device__ void go_on(int of_stage) {
    if (++in_stage == of_stage) end_stage();
  }
  __device__ void end_stage() {
    in_stage = 0;
    ++state;
  }
};

// Adds the first 8 Groups columns of a warpgroup's part of the stages.
template <class Element, int Groups, class C>
__device__ void add_stages(float (&acc)[C::kGroups][4], FullStages<C>& ring, const TileOfWarp<C>& tile, int turns,
                           const Place& place) {
  auto& sums = reinterpret_cast<float(&)[Groups][4]>(acc);
  const uint32_t own_x = tile.strip_of(place.warpgroup) * kStripBytes;
  const uint32_t own_y = tile.strips * kStripBytes + tile.column_of(place.warpgroup) * C::kColumnBytes;
  const uint32_t bytes = tile.bytes();
  const int of_stage = tile.turns_of_stage();
#pragma unroll 1
  for (int turn = 0; turn < turns; ++turn) {
    const uint32_t at = ring.wait(bytes);
    const uint64_t x = wgmma_descriptor_a(at + own_x);
    const uint64_t y = wgmma_descriptor_b(at + own_y, C::kColumnBytes);
    wgmma_fence(sums);
    cute::warpgroup_arrive();
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      const uint64_t x_step = advanced(x, step * kStepBytes<C::kX>), y_step = advanced(y, step * kStepBytes<C::kY>);
      if constexpr (Groups <= kMostGroups) {
        wgmma_ss<Element, C::kY, C::kX>(sums, x_step, y_step);
      } else {  // more columns than an instruction has
        constexpr int kFirst = 4 * C::kWidth / 8;
        wgmma_ss<Element, C::kY, C::kX>(reinterpret_cast<float(&)[kFirst][4]>(sums), x_step, y_step);
        wgmma_ss<Element, C::kY, C::kX>(reinterpret_cast<float(&)[Groups - kFirst][4]>(sums[kFirst]), x_step,
                                        advanced(y_step, 4 * C::kColumnBytes));
      }
    }
    cute::warpgroup_commit_batch();
    wgmma_fence(sums);
    cute::warpgroup_wait<1>();
    // All turns of the stage before have been read.
    if (ring.in_stage == 0 && turn > 0) ring.release(ring.state.previous(), place.lane);
    ring.go_on(of_stage);
  }
  cute::warpgroup_wait<0>();
  wgmma_fence(sums);
  if (ring.in_stage > 0) ring.end_stage();
  if (turns > 0) ring.release(ring.state.previous(), place.lane);
}

// Of a warpgroup without cells.
template <class C>
__device__ void pass_stages(FullStages<C>& ring, const TileOfWarp<C>& tile, int turns, int lane) {
  const int of_stage = tile.turns_of_stage();
  for (int turn = 0; turn < turns; turn += of_stage) {
    ring.wait(0);
    ring.release(ring.state.stage, lane);
    ring.end_stage();
  }
}

// Stores a warp's rows of the cells of its warpgroup.
template <class Element, class C>
__device__ void store_cells(const SampledArgs& p, const TileOfWarp<C>& tile, float (&acc)[C::kGroups][4],
                            uint8_t* buffer, const Place& place) {
  constexpr int kOfCell = C::kWidth / 8;
  const int row = tile.first_row(tile.strip_of(place.warpgroup)) + place.warp * 16;
  const int of_block = p.blocks_of_cell > 1 ? place.warp * 16 / p.block_m : 0;
  const int cells = tile.cells(place.warpgroup), first = tile.column_of(place.warpgroup);
  const auto part_of = [&](int cell) {
    const int column = tile.first_column(first + cell);
    return CellPart{tile.block(place.warpgroup, cell, p.blocks_of_cell, of_block), row % p.block_m, column % p.block_k,
                    static_cast<int>(p.rows) - row, static_cast<int>(p.cols) - column};
  };
  if (only_scales<Element>(p.epilogue) && p.whole_vectors) {
    const float alpha = alpha_of(p.epilogue);
#pragma unroll
    for (int cell = 0; cell < C::kCells; ++cell) {
      if (cell >= cells) break;
      const CellPart part = part_of(cell);
      if (part.block == kNoBlock) continue;
      auto& sums = reinterpret_cast<float(&)[kOfCell][4]>(acc[cell * kOfCell]);
#pragma unroll
      for (int i = 0; i < kOfCell * 4; ++i) sums[i / 4][i % 4] *= alpha;
      clear_beyond(sums, part, place.lane);
      store_vectors<Element>(p, sums, part, buffer, place.lane);
    }
    return;
  }
  // As in store_any: each turn moves the remaining sums to the registers that the code names.
#pragma unroll 1
  for (int cell = 0; cell < cells; ++cell) {
    const CellPart part = part_of(cell);
    float sums[kOfCell][4];
#pragma unroll
    for (int i = 0; i < kOfCell * 4; ++i) sums[i / 4][i % 4] = acc[i / 4][i % 4];
    if (part.block != kNoBlock) store_part<Element>(p, sums, part, buffer, place.lane);
#pragma unroll
    for (int i = 0; i < (C::kGroups - kOfCell) * 4; ++i) acc[i / 4][i % 4] = acc[i / 4 + kOfCell][i % 4];
  }
}

template <class Element, class C>
__device__ void consume(const SampledArgs& p, Shared<C>& shared, const Place& place) {
  const int turns = turns_of(p);
  const Releases<C> releases(shared);
  FullStages<C> ring(shared);
  uint8_t* const buffer = shared.buffers[place.warpgroup * 4 + place.warp];
  if (place.lane == 0) {
    for (int tile = 1 - kTiles; tile < 0; ++tile) releases.release(tile);
  }
  for (int t = 0;; ++t) {
    const TileOfWarp<C> tile({wait_for_tile(shared, t), place.lane});
    if (!tile.is_there()) return;
    float acc[C::kGroups][4] = {};
    switch ((tile.cells(place.warpgroup) * C::kWidth + 63) / 64) {
      case 0:
        pass_stages(ring, tile, turns, place.lane);
        break;
      case 1:
        add_stages<Element, 8>(acc, ring, tile, turns, place);
        break;
      case 2:
        add_stages<Element, 16>(acc, ring, tile, turns, place);
        break;
      case 3:
        add_stages<Element, 24>(acc, ring, tile, turns, place);
        break;
      case 4:
        add_stages<Element, 32>(acc, ring, tile, turns, place);
        break;
      default:
        if constexpr (C::kGroups > kMostGroups) add_stages<Element, C::kGroups>(acc, ring, tile, turns, place);
    }
    store_cells<Element>(p, tile, acc, buffer, place);
    __syncwarp();
    if (place.lane == 0) releases.release(t);
  }
}

template <class Element, class C>
__global__ void __launch_bounds__(kThreads, 1) kernel(const __grid_constant__ Params params) {
  extern __shared__ __align__(1024) uint8_t memory[];
  auto& shared = *reinterpret_cast<Shared<C>*>(memory);
  if (threadIdx.x == 0) {
    for (int s = 0; s < kStages; ++s) {
      shared.full[s].init(C::kLoaders);
      shared.empty[s].init(kConsumerWarps);
    }
    for (int t = 0; t < kTiles; ++t) {
      shared.known[t].init(1);
      shared.unused[t].init(C::kLoaders + kConsumerWarps);
    }
    cutlass::arch::fence_barrier_init();
  }
  // Nothing before this touches memory of other kernels.
  wait_for_previous_launch();
  __syncthreads();
  const int warp = __shfl_sync(0xffffffffu, threadIdx.x / 32, 0);
  if (warp < kProducers / 32) {
    cutlass::arch::warpgroup_reg_dealloc<kProducerRegisters>();
    if (warp == kReader) {
      if (cute::elect_one_sync()) read_tiles<C>(params.args, shared);
    } else if (warp < C::kLoaders) {
      if (cute::elect_one_sync()) start_loads<C>(params, shared, warp);
    }
  } else {
    cutlass::arch::warpgroup_reg_alloc<kConsumerRegisters>();
    consume<Element, C>(params.args, shared, {warp / 4 - 1, warp % 4, static_cast<int>(threadIdx.x % 32)});
  }
}

// Calls f with the Config of the operands' orders.
template <int Width, class Function>
cudaError_t with_majors(bool x_across, bool y_across, const Function& f) {
  if constexpr (Width == 64) {
    if (x_across && y_across) return f(Config<Width, Major::MN, Major::MN>{});
    if (y_across) return f(Config<Width, Major::K, Major::MN>{});
  }
  return x_across ? f(Config<Width, Major::MN, Major::K>{}) : f(Config<Width, Major::K, Major::K>{});
}

template <class Element, int Width>
inline Prepared prepared;

template <class Element, int Width>
cudaError_t prepare() {
  for (const bool x_across : {false, true}) {
    for (const bool y_across : {false, true}) {
      const cudaError_t error = with_majors<Width>(x_across, y_across, [](auto config) {
        using C = decltype(config);
        static_assert(sizeof(Shared<C>) <= 227 * 1024);
        return cudaFuncSetAttribute(kernel<Element, C>, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Shared<C>));
      });
      if (error != cudaSuccess) return error;
    }
  }
  return cudaSuccess;
}

template <class Element, int Width>
cudaError_t launch(const SampledArgs& args, cudaStream_t stream) {
  Params p = {};
  p.args = args;
  if (args.n > 0) {
    const auto make = [&](CUtensorMap* map, const void* of, int64_t rows, int64_t ld, bool across, int box_rows) {
      if (across) {
        return make_tensor_map(map, of, {{rows, args.n, 1}, {ld * 2, ld * 2 * args.n}}, {box_rows, kDepth, 1},
                               kRowBytes);
      }
      return make_tensor_map(map, of, {{args.n, rows, 1}, {ld * 2, ld * 2 * rows}}, {kDepth, box_rows, 1}, kRowBytes);
    };
    cudaError_t error = make(&p.map_x, args.x, args.rows, args.ldx, args.x_across, kStripRows);
    if (error == cudaSuccess) error = make(&p.map_y, args.y, args.cols, args.ldy, args.y_across, Width);
    if (error != cudaSuccess) return error;
  }
  return with_majors<Width>(args.x_across, args.y_across, [&](auto config) {
    using C = decltype(config);
    return launch_kernel(kernel<Element, C>, args.workers, kThreads, sizeof(Shared<C>), stream, {/*overlap=*/true}, p);
  });
}

template <int Width>
SampledOps ops(sparsek_dtype dtype) {
  using Bf16 = cutlass::bfloat16_t;
  using Fp16 = cutlass::half_t;
  if (dtype == SPARSEK_BF16) return {&prepared<Bf16, Width>, prepare<Bf16, Width>, launch<Bf16, Width>};
  return {&prepared<Fp16, Width>, prepare<Fp16, Width>, launch<Fp16, Width>};
}

}  // namespace sampled_wgmma_kernel
}  // namespace sparsek::cuda
