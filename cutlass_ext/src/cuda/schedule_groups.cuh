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
  unsigned long long all;                     // entries, those that groups share counted for each
  unsigned long long leaders;                 // entries that there are
  unsigned long long groups, spanned, moved;  // as in EntrySums; only where wants_band

  __device__ friend Totals operator+(const Totals& a, const Totals& b) {
    return {a.all + b.all, a.leaders + b.leaders, a.groups + b.groups, a.spanned + b.spanned, a.moved + b.moved};
  }
};

__device__ inline EntryRange range_of(const Schedule& schedule, int64_t leader) {
  return {__ldcg(&schedule.ranges[leader].begin), __ldcg(&schedule.ranges[leader].count)};
}

__device__ inline bool wants_band(const Schedule& schedule) {
  return schedule.panels_in_flight == 0 && may_prefer_band(schedule.panels, schedule.tile_n);
}

// What a row group adds to the totals. range: its leader's.
__device__ inline Totals totals_of(const Schedule& schedule, int64_t group, const EntryRange& range) {
  Totals own = {};
  own.all = static_cast<unsigned long long>(range.count);
  if (schedule.grid.leader(group) != group) return own;
  own.leaders = own.all;
  if (range.count == 0 || !wants_band(schedule)) return own;
  own.groups = 1;
  const int32_t first = __ldcg(schedule.entry_k + range.begin);
  own.spanned = __ldcg(schedule.entry_k + range.begin + range.count - 1) + schedule.block_k - first;
  if (group == 0) return own;
  const EntryRange before = range_of(schedule, schedule.grid.leader(group - 1));
  if (before.count > 0) own.moved = abs(first - __ldcg(schedule.entry_k + before.begin));
  return own;
}

__device__ inline int32_t panels_in_flight(const Schedule& schedule, const Totals& totals) {
  if (schedule.panels_in_flight > 0) return schedule.panels_in_flight;
  const EntrySums sums = {static_cast<int64_t>(totals.groups), static_cast<int64_t>(totals.leaders),
                          static_cast<int64_t>(totals.spanned), static_cast<int64_t>(totals.moved)};
  return choose_panels(share_columns(schedule.grid.slots, sums.entries, *schedule.blocks),
                       wants_band(schedule) && is_band(sums, schedule.block_k),
                       schedule.tile_n * schedule.element_bytes);
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
  Totals totals = {};
  if (own < schedule.groups) {
    range = range_of(schedule, schedule.grid.leader(own));
    totals = totals_of(schedule, own, range);
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
