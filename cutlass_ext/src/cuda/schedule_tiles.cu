// SPDX-License-Identifier: Apache-2.0
#include "cuda/schedule_tiles.h"

#include <algorithm>
#include <cub/block/block_reduce.cuh>
#include <cub/device/device_radix_sort.cuh>

#include "cuda/cuda_error.h"
#include "cuda/dependent_launch.cuh"
#include "cuda/launch_dependent.h"
#include "cuda/layout.h"
#include "cuda/schedule_groups.cuh"

namespace sparsek::cuda {
// Named, since the symbols of kernels in an unnamed namespace depend on the path of the checkout.
namespace scheduling {

constexpr int kWarp = 32;
constexpr unsigned kAllLanes = ~0u;
// Where there are no more row groups, each CTA holds all of their lengths in shared memory.
constexpr int32_t kMostAtOnce = 8192;

__device__ void write_slot_rows(const RowGrid& grid, int64_t group, int first, int step, int64_t* slot_row) {
  for (int s = first; s < grid.slots; s += step) slot_row[group * grid.slots + s] = grid.slot_row(group, s);
}

// Few row groups: a warp finds the rank of one by comparing its length with all others', and writes its tiles. Each CTA
// adds all lengths up for itself, so that one kernel does it all.
__global__ void __launch_bounds__(kThreads) schedule_at_once(Schedule schedule, ScheduledTiles to) {
  using ReduceTotals = cub::BlockReduce<Totals, kThreads>;
  using Reduce = cub::BlockReduce<int32_t, kThreads>;
  __shared__ union {
    typename ReduceTotals::TempStorage totals;
    typename Reduce::TempStorage count;
  } reduce;
  __shared__ Totals totals;
  __shared__ int32_t long_groups;
  extern __shared__ int32_t lengths[];
  wait_for_previous_launch();
  Totals own = {};
  for (int32_t g = threadIdx.x; g < schedule.groups; g += kThreads) {
    const EntryRange range = range_of(schedule, schedule.grid.leader(g));
    lengths[g] = range.count;
    own = own + totals_of(schedule, g, range);
  }
  own = ReduceTotals(reduce.totals).Sum(own);
  if (threadIdx.x == 0) totals = own;
  __syncthreads();
  const int32_t in_flight = panels_in_flight(schedule, totals);
  int32_t longer = 0;
  for (int32_t g = threadIdx.x; g < schedule.groups; g += kThreads) {
    longer += is_long(lengths[g], schedule.groups, static_cast<int64_t>(totals.all), schedule.workers, in_flight);
  }
  longer = Reduce(reduce.count).Sum(longer);
  if (threadIdx.x == 0) long_groups = longer;
  __syncthreads();
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    *to.entries = totals.leaders;
    *to.zero = 0;
  }

