// SPDX-License-Identifier: Apache-2.0
// The tiles of the kernels of cuda/sampled_wgmma.cuh.
//
//   strip    64 rows of A: part of a block row, or as many block rows as have that height
//   cell     the part of a strip that lies in block column(s) of one `width`, 16, 32 or 64 columns: part of one block,
//            or of up to four blocks above one another, of which some may be absent
//   pair     two neighbouring strips
//   tile     what a CTA computes at once: up to C cells by each of two warpgroups, of one strip, or of both strips of a
//            pair, a warpgroup each. C is 256 / width, or where those are four, five: the fifth cell is for what would
//            else be a small tile of its own.
//
// A tile in words of 32 bits:
//   0             kNoSampledTile, or: columns of Y | cells of warpgroup 0 << 8 | of warpgroup 1 << 16 | strips << 24
//   1, 2          the first rows of the strips
//   4 ...         (2 C) the first columns of A of the columns of Y that are loaded. Warpgroup 0 has the first ones,
//                 warpgroup 1 the last ones.
//   4 + 2 C ...   (2, C, blocks) of each warpgroup's cells the blocks of values, from the top; kNoBlock: absent
#pragma once

#include <cstdint>

namespace sparsek::cuda {

constexpr int kStripRows = 64;
constexpr int kSampledHeader = 4;
constexpr int kSampledColumns = 256;  // of a warpgroup, of a tile, but for a fifth cell
constexpr int most_sampled_cells(int width) { return width == 64 ? 5 : kSampledColumns / width; }
// The bulk copy of a tile has multiples of 16 bytes.
constexpr int sampled_tile_words(int width, int blocks) {
  return (kSampledHeader + 2 * most_sampled_cells(width) * (1 + blocks) + 3) / 4 * 4;
}
constexpr int32_t kNoSampledTile = -1;

}  // namespace sparsek::cuda
