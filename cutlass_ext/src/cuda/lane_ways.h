// SPDX-License-Identifier: Apache-2.0
// The ways of the few_columns family that serve some blocks only, and their sizes: of the kernels that there are, and
// of what each has at once.
#pragma once

#include <cstdint>

namespace sparsek::cuda {

struct LaneLayout;

// Of an element of A, and of B; they differ where A is of a narrower type.
struct ElementBytes {
  int a, b;
};

enum class LaneWay : int32_t {
  kStream,   // one to three columns, every block: lanes have sums of single blocks, which others add up
  kBundles,  // more columns, every block
  kSingles,  // 1 x 1 blocks by one to three columns: lanes have products of single nonzeros, which others add up
  kLines,    // 1 x 1 blocks by lines of 128 bytes and more: teams of lanes with a chunk each, without shared memory
  kTeams,    // 1 x 1 blocks in long rows: teams of lanes, which have a row of B each, share a row of A
  kFixed,    // square blocks up to kMostFixed, A and B of one type
  kTensor,   // A and B of 16-bit types, and sides of multiples of 8: tensor cores, without shared memory
  kWindow,   // of the row_window family (cuda/window_layout.h)
  kScatter,  // of kernels that read but where rows begin, whose lanes share nothing
};

constexpr int kSinglesAtOnce = 8;  // nonzeros of a lane
constexpr int kStepOfSingles = 32 * kSinglesAtOnce;
constexpr int kMostFixed = 8;  // side of a block
constexpr bool is_fixed(int side, int element_bytes) {
  if (element_bytes == 8) return side == 2 || side == 3 || side == 6;
  return side <= 4 || (element_bytes == 4 && (side <= 6 || side == kMostFixed));
}
// With more columns, kBundles is faster.
constexpr int64_t most_columns_of_fixed(int side, int element_bytes) {
  return element_bytes < 8 ? INT64_MAX : side == 3 ? 32 : 64;
}
constexpr int kMostSharedBytesOfFixed = 12288;  // of a warp
// Of which a lane may have eight columns of C. 1 x 1 blocks of fp32 by so many are for kLines.
constexpr bool is_wide(int side, int element_bytes) { return element_bytes == 4 ? side > 1 && side <= 3 : side == 1; }

// A lane of kLines has so many bytes of a row of B, and those of a team a line.
constexpr int kBytesOfLane = 16, kLanesOfLine = 8, kTeamsOfWarp = 32 / kLanesOfLine;
constexpr int kWarpsOfLines = 8, kCtasOfLines = 3;
constexpr int lines_at_once(bool plain) { return plain ? 8 : 4; }  // of a lane

// kTeams: lines of B that a team of so many lanes has at once, one for each nonzero. Those of few lanes are of few
// bytes.
constexpr int lines_of_team(int lanes) { return lanes <= 2 ? 4 : 8; }

// What a lane computes of a square block of a size that is known when kernels are compiled: `rows` rows, `step` columns
// of the block at a time.
struct FixedTile {
  int rows, step;
};
constexpr FixedTile fixed_tile(int block, int columns, int element_bytes) {
  if (block == 6) return {3, element_bytes == 8 && columns > 1 ? 3 : 6};
  if (block == 8) return columns == 1 ? FixedTile{2, 8} : FixedTile{4, 4};
  return {block, block};
}

// Warps of a CTA, each with a chunk of its own. Where B is read through L1 for many columns, neighbouring rows, which
// often meet the same rows of it, belong on one SM.
constexpr int kWarpsOfCta = 4;
constexpr int warps_of_fixed(int columns) { return columns == 8 ? 16 : kWarpsOfCta; }
constexpr int warps_of_tensor(int row_tiles, int columns) {
  if (columns == 1) return kWarpsOfCta;
  return row_tiles == 1 ? 16 : row_tiles == 2 ? 12 : 8;
}

// CTAs of an SM, by the registers that a thread takes.
constexpr int ctas_of_fixed(int block, int columns, int element_bytes) {
  if (columns == 8) return 1;
  if (columns == 4 && element_bytes == 8 && block > 2) return block == 3 ? 4 : 3;
  return columns == 4 && block > 6 ? 4 : 5;
}
constexpr int ctas_of_tensor(int row_tiles, int columns) {
  if (columns > 1) return 1;
  return row_tiles == 1 ? 5 : row_tiles == 2 ? 4 : 2;
}
constexpr int ctas_of_singles(int sum_bytes) { return sum_bytes == 8 ? 6 : 8; }

// Fills in a way for these blocks and columns, if there is one beside those that serve every block.
bool choose_way(LaneLayout& lanes, int32_t block_m, int32_t block_k, int64_t n, ElementBytes bytes,
                double blocks_of_row);

}  // namespace sparsek::cuda
