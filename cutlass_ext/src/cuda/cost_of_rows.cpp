// SPDX-License-Identifier: Apache-2.0
#include "cuda/cost_of_rows.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "cuda/cost_parts.h"
#include "cuda/row_mma_sizes.h"

namespace sparsek::cuda {
namespace {

// row_mma, in microseconds: what a warp waits for, and what a step takes of an SM.
struct RowMmaCost {
  double launch, tile, step;
  double piece;               // of A, beside the first of a lane
  double single;              // where the columns of a vector of B are loaded one by one; estimated, not fitted
  double longer;              // factor of the steps by which the longest row is longer than the mean
  double load, load_columns;  // four rows of B, and in addition those of all columns of a tile
  double load_a, mma;         // a piece of A; eight rows of A by four columns of it
  double others;              // share of all but the longest of waiting, issuing and moving
};

// Factors of what was fitted: by type, and of products that the fit had none or few of: slices, fewer columns than 16
// bytes have, and in fp64 few columns of small blocks.
double more(const Work& work, int slices) {
  constexpr double kOf16Bits = 1.04, kOfSlice = 0.03, kOfFp32Slices = 1.08, kOfFp64Slices = 1.02;
  constexpr double kOfSmallFp64 = 0.92, kFewOf16Bits = 1.08, kFewOfFp32Slices = 1.15, kOneOfFp64 = 1.25;
  constexpr int64_t kFew = 16, kSmall = 16;
  const int64_t vector = 16 / work.element_bytes;
  switch (work.element_bytes) {
    case 2:
      return (kOf16Bits + (slices > 1 ? kOfSlice * slices : 0)) * (work.n < vector ? kFewOf16Bits : 1);
    case 4:
      return slices == 1 ? 1 : kOfFp32Slices * (work.n < vector ? kFewOfFp32Slices : 1);
    default:
      if (work.n < vector) return kOneOfFp64;
      if (slices > 1) return kOfFp64Slices;
      return work.n < kFew && work.shape.block_m <= kSmall ? kOfSmallFp64 : 1;
  }
}

}  // namespace

// A tile is a block row by some columns, or a slice of it, whose steps the warps of a CTA share: what they wait for, in
// turns, or what all steps take of an SM. A long row takes as long as its CTA: where rows are not known, one is assumed
// to have a share of all columns.
double predict_row_mma(const KernelDesc& kernel, const Work& work) {
  constexpr double kMemory = 0.85, kMissed = 0.5, kOdd = 1.15, kLongOfSlices = 1.2, kShareOfUnknown = 0.25;
  constexpr double kFewTurns = 4, kManyTurns = 32, kOverlap = 0.86, kUneven = 3, kOfUneven = 0.74;
  // docs/notes/cost-model.md
  constexpr RowMmaCost kOf16Bits = {5.245, 1.156, 0.4813, 0.04091, 1.5, 1.704, 0.02199, 0.01053, 0, 0.004171, 0.723},
                       kOfFp32 = {5.262, 0.8446, 0.4583, 0.06288, 0.3, 1.474, 0, 0.002064, 0.001505, 0.01681, 0.726},
                       kOfFp64 = {5.151, 1.064, 0.5006, 0.07976, 0.4, 1.438, 0, 0.0427, 0.0004163, 0.01516, 0.569};
  const BsrShape& shape = work.shape;
  const int bytes = static_cast<int>(work.element_bytes), vector = 16 / bytes;
  const RowMmaCost& cost = bytes == 2 ? kOf16Bits : bytes == 4 ? kOfFp32 : kOfFp64;
  if (shape.rows == 0 || work.n == 0) return cost.launch;
  const auto n = static_cast<double>(work.n);
  const double panels = ceil_div(n, kernel.tile_n), tiles = shape.block_rows * panels;
  const row_mma::SharedSteps steps =
      row_mma::shared_steps(work.shares_tiles ? static_cast<int64_t>(tiles) : shape.block_rows, shape.block_rows,
                            shape.nnzb, shape.block_m, shape.block_k, bytes);
  const int row_tiles = row_mma::row_tiles(shape.block_m), depth = row_mma::registers_of(row_tiles, bytes).depth;
  const double pieces = depth * 4. / std::gcd(shape.block_k, std::min(depth * 4, vector));
  const double of_row = static_cast<double>(shape.block_k) / steps.columns;  // steps, for each block
  const int slices = row_mma::slices(shape.block_m);
  double turns = std::max(1.0, tiles * slices / (steps.at_once * work.device.sm_count));
  if (turns < kFewTurns) turns = std::ceil(turns);
  // Of the columns of a vector of B, by one load, by words, or one by one.
  const double columns = work.packs_b || work.n % vector == 0 ? 1 : std::min(n, static_cast<double>(vector));
  const double loads = bytes == 2 && work.n % 2 == 0 ? std::max(1.0, columns / 2) : columns;
  const double step = cost.step + cost.piece * (pieces - 1) + cost.single * (loads - 1) / (vector - 1);
  const double longest =
      work.knows_rows ? static_cast<double>(work.stats.longest_row) : kShareOfUnknown * shape.block_cols;
  const double longer = std::max(0.0, longest * of_row - static_cast<double>(steps.mean));
  const double tile = cost.tile + step * static_cast<double>(steps.of_warp);
  const double of_longer = cost.longer * (slices > 1 ? kLongOfSlices : 1) * step * longer / steps.warps;
  const double waiting = on_sms(std::max(turns * tile, tile + of_longer), work);
  const double all = static_cast<double>(shape.nnzb) * of_row * panels * slices;
  const double of_b = cost.load + cost.load_columns * std::min(1.0, n / kernel.tile_n);
  const double of_step = depth * (of_b + cost.mma * row_tiles) + cost.load_a * pieces * (row_tiles + 2);
  const double issuing = on_sms(all * of_step / work.device.sm_count, work);
  const double moving = (bytes_of_operands(work) + bytes_of_c(work)) / memory_rate(kMemory, work) +
                        bytes_missed(work, kMissed, 1, work.stats.rows64.loads) / memory_rate(1, work);
  const double most = std::max({waiting, issuing, moving});
  const double odd = bytes == 2 && shape.block_k % 2 != 0 ? kOdd : 1;
  const double copying = work.packs_b ? pack_b(work) : 0;
  const double all_parts = most + cost.others * (waiting + issuing + moving - most);
  // Where there are many turns, others overlap more; in few of them, the longest row hides behind the others.
  double overlap = turns < kManyTurns || bytes == 2 ? 1 : kOverlap;
  const bool hides = slices > 1 && bytes > 2 && turns >= kFewTurns && turns < kManyTurns &&
                     longest * of_row > kUneven * static_cast<double>(steps.mean);
  if (hides) overlap *= kOfUneven;
  return more(work, slices) * (cost.launch + copying + odd * overlap * all_parts);
}

}  // namespace sparsek::cuda
