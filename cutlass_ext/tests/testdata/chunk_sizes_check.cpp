// SPDX-License-Identifier: Apache-2.0
// Into how many chunks kernels of few_columns cut a matrix: as many as run at once, whole turns of the SMs of many
// panels, small chunks where L2 does not hold B, and whole rows where chunks have room for them.
#include <cstdio>

#include "cuda/chunk_sizes.h"

using namespace sparsek;
using namespace sparsek::cuda;

namespace {

constexpr int kSms = 132;
int failures = 0;

void expect(bool is_so, const char* what, int64_t a, int64_t b) {
  if (is_so) return;
  std::printf("wrong: %s (%lld, %lld)\n", what, static_cast<long long>(a), static_cast<long long>(b));
  ++failures;
}

BsrShape shape_of(int64_t block_rows, int32_t block, int64_t blocks_of_row) {
  BsrShape shape = {};
  shape.rows = shape.cols = block_rows * block;
  shape.block_m = shape.block_k = block;
  shape.block_rows = static_cast<int32_t>(block_rows);
  shape.nnzb = block_rows * blocks_of_row;
  return shape;
}

LaneLayout lanes_of(const BsrShape& shape, int64_t n, int bytes) {
  return lane_layout(shape.block_m, shape.block_k, n, {bytes, bytes},
                     static_cast<double>(shape.nnzb) / shape.block_rows);
}

}  // namespace

int main() {
  for (const int bytes : {2, 4, 8}) {
    for (const int32_t block : {1, 3, 5, 8, 12, 24, 32}) {
      for (const int64_t n : {1, 2, 8, 64, 256}) {
        // Enough blocks for every chunk, and a B that L2 holds.
        const BsrShape shape = shape_of(6000 / block, block, 4000);
        const LaneLayout lanes = lanes_of(shape, n, bytes);
        const ChunkSizes sizes = chunk_sizes(shape, lanes, bytes, kSms);
        expect(lanes.ctas >= 1, "some CTAs of an SM", lanes.ctas, block);
        const int64_t at_once = int64_t{kSms} * lanes.ctas * lanes.warps * lanes.teams;
        const bool by_lines = lanes.way == LaneWay::kLines || lanes.way == LaneWay::kTeams;
        const int64_t turns = sizes.count * (by_lines ? 1 : lanes.panels);
        const bool by_blocks = lanes.way == LaneWay::kStream || lanes.way == LaneWay::kBundles;
        if (lanes.panels == 1 && by_blocks) expect(turns == at_once, "as many chunks as run at once", turns, at_once);
        // Of whole turns, but for what a number of panels does not divide.
        if (by_blocks)
          expect(turns % at_once == 0 || at_once - turns % at_once < lanes.panels, "whole turns", turns, at_once);
        expect(sizes.count >= 1 && sizes.longest_whole >= 1, "chunks", sizes.count, sizes.longest_whole);
      }
    }
  }
  // Few blocks: a chunk has 4096 bytes of A or more.
  const BsrShape few = shape_of(100, 24, 2);
  const int64_t bytes_of_few = few.nnzb * 24 * 24 * 8;
  expect(chunk_sizes(few, lanes_of(few, 1, 8), 8, kSms).count <= bytes_of_few / 4096 + few.block_rows, "not too small",
         chunk_sizes(few, lanes_of(few, 1, 8), 8, kSms).count, bytes_of_few);
  // A warp reads no whole row of more than 16 KB where rows have few large blocks, and one of 16 where they are small.
  const BsrShape of_32 = shape_of(216, 32, 14), of_3 = shape_of(20000, 3, 1);
  const int64_t whole_of_32 = chunk_sizes(of_32, lanes_of(of_32, 1, 8), 8, kSms).longest_whole,
                whole_of_3 = chunk_sizes(of_3, lanes_of(of_3, 1, 8), 8, kSms).longest_whole;
  expect(whole_of_32 * 32 * 32 * 8 <= 16384, "rows of large blocks that are cut", whole_of_32, 32);
  expect(whole_of_3 >= 16, "rows of small blocks that are whole", whole_of_3, 3);
  // A stencil of 4 x 4 blocks in fp64: by 64 columns L2 holds B, by 256 it does not, and rows of 27 stay whole in both.
  BsrShape stencil = shape_of(9261, 4, 27);
  stencil.nnzb = 226981;  // rows at the boundary are shorter
  const ChunkSizes held = chunk_sizes(stencil, lanes_of(stencil, 64, 8), 8, kSms),
                   not_held = chunk_sizes(stencil, lanes_of(stencil, 256, 8), 8, kSms);
  expect(not_held.count > 2 * held.count, "smaller chunks where L2 does not hold B", held.count, not_held.count);
  expect(held.longest_whole >= 27, "whole rows of large chunks", held.longest_whole, held.count);
  expect(not_held.longest_whole >= 27, "whole rows of small chunks", not_held.longest_whole, not_held.count);
  // Large blocks, of which a chunk has fewer than a row: rows are cut.
  const BsrShape large = shape_of(512, 24, 16);
  const ChunkSizes cut = chunk_sizes(large, lanes_of(large, 1, 8), 8, kSms);
  expect(cut.longest_whole <= 16 && cut.count > large.block_rows, "long rows are cut", cut.longest_whole, cut.count);
  return failures == 0 ? 0 : 1;
}
