// SPDX-License-Identifier: Apache-2.0
// How the cells of a pair of strips (cuda/sampled_tile.h) are put into tiles.
#pragma once

#include <cstdint>

#include "cuda/sampled_list.h"

namespace sparsek::cuda {
namespace sampled_listing {

constexpr int kMostUnits = 9;  // 64 columns of X or Y that a stage has room for

// An even split of `count` into `parts`: the first ones have one more.
struct Split {
  int32_t count, parts;
  __device__ int32_t begin(int32_t part) const { return part * (count / parts) + min(part, count % parts); }
  __device__ int32_t size(int32_t part) const { return count / parts + (part < count % parts); }
  // The part that has element i.
  __device__ int32_t of(int32_t i) const {
    const int32_t less = count / parts, more = count % parts;
    return i < more * (less + 1) ? i / (less + 1) : more + (i - more * (less + 1)) / less;
  }
};

// What is computed of a pair: `full` tiles of cells of both strips alone, then of the rest either `mixed` tiles of both
// strips, or tiles of each strip by itself.
struct Composition {
  int32_t most, width;
  int32_t both, upper, lower;  // cells
  int32_t full;
  int32_t rest;    // of `both`
  int32_t extras;  // columns, each in one of the full tiles
  int32_t mixed;   // 0: by strips
  int32_t alone[2];

  __device__ Composition(const SampledGrid& grid, const int32_t* cells, bool absorbs)
      : most(grid.most_cells), width(grid.width), both(cells[0]), upper(cells[1]), lower(cells[2]) {
    full = both / most;
    rest = both % most;
    extras = rest + upper + lower;
    if (!absorbs || extras > full) extras = 0;
    for (int s = 0; s < 2; ++s) alone[s] = (of_strip(s) + 2 * most - 1) / (2 * most);
    mixed = 0;
    if (extras > 0) return;
    if (of_strip(0) == 0 || of_strip(1) == 0) return;
    // In columns: each tile loads its strips and its columns of Y.
    const int32_t loads_alone = (alone[0] + alone[1]) * kStripRows + (2 * rest + upper + lower) * width;
    const int32_t columns = (rest + upper + lower) * width;
    for (int32_t count = (max(of_strip(0), of_strip(1)) + most - 1) / most;
         count * 2 * kStripRows + columns <= loads_alone; ++count) {
      if (!fits(count)) continue;
      mixed = count;
      return;
    }
  }
  __device__ int32_t of_strip(int s) const { return rest + (s == 0 ? upper : lower); }
  __device__ bool fits(int32_t count) const {
    for (int32_t t = 0; t < count; ++t) {
      const int32_t columns =
          Split{of_strip(0), count}.size(t) + Split{of_strip(1), count}.size(t) - Split{rest, count}.size(t);
      if (2 * kStripRows + columns * width > kMostUnits * 64) return false;
    }
    return true;
  }
  // Runs of tiles of the same cost: full ones, mixed ones or those of the upper strip, those of the lower one.
  __device__ int32_t tiles(int run) const {
    if (run == 0) return full - extras;
    if (extras > 0) return run == 1 ? rest : upper + lower;
    if (mixed > 0) return run == 1 ? mixed : 0;
    return alone[run - 1];
  }
  // The more, the sooner it is computed: multiplications or loads, whichever take longer.
  __device__ int32_t cost(int run) const {
    int32_t cells = most, columns = most, strips = 2;  // of a warpgroup and of Y
    if (run > 0 && extras > 0) {
      ++cells, ++columns;
    } else if (run > 0 && mixed > 0) {
      cells = Split{max(of_strip(0), of_strip(1)), mixed}.size(0);
      columns = Split{of_strip(0), mixed}.size(0) + Split{of_strip(1), mixed}.size(0) - Split{rest, mixed}.size(0);
    } else if (run > 0) {
      cells = Split{of_strip(run - 1), max(1, alone[run - 1]) * 2}.size(0);
      columns = 2 * cells;
      strips = 1;
    }
    // In the time of a product of 64^3. A load of as much takes 11 / 8 of it.
    const int32_t products = 2 * cells * width / 64, loads = (strips * kStripRows + columns * width) / 64;
    return min(max(max(products, loads * 11 / 8), 1), kSampledCosts);
  }
  __device__ int sort_key(int run) const { return kSampledCosts - cost(run); }
};

}  // namespace sampled_listing
}  // namespace sparsek::cuda
