// SPDX-License-Identifier: Apache-2.0
// Kernel family "planes_packed": fp32 on tensor cores for blocks of any size, single nonzeros too, by many columns.
//
// Of small blocks, the 128 rows of a tile have most columns of A between them, so the product takes little longer than
// a dense one of these columns. Other kernels first write A to dense tiles of planes (pack_planes.h), unless the plan
// keeps them, and B's planes (planes.h); plane_tile.cuh multiplies them. Strips of 16 columns in which no row of a
// half of the tile has a block are left out for that half.
//
//   A   stage (half, plane, 64 rows, 16), K-major, 32-byte swizzle; by bulk copies
//   B   stage (plane, 2 chunks of 64 columns, 16, 64), N-major, 128-byte swizzle; by one bulk copy
//   C   (M, N):(ldc, 1) from registers: any rows, M, N, pitch and alignment
//
// Zeros times Inf or NaN are NaN, and planes of Inf say little: a warp computes the groups of 8 columns of its 16 rows
// with a sum that is not finite again, from the blocks alone (planes_packed_again.cuh).
#pragma once

#include <algorithm>

#include "cuda/chunk_args.h"
#include "cuda/dependent_launch.cuh"
#include "cuda/launch.cuh"
#include "cuda/nan_sums.cuh"
#include "cuda/pack_planes.h"
#include "cuda/plane_tile.cuh"
#include "cuda/planes_packed_again.cuh"
#include "cuda/row_store.cuh"
#include "cuda/scatter_join.cuh"
#include "cutlass/arch/reg_reconfig.h"

