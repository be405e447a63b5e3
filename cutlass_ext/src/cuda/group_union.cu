// SPDX-License-Identifier: Apache-2.0
#include "cuda/group_union.h"

#include <climits>
#include <cub/block/block_scan.cuh>
#include <cub/device/device_scan.cuh>

#include "cuda/cuda_error.h"
#include "plan/plan.h"

namespace sparsek::cuda {
// Named, since the symbols of kernels in an unnamed namespace depend on the path of the checkout.
namespace unions {

constexpr int kThreads = 256;
constexpr int kWordsPerThread = 4;
constexpr int kWords = kThreads * kWordsPerThread;
constexpr int kColumns = kWords * 32;  // columns of a pass

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

// One CTA for each row group. It processes the group's columns in passes of kColumns, each from the lowest remaining
// column on: a bit is set for each column that some slot has, and an entry's place is the number of bits before its
// own. Without kFill, the entries are only counted, into `counts`.
template <bool kFill>
__global__ void __launch_bounds__(kThreads)
    unite(GroupedPattern pattern, int64_t* counts, const int64_t* begin, int32_t* entry_k, int32_t* entry_block) {
  __shared__ Shared shared;
  extern __shared__ Slot slots[];
  const RowGrid& grid = pattern.grid;
  const int64_t group = blockIdx.x;
  if (grid.leader(group) != group) {
    if (!kFill && threadIdx.x == 0) counts[group] = 0;
    return;
  }
  for (int s = threadIdx.x; s < grid.slots; s += kThreads) {
    const int64_t row = grid.block_row(group, s);
    slots[s] = row < 0 ? Slot{0, 0, 0} : Slot{pattern.row_ptr[row], pattern.row_ptr[row], pattern.row_ptr[row + 1]};
  }

  int64_t entries = kFill ? begin[group] : 0;
  for (;;) {
    if (threadIdx.x == 0) {
      shared.first_col = INT_MAX;
      shared.last_col = -1;
    }
    __syncthreads();  // also orders the previous pass's reads of the slots and bits
    for (int s = threadIdx.x; s < grid.slots; s += kThreads) {
      slots[s].next = slots[s].stop;
      if (slots[s].next == slots[s].end) continue;
      atomicMin(&shared.first_col, pattern.col_idx[slots[s].next]);
      atomicMax(&shared.last_col, pattern.col_idx[slots[s].end - 1]);
    }
    __syncthreads();
    const int32_t first_col = shared.first_col, last_col = shared.last_col;
    if (last_col < 0) break;
    const bool last_pass = last_col - first_col < kColumns;
    const int words = last_pass ? (last_col - first_col) / 32 + 1 : kWords;
    for (int s = threadIdx.x; s < grid.slots; s += kThreads) {
      Slot& slot = slots[s];
      slot.stop =
          last_pass ? slot.end : lower_bound(pattern.col_idx, slot.next, slot.end, int64_t(first_col) + kColumns);
    }
    for (int word = threadIdx.x; word < words; word += kThreads) shared.present[word] = 0;
    __syncthreads();
    each_block(pattern.col_idx, slots, grid.slots, first_col,
               [&](int32_t, int, uint32_t col) { atomicOr(&shared.present[col / 32], 1u << col % 32); });
    __syncthreads();

    const int own = threadIdx.x * kWordsPerThread;
    int32_t found = 0, before = 0, all = 0;
    for (int word = own; word < min(own + kWordsPerThread, words); ++word) found += __popc(shared.present[word]);
    Scan(shared.scan).ExclusiveSum(found, before, all);
    if (kFill) {
      for (int word = own; word < min(own + kWordsPerThread, words); ++word) {
        shared.before[word] = before;
        for (uint32_t bits = shared.present[word]; bits != 0; bits &= bits - 1) {
          entry_k[entries + before++] = (first_col + word * 32 + __ffs(bits) - 1) * pattern.block_k;
        }
      }
      __syncthreads();
      each_block(pattern.col_idx, slots, grid.slots, first_col, [&](int32_t block, int s, uint32_t col) {
        const uint32_t lower = shared.present[col / 32] & ((1u << col % 32) - 1);
        const int64_t entry = entries + shared.before[col / 32] + __popc(lower);
        entry_block[entry * grid.slots + s] = block;
      });
    }
    entries += all;
  }
  if (!kFill && threadIdx.x == 0) counts[group] = entries;
}

size_t slot_bytes(const RowGrid& grid) { return sizeof(Slot) * grid.slots; }

}  // namespace unions

void count_entries(const GroupedPattern& pattern, int64_t* counts, int64_t* begin, void* scratch, cudaStream_t stream) {
  const auto groups = static_cast<int32_t>(pattern.grid.groups());
  check(cudaMemsetAsync(counts + groups, 0, sizeof(int64_t), stream), "cudaMemsetAsync");
  if (groups > 0) {
    unions::unite<false><<<groups, unions::kThreads, unions::slot_bytes(pattern.grid), stream>>>(
        pattern, counts, nullptr, nullptr, nullptr);
    check(cudaGetLastError(), "count of the entries");
  }
  size_t bytes = scan_bytes(groups);
  check(cub::DeviceScan::ExclusiveSum(scratch, bytes, counts, begin, int64_t{groups} + 1, stream),
        "scan of the entries");
}

size_t scan_bytes(int32_t groups) {
  size_t bytes = 0;
  const int64_t* in = nullptr;
  int64_t* out = nullptr;
  check(cub::DeviceScan::ExclusiveSum(nullptr, bytes, in, out, int64_t{groups} + 1), "scan of the entries");
  return bytes;
}

void fill_entries(const GroupedPattern& pattern, const int64_t* begin, int64_t entries, int32_t* entry_k,
                  int32_t* entry_block, cudaStream_t stream) {
  if (entries == 0) return;
  static_assert(kNoBlock == -1, "all bits of it are set");
  const size_t block_bytes = sizeof(int32_t) * static_cast<size_t>(entries) * pattern.grid.slots;
  check(cudaMemsetAsync(entry_block, 0xff, block_bytes, stream), "cudaMemsetAsync");
  const auto groups = static_cast<unsigned>(pattern.grid.groups());
  unions::unite<true><<<groups, unions::kThreads, unions::slot_bytes(pattern.grid), stream>>>(pattern, nullptr, begin,
                                                                                              entry_k, entry_block);
  check(cudaGetLastError(), "fill of the entries");
}

}  // namespace sparsek::cuda
