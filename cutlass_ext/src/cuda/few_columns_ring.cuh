// SPDX-License-Identifier: Apache-2.0
// How a warp of the few_columns family has the blocks of its chunk in shared memory, one group of them after the other.
#pragma once

#include "cuda/chunk_args.h"
#include "cuda/few_columns_elements.cuh"
#include "cuda/launch_args.h"
#include "cuda/shared_address.cuh"
#include "cutlass/arch/barrier.h"

namespace sparsek::cuda::few_columns {

// Copies consecutive bytes, a multiple of 16, and signals the barrier; by one thread.
__device__ inline void copy_bulk(uint32_t to, const void* from, uint32_t bytes, uint32_t barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
               "l"(from), "r"(bytes), "r"(barrier)
               : "memory");
}

// Blocks that no bulk copy takes, by all lanes, element by element. Not inlined, so that the loops around it stay
// short.
template <class Element>
__device__ __noinline__ void copy_by_lanes(const LaunchArgs& args, int first, int count, bool in_place, char* to,
                                           int lane) {
  const int elements = args.block_m * args.block_k;
#pragma unroll 2
  for (int i = lane; i < count * elements; i += 32) {
    const int64_t block = in_place ? first + i / elements : args.entry_block[first + i / elements];
    reinterpret_cast<Element*>(to)[i] = static_cast<const Element*>(args.values)[block * elements + i % elements];
  }
}

__device__ inline RowChunk read_chunk(const RowChunks& rows, int at) {
  const int4 words = __ldg(reinterpret_cast<const int4*>(rows.chunks) + at);
  return {words.x, words.y, words.z, words.w};
}

// The barriers of the groups that a warp has in shared memory. They are made once: the phases go on from one chunk of
// the warp to the next.
__device__ inline void make_barriers(uint32_t first, int count) {
  if (const int lane = threadIdx.x % 32; lane < count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(first + lane * kBarrierBytes) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncwarp();
}

// A bit for each barrier: the parity of the phase that it is in.
using Phases = uint32_t;

__device__ inline void wait_for_group(uint32_t first, int group, Phases& phases) {
  wait_for_phase(first + group * kBarrierBytes, phases >> group & 1);
  phases ^= 1u << group;
}

// Behind this, copies may be requested to places that the warp has read.
__device__ inline void finish_reads() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");  // a request does not overtake what the lane has read
  __syncwarp();
}

// The ring of a warp in shared memory: groups of blocks, each in the place of its number modulo the groups of the ring,
// with the first row of B for each block, if groups are of four at least; else those are read from the plan. Behind
// them the barriers. Entries are counted from the first group of the chunk on.
template <class Element>
struct Ring {
  uint32_t values, first_rows;
  bool has_rows;
  int end;   // of the entries of the chunk
  int mask;  // entry & mask: its place

  // Where a warp's barriers lie, if its ring begins at `shared`.
  __device__ static uint32_t barriers_at(const LaunchArgs& args, const LaneLayout& lanes, const char* shared) {
    const int row_bytes = lanes.group >= kLeastGroupWithRows ? 4 : 0;
    return shared_address(shared) + lanes.groups * lanes.group * (block_bytes_of(args) + row_bytes);
  }

  __device__ Ring(const LaunchArgs& args, const RowChunks& rows, const RowChunk& chunk, Phases& phases, char* shared,
                  int lane)
      : shared_(shared), phases_(phases) {
    const LaneLayout& lanes = rows.lanes;
    const int entries = lanes.groups * lanes.group;
    block_bytes_ = block_bytes_of(args);
    group_ = lanes.group;
    shift_ = __ffs(group_) - 1;
    groups_ = lanes.groups;
    group_bytes_ = group_ * block_bytes_;
    values = shared_address(shared);
    first_rows = values + entries * block_bytes_;
    has_rows = group_ >= kLeastGroupWithRows;
    barriers_ = barriers_at(args, lanes, shared);
    mask = entries - 1;
    first_ = chunk.entry_begin & -group_;
    in_place_ = chunk.entry_end >= 0;
    end = (in_place_ ? chunk.entry_end : ~chunk.entry_end) - first_;
    // In bulk: whole groups, or blocks that are anywhere but aligned.
    const auto base = reinterpret_cast<uintptr_t>(args.values);
    by_bulk_ = (base | uint32_t(in_place_ ? group_bytes_ : block_bytes_)) % 16 == 0;
    from_ = static_cast<const char*>(args.values) + int64_t(first_) * block_bytes_;
    // A plan may have fewer blocks by now than it was made for.
    const int64_t blocks = __ldg(rows.row_ptr + rows.block_rows);
    room_ = int(min(int64_t(INT32_MAX), (blocks - first_) * block_bytes_));
    oldest_ = complete_ = requested_ = 0;
#pragma unroll 1
    for (int i = 0; i < groups_; ++i) request(args, lane);
  }

