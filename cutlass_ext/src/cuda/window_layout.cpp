// SPDX-License-Identifier: Apache-2.0
#include "cuda/window_layout.h"

#include <algorithm>

namespace sparsek::cuda {

LaneLayout window_layout(int32_t block, int64_t n, int element_bytes, double blocks_of_row) {
  constexpr int kLanes = 32, kLanesOfLine = kLineBytes / kPieceBytes, kMostRows = 8, kGroupBytes = 2048, kGroups = 32;
  constexpr double kAhead = 1.15;  // of what the warps have at once, there is room for so much
  const int piece = kPieceBytes / element_bytes;
  LaneLayout lanes = {};
  lanes.way = LaneWay::kWindow;
  lanes.tile_m = block;
  lanes.depth = step_of_window(block);
  lanes.depth_lanes = lanes.row_lanes = 1;
  const int pieces = n * element_bytes > kLineBytes ? most_pieces(block) : 1;
  lanes.tile_n = pieces * piece;
  lanes.column_lanes = 1;
  while (lanes.column_lanes < kLanesOfLine && int64_t{lanes.column_lanes} * lanes.tile_n < n) lanes.column_lanes *= 2;
  lanes.columns = lanes.column_lanes * lanes.tile_n;
  lanes.panels = static_cast<int32_t>((n + lanes.columns - 1) / lanes.columns);
  lanes.warps = lanes.teams = lanes.ctas = 1;  // a chunk is a CTA's
  const int warps = warps_of_window(block, pieces, element_bytes);
  const int block_bytes = block * block * element_bytes, entries = kLanes / lanes.column_lanes;
  const auto room = [&](int ring) { return ring * (block_bytes + 4); };
  // As many rows at once as there is room for, and lanes for each of them that have the others' places.
  lanes.rows = std::min(kMostRows, entries);
  int ring = 0;
  for (;; lanes.rows /= 2) {
    for (ring = 256; ring < kAhead * warps * lanes.rows * blocks_of_row && room(2 * ring) <= kMostWindowBytes;)
      ring *= 2;
    if (lanes.rows == 1 || ring >= kAhead * warps * lanes.rows * blocks_of_row) break;
  }
  lanes.shares = entries / lanes.rows;
  lanes.group = 8;
  while (lanes.group * block_bytes < kGroupBytes || ring / lanes.group > kGroups) lanes.group *= 2;
  lanes.groups = ring / lanes.group;
  constexpr int kBarriersBytes = 16;  // of a group
  lanes.ring_bytes = room(ring) + lanes.groups * kBarriersBytes;
  lanes.shared_bytes = (lanes.ring_bytes + 15) / 16 * 16;
  // Of a block: what a warp issues, and its part of what a row takes beside.
  const double products = block * block * lanes.tile_n * (element_bytes == 8 ? 2. : 1.);
  const double loads = block * pieces + block * block / 2.;
  const double row = 400 + 15. * block * lanes.tile_n;
  lanes.cost = (products + loads + 14 + row * lanes.shares / std::max(1., blocks_of_row)) / entries;
  return lanes;
}

}  // namespace sparsek::cuda
