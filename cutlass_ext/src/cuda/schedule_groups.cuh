// SPDX-License-Identifier: Apache-2.0
// The list of the tiles of few row groups, made by one CTA.
#pragma once

#include <cub/block/block_reduce.cuh>

#include "cuda/schedule_tiles.h"
#include "plan/schedule.h"

namespace sparsek::cuda {
// Named, since the symbols of kernels in an unnamed namespace depend on the path of the checkout.
namespace scheduling {

constexpr int kThreads = 256;

// Sums over the row groups.
struct Totals {
  unsigned long long all;      // entries, those that groups share counted for each
  unsigned long long leaders;  // entries that there are

  __device__ friend Totals operator+(const Totals& a, const Totals& b) {
    return {a.all + b.all, a.leaders + b.leaders};
  }
};

__device__ inline int32_t panels_in_flight(const Schedule& schedule, const Totals& totals) {
  if (schedule.panels_in_flight > 0) return schedule.panels_in_flight;
  return choose_panels(schedule.grid.slots, static_cast<int64_t>(totals.leaders), *schedule.blocks, schedule.tile_n);
}

struct FewGroups {
  typename cub::BlockReduce<Totals, kThreads>::TempStorage reduce;
  Totals totals;
  EntryRange range[kThreads];
  int32_t sorted[kThreads];  // row groups, the longest first
};

// Called by all threads of a CTA of kThreads, for at most so many row groups: a thread finds the rank of one by
// comparing its length with all others'.
__device__ inline void schedule_few(const Schedule& schedule, const ScheduledTiles& to, FewGroups& shared) {
  const auto own = static_cast<int32_t>(threadIdx.x);
  EntryRange range = {0, 0};
  Totals totals = {0, 0};
  if (own < schedule.groups) {
    const int64_t leader = schedule.grid.leader(own);
    range = {__ldcg(&schedule.ranges[leader].begin), __ldcg(&schedule.ranges[leader].count)};
    totals.all = static_cast<unsigned long long>(range.count);
    if (leader == own) totals.leaders = totals.all;
    shared.range[own] = range;
  }
  totals = cub::BlockReduce<Totals, kThreads>(shared.reduce).Sum(totals);
  if (threadIdx.x == 0) {
    shared.totals = totals;
    *to.entries = totals.leaders;
    *to.zero = 0;
  }
  __syncthreads();
  totals = shared.totals;
  const int32_t in_flight = panels_in_flight(schedule, totals);
  const bool longer = own < schedule.groups && is_long(range.count, schedule.groups, static_cast<int64_t>(totals.all),
                                                       schedule.workers, in_flight);
  if (own < schedule.groups) {
    int32_t rank = 0;
    for (int32_t g = 0; g < schedule.groups; ++g) {
      const int32_t other = shared.range[g].count;
      rank += other > range.count || (other == range.count && g < own);
    }
    shared.sorted[rank] = own;
  }
  const TileOrder order(schedule.groups, schedule.panels, in_flight, __syncthreads_count(longer));
  for (int32_t i = own; i < order.tiles(); i += kThreads) {
    const TileOrder::Place place = order[i];
    const int32_t group = shared.sorted[place.rank];
    to.tiles[i] = {group, place.panel, shared.range[group].begin, shared.range[group].count};
  }
  const int32_t slots = schedule.groups * schedule.grid.slots;
  for (int32_t i = own; i < slots; i += kThreads) {
    to.slot_row[i] = schedule.grid.slot_row(i / schedule.grid.slots, i % schedule.grid.slots);
  }
}

}  // namespace scheduling
}  // namespace sparsek::cuda
