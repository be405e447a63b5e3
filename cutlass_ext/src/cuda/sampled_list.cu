// SPDX-License-Identifier: Apache-2.0
#include "cuda/sampled_list.h"

#include <algorithm>
#include <type_traits>

#include "cuda/cuda_error.h"
#include "cuda/prefix_sum.cuh"
#include "cuda/sampled_composition.cuh"
#include "plan/plan.h"

namespace sparsek::cuda {
// Named, since the symbols of kernels in an unnamed namespace depend on the path of the checkout.
namespace sampled_listing {

constexpr int kThreads = 256, kWarp = 32;
constexpr int kMostCtas = 132 * 8;
constexpr unsigned kAllLanes = ~0u;

// The block rows of a pair, from the top: those of the upper strip, then of the lower one; empty where there is none.
template <int Blocks>
struct PairRows {
  int32_t begin[2 * Blocks], end[2 * Blocks];
  int32_t first_row[2];

  __device__ PairRows(const CheckedIndex& index, const SampledGrid& grid, int64_t pair) {
    const int64_t pairs_of_row = (grid.strips_of_row + 1) / 2;
#pragma unroll
    for (int j = 0; j < 2 * Blocks; ++j) {
      int64_t row = pair * (2 * Blocks) + j;
      bool is_there = true;
      if (grid.strips_of_row > 1) {
        row = pair / pairs_of_row;
        is_there = pair % pairs_of_row * 2 + j < grid.strips_of_row;
      }
      is_there = is_there && row < grid.block_rows;
      begin[j] = is_there ? index.row_ptr[row] : 0;
      end[j] = is_there ? index.row_ptr[row + 1] : 0;
    }
    const int64_t strip =
        grid.strips_of_row > 1 ? pair / pairs_of_row * grid.strips_of_row + pair % pairs_of_row * 2 : pair * 2;
    for (int s = 0; s < 2; ++s) first_row[s] = static_cast<int32_t>((strip + s) * kStripRows);
  }
};

enum Kind { kBoth, kUpper, kLower, kKinds };

// A column of a pair.
template <int Blocks>
struct Column {
  int32_t at[2 * Blocks];  // entries; -1: absent
  Kind kind;
  bool is_first;  // in the first of the rows that have it
};

template <int Blocks>
__device__ Column<Blocks> find_column(const CheckedIndex& index, const PairRows<Blocks>& rows, int row, int32_t entry) {
  Column<Blocks> found;
  const int32_t column = index.col_idx[entry];
  bool in[2] = {};
  found.is_first = true;
#pragma unroll
  for (int j = 0; j < 2 * Blocks; ++j) {
    int32_t from = rows.begin[j], to = rows.end[j];
    while (from < to) {
      const int32_t middle = from + (to - from) / 2;
      if (index.col_idx[middle] < column) {
        from = middle + 1;
      } else {
        to = middle;
      }
    }
    const bool has = from < rows.end[j] && index.col_idx[from] == column;
    found.at[j] = has ? from : -1;
    in[j / Blocks] |= has;
    if (j < row && has) found.is_first = false;
  }
  found.kind = in[0] && in[1] ? kBoth : in[0] ? kUpper : kLower;
  return found;
}

// Calls f(column, its number among the cells of its kind, its column of the index) for the columns of a pair, by a
// warp.
template <int Blocks, class Function>
__device__ void for_each_column(const CheckedIndex& index, const PairRows<Blocks>& rows, int32_t (&counts)[kKinds],
                                int lane, const Function& f) {
#pragma unroll 1
  for (int j = 0; j < 2 * Blocks; ++j) {
    int32_t begin = 0, end = 0;
#pragma unroll
    for (int i = 0; i < 2 * Blocks; ++i) {
      if (i == j) begin = rows.begin[i], end = rows.end[i];
    }
#pragma unroll 1
    for (int32_t first = begin; first < end; first += kWarp) {
      const int32_t entry = first + lane;
      Column<Blocks> column = {};
      bool counted = false;
      if (entry < end) {
        column = find_column(index, rows, j, entry);
        counted = column.is_first;
      }
      int32_t number = 0;
#pragma unroll
      for (int kind = 0; kind < kKinds; ++kind) {
        const unsigned with = __ballot_sync(kAllLanes, counted && column.kind == kind);
        if (column.kind == kind) number = counts[kind] + __popc(with & ((1u << lane) - 1));
        counts[kind] += __popc(with);
      }
      if (counted) f(column, number, index.col_idx[entry]);
    }
  }
}

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

constexpr int32_t kLevels = 512;

// When the last of `workers` ends, each of which takes the next tile when it has none, the costliest first. tiles: of
// each cost. busy (kLevels + kSampledCosts): how many workers end at each time; of no use afterwards.
__device__ int32_t end_of_tiles(const int32_t* tiles, int32_t workers, int32_t* busy) {
  for (int32_t i = 0; i < kLevels + kSampledCosts; ++i) busy[i] = 0;
  busy[0] = workers;
  int32_t now = 0, last = 0;
  for (int32_t cost = kSampledCosts; cost > 0; --cost) {
    for (int32_t left = tiles[cost - 1]; left > 0;) {
      while (busy[now] == 0) ++now;
      if (now >= kLevels) return now;
      const int32_t taken = min(left, busy[now]);
      busy[now] -= taken;
      busy[now + cost] += taken;
      left -= taken;
      last = max(last, now + cost);
    }
  }
  return last;
}

// Whether tiles with a fifth cell end sooner, by more than the estimate may be wrong; not where tiles are many. For a
// CTA of kPrefixThreads.
__device__ bool choose_absorption(const SampledGrid& grid, const int32_t* cells) {
  constexpr int kOptions = 2;
  __shared__ int32_t tiles[kOptions][kSampledCosts], busy[kLevels + kSampledCosts];
  __shared__ bool absorbs;
  if (threadIdx.x < kOptions * kSampledCosts) tiles[threadIdx.x / kSampledCosts][threadIdx.x % kSampledCosts] = 0;
  __syncthreads();
  for (int64_t pair = threadIdx.x; pair < grid.pairs; pair += kPrefixThreads) {
    for (int option = 0; option < kOptions; ++option) {
      const Composition composition(grid, cells + pair * kKinds, option == 1);
      for (int run = 0; run < 3; ++run) {
        const int32_t count = composition.tiles(run);
        if (count > 0) atomicAdd(&tiles[option][composition.cost(run) - 1], count);
      }
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    const int32_t without = end_of_tiles(tiles[0], grid.workers, busy);
    absorbs = without < kLevels && end_of_tiles(tiles[1], grid.workers, busy) * 32 < without * 31;
  }
  __syncthreads();
  return absorbs;
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

// Writes the tiles of a pair.
template <int Blocks>
struct Writer {
  const CheckedIndex& index;
  const SampledGrid& grid;
  const SampledList& to;
  const Composition& pair;
  int32_t first[3];  // tile of each run

  __device__ Writer(const CheckedIndex& from, const SampledGrid& of, const SampledList& list, const Composition& made,
                    int64_t number)
      : index(from), grid(of), to(list), pair(made) {
    for (int run = 0; run < 3; ++run) {
      first[run] = to.places[pair.sort_key(run) * grid.pairs + number];
      for (int before = 0; before < run; ++before) {
        if (pair.sort_key(before) == pair.sort_key(run)) first[run] += pair.tiles(before);
      }
    }
  }
  __device__ int32_t* tile(int run, int32_t number) const {
    return to.tiles + (int64_t{first[run]} + number) * words();
  }
  __device__ int32_t most() const { return most_sampled_cells(grid.width); }
  __device__ int32_t words() const { return sampled_tile_words(grid.width, Blocks); }

  __device__ void header(int run, int32_t number, const int32_t (&first_row)[2]) const {
    int32_t *const words = tile(run, number), of_first = pair.most, of_second = pair.most, columns = pair.most,
                   strips = 2, row = first_row[0];
    if (run > 0 && pair.extras > 0) {
      const int kind = run == 1 ? kBoth : number < pair.upper ? kUpper : kLower;
      of_first += kind != kLower;
      of_second += kind != kUpper;
      ++columns;
    } else if (run > 0 && pair.mixed > 0) {
      of_first = Split{pair.of_strip(0), pair.mixed}.size(number);
      of_second = Split{pair.of_strip(1), pair.mixed}.size(number);
      columns = of_first + of_second - Split{pair.rest, pair.mixed}.size(number);
    } else if (run > 0) {
      const Split split = {pair.of_strip(run - 1), pair.tiles(run) * 2};
      of_first = split.size(2 * number);
      of_second = split.size(2 * number + 1);
      columns = of_first + of_second;
      strips = 1;
      row = first_row[run - 1];
    }
    *reinterpret_cast<int4*>(words) = {columns | of_first << 8 | of_second << 16 | strips << 24, row, first_row[1], 0};
  }
  __device__ void headers(const int32_t (&first_row)[2], int lane) const {
    for (int run = 0; run < 3; ++run) {
      for (int32_t t = lane; t < pair.tiles(run); t += kWarp) header(run, t, first_row);
    }
  }
  // The column of Y at a place of a tile.
  __device__ void load(int32_t* tile, int32_t place, int32_t column) const { tile[kSampledHeader + place] = column; }
  // A cell of a warpgroup: its blocks in the strip.
  __device__ void compute(int32_t* tile, int warpgroup, int32_t cell, int strip, const Column<Blocks>& column) const {
    int32_t* const blocks = tile + kSampledHeader + 2 * most() + (warpgroup * most() + cell) * Blocks;
#pragma unroll
    for (int j = 0; j < 2 * Blocks; ++j) {
      if (j / Blocks != strip) continue;
      const int32_t at = column.at[j];
      blocks[j % Blocks] = at < 0 ? kNoBlock : index.block_idx == nullptr ? at : index.block_idx[at];
    }
  }
  // Cell i of a strip that is computed by itself.
  __device__ void alone(int strip, int32_t i, const Column<Blocks>& column, int32_t first_column) const {
    const Split split = {pair.of_strip(strip), pair.tiles(strip + 1) * 2};
    const int32_t part = split.of(i), cell = i - split.begin(part);
    int32_t* const words = tile(strip + 1, part / 2);
    load(words, (part % 2 == 0 ? 0 : split.size(part - 1)) + cell, first_column);
    compute(words, part % 2, cell, strip, column);
  }
  // Tile t of full tiles, of which the first ones have an extra column.
  __device__ int32_t* full_tile(int32_t t) const {
    if (t >= pair.extras) return tile(0, t - pair.extras);
    return t < pair.rest ? tile(1, t) : tile(2, t - pair.rest);
  }
  // Cell i of both strips, of a full tile. An extra column of the upper strip alone is before them.
  __device__ void full(int32_t t, int32_t i, const Column<Blocks>& column, int32_t first_column) const {
    const bool is_behind_upper = t >= pair.rest && t < pair.rest + pair.upper && pair.extras > 0;
    int32_t* const words = full_tile(t);
    load(words, i + is_behind_upper, first_column);
    compute(words, 0, i + is_behind_upper, 0, column);
    compute(words, 1, i, 1, column);
  }
  __device__ void extra(int32_t t, const Column<Blocks>& column, int32_t first_column) const {
    int32_t* const words = full_tile(t);
    const int32_t place = column.kind == kUpper ? 0 : pair.most;
    load(words, place, first_column);
    if (column.kind != kLower) compute(words, 0, place, 0, column);
    if (column.kind != kUpper) compute(words, 1, pair.most, 1, column);
  }
  __device__ void write(const Column<Blocks>& column, int32_t i, int32_t first_column) const {
    const Split shared = {pair.rest, max(pair.mixed, 1)};
    if (column.kind == kBoth) {
      const int32_t in_full = pair.full * pair.most;
      if (i < in_full) return full(i / pair.most, i % pair.most, column, first_column);
      i -= in_full;
      if (pair.extras > 0) return extra(i, column, first_column);
      if (pair.mixed == 0) {
        for (int s = 0; s < 2; ++s) alone(s, i, column, first_column);
        return;
      }
      const int32_t t = shared.of(i), cell = i - shared.begin(t);
      const int32_t before = Split{pair.of_strip(0), pair.mixed}.size(t) - shared.size(t);
      int32_t* const words = tile(1, t);
      load(words, before + cell, first_column);
      compute(words, 0, before + cell, 0, column);
      compute(words, 1, cell, 1, column);
      return;
    }
    if (pair.extras > 0) return extra(pair.rest + (column.kind == kUpper ? 0 : pair.upper) + i, column, first_column);
    const int strip = column.kind == kUpper ? 0 : 1;
    if (pair.mixed == 0) return alone(strip, pair.rest + i, column, first_column);
    // Of tile t those from all.begin(t) - shared.begin(t) on.
    const Split all = {pair.of_strip(strip), pair.mixed};
    int32_t t = 0, beyond = pair.mixed;
    while (beyond - t > 1) {
      const int32_t middle = t + (beyond - t) / 2;
      if (all.begin(middle) - shared.begin(middle) <= i) {
        t = middle;
      } else {
        beyond = middle;
      }
    }
    const int32_t cell = i - (all.begin(t) - shared.begin(t));
    int32_t* const words = tile(1, t);
    if (strip == 0) {
      load(words, cell, first_column);
      compute(words, 0, cell, 0, column);
    } else {
      load(words, Split{pair.of_strip(0), pair.mixed}.size(t) + cell, first_column);
      compute(words, 1, shared.size(t) + cell, 1, column);
    }
  }
};

template <int Blocks>
__global__ void __launch_bounds__(kThreads) write_tiles(CheckedIndex index, SampledGrid grid, SampledList to) {
  if (!is_good(index)) return;
  const int lane = threadIdx.x % kWarp;
  for_each_pair(grid.pairs, [&](int64_t number) {
    const PairRows<Blocks> rows(index, grid, number);
    const Composition pair(grid, to.cells + number * kKinds, *to.absorbs != 0);
    const Writer<Blocks> writer(index, grid, to, pair, number);
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
