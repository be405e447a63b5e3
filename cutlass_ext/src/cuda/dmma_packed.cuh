// SPDX-License-Identifier: Apache-2.0
// Kernel family "dmma_packed": fp64 on its tensor cores for blocks of any size, single nonzeros too, by many columns.
//
// Of small blocks, the 64 rows of a tile have most columns of A between them, so the product takes little longer than a
// dense one of these columns. Another kernel first writes A to dense tiles in the product's workspace (pack_fp64.h);
// what follows is a product of those, as cuda/dmma.cuh computes it. Strips of 16 columns in which no row of the tile
// has a block are left out, and so are the units of 8 rows without one in a strip.
//
//   A   stage (64, 16):(16, 1), rows swizzled over 128 bytes; by one bulk copy
//   B   stage (TileN / 16, 16, 16):(256, 16, 1), rows swizzled over 128 bytes; by TMA
//   C   (M, N):(ldc, 1) by way of shared memory: any rows, M, N, pitch and alignment
//
// Zeros times Inf or NaN are NaN: where a row has NaN among a warp's sums, the warp computes its 32 columns again from
// the blocks alone.
#pragma once

#include "cuda/chunk_args.h"
#include "cuda/dmma.cuh"
#include "cuda/pack_fp64.h"

namespace sparsek::cuda {
namespace dmma_packed_kernel {

using namespace dmma_kernel;

using F = Format<double>;

struct Params {
  CUtensorMap map_b;  // (16, K, N / 16) where N is a multiple of 16, else (N, K, 1)
  LaunchArgs args;
  RowChunks rows;
  StripSizes sizes;
  StripMemory strips;
  int groups, tiles;
  int chunks_of_box;      // of B
  bool chunks_are_outer;  // map_b has a dimension for chunks
};

// Tile t is of row group t % groups: CTAs that run together read the same columns of B.
struct Place {
  int group, panel;
  __device__ Place(const Params& p, int tile) : group(tile % p.groups), panel(tile / p.groups) {}
};

// What a thread keeps of its tile for copies. In shared memory: there are no registers for it.
struct alignas(16) StripTurn {
  uint32_t first;   // strip of the row group, counted over all row groups
  uint32_t listed;  // and the number of a stage: where its strip is listed
  int32_t chunk;    // of C, of the lane's box
  int32_t boxes;    // of B
  int32_t tile;
};

// The copies that a warp starts of a tile: those of every kWarps-th strip.
template <int Warps, class Storage>
struct StripCopies {
  static constexpr int kStages = Storage::kStages;
  static_assert((kStages & (kStages - 1)) == 0);
  const Params& p;
  const uint32_t base;  // of shared memory
  uint32_t end;         // of the tile's stages, which are counted from the CTA's first tile on
  uint32_t next;        // the warp's next one
  uint32_t strip;       // as listed: read ahead, so that nothing waits for it
  StripTurn& turn;

  __device__ StripCopies(const Params& params, Storage& shared, uint32_t of_shared, int tile, uint32_t begin)
      : p(params), base(of_shared), next(begin + threadIdx.x / 32), turn(shared.turns[threadIdx.x]) {
    constexpr int kChunks = Storage::kBytesB / kChunkBytes;  // of a tile
    const Place place(p, tile);
    end = begin + __ldg(p.strips.totals + place.group);
    const int64_t chunks = (p.args.n + F::kChunkColumns - 1) / F::kChunkColumns - int64_t(place.panel) * kChunks;
    const int boxes = (int(min(int64_t(kChunks), chunks)) + p.chunks_of_box - 1) / p.chunks_of_box;
    const uint32_t first = place.group * uint32_t(p.sizes.strips);
    turn = {first, first - begin, place.panel * kChunks + int(threadIdx.x % 32), boxes, tile};
    read(first - begin);
  }

  __device__ void read(uint32_t listed) { strip = next < end ? __ldg(p.strips.listed + (listed + next)) : 0; }

