// SPDX-License-Identifier: Apache-2.0
#include "cuda/schedule_tiles.h"

#include <cub/device/device_radix_sort.cuh>

#include "cuda/cuda_error.h"
#include "cuda/layout.h"
#include "plan/schedule.h"

namespace sparsek::cuda {
// Named, since the symbols of kernels in an unnamed namespace depend on the path of the checkout.
namespace scheduling {

struct Scratch {
  uint32_t *length, *sorted_length;  // (groups): entries of the row groups, in their order and longest first
  int32_t *group, *sorted_group;     // (groups)
  unsigned long long* entries;       // (1): sum over all row groups
  void* sort;
  size_t sort_bytes;
};

size_t place_scratch(int32_t groups, std::byte* memory, Scratch& scratch) {
  Layout layout;
  const size_t length = layout.place<uint32_t>(groups), sorted_length = layout.place<uint32_t>(groups);
  const size_t group = layout.place<int32_t>(groups), sorted_group = layout.place<int32_t>(groups);
  const size_t entries = layout.place<unsigned long long>(1);
  check(cub::DeviceRadixSort::SortPairsDescending(nullptr, scratch.sort_bytes, scratch.length, scratch.sorted_length,
                                                  scratch.group, scratch.sorted_group, groups),
        "sort of the row groups");
  const size_t sort = layout.place<std::byte>(scratch.sort_bytes);
  scratch.length = reinterpret_cast<uint32_t*>(memory + length);
  scratch.sorted_length = reinterpret_cast<uint32_t*>(memory + sorted_length);
  scratch.group = reinterpret_cast<int32_t*>(memory + group);
  scratch.sorted_group = reinterpret_cast<int32_t*>(memory + sorted_group);
  scratch.entries = reinterpret_cast<unsigned long long*>(memory + entries);
  scratch.sort = memory + sort;
  return layout.bytes();
}

// One thread a row group.
__global__ void describe_groups(Schedule schedule, Scratch scratch, int64_t* slot_row) {
  const int64_t g = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (g >= schedule.groups) return;
  const int64_t count = schedule.counts[schedule.grid.leader(g)];
  scratch.length[g] = static_cast<uint32_t>(count);
  scratch.group[g] = static_cast<int32_t>(g);
  atomicAdd(scratch.entries, static_cast<unsigned long long>(count));
  for (int s = 0; s < schedule.grid.slots; ++s) {
    slot_row[g * schedule.grid.slots + s] = schedule.grid.slot_row(g, s);
  }
}

// The number of long row groups, which come first in the sorted order.
__device__ int32_t count_long(const Schedule& schedule, const Scratch& scratch) {
  const auto entries = static_cast<int64_t>(*scratch.entries);
  int32_t low = 0, high = schedule.groups;
  while (low < high) {
    const int32_t middle = low + (high - low) / 2;
    if (is_long(scratch.sorted_length[middle], schedule.groups, entries, schedule.workers, schedule.panels_in_flight)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

// One thread a tile, in the order of the list.
__global__ void write_tiles(Schedule schedule, Scratch scratch, WorkTile* tiles) {
  const TileOrder order(schedule.groups, schedule.panels, schedule.panels_in_flight, count_long(schedule, scratch));
  const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= order.tiles()) return;
  const TileOrder::Place place = order[static_cast<int32_t>(i)];
  const int32_t group = scratch.sorted_group[place.rank];
  tiles[i] = {group, place.panel, static_cast<int32_t>(schedule.begin[schedule.grid.leader(group)]),
              static_cast<int32_t>(scratch.sorted_length[place.rank])};
}

}  // namespace scheduling

size_t schedule_scratch(int32_t groups) {
  scheduling::Scratch scratch = {};
  return scheduling::place_scratch(groups, nullptr, scratch);
}

void schedule_tiles(const Schedule& schedule, void* memory, int64_t* slot_row, WorkTile* tiles, cudaStream_t stream) {
  constexpr int kThreads = 128;
  const auto ctas = [&](int64_t threads) { return static_cast<unsigned>((threads + kThreads - 1) / kThreads); };
  if (schedule.groups == 0) return;
  scheduling::Scratch scratch = {};
  scheduling::place_scratch(schedule.groups, static_cast<std::byte*>(memory), scratch);
  check(cudaMemsetAsync(scratch.entries, 0, sizeof(*scratch.entries), stream), "cudaMemsetAsync");
  scheduling::describe_groups<<<ctas(schedule.groups), kThreads, 0, stream>>>(schedule, scratch, slot_row);
  check(cudaGetLastError(), "description of the row groups");
  // The sort is stable.
  int bits = 1;
  while (schedule.longest >> bits != 0) ++bits;
  check(
      cub::DeviceRadixSort::SortPairsDescending(scratch.sort, scratch.sort_bytes, scratch.length, scratch.sorted_length,
                                                scratch.group, scratch.sorted_group, schedule.groups, 0, bits, stream),
      "sort of the row groups");
  if (const int64_t all = int64_t{schedule.groups} * schedule.panels; all > 0) {
    scheduling::write_tiles<<<ctas(all), kThreads, 0, stream>>>(schedule, scratch, tiles);
    check(cudaGetLastError(), "list of the tiles");
  }
}

}  // namespace sparsek::cuda