namespace sparsek::cuda {
namespace planes_packed_kernel {

using namespace planes_kernel;

constexpr int kStageK = kPlaneStripColumns;
using Bytes = PieceBytes<kStageK>;

struct Params {
  LaunchArgs args;
  RowChunks rows;
  PlaneSizes sizes;  // of B
  PlaneMemory planes;
  PlaneStripMemory strips;
  float4* sums;  // of the parts of tiles, see scatter_join.cuh
  int groups, panels;
  int parts_of_tile;  // along K
  int tiles;          // or parts of them, if there is more than one of each
  int strips_of_group, parts;
  int most_aside;   // parts of its sums that a tile sets aside
  int64_t steps_b;  // pieces of a panel of B
  int64_t ready;    // panels of B whose planes are there when the kernel begins
  bool aligned_b;
};

template <int Stages>
struct SharedStorage {
  alignas(1024) uint8_t b[Stages][Bytes::kB];
  alignas(1024) uint8_t a[Stages][kHalves][Bytes::kA];
  // Bit h: half h of the rows has a block. Above: of a tile's first stage, how many it has; a tile without any has one
  // stage, which says 0.
  uint32_t present[Stages];
  int tile_of_warp[kConsumerWarps];  // what a warp does not need while it sums up: there are no registers for it
  cutlass::arch::ClusterTransactionBarrier full[Stages];
  cutlass::arch::ClusterBarrier empty[Stages];
};

// Tile t is of row group t % groups: CTAs that run together read the same columns of B. Those in parts come with all
// first parts, then with all next ones, and a CTA has but one.
struct Place {
  int group, panel;
  __device__ Place(const Params& p, int tile) : group(tile % p.groups), panel(tile / p.groups) {
    if (p.parts_of_tile > 1) panel %= p.panels;
  }
};

constexpr uint32_t kFirstHalves = 0x5555;  // of the strips of a part
static_assert(kHalves == 2 && kPartStrips == 8);

// Bit 2 s: strip s of a part has a block.
__device__ inline uint32_t strips_of(uint32_t halves) { return (halves | halves >> 1) & kFirstHalves; }

// By a whole warp: starts the copies of the stages of the CTA's tiles.
template <int Stages>
__device__ void produce(const Params& p, SharedStorage<Stages>& shared, int lane) {
  const uint32_t first_full = shared_address(shared.full), first_empty = shared_address(shared.empty);
  const uint32_t first_present = shared_address(shared.present);
  const uint32_t first_a = shared_address(shared.a), first_b = shared_address(shared.b);
  RingState<Stages> state;
#pragma unroll 1
  for (int tile = blockIdx.x; tile < p.tiles; tile += gridDim.x) {
    const Place place(p, tile);
    const uint16_t* const of_parts = p.strips.halves + int64_t(place.group) * p.parts;
    const auto read = [&](int part) { return part < p.parts ? uint32_t(__ldg(of_parts + part)) : 0; };
    uint32_t stages = 0;
#pragma unroll 1
    for (int part = lane; part - lane < p.parts; part += 32) stages += __popc(strips_of(read(part)));
    stages = __reduce_add_sync(kWarp, stages);
    uint32_t skipped = 0;  // stages of the parts before
    if (p.parts_of_tile > 1) {
      const uint32_t part = blockIdx.x / (p.groups * p.panels);
      skipped = stages * part / p.parts_of_tile;
      stages = stages * (part + 1) / p.parts_of_tile - skipped;
    }
    if (lane == 0) {
      if (place.panel >= p.ready && stages > 0) wait_for_planes(p, place.panel);
      if (stages == 0) {
        wait_for_phase(first_empty + state.stage * kBarrierBytes, state.phase ^ 1);
        store_word(first_present + state.stage * 4, 0);
        arrive_in_cluster<1>(first_full + state.stage * kBarrierBytes);
      }
    }
    __syncwarp();
    if (stages == 0) {
      ++state;
      continue;
    }
    uint32_t said = stages << kHalves;  // with the first stage
    uint32_t left_of_tile = stages;
    const char* const a = p.strips.tiles + int64_t(place.group) * p.strips_of_group * kPlaneStripBytes;
    const char* const b = p.planes.b + int64_t(place.panel) * p.steps_b * Bytes::kB;
#pragma unroll 1
    for (int first = 0; first < p.parts && left_of_tile > 0; first += 32) {
      const uint32_t of_lane = read(first + lane);
#pragma unroll 1
      for (uint32_t left = __ballot_sync(kWarp, of_lane != 0); left != 0; left &= left - 1) {
        const int part = __ffs(left) - 1;
        const uint32_t halves = __shfl_sync(kWarp, of_lane, part);
        uint32_t strips = strips_of(halves);
        if (skipped > 0) {
          const uint32_t here = min(skipped, uint32_t(__popc(strips)));
          for (uint32_t i = 0; i < here; ++i) strips &= strips - 1;
          skipped -= here;
        }
#pragma unroll 1
        for (; strips != 0 && left_of_tile > 0; strips &= strips - 1, --left_of_tile, ++state) {
          const int bit = __ffs(strips) - 1, strip = (first + part) * kPartStrips + bit / kHalves;
          if (lane == 0) {
            const uint32_t present = halves >> bit & 3, full = first_full + state.stage * kBarrierBytes;
            wait_for_phase(first_empty + state.stage * kBarrierBytes, state.phase ^ 1);
            store_word(first_present + state.stage * 4, said | present);
            arrive_and_expect(full, __popc(present) * Bytes::kA + Bytes::kB);
            copy_to_shared(first_b + state.stage * Bytes::kB, b + int64_t(strip) * Bytes::kB, Bytes::kB, full);
            const int half = present == 2 ? 1 : 0;
            copy_to_shared(first_a + (state.stage * kHalves + half) * Bytes::kA,
                           a + int64_t(strip) * kPlaneStripBytes + half * Bytes::kA, __popc(present) * Bytes::kA, full);
          }
          __syncwarp();
          said = 0;
        }
      }
    }
  }
}

// Stores a warp's sums of a tile, and returns the next one. The number of the thread is read anew, or what depends on
// it would be kept in registers from one tile to the next.
template <int Stages>
__device__ int end_tile(const Params& p, SharedStorage<Stages>& shared, bool finite, PlaneSums& whole) {
  const LaunchArgs& args = p.args;
  const int thread = read_thread(), lane = thread % 32, warp = (thread - (kThreads - kPlaneConsumers)) / 32;
  const int tile = shared.tile_of_warp[warp], next = tile + gridDim.x;
  __syncwarp();
  if (lane == 0) shared.tile_of_warp[warp] = next;
  const Place place(p, tile);
  const uint32_t first_row = uint32_t(place.group) * kTileM + warp * 16, first_col = uint32_t(place.panel) * kPanelN;
  const uint32_t row[2] = {first_row + lane / 4, first_row + lane / 4 + 8};
  uint32_t again = 0;  // groups of 8 columns
  if (!finite) {
#pragma unroll
    for (int i = 0; i < kPlaneSums; ++i) whole[i / 4][i % 4] += whole[i / 4][i % 4] * 0.f;  // NaN in place of Inf
    if (p.parts_of_tile == 1) again = groups_with_nan(args, whole, row, first_col);
    if (again != 0 && lane == 0) atomicAdd(args.recomputed, 1ull);
  }
  if (p.parts_of_tile > 1) {
    wgmma_scatter_kernel::leave_sums(args, p.sums, whole, first_row, first_col, lane);
    return next;
  }
  store_rows<float, true>(args, whole, row, first_col, lane, again);
  if (again != 0) compute_again(args, p.rows, first_row, first_col, lane, again);
  return next;
}

template <int Stages>
__device__ void consume(const Params& p, SharedStorage<Stages>& shared, int warp, int lane) {
  if (p.parts_of_tile > 1) allow_dependent_launch();  // of the kernel that joins them
  RingState<Stages> state;
  if (lane == 0) shared.tile_of_warp[warp] = blockIdx.x;
#pragma unroll 1
  for (int tile = blockIdx.x; tile < p.tiles;) {
    wait_for_phase(shared_address(shared.full) + state.stage * kBarrierBytes, state.phase);
    const int stages = int(read_by_one(&shared.present[state.stage], lane) >> kHalves);
    if (stages == 0) {
      __syncwarp();
      if (lane == 0) arrive_in_cluster<1>(shared_address(shared.empty) + state.stage * kBarrierBytes);
      ++state;
    }
    PlaneSums whole;
    const bool finite = sum_stages<kStageK>(p, shared, state, stages, warp, lane, whole);
    __syncwarp();
    tile = end_tile(*read_here(&p), shared, finite, whole);
  }
}

template <int Stages>
__global__ void __launch_bounds__(kThreads, 1) kernel(const __grid_constant__ Params p) {
  extern __shared__ __align__(1024) uint8_t memory[];
  auto& shared = *reinterpret_cast<SharedStorage<Stages>*>(memory);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (threadIdx.x == 0) {
    for (int s = 0; s < Stages; ++s) {
      shared.full[s].init(1);
      shared.empty[s].init(kConsumerWarps);
    }
    cutlass::arch::fence_barrier_init();
  }
  // Nothing before this touches memory of other kernels.
  wait_for_previous_launch();
  __syncthreads();
  if (warp < 4) {
    cutlass::arch::warpgroup_reg_dealloc<kProducerRegisters>();
    if (warp == 0) produce(p, shared, lane);
    if (warp > 0 && p.ready < p.sizes.panels_b()) make_rest<kStageK>(p, lane);
  } else {
    cutlass::arch::warpgroup_reg_alloc<kConsumerRegisters>();
    consume(p, shared, warp - 4, lane);
  }
}

}  // namespace planes_packed_kernel

template <class Config>
struct PlanesPackedKernel {
  static_assert(Config::kTileM == planes_kernel::kTileM && Config::kTileN == planes_kernel::kPanelN &&
                Config::kTileK == kPlaneStripColumns);
  static constexpr int kSharedBytes = sizeof(planes_packed_kernel::SharedStorage<Config::kStages>);
  static constexpr auto kKernel = planes_packed_kernel::kernel<Config::kStages>;