  // Behind this, another ring may be made in its place, and the CTA may end: no copy is under way any more. One that
  // nobody waited for would write where the SM's next CTA has its own. That is so for a chunk without blocks whose
  // number is no multiple of the group: the group that it begins in is copied.
  __device__ void leave() {
#pragma unroll 1
    for (; complete_ < requested_ && complete_ * group_ < end; ++complete_) wait_for_oldest();
    finish_reads();
  }

  // The number that an entry of the plan has here, and the other way round.
  __device__ int place(int entry) const { return entry - first_; }
  __device__ int entry(int place) const { return place + first_; }

  // Of B, that a block meets first.
  __device__ int first_row(const LaunchArgs& args, int place) const {
    return has_rows ? int(load_word(first_rows + (place & mask) * 4)) : __ldg(args.entry_k + entry(place));
  }

  // The end of the entries that can be used at once from the oldest group on, up to `wanted`; waits for them.
  __device__ int wait(int wanted) {
    const int last = min((wanted - 1) >> shift_, oldest_ + groups_ - 2);
#pragma unroll 1
    for (; complete_ <= last; ++complete_) wait_for_oldest();
    return min(wanted, (last + 1) * group_);
  }

  // The warp needs no entry before this one any more.
  __device__ void release(const LaunchArgs& args, int entry, int lane) {
    if ((oldest_ + 1) * group_ > entry) return;
    finish_reads();
#pragma unroll 1
    do {
      ++oldest_;
      request(args, lane);
    } while ((oldest_ + 1) * group_ <= entry);
  }

 private:
  // Of the groups that nobody has waited for.
  __device__ void wait_for_oldest() { wait_for_group(barriers_, complete_ & (groups_ - 1), phases_); }

  __device__ static int block_bytes_of(const LaunchArgs& args) {
    return args.block_m * args.block_k * int(sizeof(Element));
  }

  // Of the next group, in the place of one that nobody reads any more.
  __device__ void request(const LaunchArgs& args, int lane) {
    const int first = requested_ * group_, at = requested_ & (groups_ - 1);
    const int offset = requested_ * group_bytes_;
    ++requested_;
    if (first >= end) return;
    const int count = min(group_, end - first);
    const int bytes = (count * block_bytes_ + 15) & ~15, row_bytes = has_rows ? (count * 4 + 15) & ~15 : 0;
    const uint32_t barrier = barriers_ + at * kBarrierBytes, to = values + at * group_bytes_;
    const bool by_bulk = by_bulk_ && offset + bytes <= room_;
    if (!by_bulk) {
      copy_by_lanes<Element>(args, first_ + first, count, in_place_, shared_ + at * group_bytes_, lane);
      cutlass::arch::fence_view_async_shared();
      __syncwarp();
    }
    if (lane == 0) {
      arrive_and_expect(barrier, (by_bulk ? bytes : 0) + row_bytes);
      if (row_bytes > 0) copy_bulk(first_rows + at * group_ * 4, args.entry_k + first_ + first, row_bytes, barrier);
      if (by_bulk && in_place_) copy_bulk(to, from_ + offset, bytes, barrier);
    }
    if (by_bulk && !in_place_) {
      __syncwarp();
#pragma unroll 1
      for (int i = lane; i < count; i += 32) {
        const int64_t block = args.entry_block[first_ + first + i];
        copy_bulk(to + i * block_bytes_, static_cast<const char*>(args.values) + block * block_bytes_, block_bytes_,
                  barrier);
      }
    }
  }

  char* shared_;
  int group_, shift_, groups_, group_bytes_, block_bytes_, room_;
  int first_, oldest_, requested_, complete_;  // groups: in use, to be requested, to be waited for
  uint32_t barriers_;
  Phases& phases_;
  bool in_place_, by_bulk_;
  const char* from_;
};

}  // namespace sparsek::cuda::few_columns
