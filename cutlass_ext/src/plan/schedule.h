// SPDX-License-Identifier: Apache-2.0
// The order of a plan's tiles, for the planners on the host and on the GPU.
//
// Workers take tiles from one list, each the next one when it is done with the last (Graham's list scheduling). Longest
// tiles first, the workers end at most one tile apart; a few panels of columns at a time, these panels of B stay in L2.
#pragma once

#include <cstdint>

namespace sparsek {

// Whether a row group of `count` entries is long, where `groups` groups have `entries` entries in total: more than 1.5
// times the mean, and more than 1.5 times a worker's share of the panels in flight. If its tile came with the last
// panels, its worker would be busy when all others are done.
constexpr bool is_long(int64_t count, int64_t groups, int64_t entries, int32_t workers, int32_t panels_in_flight) {
  return 2 * count * groups > 3 * entries && 2 * count * workers > 3 * entries * panels_in_flight;
}

// Where the entries of the row groups lie, in sums over the groups that have entries of their own.
struct EntrySums {
  int64_t groups = 0;  // with at least one entry
  int64_t entries = 0;
  int64_t spanned = 0;  // rows of B from the first entry of a group to the end of its last
  int64_t moved = 0;    // rows of B between the first entry of a group and that of the group before
};

// Whether row groups that follow each other read nearly the same rows of B, few others lie between these, and they are
// so few that eight panels of them stay in L2: windows and causal masks.
constexpr bool is_band(const EntrySums& sums, int32_t block_k) {
  constexpr int64_t kMostRows = 6144;  // of 2048 columns of two bytes: 25 MB, half of an H200's L2
  const int64_t read = sums.entries * block_k;
  return 3 * sums.spanned <= 4 * read && 4 * sums.moved <= read && sums.spanned <= kMostRows * sums.groups;
}

// Whether the rows of a group share most of its columns. nnzb: of the matrix.
constexpr bool share_columns(int32_t slots, int64_t entries, int64_t nnzb) {
  return slots == 1 || nnzb * 5 >= entries * slots * 4;
}

// Whether there are so many panels that choose_panels may tell a band from other patterns.
constexpr bool may_prefer_band(int32_t panels, int32_t tile_n) { return int64_t{panels} * tile_n > 1024; }

// How many panels of columns share the L2 cache, where a plan does not say. Where the rows of a group have few columns
// in common, the panels of B are read all over, and only two of them stay in L2. Where they share most columns (or a
// block row fills the tile), loads of A cost as much, and with four panels each block of A is read from L2
// (docs/notes/planning.md, "Panels in flight"). Of a band, only few rows of B are in use at a time, and those of eight
// panels stay in L2. That is of panels of 512 bytes of a row of B or less; a wider one counts for several.
constexpr int32_t choose_panels(bool share, bool band, int32_t panel_bytes) {
  constexpr int32_t kBytes = 512;
  const int32_t panels = !share ? 2 : band ? 8 : 4;
  return panel_bytes <= kBytes ? panels : (panels * kBytes + panel_bytes - 1) / panel_bytes;
}

// The order of the tiles: those of long row groups, then the others. In both classes a few panels of columns at a time,
// and within these the longest row groups first.
struct TileOrder {
  // panels_in_flight: at least 1. groups * panels must fit in int32.
  constexpr TileOrder(int32_t groups, int32_t panels, int32_t panels_in_flight, int32_t long_groups)
      : panels_(panels),
        in_flight_(panels_in_flight < panels ? panels_in_flight : panels),
        groups_(groups),
        long_(long_groups) {}

  struct Place {
    int32_t rank;  // of the row group, by length; the longest has rank 0
    int32_t panel;
  };
  constexpr int32_t tiles() const { return groups_ * panels_; }
  // Of the i-th tile.
  constexpr Place operator[](int32_t i) const {
    const int32_t of_long = long_ * panels_;
    return i < of_long ? place(i, 0, long_) : place(i - of_long, long_, groups_ - long_);
  }
  // The number of the tile at a place.
  constexpr int32_t number(const Place& at) const {
    return at.rank < long_ ? number(at, 0, long_) : long_ * panels_ + number(at, long_, groups_ - long_);
  }

 private:
  // The i-th tile of `count` row groups, the first of which has rank `least`.
  constexpr Place place(int32_t i, int32_t least, int32_t count) const {
    const int32_t batch = count * in_flight_;
    const int32_t first = i / batch * in_flight_, within = i % batch;
    const int32_t width = in_flight_ < panels_ - first ? in_flight_ : panels_ - first;
    return {least + within / width, first + within % width};
  }
  constexpr int32_t number(const Place& at, int32_t least, int32_t count) const {
    const int32_t first = at.panel / in_flight_ * in_flight_;
    const int32_t width = in_flight_ < panels_ - first ? in_flight_ : panels_ - first;
    return first * count + (at.rank - least) * width + at.panel - first;
  }

  int32_t panels_, in_flight_, groups_, long_;
};

}  // namespace sparsek