  const int32_t group = (blockIdx.x * kThreads + threadIdx.x) / kWarp;
  const int lane = threadIdx.x % kWarp;
  if (group >= schedule.groups) return;
  const int32_t length = lengths[group];
  int32_t before = 0;  // groups that come before, in the lane's share of them
  for (int32_t g = lane; g < schedule.groups; g += kWarp) {
    before += lengths[g] > length || (lengths[g] == length && g < group);
  }
  const int32_t rank = __reduce_add_sync(kAllLanes, before);
  const TileOrder order(schedule.groups, schedule.panels, in_flight, long_groups);
  const int32_t begin = schedule.ranges[schedule.grid.leader(group)].begin;
  for (int32_t panel = lane; panel < schedule.panels; panel += kWarp) {
    to.tiles[order.number({rank, panel})] = {group, panel, begin, length};
  }
  write_slot_rows(schedule.grid, group, lane, kWarp, to.slot_row);
}

// Many row groups.
struct Scratch {
  uint32_t *length, *sorted_length;  // (groups): entries of the row groups, in their order and longest first
  int32_t *group, *sorted_group;     // (groups)
  Totals* totals;                    // (1)
  void* sort;
  size_t sort_bytes;
};

size_t place_scratch(int32_t groups, std::byte* memory, Scratch& scratch) {
  Layout layout;
  const size_t length = layout.place<uint32_t>(groups), sorted_length = layout.place<uint32_t>(groups);
  const size_t group = layout.place<int32_t>(groups), sorted_group = layout.place<int32_t>(groups);
  const size_t totals = layout.place<Totals>(1);
  check(cub::DeviceRadixSort::SortPairsDescending(nullptr, scratch.sort_bytes, scratch.length, scratch.sorted_length,
                                                  scratch.group, scratch.sorted_group, groups),
        "sort of the row groups");
  const size_t sort = layout.place<std::byte>(scratch.sort_bytes);
  scratch.length = reinterpret_cast<uint32_t*>(memory + length);
  scratch.sorted_length = reinterpret_cast<uint32_t*>(memory + sorted_length);
  scratch.group = reinterpret_cast<int32_t*>(memory + group);
  scratch.sorted_group = reinterpret_cast<int32_t*>(memory + sorted_group);
  scratch.totals = reinterpret_cast<Totals*>(memory + totals);
  scratch.sort = memory + sort;
  return layout.bytes();
}

// One thread a row group.
__global__ void describe_groups(Schedule schedule, Scratch scratch, int64_t* slot_row) {
  const int64_t g = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (g >= schedule.groups) return;
  const EntryRange range = range_of(schedule, schedule.grid.leader(g));
  scratch.length[g] = static_cast<uint32_t>(range.count);
  scratch.group[g] = static_cast<int32_t>(g);
  const Totals own = totals_of(schedule, g, range);
  atomicAdd(&scratch.totals->all, own.all);
  if (own.leaders > 0) atomicAdd(&scratch.totals->leaders, own.leaders);
  if (own.groups > 0) atomicAdd(&scratch.totals->groups, own.groups);
  if (own.spanned > 0) atomicAdd(&scratch.totals->spanned, own.spanned);
  if (own.moved > 0) atomicAdd(&scratch.totals->moved, own.moved);
  write_slot_rows(schedule.grid, g, 0, 1, slot_row);
}

// The number of long row groups, which come first in the sorted order.
__device__ int32_t count_long(const Schedule& schedule, const Scratch& scratch, int32_t in_flight) {
  const auto entries = static_cast<int64_t>(scratch.totals->all);
  int32_t low = 0, high = schedule.groups;
  while (low < high) {
    const int32_t middle = low + (high - low) / 2;
    if (is_long(scratch.sorted_length[middle], schedule.groups, entries, schedule.workers, in_flight)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

// One thread a tile, in the order of the list.
__global__ void write_tiles(Schedule schedule, Scratch scratch, ScheduledTiles to) {
  const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i == 0) {
    *to.entries = scratch.totals->leaders;
    *to.zero = 0;
  }
  const int32_t in_flight = panels_in_flight(schedule, *scratch.totals);
  const TileOrder order(schedule.groups, schedule.panels, in_flight, count_long(schedule, scratch, in_flight));
  if (i >= order.tiles()) return;
  const TileOrder::Place place = order[static_cast<int32_t>(i)];
  const int32_t group = scratch.sorted_group[place.rank];
  const EntryRange range = schedule.ranges[schedule.grid.leader(group)];
  to.tiles[i] = {group, place.panel, range.begin, range.count};
}

unsigned ctas(int64_t threads) { return static_cast<unsigned>((threads + kThreads - 1) / kThreads); }

void schedule_many(const Schedule& schedule, void* memory, const ScheduledTiles& to, cudaStream_t stream) {
  Scratch scratch = {};
  place_scratch(schedule.groups, static_cast<std::byte*>(memory), scratch);
  check(cudaMemsetAsync(scratch.totals, 0, sizeof(*scratch.totals), stream), "cudaMemsetAsync");
  describe_groups<<<ctas(schedule.groups), kThreads, 0, stream>>>(schedule, scratch, to.slot_row);
  check(cudaGetLastError(), "description of the row groups");
  // The sort is stable.
  int bits = 1;
  while (schedule.longest >> bits != 0) ++bits;
  check(
      cub::DeviceRadixSort::SortPairsDescending(scratch.sort, scratch.sort_bytes, scratch.length, scratch.sorted_length,
                                                scratch.group, scratch.sorted_group, schedule.groups, 0, bits, stream),
      "sort of the row groups");
  write_tiles<<<ctas(std::max(int64_t{schedule.groups} * schedule.panels, int64_t{1})), kThreads, 0, stream>>>(
      schedule, scratch, to);
  check(cudaGetLastError(), "list of the tiles");
}

}  // namespace scheduling

size_t schedule_scratch(int32_t groups) {
  if (groups <= scheduling::kMostAtOnce) return 0;
  scheduling::Scratch scratch = {};
  return scheduling::place_scratch(groups, nullptr, scratch);
}

void schedule_tiles(const Schedule& schedule, void* scratch, const ScheduledTiles& to, cudaStream_t stream) {
  if (schedule.groups > scheduling::kMostAtOnce) return scheduling::schedule_many(schedule, scratch, to, stream);
  const int64_t threads = std::max(int64_t{schedule.groups}, int64_t{1}) * scheduling::kWarp;
  const size_t lengths = sizeof(int32_t) * static_cast<size_t>(schedule.groups);
  launch_dependent("list of the tiles", scheduling::schedule_at_once, dim3(scheduling::ctas(threads)),
                   scheduling::kThreads, lengths, stream, schedule, to);
}

}  // namespace sparsek::cuda
