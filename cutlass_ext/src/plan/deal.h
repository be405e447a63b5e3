// SPDX-License-Identifier: Apache-2.0
// How tiles are dealt out to workers, for many threads at once. The planner on the host takes one tile after the other
// and gives it to the worker with the least work (least_loaded.h). The same comes out in rounds:
//
//   The workers stand in a queue in the order of their loads. Tile i of a round goes to the i-th of the queue, as long
//   as that one still comes before each that was given a tile in this round; there the round ends, and the queue is
//   put in order again.
//
// A round deals out about as many tiles as there are workers, and at least one: what is slow is a pattern where most
// workers are busy with a long tile each and few share a great many short ones.
#pragma once

#include <cstdint>

namespace sparsek {

// Whether a row group of `count` entries is a long one, of `groups` that have `entries` in sum: half as long again as the
// mean, and as what a worker has to do for the panels in flight. If its tile came with the last panels, its worker would
// be busy when all others are done.
constexpr bool is_long(int64_t count, int64_t groups, int64_t entries, int32_t workers, int32_t panels_in_flight) {
  return 2 * count * groups > 3 * entries && 2 * count * workers > 3 * entries * panels_in_flight;
}

// The tiles in the order of dealing: those of long row groups, then the others. Of either, panels of columns a few at a
// time; in these the row groups longest first.
struct DealOrder {
  // panels_in_flight: at least 1. groups * panels must fit in int32.
  constexpr DealOrder(int32_t groups, int32_t panels, int32_t panels_in_flight, int32_t long_groups)
      : panels_(panels),
        in_flight_(panels_in_flight < panels ? panels_in_flight : panels),
        groups_(groups),
        long_(long_groups) {}

  struct Turn {
    int32_t rank;  // of the row group, the longest first
    int32_t panel;
  };
  constexpr int32_t tiles() const { return groups_ * panels_; }
  constexpr Turn operator[](int32_t i) const {
    const int32_t of_long = long_ * panels_;
    return i < of_long ? turn(i, 0, long_) : turn(i - of_long, long_, groups_ - long_);
  }

 private:
  // The i-th tile of `count` row groups from rank `least` on.
  constexpr Turn turn(int32_t i, int32_t least, int32_t count) const {
    const int32_t batch = count * in_flight_;
    const int32_t first = i / batch * in_flight_, within = i % batch;
    const int32_t width = in_flight_ < panels_ - first ? in_flight_ : panels_ - first;
    return {least + within / width, first + within % width};
  }

  int32_t panels_, in_flight_, groups_, long_;
};

// A worker in the queue.
struct QueuedWorker {
  double load;
  int32_t worker;
  int32_t tiles;  // that it has so far

  // The host's arithmetic, in the host's order: the loads must be the same to the bit.
  constexpr QueuedWorker with_tile(double tile_cost, int32_t entries) const {
    return {load + tile_cost + entries, worker, tiles + 1};
  }
  constexpr bool before(const QueuedWorker& other) const {
    return load < other.load || (load == other.load && worker < other.worker);
  }
};

// How many of the queue come before a worker.
constexpr int32_t count_before(const QueuedWorker* queue, int32_t workers, const QueuedWorker& one) {
  int32_t low = 0, high = workers;
  while (low < high) {
    const int32_t middle = low + (high - low) / 2;
    if (queue[middle].before(one)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

// The place at which a round must end at the latest, given how many of the old queue come before the worker at `at`
// with its new tile: no worker behind that place may take a tile before this one does.
constexpr int32_t round_end(int32_t at, int32_t before) { return before > at + 1 ? before : at + 1; }

// The place in the next queue of `one`, which `unserved` of those without a new tile come before. served[0, count) are
// the workers with their new tiles.
constexpr int32_t next_place(const QueuedWorker& one, int32_t unserved, const QueuedWorker* served, int32_t count) {
  int32_t place = unserved;
  for (int32_t i = 0; i < count; ++i) place += served[i].before(one);
  return place;
}

}  // namespace sparsek
