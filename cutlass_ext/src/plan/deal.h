// SPDX-License-Identifier: Apache-2.0
// Deals tiles out to workers with many threads in parallel. The planner on the host takes one tile after the other and
// gives it to the worker with the least work (least_loaded.h). Rounds give the same result:
//
//   The workers are queued in the order of their loads. Tile i of a round goes to the i-th worker of the queue, as long
//   as that worker comes before every worker that was given a tile in this round. Otherwise the round ends, and the
//   queue is sorted again.
//
// A round deals out about as many tiles as there are workers, and at least one. Patterns where most workers have one
// long tile each and a few share very many short ones need the most rounds.
#pragma once

#include <cstdint>

namespace sparsek {

// Whether a row group of `count` entries is long, where `groups` groups have `entries` entries in total: more than 1.5
// times the mean, and more than 1.5 times a worker's share of the panels in flight. If its tile were dealt out with the
// last panels, its worker would be busy when all others are done.
constexpr bool is_long(int64_t count, int64_t groups, int64_t entries, int32_t workers, int32_t panels_in_flight) {
  return 2 * count * groups > 3 * entries && 2 * count * workers > 3 * entries * panels_in_flight;
}

// The order in which tiles are dealt out: those of long row groups, then the others. In both classes a few panels of
// columns at a time, and within these the longest row groups first.
struct DealOrder {
  // panels_in_flight: at least 1. groups * panels must fit in int32.
  constexpr DealOrder(int32_t groups, int32_t panels, int32_t panels_in_flight, int32_t long_groups)
      : panels_(panels),
        in_flight_(panels_in_flight < panels ? panels_in_flight : panels),
        groups_(groups),
        long_(long_groups) {}

  struct Turn {
    int32_t rank;  // of the row group, by length; the longest has rank 0
    int32_t panel;
  };
  constexpr int32_t tiles() const { return groups_ * panels_; }
  constexpr Turn operator[](int32_t i) const {
    const int32_t of_long = long_ * panels_;
    return i < of_long ? turn(i, 0, long_) : turn(i - of_long, long_, groups_ - long_);
  }

 private:
  // The i-th tile of `count` row groups, the first of which has rank `least`.
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
  int32_t tiles;  // dealt to it so far

  // Same arithmetic in the same order as on the host: the loads must agree bit for bit.
  constexpr QueuedWorker with_tile(double tile_cost, int32_t entries) const {
    return {load + tile_cost + entries, worker, tiles + 1};
  }
  constexpr bool before(const QueuedWorker& other) const {
    return load < other.load || (load == other.load && worker < other.worker);
  }
};

// The number of workers in the queue that come before `one`.
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

// The latest place at which a round must end. before: the number of workers of the old queue that come before the
// worker at `at` with its new tile; the workers after them may not take a tile before it does.
constexpr int32_t round_end(int32_t at, int32_t before) { return before > at + 1 ? before : at + 1; }

// The place of `one` in the next queue. unserved: the number of workers without a new tile that come before it;
// served[0, count): the workers with a new tile.
constexpr int32_t next_place(const QueuedWorker& one, int32_t unserved, const QueuedWorker* served, int32_t count) {
  int32_t place = unserved;
  for (int32_t i = 0; i < count; ++i) place += served[i].before(one);
  return place;
}

}  // namespace sparsek
