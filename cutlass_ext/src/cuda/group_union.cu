// SPDX-License-Identifier: Apache-2.0
#include "cuda/group_union.h"

#include <climits>
#include <cub/block/block_scan.cuh>

#include "cuda/cuda_error.h"
#include "cuda/dependent_launch.cuh"
#include "cuda/last_cta.cuh"
#include "cuda/launch_dependent.h"
#include "cuda/schedule_groups.cuh"
#include "plan/plan.h"

namespace sparsek::cuda {
// Named, since the symbols of kernels in an unnamed namespace depend on the path of the checkout.
namespace unions {

constexpr int kThreads = 256;
constexpr int kWordsPerThread = 4;
constexpr int kWords = kThreads * kWordsPerThread;
constexpr int kColumns = kWords * 32;  // columns of a pass
constexpr int32_t kFewColumns = 2048;  // of a matrix: a pass over all of them takes little time

using Scan = cub::BlockScan<int32_t, kThreads>;

// The remaining blocks [next, end) of a slot; those before `stop` lie in the columns of this pass.
struct Slot {
  int32_t next, stop, end;
};

struct Shared {
  typename Scan::TempStorage scan;
  uint32_t present[kWords];  // a bit for each column of the pass
  int32_t before[kWords];    // entries of the pass before each word's
  int32_t first_col, last_col;
  int64_t first_entry;
};

__device__ int32_t lower_bound(const int32_t* cols, int32_t low, int32_t high, int64_t col) {
  while (low < high) {
    const int32_t middle = low + (high - low) / 2;
    if (cols[middle] < col) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

// Calls visit(storage index, slot, column from first_col on) for each block of the pass. The threads share them out,
// as many to each slot as there are.
template <class Visit>
__device__ void each_block(const int32_t* col_idx, const Slot* slots, int count, int32_t first_col, Visit visit) {
  const int lanes = max(kThreads / count, 1);
  for (int s = threadIdx.x / lanes; s < count; s += kThreads / lanes) {
    for (int32_t i = slots[s].next + threadIdx.x % lanes; i < slots[s].stop; i += lanes) {
      visit(i, s, uint32_t(col_idx[i] - first_col));
    }
  }
}

// The entries of the pass before the one of a column from first_col on, given the word that has its bit.
__device__ int32_t rank(const Shared& shared, uint32_t word, uint32_t col) {
  return shared.before[col / 32] + __popc(word & ((1u << col % 32) - 1));
}

// Groups of rows in another order take places for their entries as they come. Called by thread 0, long before the place
// is needed; others may have begun with the first pass, which changes no `next`.
__device__ int32_t take_places(const GroupedPattern& pattern, const Slot* slots) {
  int32_t most = 0;
  for (int s = 0; s < pattern.grid.slots; ++s) most += slots[s].end - slots[s].next;
  return atomicAdd(pattern.taken, most);
}

// The columns from the lowest remaining one to the last, both INT_MAX and -1 if there are none; for all threads.
__device__ void find_columns(const int32_t* col_idx, int count, Shared& shared, const Slot* slots) {
  if (threadIdx.x == 0) {
    shared.first_col = INT_MAX;
    shared.last_col = -1;
  }
  __syncthreads();
  for (int s = threadIdx.x; s < count; s += kThreads) {
    if (slots[s].stop == slots[s].end) continue;
    atomicMin(&shared.first_col, col_idx[slots[s].stop]);
    atomicMax(&shared.last_col, col_idx[slots[s].end - 1]);
  }
  __syncthreads();
}

// By the CTA of a row group. It processes the group's columns in passes of kColumns, each from the lowest remaining
// column on: a bit is set for each column that some slot has, and an entry's place is the number of bits before its
// own. Where there are few columns in all, one pass has them, and the lowest is not searched for.
__device__ void list_entries(const GroupedPattern& pattern, const UnitedEntries& to, Shared& shared, Slot* slots) {
  const RowGrid& grid = pattern.grid;
  const int32_t* const row_ptr = pattern.index.row_ptr;
  const int32_t* const col_idx = pattern.index.col_idx;
  const int64_t group = blockIdx.x;
  const bool leads = grid.leader(group) == group;
  for (int s = threadIdx.x; leads && s < grid.slots; s += kThreads) {
    const int64_t row = grid.block_row(group, s);
    slots[s] = row < 0 ? Slot{0, 0, 0} : Slot{row_ptr[row], row_ptr[row], row_ptr[row + 1]};  // also of a faulty index
  }
  if (!is_good(pattern.index)) {
    if (threadIdx.x == 0) to.ranges[group] = {0, 0};
    return;
  }
  if (!leads) return;
  const bool takes = grid.order != nullptr && !pattern.places.by_columns();
  int32_t taken = 0;
  if (takes && threadIdx.x == 0) taken = take_places(pattern, slots);
  int64_t begin = takes ? 0 : pattern.places.begin(group, row_ptr);
  int64_t entries = 0;  // before the pass
  const bool has_few = pattern.block_cols <= kFewColumns;
  for (bool first_pass = true, last_pass = false; !last_pass; first_pass = false) {
    int32_t first_col = 0, last_col = pattern.block_cols - 1;
    if (!has_few) {
      find_columns(col_idx, grid.slots, shared, slots);
      first_col = shared.first_col;
      last_col = shared.last_col;
      if (last_col < 0) break;
    }
    last_pass = last_col - first_col < kColumns;
    const int words = last_pass ? (last_col - first_col) / 32 + 1 : kWords;
    for (int s = threadIdx.x; s < grid.slots; s += kThreads) {
      Slot& slot = slots[s];
      slot.next = slot.stop;
      slot.stop = last_pass ? slot.end : lower_bound(col_idx, slot.next, slot.end, int64_t(first_col) + kColumns);
    }
    for (int word = threadIdx.x; word < words; word += kThreads) shared.present[word] = 0;
    __syncthreads();
    each_block(col_idx, slots, grid.slots, first_col,
               [&](int32_t, int, uint32_t col) { atomicOr(&shared.present[col / 32], 1u << col % 32); });
    if (takes && first_pass && threadIdx.x == 0) shared.first_entry = taken;
    __syncthreads();
    if (takes) begin = shared.first_entry;

    const int own = threadIdx.x * kWordsPerThread;
    int32_t found = 0, before = 0, all = 0;
    for (int word = own; word < min(own + kWordsPerThread, words); ++word) found += __popc(shared.present[word]);
    Scan(shared.scan).ExclusiveSum(found, before, all);
    for (int word = own; word < min(own + kWordsPerThread, words); ++word) {
      shared.before[word] = before;
      before += __popc(shared.present[word]);
    }
    const int64_t first_entry = begin + entries, blocks = int64_t(all) * grid.slots;
    for (int64_t i = threadIdx.x; i < blocks; i += kThreads) to.entry_block[first_entry * grid.slots + i] = kNoBlock;
    __syncthreads();
    for (int col = threadIdx.x; col < words * 32; col += kThreads) {
      const uint32_t word = shared.present[col / 32];
      if ((word >> col % 32 & 1) != 0) {
        to.entry_k[first_entry + rank(shared, word, col)] = (first_col + col) * pattern.block_k;
      }
    }
    each_block(col_idx, slots, grid.slots, first_col, [&](int32_t block, int s, uint32_t col) {
      const int32_t* const named = pattern.index.block_idx;
      to.entry_block[(first_entry + rank(shared, shared.present[col / 32], col)) * grid.slots + s] =
          named == nullptr ? block : named[block];
    });
    entries += all;
  }
  if (threadIdx.x == 0) to.ranges[group] = {static_cast<int32_t>(begin), static_cast<int32_t>(entries)};
}

// One CTA for each row group.
__global__ void __launch_bounds__(kThreads) unite(GroupedPattern pattern, UnitedEntries to) {
  __shared__ Shared shared;
  extern __shared__ Slot slots[];
  start_dependent();
  list_entries(pattern, to, shared, slots);
}

// The CTA that ends last makes the list of the tiles.
__global__ void __launch_bounds__(kThreads)
    unite_all(GroupedPattern pattern, UnitedEntries to, Schedule schedule, ScheduledTiles tiles) {
  static_assert(kThreads == scheduling::kThreads);
  __shared__ union {
    Shared entries;
    scheduling::FewGroups groups;
  } shared;
  extern __shared__ Slot slots[];
  wait_for_previous_launch();
  list_entries(pattern, to, shared.entries, slots);
  if (!is_last_cta(pattern.index.arrived, gridDim.x)) return;
  scheduling::schedule_few(schedule, tiles, shared.groups);
}

}  // namespace unions

void unite_columns(const GroupedPattern& pattern, const UnitedEntries& to, cudaStream_t stream) {
  const auto groups = static_cast<unsigned>(pattern.grid.groups());
  if (groups == 0) return;
  launch_dependent("union of the columns", unions::unite, dim3(groups), unions::kThreads,
                   sizeof(unions::Slot) * pattern.grid.slots, stream, pattern, to);
}

bool is_made_at_once(const Schedule& schedule) {
  constexpr int32_t kMostGroups = scheduling::kThreads, kMostTiles = 4096;
  return schedule.groups > 0 && schedule.groups <= kMostGroups &&
         int64_t{schedule.groups} * schedule.panels <= kMostTiles;
}

void unite_and_schedule(const GroupedPattern& pattern, const UnitedEntries& entries, const Schedule& schedule,
                        const ScheduledTiles& to, cudaStream_t stream) {
  launch_dependent("entries and tiles", unions::unite_all, dim3(static_cast<unsigned>(schedule.groups)),
                   unions::kThreads, sizeof(unions::Slot) * pattern.grid.slots, stream, pattern, entries, schedule, to);
}

}  // namespace sparsek::cuda
