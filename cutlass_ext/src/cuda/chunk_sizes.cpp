// SPDX-License-Identifier: Apache-2.0
#include "cuda/chunk_sizes.h"

#include <algorithm>
#include <cmath>

namespace sparsek::cuda {
namespace {

// What a chunk reads for a block, beside its column: of B, where that is read by lines, or is most of it.
int64_t bytes_for_block(const BsrShape& matrix, const LaneLayout& lanes, int64_t element_bytes) {
  constexpr int64_t kSector = 32;
  const int64_t of_a = element_bytes * matrix.block_m * matrix.block_k;
  switch (lanes.way) {
    case LaneWay::kSingles:
      return of_a + kSector;
    case LaneWay::kLines:
    case LaneWay::kTeams:
      return of_a + std::max<int64_t>(kSector, kBytesOfLane * lanes.column_lanes);
    case LaneWay::kFixed:
      return of_a + element_bytes * matrix.block_k * lanes.columns;
    default:
      return of_a;
  }
}

// How a way takes the blocks of a row. of_row: the mean.
struct RowSteps {
  int64_t blocks;  // at once; 0: of a way that takes blocks whatever rows they are of
  int64_t rows;    // that are computed beside each other
  int64_t few;     // steps that take about as long as the kernel that adds up the sums of rows that are cut
};

RowSteps row_steps(const LaneLayout& lanes, double of_row) {
  switch (lanes.way) {
    case LaneWay::kSingles:
      return {kStepOfSingles, std::max<int64_t>(1, std::llround(kStepOfSingles / std::max(1., of_row))), 4};
    case LaneWay::kLines:
      return {lines_at_once(/*plain=*/true), 1, 8};
    case LaneWay::kTeams:
      return {lines_of_team(lanes.column_lanes) * lanes.shares, 1, 8};
    case LaneWay::kFixed:
      return {lanes.shares, lanes.rows, 24};
    default:
      return {0, 1, 0};
  }
}

}  // namespace

ChunkSizes chunk_sizes(const BsrShape& matrix, const LaneLayout& lanes, int64_t element_bytes, int sm_count) {
  // As many chunks as an SM has warps at once, for all panels of columns; or, of many panels, so many that the last
  // turn of the SMs is as full as the others; of so many bytes that beginning one costs little. Where L2 does not hold
  // B, smaller chunks in more turns, so that the rows that are computed at a time are close to each other.
  constexpr int64_t kLeastOfSm = 4, kLeastInTurns = 32, kLeastBytes = 4096, kL2Bytes = 64 << 20;
  // Rows of few blocks are whole, unless a warp would read them for long.
  constexpr int64_t kLeastWhole = 16, kLeastWholeBytes = 16384;
  const int64_t all = matrix.nnzb + matrix.block_rows;
  const bool lines = lanes.way == LaneWay::kLines || lanes.way == LaneWay::kTeams;  // panels follow each other
  const int64_t panels = lines ? 1 : lanes.panels;
  const int64_t least = std::max<int64_t>(1, kLeastBytes / bytes_for_block(matrix, lanes, element_bytes));
  const int64_t at_once = lanes.ctas * lanes.warps * lanes.teams;
  const bool for_all = lanes.way == LaneWay::kStream || lanes.way == LaneWay::kBundles;
  const bool fits = element_bytes * matrix.cols * lanes.panels * lanes.columns <= kL2Bytes;
  const int64_t least_of_sm = for_all && !fits ? kLeastInTurns : kLeastOfSm;
  const int64_t turns_of_sm = (least_of_sm * panels + at_once - 1) / at_once;
  const int64_t most = std::max<int64_t>(1, sm_count * at_once * turns_of_sm / panels);
  const auto count = static_cast<int32_t>(std::clamp<int64_t>(all / least, 1, most));
  const int64_t whole =
      std::clamp<int64_t>(kLeastWholeBytes / bytes_for_block(matrix, lanes, element_bytes), 1, kLeastWhole);
  const ChunkSizes even = {count, std::max(whole, all / count / 2)};

  // Rows of up to twice the mean are whole where that leaves few of the chunks that run at once without work, or where
  // rows take few steps: another kernel adds up the sums of those that are cut.
  constexpr double kBusy = 0.75, kRowsOfChunk = 1.75, kLittleLonger = 1.25;
  const double of_row = static_cast<double>(matrix.nnzb) / std::max(1, matrix.block_rows);
  const RowSteps steps = row_steps(lanes, of_row);
  const double of_chunk = static_cast<double>(all) / count;
  if (steps.blocks == 0 && kRowsOfChunk * of_row <= of_chunk) {
    return {count, std::max(even.longest_whole, static_cast<int64_t>(std::ceil(kLittleLonger * of_row)))};
  }
  if (steps.blocks == 0 || 2 * of_row <= static_cast<double>(even.longest_whole)) return even;
  const auto longest_whole = static_cast<int64_t>(std::ceil(2 * of_row));
  if (2 * of_row <= of_chunk) return {count, longest_whole};
  const auto beside = static_cast<int64_t>(std::lround(of_chunk / ((of_row + 1) * static_cast<double>(steps.rows))));
  const int64_t rows = std::max<int64_t>(1, beside) * steps.rows;  // of a chunk
  const int64_t chunks = (matrix.block_rows + rows - 1) / rows;
  const double turns = static_cast<double>(chunks) * (lines ? lanes.panels : 1) / static_cast<double>(most);
  const double of_chunk_steps = std::ceil(of_row / static_cast<double>(steps.blocks)) * std::max<int64_t>(1, beside);
  if (turns / std::ceil(turns) < kBusy && of_chunk_steps > static_cast<double>(steps.few)) return even;
  return {static_cast<int32_t>(chunks), longest_whole};
}

}  // namespace sparsek::cuda
