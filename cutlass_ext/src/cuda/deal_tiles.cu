// SPDX-License-Identifier: Apache-2.0
#include "cuda/deal_tiles.h"

#include <algorithm>
#include <climits>
#include <cub/device/device_radix_sort.cuh>

#include "abi/error.h"
#include "cuda/cuda_error.h"
#include "cuda/layout.h"
#include "plan/deal.h"

namespace sparsek::cuda {
// Named, since the symbols of kernels in an unnamed namespace depend on the path of the checkout.
namespace dealing {

constexpr int kWarp = 32;
constexpr unsigned kAllLanes = ~0u;
constexpr int kMostThreads = 1024;
constexpr int32_t kMostWorkers = 132 * 32;  // SMs of the largest Hopper GPU x CTAs of an SM

struct Dealt {
  int32_t worker;
  int32_t place;  // index among the worker's tiles
};

struct Scratch {
  uint32_t *length, *sorted_length;  // (groups): entries of the row groups, in their order and longest first
  int32_t *group, *sorted_group;     // (groups)
  Dealt* dealt;                      // (tiles): in the order of dealing
  unsigned long long* entries;       // (1): sum over all row groups
  int32_t* long_groups;              // (1): number of long row groups
  void* sort;
  size_t sort_bytes;
};

size_t place_scratch(int32_t groups, int32_t panels, std::byte* memory, Scratch& scratch) {
  Layout layout;
  const size_t length = layout.place<uint32_t>(groups), sorted_length = layout.place<uint32_t>(groups);
  const size_t group = layout.place<int32_t>(groups), sorted_group = layout.place<int32_t>(groups);
  const size_t dealt = layout.place<Dealt>(static_cast<size_t>(groups) * panels);
  const size_t entries = layout.place<unsigned long long>(1), long_groups = layout.place<int32_t>(1);
  check(cub::DeviceRadixSort::SortPairsDescending(nullptr, scratch.sort_bytes, scratch.length, scratch.sorted_length,
                                                  scratch.group, scratch.sorted_group, groups),
        "sort of the row groups");
  const size_t sort = layout.place<std::byte>(scratch.sort_bytes);
  scratch.length = reinterpret_cast<uint32_t*>(memory + length);
  scratch.sorted_length = reinterpret_cast<uint32_t*>(memory + sorted_length);
  scratch.group = reinterpret_cast<int32_t*>(memory + group);
  scratch.sorted_group = reinterpret_cast<int32_t*>(memory + sorted_group);
  scratch.dealt = reinterpret_cast<Dealt*>(memory + dealt);
  scratch.entries = reinterpret_cast<unsigned long long*>(memory + entries);
  scratch.long_groups = reinterpret_cast<int32_t*>(memory + long_groups);
  scratch.sort = memory + sort;
  return layout.bytes();
}

// One thread a row group.
__global__ void describe_groups(Deal deal, Scratch scratch, int64_t* slot_row) {
  const int64_t g = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (g >= deal.groups) return;
  const int64_t count = deal.counts[deal.grid.leader(g)];
  scratch.length[g] = static_cast<uint32_t>(count);
  scratch.group[g] = static_cast<int32_t>(g);
  atomicAdd(scratch.entries, static_cast<unsigned long long>(count));
  for (int s = 0; s < deal.grid.slots; ++s) slot_row[g * deal.grid.slots + s] = deal.grid.slot_row(g, s);
}

// The bytes of shared memory that deal_rounds needs.
constexpr int queue_bytes(int32_t workers) { return workers * (3 * sizeof(QueuedWorker) + sizeof(int32_t)); }
// Leaves room for `ends` and for the shared memory that the system reserves in each CTA.
static_assert(queue_bytes(kMostWorkers) <= 226 * 1024, "the queues fit in shared memory");

__device__ int32_t count_long(const Deal& deal, const Scratch& scratch) {
  const auto entries = static_cast<int64_t>(*scratch.entries);
  int32_t low = 0, high = deal.groups;
  while (low < high) {
    const int32_t middle = low + (high - low) / 2;
    if (is_long(scratch.sorted_length[middle], deal.groups, entries, deal.workers, deal.panels_in_flight)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

// One CTA. Deals tiles out in the rounds of plan/deal.h.
__global__ void __launch_bounds__(kMostThreads) deal_rounds(Deal deal, Scratch scratch, int32_t* worker_begin) {
  const int32_t workers = deal.workers;
  const uint32_t* __restrict__ const sorted_length = scratch.sorted_length;
  const int32_t long_groups = count_long(deal, scratch);
  if (threadIdx.x == 0) *scratch.long_groups = long_groups;
  const DealOrder order(deal.groups, deal.panels, deal.panels_in_flight, long_groups);
  extern __shared__ QueuedWorker queues[];
  QueuedWorker *queue = queues, *next = queues + workers, *const served = queues + 2 * workers;
  auto* const before =
      reinterpret_cast<int32_t*>(queues + 3 * workers);  // workers of the queue before each of `served`
  __shared__ int32_t ends[2];                            // end of this round and of the next
  for (int32_t at = threadIdx.x; at < workers; at += blockDim.x) queue[at] = {0, at, 0};
  if (threadIdx.x == 0) ends[0] = INT_MAX;
  __syncthreads();

  int turn = 0;
  for (int32_t done = 0; done < order.tiles(); turn ^= 1) {
    const int32_t most = min(workers, order.tiles() - done);
    int32_t end = INT_MAX;
    for (int32_t at = threadIdx.x; at < most; at += blockDim.x) {
      served[at] = queue[at].with_tile(deal.tile_cost, sorted_length[order[done + at].rank]);
      before[at] = count_before(queue, workers, served[at]);
      end = min(end, round_end(at, before[at]));
    }
    end = __reduce_min_sync(kAllLanes, end);
    if (threadIdx.x % kWarp == 0) atomicMin(&ends[turn], end);
    if (threadIdx.x == 0) ends[turn ^ 1] = INT_MAX;
    __syncthreads();

    const int32_t count = min(most, ends[turn]);
    for (int32_t at = threadIdx.x; at < workers; at += blockDim.x) {
      const bool has_tile = at < count;
      const QueuedWorker one = has_tile ? served[at] : queue[at];
      next[next_place(one, max(has_tile ? before[at] : at, count) - count, served, count)] = one;
      if (has_tile) scratch.dealt[done + at] = {one.worker, one.tiles - 1};
    }
    __syncthreads();
    QueuedWorker* const other = queue;
    queue = next;
    next = other;
    done += count;
  }

  // Counts the tiles of each worker, and sums them up to where each worker's tiles begin.
  for (int32_t at = threadIdx.x; at < workers; at += blockDim.x) before[queue[at].worker] = queue[at].tiles;
  __syncthreads();
  if (threadIdx.x >= kWarp) return;
  int32_t sum = 0;
  for (int32_t first = 0; first < workers; first += kWarp) {
    const int32_t worker = first + threadIdx.x;
    int32_t upto = worker < workers ? before[worker] : 0;
    for (unsigned distance = 1; distance < kWarp; distance *= 2) {
      const int32_t left = __shfl_up_sync(kAllLanes, upto, distance);
      if (threadIdx.x >= distance) upto += left;
    }
    if (worker < workers) worker_begin[worker + 1] = sum + upto;
    sum += __shfl_sync(kAllLanes, upto, kWarp - 1);
  }
  if (threadIdx.x == 0) worker_begin[0] = 0;
}

// One thread a tile, in the order of dealing.
__global__ void place_tiles(Deal deal, Scratch scratch, const int32_t* worker_begin, WorkTile* tiles) {
  const DealOrder order(deal.groups, deal.panels, deal.panels_in_flight, *scratch.long_groups);
  const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= order.tiles()) return;
  const DealOrder::Turn turn = order[static_cast<int32_t>(i)];
  const int32_t group = scratch.sorted_group[turn.rank];
  const Dealt dealt = scratch.dealt[i];
  tiles[worker_begin[dealt.worker] + dealt.place] = {group, turn.panel,
                                                     static_cast<int32_t>(deal.begin[deal.grid.leader(group)]),
                                                     static_cast<int32_t>(scratch.sorted_length[turn.rank])};
}

}  // namespace dealing

size_t deal_scratch(int32_t groups, int32_t panels) {
  dealing::Scratch scratch = {};
  return dealing::place_scratch(groups, panels, nullptr, scratch);
}

void deal_tiles(const Deal& deal, void* memory, int64_t* slot_row, int32_t* worker_begin, WorkTile* tiles,
                cudaStream_t stream) {
  constexpr int kThreads = 128;
  const auto ctas = [&](int64_t threads) { return static_cast<unsigned>((threads + kThreads - 1) / kThreads); };
  dealing::Scratch scratch = {};
  dealing::place_scratch(deal.groups, deal.panels, static_cast<std::byte*>(memory), scratch);
  check(cudaMemsetAsync(scratch.entries, 0, sizeof(*scratch.entries), stream), "cudaMemsetAsync");
  if (deal.groups > 0) {
    dealing::describe_groups<<<ctas(deal.groups), kThreads, 0, stream>>>(deal, scratch, slot_row);
    check(cudaGetLastError(), "description of the row groups");
    // The sort is stable.
    int bits = 1;
    while (deal.longest >> bits != 0) ++bits;
    check(cub::DeviceRadixSort::SortPairsDescending(scratch.sort, scratch.sort_bytes, scratch.length,
                                                    scratch.sorted_length, scratch.group, scratch.sorted_group,
                                                    deal.groups, 0, bits, stream),
          "sort of the row groups");
  }

  if (deal.workers > dealing::kMostWorkers) {
    fail(SPARSEK_INTERNAL, "%d workers are more than the %d that tiles are dealt out to", deal.workers,
         dealing::kMostWorkers);
  }
  // Always the same limit: it belongs to the kernel, not to the launch, and other threads make plans too.
  check(cudaFuncSetAttribute(dealing::deal_rounds, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             dealing::queue_bytes(dealing::kMostWorkers)),
        "cudaFuncSetAttribute");
  const int threads =
      std::min(dealing::kMostThreads, (deal.workers + dealing::kWarp - 1) / dealing::kWarp * dealing::kWarp);
  dealing::deal_rounds<<<1, threads, dealing::queue_bytes(deal.workers), stream>>>(deal, scratch, worker_begin);
  check(cudaGetLastError(), "dealing of the tiles");
  if (const int64_t all = int64_t{deal.groups} * deal.panels; all > 0) {
    dealing::place_tiles<<<ctas(all), kThreads, 0, stream>>>(deal, scratch, worker_begin, tiles);
    check(cudaGetLastError(), "placing of the tiles");
  }
}

}  // namespace sparsek::cuda
