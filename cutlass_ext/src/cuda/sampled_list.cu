// SPDX-License-Identifier: Apache-2.0
#include "cuda/sampled_list.h"

#include <algorithm>
#include <type_traits>

#include "cuda/cuda_error.h"
#include "cuda/prefix_sum.cuh"
#include "cuda/sampled_absorption.cuh"
#include "cuda/sampled_columns.cuh"
#include "cuda/sampled_composition.cuh"
#include "cuda/sampled_writer.cuh"
#include "plan/plan.h"

namespace sparsek::cuda {
// Named, since the symbols of kernels in an unnamed namespace depend on the path of the checkout.
namespace sampled_listing {

constexpr int kThreads = 256;
constexpr int kMostCtas = 132 * 8;

template <class Compute>
__device__ void for_each_pair(int64_t pairs, const Compute& compute) {
  const int64_t warps = int64_t(gridDim.x) * (kThreads / kWarp);
  for (int64_t pair = (blockIdx.x * int64_t{kThreads} + threadIdx.x) / kWarp; pair < pairs; pair += warps) {
    compute(pair);
  }
}

template <int Blocks>
__global__ void __launch_bounds__(kThreads) count_cells(CheckedIndex index, SampledGrid grid, SampledList to) {
  const bool good = is_good(index);
  const int lane = threadIdx.x % kWarp;
  for_each_pair(grid.pairs, [&](int64_t pair) {
    int32_t counts[kKinds] = {};
    if (good) {
      const PairRows<Blocks> rows(index, grid, pair);
      for_each_column(index, rows, counts, lane, [](const Column<Blocks>&, int32_t, int32_t) {});
    }
    int32_t cells[kKinds];
    for (int kind = 0; kind < kKinds; ++kind) cells[kind] = counts[kind] * grid.cells_of_block;
    if (lane < kKinds) to.cells[pair * kKinds + lane] = lane == 0 ? cells[0] : lane == 1 ? cells[1] : cells[2];
  });
}

// places[key, pair + 1]: how many tiles the pair has of that cost, then how many come before.
__global__ void __launch_bounds__(kPrefixThreads) place_tiles(SampledGrid grid, SampledList to) {
  const bool absorbs = grid.may_absorb && choose_absorption(grid, to.cells);
  for (int64_t pair = threadIdx.x; pair < grid.pairs; pair += kPrefixThreads) {
    const Composition composition(grid, to.cells + pair * kKinds, absorbs);
    int32_t tiles[kSampledCosts] = {};
    for (int run = 0; run < 3; ++run) {
      const int key = composition.sort_key(run);
#pragma unroll
      for (int i = 0; i < kSampledCosts; ++i) tiles[i] += i == key ? composition.tiles(run) : 0;
    }
#pragma unroll
    for (int i = 0; i < kSampledCosts; ++i) to.places[i * grid.pairs + pair + 1] = tiles[i];
  }
  if (threadIdx.x == 0) {
    to.places[0] = 0;
    *to.absorbs = absorbs ? 1 : 0;
  }
  __syncthreads();
  prefix_sum(to.places, to.places, grid.pairs * kSampledCosts + 1);
}

template <int Blocks>
__global__ void __launch_bounds__(kThreads) write_tiles(CheckedIndex index, SampledGrid grid, SampledList to) {
  if (!is_good(index)) return;
  const int lane = threadIdx.x % kWarp;
  for_each_pair(grid.pairs, [&](int64_t number) {
    const PairRows<Blocks> rows(index, grid, number);
    const Composition pair(grid, to.cells + number * kKinds, *to.absorbs != 0);
    const Writer<Blocks> writer(index, grid, to, pair, number, lane);
    writer.headers(rows.first_row, lane);
    int32_t counts[kKinds] = {};
    for_each_column(index, rows, counts, lane, [&](const Column<Blocks>& column, int32_t at, int32_t block_column) {
      for (int32_t cell = 0; cell < grid.cells_of_block; ++cell) {
        writer.write(column, at * grid.cells_of_block + cell, block_column * grid.block_k + cell * grid.width);
      }
    });
  });
}

unsigned ctas_for(int64_t pairs) {
  constexpr int64_t kPairs = kThreads / kWarp;
  return static_cast<unsigned>(std::clamp<int64_t>((pairs + kPairs - 1) / kPairs, 1, kMostCtas));
}

template <class Function>
void with_blocks(int32_t blocks, const Function& f) {
  if (blocks == 1) return f(std::integral_constant<int, 1>{});
  if (blocks == 2) return f(std::integral_constant<int, 2>{});
  f(std::integral_constant<int, 4>{});
}

}  // namespace sampled_listing

bool can_list_sampled(const BsrShape& shape) {
  const auto is_served = [](int32_t extent) { return extent % 64 == 0 || extent == 32 || extent == 16; };
  return is_served(shape.block_m) && is_served(shape.block_k);
}

SampledGrid sampled_grid(const BsrShape& shape, int32_t workers) {
  SampledGrid grid = {};
  grid.block_m = shape.block_m;
  grid.block_k = shape.block_k;
  grid.block_rows = shape.block_rows;
  grid.width = std::min(shape.block_k, 64);
  grid.blocks = std::max(1, kStripRows / shape.block_m);
  grid.cells_of_block = std::max(1, shape.block_k / 64);
  grid.strips_of_row = std::max(1, shape.block_m / kStripRows);
  const int64_t strips_apart = (int64_t{shape.block_rows} + 2 * grid.blocks - 1) / (2 * grid.blocks);
  grid.pairs = grid.strips_of_row > 1 ? int64_t{shape.block_rows} * ((grid.strips_of_row + 1) / 2) : strips_apart;
  const int64_t cells = shape.nnzb * grid.cells_of_block * grid.strips_of_row;
  const int64_t warpgroups = int64_t{2} * std::max(workers, 1);
  grid.most_cells =
      static_cast<int32_t>(std::clamp<int64_t>((cells + warpgroups - 1) / warpgroups, 1, kSampledColumns / grid.width));
  grid.workers = std::max(workers, 1);
  grid.may_absorb = grid.width == 64 && grid.most_cells == 4;
  // A tile has a cell at least, and but for a few of each pair, as many as there is room for in half of it.
  grid.capacity = std::min(cells, cells / grid.most_cells + grid.pairs * (3 + grid.most_cells));
  return grid;
}

SampledListLayout::SampledListLayout(const SampledGrid& grid, Layout& layout)
    : tiles_(layout.place<int32_t>(static_cast<size_t>(grid.capacity * grid.tile_words()))),
      cells_(layout.place<int32_t>(static_cast<size_t>(grid.pairs * sampled_listing::kKinds))),
      places_(layout.place<int32_t>(static_cast<size_t>(grid.pairs * kSampledCosts + 1))),
      absorbs_(layout.place<int32_t>(1)) {}

SampledList SampledListLayout::within(std::byte* memory) const {
  return {reinterpret_cast<int32_t*>(memory + tiles_), reinterpret_cast<int32_t*>(memory + cells_),
          reinterpret_cast<int32_t*>(memory + places_), reinterpret_cast<int32_t*>(memory + absorbs_)};
}

void prepare_sampled_list() {
  namespace k = sampled_listing;
  cudaFuncAttributes attributes;
  const auto load = [&](auto* kernel) { check(cudaFuncGetAttributes(&attributes, kernel), "cudaFuncGetAttributes"); };
  for (const int32_t blocks : {1, 2, 4}) {
    k::with_blocks(blocks, [&](auto of) {
      load(k::count_cells<of()>);
      load(k::write_tiles<of()>);
    });
  }
  load(k::place_tiles);
}

void enqueue_sampled_list(const CheckedIndex& index, const SampledGrid& grid, const SampledList& to,
                          cudaStream_t stream) {
  namespace k = sampled_listing;
  const unsigned ctas = k::ctas_for(grid.pairs);
  k::with_blocks(grid.blocks, [&](auto of) {
    k::count_cells<of()><<<ctas, k::kThreads, 0, stream>>>(index, grid, to);
    k::place_tiles<<<1, kPrefixThreads, 0, stream>>>(grid, to);
    k::write_tiles<of()><<<ctas, k::kThreads, 0, stream>>>(index, grid, to);
  });
  check(cudaGetLastError(), "list of the tiles");
}

}  // namespace sparsek::cuda
