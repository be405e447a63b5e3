// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace sparsek::cuda {

// CTAs (or clusters) that are launched for a list of tiles, of which `at_once` run at once: as many as that, each with
// several tiles, or where there are at most `rounds` times as many tiles, one a tile.
constexpr int32_t worker_count(int64_t tiles, int32_t at_once, int32_t rounds) {
  return tiles <= int64_t{rounds} * at_once ? static_cast<int32_t>(tiles) : at_once;
}

// Of `workers` CTAs (or clusters), how many of the last ones have no tile of their own in a list of `tiles`: see
// collective/tile_queue.hpp. An eighth, where each computes many tiles, since taking one takes about a microsecond.
constexpr int32_t late_workers(int32_t tiles, int32_t workers) {
  constexpr int32_t kMany = 8;
  return tiles >= int64_t{kMany} * workers ? workers / 8 : 0;
}

}  // namespace sparsek::cuda
