// SPDX-License-Identifier: Apache-2.0
#include "cuda/planes.h"

#include <algorithm>
#include <numeric>

#include "cuda/dependent_launch.cuh"
#include "cuda/launch.cuh"
#include "cuda/planes.cuh"
#include "plan/entry_places.h"

namespace sparsek::cuda {

// Named, since the symbols that nvcc makes for an unnamed namespace differ from build to build.
namespace planes {

constexpr int kThreads = 256;
constexpr int kEightsB = kPieceColumns / kPlaneVector;
constexpr int kRounds = 2;           // that a CTA reads before it writes
constexpr int kGatherCtasPerSm = 6;  // that gather A
// What a CTA makes in a round: of A 64 rows of 32 columns, of B 16 rows.
constexpr int kRoundA = 32, kRoundB = kThreads / kEightsB;
static_assert(kThreads == kPieceRows * kRoundA / kPlaneVector);

struct Source {
  const float *values, *b;
  int64_t ldb;
  bool aligned_values, aligned_b;
};

// Of blocks that are multiples of 64 high. Neighbouring threads read the same row.
template <int K>
__device__ void make_a(const PlaneSizes& sizes, const Source& from, char* to, int64_t cta) {
  constexpr int kPieces = kRoundA / K, kEights = K / kPlaneVector;
  const int eight = threadIdx.x % kEights, row = threadIdx.x / (kEights * kPieces);
  const int64_t steps = sizes.steps(), begin = cta * (kPieces * kRounds) + threadIdx.x / kEights % kPieces;
  float x[kRounds][kPlaneVector];
#pragma unroll
  for (int i = 0; i < kRounds; ++i) {
    const int64_t piece = begin + i * kPieces;
    const float* const at = from.values + (piece / steps * kPieceRows + row) * sizes.block_k + piece % steps * K;
    read_vector(x[i], at + eight * kPlaneVector, piece < sizes.pieces_a() ? kPlaneVector : 0, from.aligned_values);
  }
#pragma unroll
  for (int i = 0; i < kRounds; ++i) {
    const int64_t piece = begin + i * kPieces;
    if (piece >= sizes.pieces_a()) continue;
    write_planes(to + piece * PieceBytes<K>::kA + place_in_plane_a<K>(row, eight), PieceBytes<K>::kPlaneA, x[i]);
  }
}

template <int K>
__device__ void make_b(const PlaneSizes& sizes, const Source& from, char* to, int64_t cta, int64_t pieces) {
  const int eight = threadIdx.x % kEightsB;
  // Rows of all pieces, one after the other.
  const int64_t begin = cta * (kRoundB * kRounds) + threadIdx.x / kEightsB;
  float x[kRounds][kPlaneVector];
#pragma unroll
  for (int i = 0; i < kRounds; ++i) {
    const int64_t row = begin + i * kRoundB, piece = row / K, k = piece % sizes.steps_b() * K + row % K;
    const int64_t column = piece / sizes.steps_b() * kPieceColumns + eight * kPlaneVector;
    const bool there = piece < pieces && k < sizes.cols;
    read_vector(x[i], from.b + k * from.ldb + column, there ? sizes.n - column : 0, from.aligned_b);
  }
#pragma unroll
  for (int i = 0; i < kRounds; ++i) {
    const int64_t row = begin + i * kRoundB, piece = row / K;
    if (piece >= pieces) continue;
    write_planes(to + piece * PieceBytes<K>::kB + place_in_plane_b<K>(int(row % K), eight), PieceBytes<K>::kPlaneB,
                 x[i]);
  }
}

// Blocks of another height, by the entries of the plan: the CTAs take the entries of each row group in turn, and find
// the row groups among the tiles.
template <int K>
__device__ void gather_a(const PlaneSizes& sizes, const LaunchArgs& args, const Source& from, char* to, int ctas) {
  constexpr int kEights = K / kPlaneVector;
  __shared__ WorkTile group[kThreads];
  __shared__ int groups;
  const int slots = args.slots, slot_rows = kPlaneTileM / slots, slots_of_half = slots / kPlaneHalves;
  const int eights = args.block_k / kPlaneVector, steps = int(sizes.steps());
  for (int base = 0; base < args.tiles_count; base += kThreads) {
    if (threadIdx.x == 0) groups = 0;
    __syncthreads();
    const int t = base + threadIdx.x;
    if (t < args.tiles_count) {
      const WorkTile tile = args.tiles[t];
      if (tile.n_tile == 0) group[atomicAdd(&groups, 1)] = tile;
    }
    __syncthreads();
    for (int g = 0; g < groups; ++g) {
      const WorkTile tile = group[g];
      const int first = (int(blockIdx.x) - tile.entry_begin % ctas + ctas) % ctas;
      for (int e = tile.entry_begin + first; e < tile.entry_begin + tile.entry_count; e += ctas) {
        const int32_t* const blocks = args.entry_block + int64_t(e) * slots;
        for (int v = threadIdx.x; v < kPlaneTileM * eights; v += kThreads) {
          const int row = v / eights, eight = v % eights, slot = row / slot_rows, half = row / kPieceRows;
          const int32_t block = blocks[slot];
          bool any = block != kNoBlock;
          for (int s = 0; s < slots_of_half && !any; ++s) any = blocks[half * slots_of_half + s] != kNoBlock;
          if (!any) continue;  // the kernel does not read it
          const int64_t first_row = args.slot_row[int64_t(tile.m_tile) * slots + slot] % args.block_m;
          const float* const at =
              from.values + (int64_t(block) * args.block_m + first_row + row % slot_rows) * args.block_k;
          float x[kPlaneVector];
          read_vector(x, at + eight * kPlaneVector, block != kNoBlock ? kPlaneVector : 0, from.aligned_values);
          char* const piece = to + ((int64_t(e) * kPlaneHalves + half) * steps + eight / kEights) * PieceBytes<K>::kA;
          write_planes(piece + place_in_plane_a<K>(row % kPieceRows, eight % kEights), PieceBytes<K>::kPlaneA, x);
        }
      }
    }
    __syncthreads();
  }
}

// What all CTAs do besides, as the CTA that they are.
template <int K>
__device__ void make_rest(const PlaneSizes& sizes, const Source& from, const PlaneMemory& to, int64_t ctas_a,
                          int64_t pieces) {
  if (blockIdx.x >= ctas_a) make_b<K>(sizes, from, to.b, blockIdx.x - ctas_a, pieces);
  if (to.progress == nullptr) return;
  const int64_t thread = blockIdx.x * int64_t{kThreads} + threadIdx.x;
  for (int64_t i = thread; i <= sizes.panels_b(); i += gridDim.x * int64_t{kThreads}) to.progress[i] = 0;
}

// ctas_a: those of A's planes, the others are of B's. pieces: of B.
template <int K>
__global__ void __launch_bounds__(kThreads)
    make_kernel(PlaneSizes sizes, Source from, PlaneMemory to, int64_t ctas_a, int64_t pieces) {
  wait_for_previous_launch();
  if (blockIdx.x < ctas_a) make_a<K>(sizes, from, to.a, blockIdx.x);
  make_rest<K>(sizes, from, to, ctas_a, pieces);
}

template <int K>
__global__ void __launch_bounds__(kThreads, kGatherCtasPerSm)
    gather_kernel(PlaneSizes sizes, Source from, PlaneMemory to, int64_t ctas_a, int64_t pieces, LaunchArgs args) {
  wait_for_previous_launch();
  if (blockIdx.x < ctas_a) gather_a<K>(sizes, args, from, to.a, static_cast<int>(ctas_a));
  make_rest<K>(sizes, from, to, ctas_a, pieces);
}

}  // namespace planes

PlaneSizes plane_sizes(const LaunchArgs& args, int piece_k) {
  RowGrid grid;
  grid.rows = args.rows;
  grid.block_m = args.block_m;
  grid.slot_rows = std::gcd(kPlaneTileM, args.block_m);
  grid.slots = kPlaneTileM / grid.slot_rows;
  const int64_t block_cols = (args.cols + args.block_k - 1) / args.block_k;
  const EntryPlaces places(grid, static_cast<int32_t>(block_cols), args.nnzb);
  return {piece_k, places.capacity(), args.nnzb, args.block_m, args.block_k, args.cols, args.n, args.workers};
}

bool aligned_values(const LaunchArgs& args) { return reinterpret_cast<uintptr_t>(args.values) % 16 == 0; }
bool aligned_b(const LaunchArgs& args) { return (reinterpret_cast<uintptr_t>(args.b) | args.ldb * 4) % 16 == 0; }

cudaError_t prepare_planes() {
  cudaFuncAttributes attributes;
  const auto load = [&](cudaError_t before, auto kernel) {
    return before == cudaSuccess ? cudaFuncGetAttributes(&attributes, kernel) : before;
  };
  const cudaError_t makes = load(load(cudaSuccess, planes::make_kernel<32>), planes::make_kernel<16>);
  return load(load(makes, planes::gather_kernel<32>), planes::gather_kernel<16>);
}

namespace planes {

// panels: of B. `to` has no progress where there are none.
cudaError_t launch(const LaunchArgs& args, const PlaneSizes& sizes, const PlaneMemory& to, int64_t panels,
                   bool makes_a) {
  constexpr int64_t kGatherCtas = 132 * kGatherCtasPerSm;
  const bool wide = sizes.piece_k == 32;
  const Source from = {static_cast<const float*>(args.values), static_cast<const float*>(args.b), args.ldb,
                       aligned_values(args), aligned_b(args)};
  const auto ctas_of = [](int64_t columns, int64_t of_round) {
    const int64_t of_cta = of_round * kRounds;
    return (columns + of_cta - 1) / of_cta;
  };
  const int64_t pieces = panels * sizes.steps_b();
  const int64_t ctas_a = !makes_a          ? 0
                         : sizes.gathers() ? std::min(kGatherCtas, sizes.entries)
                                           : ctas_of(sizes.pieces_a() * sizes.piece_k, kRoundA);
  const int64_t ctas_b = ctas_of(pieces * sizes.piece_k, kRoundB);
  const auto ctas = static_cast<int>(std::max<int64_t>(ctas_a + ctas_b, 1));  // one at least, for the progress
  constexpr LaunchWay kWay = {/*overlap=*/true};
  if (makes_a && sizes.gathers()) {
    return launch_kernel(wide ? gather_kernel<32> : gather_kernel<16>, ctas, kThreads, 0, args.stream, kWay, sizes,
                         from, to, ctas_a, pieces, args);
  }
  return launch_kernel(wide ? make_kernel<32> : make_kernel<16>, ctas, kThreads, 0, args.stream, kWay, sizes, from, to,
                       ctas_a, pieces);
}

}  // namespace planes

cudaError_t make_planes(const LaunchArgs& args, const PlaneSizes& sizes, const PlaneMemory& to, int64_t panels) {
  return planes::launch(args, sizes, to, panels, /*makes_a=*/args.laid_out == nullptr);
}

cudaError_t make_planes_of_a(const LaunchArgs& args, const PlaneSizes& sizes, void* to) {
  PlaneMemory only_a(sizes, to);
  only_a.progress = nullptr;
  return planes::launch(args, sizes, only_a, 0, /*makes_a=*/true);
}

}  // namespace sparsek::cuda
