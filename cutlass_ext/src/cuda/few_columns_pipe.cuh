// SPDX-License-Identifier: Apache-2.0
// How a warp of the few_columns family has the blocks of its chunk in shared memory where their size is known when this
// is compiled: groups of them, one after the other, by bulk copies that one lane starts.
#pragma once

#include "cuda/chunk_args.h"
#include "cuda/few_columns_ring.cuh"

namespace sparsek::cuda::few_columns {

// Groups of blocks, each in the place of its number modulo their count, then the first row of B for each block, then
// the barriers. Entries are counted from the first group of the chunk on.
template <class Element, int kBlockBytes>
struct Pipe {
  uint32_t values, first_rows;
  int mask;   // entry & mask: its place
  int end;    // of the entries of the chunk
  int first;  // entry of the plan that is entry 0

  // Where a warp's barriers lie, if its pipe begins at `shared`.
  __device__ static uint32_t barriers_at(const LaneLayout& lanes, const char* shared) {
    return shared_address(shared) + lanes.groups * lanes.group * (kBlockBytes + 4);
  }

  __device__ Pipe(const LaunchArgs& args, const LaneLayout& lanes, const RowChunk& chunk, Phases& phases, char* shared,
                  int lane)
      : shared_(shared), lane_(lane), phases_(phases) {
    const int entries = lanes.groups * lanes.group;
    group_ = lanes.group;
    groups_ = lanes.groups;
    shift_ = __ffs(group_) - 1;
    values = shared_address(shared);
    first_rows = values + entries * kBlockBytes;
    barriers_ = barriers_at(lanes, shared);
    mask = entries - 1;
    first = chunk.entry_begin & -group_;
    in_place_ = chunk.entry_end >= 0;
    end = (in_place_ ? chunk.entry_end : ~chunk.entry_end) - first;
    by_bulk_ = in_place_ && reinterpret_cast<uintptr_t>(args.values) % 16 == 0;
    from_ = static_cast<const char*>(args.values) + int64_t(first) * kBlockBytes;
    ready = freed_ = requested_ = 0;
#pragma unroll 1
    for (int i = 0; i < groups_; ++i) request(args);
  }

  // Waits until the entries before `wanted` are there, or all that the pipe has room for; returns the end of those.
  __device__ int wait(int wanted) {
    wanted = min(wanted, freed_ + (groups_ << shift_));
#pragma unroll 1
    while (ready < wanted) {
      wait_for_group(barriers_, ready >> shift_ & (groups_ - 1), phases_);
      ready += group_;
    }
    return wanted;
  }

  // The warp has read all entries before this one, into registers.
  __device__ void release(const LaunchArgs& args, int entry) {
    if (freed_ + group_ > entry) return;
    finish_reads();
#pragma unroll 1
    do {
      freed_ += group_;
      request(args);
    } while (freed_ + group_ <= entry);
  }

  // Behind this, another pipe may be made in its place, and the CTA may end: no copy is under way any more, which would
  // write where the next CTA of the SM has its own.
  __device__ void leave() {
    wait(min(end, requested_));
    finish_reads();
  }

 private:
  // The next group, in the place of one that nobody reads any more.
  __device__ void request(const LaunchArgs& args) {
    const int begin = requested_;
    requested_ += group_;
    const int count = min(group_, end - begin);
    if (count <= 0) return;
    const int at = begin & mask;
    const uint32_t barrier = barriers_ + (begin >> shift_ & (groups_ - 1)) * kBarrierBytes;
    const int bytes = count * kBlockBytes, bulk = by_bulk_ ? bytes & ~15 : 0, row_bytes = (count * 4 + 15) & ~15;
    if (bulk < bytes) copy_rest(args, begin, count, bulk);
    if (lane_ == 0) {
      arrive_and_expect(barrier, bulk + row_bytes);
      copy_bulk(first_rows + at * 4, args.entry_k + first + begin, row_bytes, barrier);
      if (bulk > 0) copy_bulk(values + at * kBlockBytes, from_ + int64_t(begin) * kBlockBytes, bulk, barrier);
    }
  }

  // What no bulk copy takes of a group: nothing beyond its last block is read.
  __device__ void copy_rest(const LaunchArgs& args, int begin, int count, int bulk) {
    char* const to = shared_ + (begin & mask) * kBlockBytes;
    const char* const values = static_cast<const char*>(args.values);
    constexpr int kElements = kBlockBytes / int(sizeof(Element));  // of a block
#pragma unroll 1
    for (int i = bulk / int(sizeof(Element)) + lane_; i < count * kElements; i += 32) {
      const int entry = first + begin + i / kElements;
      const int64_t block = in_place_ ? entry : __ldg(args.entry_block + entry);
      reinterpret_cast<Element*>(to)[i] = reinterpret_cast<const Element*>(values + block * kBlockBytes)[i % kElements];
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncwarp();
  }

  char* shared_;
  int lane_, group_, groups_, shift_;
  int ready, freed_, requested_;  // entries: that were waited for, that are no longer needed, that were requested
  uint32_t barriers_;
  Phases& phases_;
  bool in_place_, by_bulk_;
  const char* from_;
};

}  // namespace sparsek::cuda::few_columns