  // Starts those of the warp's next stage if it is before `limit`.
  __device__ void start(uint32_t limit) {
    if (next >= min(limit, end)) return;
    const int lane = threadIdx.x % 32;
    const StripTurn own = turn;
    const int stage = next % kStages, number = strip & ((1u << kStripBits) - 1);
    const uint32_t full = Storage::full_at(base, stage);
    if (lane == 0) {
      wait_for_phase(Storage::empty_at(base, stage), next / kStages % 2 ^ 1);
      store_word(Storage::present_at(base, stage), strip >> kStripBits);
      arrive_and_expect(full, own.boxes * p.chunks_of_box * kChunkBytes + F::kBytesA);
      copy_to_shared(Storage::a_at(base, stage), p.strips.tiles + int64_t(own.first + number) * kStripBytes, F::kBytesA,
                     full);
    }
    __syncwarp();
    if (lane < own.boxes) {
      load_box(p.map_b, full, uint64_t(cute::TMA::CacheHintSm90::EVICT_NORMAL),
               Storage::b_at(base, stage) + lane * kChunkBytes,
               {p.chunks_are_outer ? 0 : own.chunk * F::kChunkColumns * F::kWords, number * kStageK,
                p.chunks_are_outer ? own.chunk : 0});
    }
    next += Warps;
    read(own.listed);
  }
};

// The sum of a row of C in a lane's column, from the blocks that exist alone. For whole warps; `inside`: the lane has a
// column.
__device__ inline double compute_again(const Params& p, int64_t row, int64_t col, bool inside) {
  constexpr int kAtOnce = 16;      // entries whose columns are a step: their loads are under way together
  constexpr int kMostBetween = 4;  // steps from a look whether all lanes have NaN to the next one
  const LaunchArgs& args = p.args;
  const int64_t block_row = row / args.block_m, in_block = row % args.block_m;
  const int begin = __ldg(p.rows.row_ptr + block_row), end = __ldg(p.rows.row_ptr + block_row + 1);
  const bool in_place = __ldg(&p.rows.chunks->entry_end) >= 0;
  const auto* const b = static_cast<const double*>(args.b) + (inside ? col : 0);
  double sum = 0;
  // Where NaN or Inf are everywhere, the first steps make all sums NaN, which no later one changes.
  int between = 1, left = 1;
#pragma unroll 1
  for (int first = begin; first < end; first += kAtOnce) {
    int64_t k[kAtOnce];
    const double* a[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const int e = min(first + i, end - 1);
      k[i] = __ldg(args.entry_k + e);
      const int64_t block = in_place ? e : __ldg(args.entry_block + e);
      a[i] = static_cast<const double*>(args.values) + (block * args.block_m + in_block) * args.block_k;
    }
#pragma unroll 1
    for (int j = 0; j < args.block_k; ++j) {
      double of_a[kAtOnce], of_b[kAtOnce];
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        of_a[i] = __ldg(a[i] + j);
        of_b[i] = __ldg(b + min(k[i] + j, args.cols - 1) * args.ldb);
      }
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        if (first + i < end && k[i] + j < args.cols) sum = fma(of_a[i], of_b[i], sum);
      }
      if (--left == 0) {
        if (__all_sync(0xffffffffu, isnan(sum) || !inside)) return sum;
        left = between = min(2 * between, kMostBetween);
      }
    }
  }
  return sum;
}

// A warp's sums of a tile to C, by way of `own`, its part of shared memory, which nothing else uses meanwhile.
template <int TileN, int Units>
__device__ void store_tile(const Params& p, const Place& place, const double (&acc)[Units][kMmasAcross][4], double* own,
                           int warp, int lane) {
  const LaunchArgs& args = p.args;
  sums_to_shared(acc, own, lane);
  const int64_t col = int64_t(place.panel) * TileN + warp % kWarpsAcross<TileN> * kColumnsOfWarp + lane;
  const bool inside = col < args.n;
  const int64_t first = int64_t(place.group) * kTileM + warp / kWarpsAcross<TileN> * (Units * kUnitRows);
  const int count = int(min(int64_t(Units * kUnitRows), args.rows - first));
  const bool plain = is_plain<double>(args.epilogue);
  const double alpha = alpha_of(args.epilogue);
  bool any_again = false;
#pragma unroll 1
  for (int r = 0; r < count; ++r) {
    double sum = own[r * kPitchOfSums + lane];
    if (__any_sync(0xffffffffu, inside && isnan(sum))) {
      const double again = compute_again(p, first + r, col, inside);
      if (isnan(sum)) sum = again;
      any_again = true;
    }
    if (!inside) continue;
    if (plain) {
      __stcs(static_cast<double*>(args.c) + (first + r) * args.ldc + col, alpha * sum);
    } else {
      write_element(args, first + r, col, sum);
    }
  }
  if (any_again && lane == 0) atomicAdd(args.recomputed, 1ull);
}

