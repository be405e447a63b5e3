// SPDX-License-Identifier: Apache-2.0
// Writes the tiles of a pair of strips (cuda/sampled_tile.h).
#pragma once

#include <cstdint>

#include "cuda/sampled_columns.cuh"
#include "cuda/sampled_composition.cuh"
#include "plan/work_tile.h"

namespace sparsek::cuda {
namespace sampled_listing {

// Pairs after one another that have columns in common, whose tiles of one cost take turns: the first ones of all pairs,
// then the second ones, and so on. So the CTAs that run at once share columns of Y. Where pairs have none in common,
// the tiles of each follow each other: neighbouring CTAs then share strips of X, of which that order needs fewer at
// once.
struct PairGroup {
  static constexpr int kMost = 16;  // as many strips by columns of tiles as CTAs load the least with
  int64_t begin;
  int own, count;  // the pair, of so many

  __device__ PairGroup(const CheckedIndex& index, const SampledGrid& grid, int64_t pair, int lane) {
    // Of the pairs after one another that have columns in common, the first one is up to kWarp before in each step.
    int64_t first = pair;
    for (unsigned ends = 0; ends == 0;) {
      const int64_t at = first - lane;
      ends = __ballot_sync(kAllLanes, at >= 0 && (at == 0 || !goes_on(index, grid, at)));
      first -= ends != 0 ? __ffs(ends) - 1 : kWarp;
    }
    begin = pair - (pair - first) % kMost;
    own = static_cast<int>(pair - begin);
    const int64_t next = begin + 1 + lane;
    const unsigned ends = __ballot_sync(kAllLanes, next >= grid.pairs || !goes_on(index, grid, next));
    count = min(ends != 0 ? __ffs(ends) : kMost, kMost);
  }
  // Whether a pair seems to have the columns of the one before, as far as both have as many: by the first block rows of
  // both, whose first and last ones of those are looked at.
  static __device__ bool goes_on(const CheckedIndex& index, const SampledGrid& grid, int64_t pair) {
    const int64_t row = first_block_row(grid, pair), before = first_block_row(grid, pair - 1);
    const int32_t of_row = index.row_ptr[row], of_before = index.row_ptr[before];
    const int32_t columns = min(index.row_ptr[row + 1] - of_row, index.row_ptr[before + 1] - of_before);
    return columns > 0 && index.col_idx[of_row] == index.col_idx[of_before] &&
           index.col_idx[of_row + columns - 1] == index.col_idx[of_before + columns - 1];
  }
  static __device__ int64_t first_block_row(const SampledGrid& grid, int64_t pair) {
    return grid.strips_of_row > 1 ? pair / ((grid.strips_of_row + 1) / 2) : pair * 2 * grid.blocks;
  }
  // Where tile `number` of the pair's is in the list. places: of the tiles of that cost, by pairs.
  __device__ int32_t place(const int32_t* places, int32_t number) const {
    const int32_t* const of_group = places + begin;
    int32_t at = of_group[0];
    for (int i = 0; i < count; ++i) {
      const int32_t tiles = of_group[i + 1] - of_group[i];
      at += min(tiles, number) + (i < own && tiles > number);
    }
    return at;
  }
};

template <int Blocks>
struct Writer {
  const CheckedIndex& index;
  const SampledGrid& grid;
  const SampledList& to;
  const Composition& pair;
  PairGroup group;
  int32_t first[3];  // tile of each run, among the pair's tiles of that cost

  __device__ Writer(const CheckedIndex& from, const SampledGrid& of, const SampledList& list, const Composition& made,
                    int64_t number, int lane)
      : index(from), grid(of), to(list), pair(made), group(from, of, number, lane) {
    for (int run = 0; run < 3; ++run) {
      first[run] = 0;
      for (int before = 0; before < run; ++before) {
        if (pair.sort_key(before) == pair.sort_key(run)) first[run] += pair.tiles(before);
      }
    }
  }
  __device__ int32_t* tile(int run, int32_t number) const {
    return to.tiles + int64_t{group.place(to.places + pair.sort_key(run) * grid.pairs, first[run] + number)} * words();
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

}  // namespace sampled_listing
}  // namespace sparsek::cuda
