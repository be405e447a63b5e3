// SPDX-License-Identifier: Apache-2.0
// Where the lists of stages lie that kernel family "wgmma_scatter" works on, and what elements have in them: lists of
// any lengths do not overlap and have room, places of a quarter are all different, and quotients are exact. Prints the
// first wrong answer and exits with 1.
#include <cstddef>  // what launch_args.h has of CUDA's header
#include <cstdio>
#include <random>
#include <vector>

#include "cuda/stage_lists.h"

namespace {

using namespace sparsek::cuda;

bool places_differ() {
  std::vector<bool> taken(kQuarterRows * kListRowBytes);
  for (uint32_t row = 0; row < kQuarterRows; ++row) {
    for (uint32_t column = 0; column < kListColumns; ++column) {
      const uint32_t place = place_of(row, column);
      if ((place & ~kPlaceBits) != 0 || place % 2 != 0 || taken[place]) return false;
      taken[place] = true;
    }
  }
  return true;
}

bool quotients_are_exact() {
  for (int32_t block_k = 1; block_k <= kListColumns; ++block_k) {
    for (uint32_t i = 0; i < kListColumns; ++i) {
      if (block_of(i, reciprocal_of(block_k)) != i / static_cast<uint32_t>(block_k)) return false;
    }
  }
  return true;
}

// Lists of a matrix of single nonzeros, none, few or many in each.
bool lists_have_room(std::mt19937& random, int64_t rows, int64_t cols) {
  const int most = static_cast<int>(random() % 3) * 700;
  std::vector<int64_t> counts;
  int64_t nonzeros = 0;
  ListSizes sizes = list_sizes(rows, cols, 0, 1, 1);
  for (int64_t list = 0; list < sizes.lists(); ++list) {
    counts.push_back(most == 0 ? 0 : static_cast<int64_t>(random() % most));
    nonzeros += counts.back();
  }
  sizes = list_sizes(rows, cols, nonzeros, 1, 1);
  int64_t before = 0, end = 0;
  for (int64_t list = 0; list < sizes.lists(); ++list) {
    const int64_t first = first_chunk(before, list), count = counts[static_cast<size_t>(list)];
    if (first < end) return false;
    end = first + (count + kChunk - 1) / kChunk;
    before += count;
  }
  return end <= sizes.chunks();
}

}  // namespace

int main() {
  if (!places_differ()) return std::puts("two elements of a quarter have one place"), 1;
  if (!quotients_are_exact()) return std::puts("a quotient is not exact"), 1;
  std::mt19937 random(1);
  for (int i = 0; i < 300; ++i) {
    const int64_t rows = 1 + static_cast<int64_t>(random() % 700), cols = 1 + static_cast<int64_t>(random() % 900);
    if (!lists_have_room(random, rows, cols)) return std::printf("lists of %d x %d overlap\n", int(rows), int(cols)), 1;
  }
  // A product without columns of A is one of a column without blocks: its memory must be as large.
  if (list_sizes(300, 0, 0, 3, 3).bytes() != list_sizes(300, 1, 0, 3, 3).bytes()) {
    return std::puts("a matrix without columns has too little memory"), 1;
  }
  // Blocks are whole in a stage.
  for (int32_t block_k = 1; block_k <= kListColumns; ++block_k) {
    const ListSizes sizes = list_sizes(128, 1000, 10, 1, block_k);
    if (sizes.columns % block_k != 0 || sizes.columns > kListColumns || sizes.stages * sizes.columns < 1000) {
      return std::printf("stages of blocks %d wide have %d columns\n", block_k, sizes.columns), 1;
    }
  }
}