template <int TileN, int Stages>
__global__ void __launch_bounds__(32 * kWarps<TileN>, kCtasPerSm<TileN>) kernel(const __grid_constant__ Params p) {
  using Storage = SharedStorage<double, TileN, Stages, StripTurn>;
  static_assert(F::kBytesA == kStripBytes && kTileM == kStripRows && kStageK == kStripColumns);
  extern __shared__ __align__(1024) uint8_t memory[];
  auto& shared = *reinterpret_cast<Storage*>(memory);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  begin<TileN>(shared);
  const uint32_t base = shared_address(memory);
  uint32_t number = 0;  // of the next stage
  for (int tile = blockIdx.x; tile < p.tiles; tile = shared.turns[threadIdx.x].tile + gridDim.x) {
    StripCopies<kWarps<TileN>, Storage> copies(p, shared, base, tile, number);
    compute_tile<TileN, Storage, /*MayBeNarrow=*/false>(
        copies, memory, number, warp, lane,
        [&](const auto& acc, double* own) { store_tile<TileN>(p, {p, copies.turn.tile}, acc, own, warp, lane); });
  }
}

}  // namespace dmma_packed_kernel

template <class Config>
struct DmmaPackedKernel {
  static_assert(Config::kTileM == kStripRows && Config::kTileK == kStripColumns);
  static constexpr int kTileN = Config::kTileN;
  static constexpr auto kKernel = dmma_packed_kernel::kernel<kTileN, Config::kStages>;
  static constexpr int kSharedBytes =
      sizeof(dmma_kernel::SharedStorage<double, kTileN, Config::kStages, dmma_packed_kernel::StripTurn>);
  static constexpr int kCtas = dmma_kernel::kCtasPerSm<kTileN>;
  static_assert(kCtas * (kSharedBytes + 1024) <= 228 * 1024);

  static cudaError_t prepare() {
    const cudaError_t error = cudaFuncSetAttribute(kKernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
    return error == cudaSuccess ? prepare_pack_fp64() : error;
  }

  static size_t workspace_bytes(const LaunchArgs& args) {
    return static_cast<size_t>(strip_sizes(args.rows, args.cols, args.block_m).bytes());
  }

  static cudaError_t launch(const LaunchArgs& args) {
    const StripSizes sizes = strip_sizes(args.rows, args.cols, args.block_m);
    dmma_packed_kernel::Params p = {{}, args, *args.rows_in_chunks, sizes, {sizes, args.workspace}, 0, 0, 0, false};
    p.groups = static_cast<int32_t>(sizes.groups);
    p.tiles = static_cast<int32_t>(p.groups * ((args.n + kTileN - 1) / kTileN));
    cudaError_t error = dmma_kernel::make_map_of_b<double>(p, kTileN, args.workspace);
    if (error == cudaSuccess) error = pack_fp64(args, sizes, p.strips);
    if (error != cudaSuccess) return error;
    return launch_kernel(kKernel, std::min(args.workers, p.tiles), 32 * dmma_kernel::kWarps<kTileN>, kSharedBytes,
                         args.stream, {/*overlap=*/true}, p);
  }
};

template <class Config>
constexpr KernelOps dmma_packed_ops() {
  using K = DmmaPackedKernel<Config>;
  KernelOps ops = {&K::prepare,
                   &K::launch,
                   /*ctas_per_sm=*/K::kCtas,
                   /*tensor_cores=*/true,
                   /*tma_b=*/true,
                   /*any_rows=*/false,
                   /*align_values=*/8,
                   /*any_epilogue=*/true};
  ops.workspace_bytes = &K::workspace_bytes;
  ops.takes_chunks = true;
  ops.most_block = kMostPackedBlock;
  return ops;
}

}  // namespace sparsek::cuda
