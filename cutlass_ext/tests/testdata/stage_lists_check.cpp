// SPDX-License-Identifier: Apache-2.0
// The lists of stages that kernel family "wgmma_scatter" works on. Where they lie, and what elements have in them:
// lists of any lengths do not overlap and have room, places of a quarter are all different, and quotients are exact.
// And what the kernels that make them write, which run here lane by lane: written to places, the elements of the lists
// are the dense matrix. Prints the first wrong answer and exits with 1.
#include <array>
#include <cstdio>
#include <random>
#include <vector>

#include "lanes_on_host.h"

// Behind what stands in for CUDA.
#include "cuda/stage_lists.cuh"
#include "cuda/stage_parts.h"
#include "random_lists.h"

namespace {

using namespace sparsek::cuda;

bool places_differ() {
  std::vector<bool> taken(kQuarterRows * kListRowBytes);
  for (uint32_t row = 0; row < kQuarterRows; ++row) {
    for (uint32_t column = 0; column < kListColumns; ++column) {
      const uint32_t place = place_of(row, column);
      if (place >= taken.size() || place % 2 != 0 || taken[place]) return false;
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

bool elements_of_unit_differ() {
  std::vector<bool> taken(kUnit);
  for (int i = 0; i < kUnit; ++i) {
    if (at_of(i) < 0 || at_of(i) >= kUnit || taken[static_cast<size_t>(at_of(i))]) return false;
    taken[static_cast<size_t>(at_of(i))] = true;
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
    const int64_t first = first_unit(before, list), count = counts[static_cast<size_t>(list)];
    if (first < end) return false;
    end = first + std::max<int64_t>(1, (count + kUnit - 1) / kUnit);
    before += count;
    if (end > first_unit(before, list + 1)) return false;
  }
  return end <= sizes.units();
}

// Elements by places and sources, in the order of the steps, against the dense matrix: by the index of each element of
// the values + 1.
bool lists_are_the_matrix(std::mt19937& random) {
  const RandomMatrix matrix(random);
  const MadeLists lists(matrix);
  const ListSizes& sizes = lists.sizes;
  std::vector<uint32_t> dense = matrix.dense_sources();
  for (int64_t group = 0; group < sizes.groups; ++group) {
    int32_t last = -1;
    for (int64_t step = 0; step < lists.to.counts[group]; ++step) {
      bool any = false;
      for (int64_t q = 0; q < kQuarters; ++q) {
        const Step of = lists.to.steps[(group * kQuarters + q) * sizes.stages + step];
        if (of.units() < 1 || of.units() > kMostUnits || of.stage() >= sizes.stages) return false;
        if (q == 0 ? of.stage() <= last : of.stage() != last) return false;
        last = of.stage();
        std::vector<uint32_t> quarter(kQuarterRows * kListColumns);
        for (int64_t i = int64_t{of.begin} * kUnit; i < int64_t{of.begin + of.units()} * kUnit; ++i) {
          const uint32_t place = lists.to.places[i], own = lists.to.sources[i] + 1;
          if (place % 2 != 0 || place >= quarter.size() * 2) return false;
          if (quarter[place / 2] != 0 && quarter[place / 2] != own) return false;
          quarter[place / 2] = own;
          any = any || own != 0;
        }
        for (int64_t row = 0; row < kQuarterRows; ++row) {
          for (int64_t column = 0; column < sizes.columns; ++column) {
            const int64_t r = (group * kQuarters + q) * kQuarterRows + row, c = of.stage() * sizes.columns + column;
            uint32_t& own = quarter[place_of(uint32_t(row), uint32_t(column)) / 2];
            if (r < matrix.rows && c < matrix.cols) {
              if (own != dense[size_t(r * matrix.cols + c)]) return false;
              dense[size_t(r * matrix.cols + c)] = 0;
              own = 0;
            }
          }
        }
        for (const uint32_t own : quarter) {
          if (own != 0) return false;  // outside of the matrix
        }
      }
      if (!any) return false;
    }
  }
  for (const uint32_t source : dense) {
    if (source != 0) return false;  // of a stage that was left out
  }
  return lists.all_sources_are_known();
}

// Tiles are shared where CTAs would have none, and parts have some stages each.
bool parts_follow_from_sizes() {
  const ListSizes sizes = list_sizes(4096, 4096, 1 << 21, 1, 1);
  for (const auto [panels, ctas, parts] : {std::array<int64_t, 3>{1, 132, 4},
                                           {1, 264, 8},
                                           {1, 1000, 8},
                                           {4, 132, 1},
                                           {2, 132, 2},
                                           {3, 1, 1},
                                           {0, 132, 1}}) {
    if (parts_of_tiles(sizes, 1 << 21, panels, ctas) != parts) return false;
  }
  const ListSizes few = list_sizes(128, 64 * 16, 1000, 1, 1), short_ones = list_sizes(128, 64 * 15, 1000, 1, 1);
  return parts_of_tiles(few, 1000, 1, 132) == 4 && parts_of_tiles(short_ones, 1000, 1, 132) == 1 &&
         parts_of_tiles(few, 15, 1, 132) == 1;
}

}  // namespace

int main() {
  if (!parts_follow_from_sizes()) return std::puts("tiles are shared by another number of CTAs"), 1;
  if (!places_differ()) return std::puts("two elements of a quarter have one place"), 1;
  if (!elements_of_unit_differ()) return std::puts("two elements of a unit lie in one place"), 1;
  if (!quotients_are_exact()) return std::puts("a quotient is not exact"), 1;
  std::mt19937 random(1);
  for (int i = 0; i < 300; ++i) {
    const int64_t rows = 1 + static_cast<int64_t>(random() % 700), cols = 1 + static_cast<int64_t>(random() % 900);
    if (!lists_have_room(random, rows, cols)) return std::printf("lists of %d x %d overlap\n", int(rows), int(cols)), 1;
  }
  for (int i = 0; i < 30; ++i) {
    if (!lists_are_the_matrix(random)) return std::printf("the lists of matrix %d are not the matrix\n", i), 1;
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
