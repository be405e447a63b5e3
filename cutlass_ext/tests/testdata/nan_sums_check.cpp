// SPDX-License-Identifier: Apache-2.0
// When a warp's walk over a tile with NaN in its sums may end: its sums are NaN in all rows that have a block. What the
// kernels ask runs here lane by lane. Prints the first wrong answer and exits with 1.
#include <cmath>
#include <cstdio>
#include <limits>
#include <random>
#include <vector>

#include "lanes_on_host.h"

using std::isnan;

// Behind what stands in for CUDA.
#include "cuda/nan_sums.cuh"

namespace {

using namespace sparsek;
using namespace sparsek::cuda;

constexpr int kGroups = 8, kRows = 16;

int below(std::mt19937& random, int limit) { return static_cast<int>(random() % static_cast<unsigned>(limit)); }

// Which of two slots have a block in a tile of few entries or many, most of which have none.
bool finds_slots(std::mt19937& random) {
  constexpr int kBefore = 3;
  const int slots = 1 << below(random, 5), entries = below(random, 100);
  std::vector<int32_t> blocks(static_cast<size_t>((kBefore + entries + 1) * slots), 7);  // those of other tiles
  for (int i = 0; i < entries * slots; ++i) blocks[static_cast<size_t>(kBefore * slots + i)] = kNoBlock;
  const uint32_t slot[2] = {static_cast<uint32_t>(below(random, slots)), static_cast<uint32_t>(below(random, slots))};
  for (int i = below(random, 4); i > 0 && entries > 0; --i) {
    blocks[static_cast<size_t>((kBefore + below(random, entries)) * slots + below(random, slots))] = below(random, 9);
  }
  uint32_t want = 0;
  for (int h = 0; h < 2; ++h) {
    for (int e = 0; e < entries; ++e) {
      want |= uint32_t(blocks[(kBefore + e) * size_t(slots) + slot[h]] != kNoBlock) << h;
    }
  }
  LaunchArgs args = {};
  args.entry_block = blocks.data();
  WorkTile tile = {};
  tile.entry_begin = kBefore;
  tile.entry_count = entries;
  bool right = true;
  on_host::run(1, [&](int, int lane) {
    if (slots_with_blocks(args, tile, slots, slot, lane) != want) right = false;
  });
  return right;
}

// Rows that count are NaN, but for one element of some row, if at all.
bool sees_rows(std::mt19937& random) {
  bool counts[kRows];
  for (bool& row : counts) row = below(random, 3) != 0;
  std::vector<float> sums(kRows * kGroups * 8);
  for (size_t i = 0; i < sums.size(); ++i) {
    sums[i] = counts[i / (kGroups * 8)] || below(random, 2) == 0 ? NAN : static_cast<float>(below(random, 3));
  }
  constexpr float kInf = std::numeric_limits<float>::infinity();
  if (below(random, 2) == 0) sums[random() % sums.size()] = below(random, 2) == 0 ? kInf : 1;
  bool want = true;
  for (size_t i = 0; i < sums.size(); ++i) want = want && (isnan(sums[i]) || !counts[i / (kGroups * 8)]);
  bool right = true;
  on_host::run(1, [&](int, int lane) {
    float own[kGroups][4];
    for (int i = 0; i < kGroups * 4; ++i) {
      const int row = lane / 4 + i % 4 / 2 * 8, column = i / 4 * 8 + lane % 4 * 2 + i % 2;
      own[i / 4][i % 4] = sums[static_cast<size_t>(row * kGroups * 8 + column)];
    }
    const bool of_lane[2] = {counts[lane / 4], counts[lane / 4 + 8]};
    if (all_nan(own, of_lane) != want) right = false;
  });
  return right;
}

}  // namespace

int main() {
  std::mt19937 random(1);
  for (int i = 0; i < 400; ++i) {
    if (!finds_slots(random)) return std::printf("tile %d: other slots have blocks\n", i), 1;
    if (!sees_rows(random)) return std::printf("slab %d: its rows are NaN, or not\n", i), 1;
  }
}
