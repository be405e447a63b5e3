// SPDX-License-Identifier: Apache-2.0
// How a block row is shared in the row_mma family. The cost model asks too.
#pragma once

#include <algorithm>
#include <cstdint>

namespace sparsek::cuda::row_mma {

constexpr int kMostBlock = 256, kMostWarps = 16;
constexpr int kLanesOfRow = 4;  // lanes that share a row of A, and the columns of a step
// SMs for which warps are counted: the order of sums follows from these, and is the same on every GPU.
constexpr int kSms = 132;

// A CTA has a slice of the rows of a block: all of them, or where there are more than 32, 32 or 16 of them, so that
// little is padded.
constexpr int kMostRowTiles = 4;
constexpr int slice_rows(int block_m) { return block_m <= 8 * kMostRowTiles ? block_m : block_m % 32 == 0 ? 32 : 16; }
constexpr int slices(int block_m) { return (block_m + slice_rows(block_m) - 1) / slice_rows(block_m); }
// Of a slice, eight rows each.
constexpr int row_tiles(int block_m) { return (slice_rows(block_m) + 7) / 8; }

// By the registers that a thread takes.
struct Registers {
  int depth;        // instructions of a step: each takes four columns of A of a lane
  int warps_of_sm;  // that run at once
};
constexpr Registers registers_of(int row_tiles, int element_bytes) {
  constexpr Registers kOf16Bits[] = {{2, 20}, {2, 16}, {1, 16}, {1, 16}},
                      kOfWider[] = {{1, 20}, {1, 16}, {1, 12}, {1, 12}};
  return element_bytes == 2 ? kOf16Bits[row_tiles - 1] : kOfWider[row_tiles - 1];
}
constexpr int most_warps(int row_tiles, int element_bytes) {
  return std::min(kMostWarps, registers_of(row_tiles, element_bytes).warps_of_sm);
}

// How the warps of a CTA share the steps of a block row of the mean length.
struct SharedSteps {
  int columns;      // of A, of a step
  int64_t mean;     // steps of the row
  int warps;        // of a CTA
  int64_t of_warp;  // steps
  int at_once;      // CTAs of an SM
  int64_t turns;    // of the SMs, until all tiles are computed
};

// The fewest warps by which the turns of the SMs take the least: the steps of a warp, and what a tile takes beside
// them.
constexpr SharedSteps shared_steps(int64_t tiles, int64_t block_rows, int64_t nnzb, int block_m, int block_k,
                                   int element_bytes) {
  constexpr int64_t kTile = 2;  // in steps
  const Registers registers = registers_of(row_tiles(block_m), element_bytes);
  const int columns = registers.depth * 4 * kLanesOfRow;
  const int64_t mean = (nnzb * block_k + block_rows * columns - 1) / (block_rows * columns);
  SharedSteps best = {};
  for (int warps = 1; warps <= most_warps(row_tiles(block_m), element_bytes); ++warps) {
    const int at_once = registers.warps_of_sm / warps;
    const int64_t of_warp = std::max<int64_t>(1, (mean + warps - 1) / warps);
    const int64_t ctas = tiles * slices(block_m), of_turn = int64_t{at_once} * kSms;
    const int64_t turns = std::max<int64_t>(1, (ctas + of_turn - 1) / of_turn);
    if (warps > 1 && turns * (of_warp + kTile) >= best.turns * (best.of_warp + kTile)) continue;
    best = {columns, mean, warps, of_warp, at_once, turns};
  }
  return best;
}

}  // namespace sparsek::cuda::row_mma
