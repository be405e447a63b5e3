// SPDX-License-Identifier: Apache-2.0
// Kernel family "dmma_packed": fp64 on its tensor cores for blocks of any size, single nonzeros too, by many columns.
//
// Of small blocks, the 64 rows of a tile have most columns of A between them, so the product takes little longer than a
// dense one of these columns. Another kernel first writes A to dense tiles (pack_fp64.h), unless the plan keeps them;
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

#include "cuda/dmma_packed_row.cuh"

namespace sparsek::cuda {
namespace dmma_packed_kernel {

// Tile t is of row group t % groups: CTAs that run together read the same columns of B. Those in parts come with all
// first parts, then with all next ones, and a CTA has but one.
struct Place {
  int group, panel;
  __device__ Place(const Params& p, int tile) : group(tile % p.groups), panel(tile / p.groups) {
    if (p.parts > 1) panel %= p.panels;
  }
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
    const int total = __ldg(p.strips.totals + place.group), part = p.parts > 1 ? tile / (p.groups * p.panels) : 0;
    const int first_of_part = total * part / p.parts;
    end = begin + total * (part + 1) / p.parts - first_of_part;
    const int64_t chunks = (p.args.n + F::kChunkColumns - 1) / F::kChunkColumns - int64_t(place.panel) * kChunks;
    const int boxes = (int(min(int64_t(kChunks), chunks)) + p.chunks_of_box - 1) / p.chunks_of_box;
    const uint32_t first = place.group * uint32_t(p.sizes.strips);
    const uint32_t listed = first + first_of_part - begin;
    turn = {first, listed, place.panel * kChunks + int(threadIdx.x % 32), boxes, tile};
    read(listed);
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

// A warp's sums of a tile to C, by way of `own`, its part of shared memory, which nothing else uses meanwhile.
template <int TileN, int Units>
__device__ void store_tile(const Params& p, const Place& place, const double (&acc)[Units][kMmasAcross][4], double* own,
                           int warp, int lane) {
  const LaunchArgs& args = p.args;
  sums_to_shared(acc, own, lane);
  const int64_t col = int64_t(place.panel) * TileN + warp % kWarpsAcross<TileN> * kColumnsOfWarp + lane;
  const int64_t first = int64_t(place.group) * kTileM + warp / kWarpsAcross<TileN> * (Units * kUnitRows);
  const int count = int(min(int64_t(Units * kUnitRows), args.rows - first));
  const bool plain = is_plain<double>(args.epilogue);
  const double alpha = alpha_of(args.epilogue);
  bool any_again = false;
#pragma unroll 1
  for (int r = 0; r < count; ++r) {
    any_again |= store_row(p, first + r, col, own[r * kPitchOfSums + lane], plain, alpha);
  }
  if (any_again && lane == 0) atomicAdd(args.recomputed, 1ull);
}

// A warp's sums of a part of a tile, likewise, to p.sums.
template <int TileN, int Units>
__device__ void leave_sums(const Params& p, int tile, const double (&acc)[Units][kMmasAcross][4], double* own, int warp,
                           int lane) {
  sums_to_shared(acc, own, lane);
  const int64_t first = int64_t(tile) * kTileM + warp / kWarpsAcross<TileN> * (Units * kUnitRows);
  double* const to = p.sums + first * TileN + warp % kWarpsAcross<TileN> * kColumnsOfWarp + lane;
#pragma unroll 1
  for (int r = 0; r < Units * kUnitRows; ++r) __stcg(to + r * TileN, own[r * kPitchOfSums + lane]);
}

template <int TileN, int Stages>
__global__ void __launch_bounds__(32 * kWarps<TileN>, kCtasPerSm<TileN>) kernel(const __grid_constant__ Params p) {
  using Storage = SharedStorage<double, TileN, Stages, StripTurn>;
  static_assert(F::kBytesA == kStripBytes && kTileM == kStripRows && kStageK == kStripColumns);
  extern __shared__ __align__(1024) uint8_t memory[];
  auto& shared = *reinterpret_cast<Storage*>(memory);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  begin<TileN>(shared);
  if (p.parts > 1) allow_dependent_launch();  // of the kernel that joins them
  const uint32_t base = shared_address(memory);
  uint32_t number = 0;  // of the next stage
  for (int tile = blockIdx.x; tile < p.tiles; tile = shared.turns[threadIdx.x].tile + gridDim.x) {
    StripCopies<kWarps<TileN>, Storage> copies(p, shared, base, tile, number);
    compute_tile<TileN, Storage, /*MayBeNarrow=*/false>(copies, memory, number, warp, lane,
                                                        [&](const auto& acc, double* own) {
                                                          const int of = copies.turn.tile;
                                                          if (p.parts > 1) {
                                                            leave_sums<TileN>(p, of, acc, own, warp, lane);
                                                          } else {
                                                            store_tile<TileN>(p, {p, of}, acc, own, warp, lane);
                                                          }
                                                        });
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
    cudaError_t error = cudaFuncSetAttribute(kKernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
    if (error == cudaSuccess) error = dmma_packed_kernel::prepare_join();
    return error == cudaSuccess ? prepare_pack_fp64() : error;
  }

  static int64_t panels_of(const LaunchArgs& args) { return (args.n + kTileN - 1) / kTileN; }

  static size_t layout_bytes(const LaunchArgs& args) {
    return static_cast<size_t>(strip_sizes(args.rows, args.cols, args.block_m).bytes());
  }

  static cudaError_t lay_out(const LaunchArgs& args, void* to) {
    const StripSizes sizes = strip_sizes(args.rows, args.cols, args.block_m);
    return pack_fp64(args, sizes, {sizes, to});
  }

  // The layout of A, where it is not kept, and the sums of parts.
  static size_t workspace_bytes(const LaunchArgs& args) {
    const int64_t groups = (args.rows + kStripRows - 1) / kStripRows;
    const int64_t sums = args.cluster > 1 ? args.cluster * groups * panels_of(args) * kStripRows * kTileN : 0;
    return (args.laid_out != nullptr ? 0 : layout_bytes(args)) + static_cast<size_t>(sums) * sizeof(double);
  }

  static cudaError_t launch(const LaunchArgs& args) {
    const StripSizes sizes = strip_sizes(args.rows, args.cols, args.block_m);
    void* const strips = args.laid_out != nullptr ? args.laid_out : args.workspace;
    dmma_packed_kernel::Params p = {{}, args, *args.rows_in_chunks, sizes, {sizes, strips}};
    p.sums = reinterpret_cast<double*>(static_cast<char*>(args.workspace) +
                                       (args.laid_out != nullptr ? 0 : layout_bytes(args)));
    p.groups = static_cast<int32_t>(sizes.groups);
    p.panels = static_cast<int32_t>(panels_of(args));
    p.parts = args.cluster;
    p.tiles = p.groups * p.panels * p.parts;
    cudaError_t error = dmma_kernel::make_map_of_b<double>(p, kTileN, strips);
    if (error == cudaSuccess && args.laid_out == nullptr) error = pack_fp64(args, sizes, p.strips);
    if (error != cudaSuccess) return error;
    const int ctas = p.parts > 1 ? p.tiles : std::min(args.workers, p.tiles);
    error = launch_kernel(kKernel, ctas, 32 * dmma_kernel::kWarps<kTileN>, kSharedBytes, args.stream,
                          {/*overlap=*/true}, p);
    return error != cudaSuccess || p.parts == 1 ? error : dmma_packed_kernel::join(p, kTileN);
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
  ops.layout_bytes = &K::layout_bytes;
  ops.lay_out = &K::lay_out;
  return ops;
}

}  // namespace sparsek::cuda