  static cudaError_t prepare() {
    cudaError_t error = cudaFuncSetAttribute(kKernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
    if (error == cudaSuccess) error = prepare_planes();
    if (error == cudaSuccess) error = wgmma_scatter_kernel::prepare_join<float>();
    return error == cudaSuccess ? prepare_pack_planes() : error;
  }

  // Of B's planes, and of sums that are set aside: as of a matrix without blocks.
  static PlaneSizes plane_sizes(const LaunchArgs& args) {
    return {kPlaneStripColumns, 0, 0, kPieceRows, kPlaneStripColumns, args.cols, args.n, args.workers};
  }

  static int64_t bytes_of_sums(const LaunchArgs& args, const PlaneStripSizes& strips) {
    const int64_t parts = args.cluster > 1 ? strips.groups * plane_sizes(args).panels_b() * args.cluster : 0;
    return wgmma_scatter_kernel::bytes_of_sums(parts, Config::kTileN);
  }

  static size_t layout_bytes(const LaunchArgs& args) {
    return static_cast<size_t>(PlaneStripSizes(args.rows, args.cols, args.block_m).bytes());
  }

  static cudaError_t lay_out(const LaunchArgs& args, void* to) {
    const PlaneStripSizes strips(args.rows, args.cols, args.block_m);
    return pack_planes(args, strips, {strips, to});
  }

  static size_t workspace_bytes(const LaunchArgs& args) {
    const PlaneStripSizes strips(args.rows, args.cols, args.block_m);
    return (args.laid_out != nullptr ? 0 : layout_bytes(args)) + static_cast<size_t>(bytes_of_sums(args, strips)) +
           PlaneMemory::bytes(plane_sizes(args));
  }

  static cudaError_t launch(const LaunchArgs& args) {
    namespace k = planes_packed_kernel;
    const PlaneStripSizes strips(args.rows, args.cols, args.block_m);
    const PlaneSizes sizes = plane_sizes(args);
    const bool lays_out = args.laid_out == nullptr;
    void* const of_a = lays_out ? args.workspace : args.laid_out;
    char* const sums = static_cast<char*>(args.workspace) + (lays_out ? strips.bytes() : 0);
    const auto groups = static_cast<int>(strips.groups), panels = static_cast<int>(sizes.panels_b());
    k::Params p = {args,
                   *args.rows_in_chunks,
                   sizes,
                   {sizes, sums + bytes_of_sums(args, strips)},
                   {strips, of_a},
                   reinterpret_cast<float4*>(sums),
                   groups,
                   panels,
                   args.cluster,
                   groups * panels * args.cluster,
                   static_cast<int>(strips.strips),
                   static_cast<int>(strips.parts),
                   sizes.most_aside(),
                   sizes.steps_b(),
                   k::panels_before(args, panels),
                   aligned_b(args)};
    cudaError_t error = args.nnzb > 0 ? make_planes(args, sizes, p.planes, p.ready) : cudaSuccess;
    if (error == cudaSuccess && lays_out) error = pack_planes(args, strips, p.strips);
    if (error != cudaSuccess) return error;
    const int ctas = args.cluster > 1 ? p.tiles : std::min(args.workers, p.tiles);
    error = launch_kernel(kKernel, ctas, k::kThreads, kSharedBytes, args.stream, {/*overlap=*/true}, p);
    if (error != cudaSuccess || args.cluster == 1) return error;
    return wgmma_scatter_kernel::join<float>(
        {args, *args.rows_in_chunks, p.sums, groups, groups * panels, args.cluster, Config::kTileN / 8});
  }
};

template <class Config>
constexpr KernelOps planes_packed_ops() {
  using K = PlanesPackedKernel<Config>;
  KernelOps ops = {&K::prepare,
                   &K::launch,
                   /*ctas_per_sm=*/1,
                   /*tensor_cores=*/false,  // no step's error is above that of fp32: docs/notes/planes-kernel.md
                   /*tma_b=*/false,
                   /*any_rows=*/false,
                   /*align_values=*/sizeof(float),
                   /*any_epilogue=*/true};
  ops.workspace_bytes = &K::workspace_bytes;
  ops.takes_chunks = true;
  ops.most_block = kMostPlaneStripBlock;
  ops.layout_bytes = &K::layout_bytes;
  ops.lay_out = &K::lay_out;
  return ops;
}

}  // namespace sparsek::cuda
