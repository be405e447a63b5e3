// SPDX-License-Identifier: Apache-2.0
// How a producer warp of kernel family "wgmma_scatter" brings the lists of its quarter of a tile to shared memory, part
// by part, and writes their elements to a stage.
#pragma once

#include "cuda/scatter_shared.cuh"

namespace sparsek::cuda {
namespace wgmma_scatter_kernel {

// A part of a list, in a word: its stage, its elements, and whether it is the first or the last one of the list.
struct Part {
  static constexpr uint32_t kNone = 0xffffffffu, kFirst = 1u << 30, kLast = 1u << 31;
  uint32_t word;

  __device__ static Part of(int stage, int elements, bool first, bool last) {
    return {uint32_t(elements) | uint32_t(stage) << 12 | (first ? kFirst : 0) | (last ? kLast : 0)};
  }
  __device__ bool is_none() const { return word == kNone; }
  __device__ bool is_first() const { return (word & kFirst) != 0; }
  __device__ bool is_last() const { return (word & kLast) != 0; }
  __device__ int elements() const { return int(word & 0xfff); }
  __device__ int stage() const { return int(word >> 12 & 0xffff); }
};
static_assert(kPartElements <= 0xfff && kMostStages <= 0x10000);

// The parts of a warp's lists of a tile, one after the other: of all stages, or of every other one. Stages in which no
// quarter has elements are left out; of others an empty list is one empty part.
template <int Turns>
class Parts {
 public:
  // lists: of the row group. is_next: whether the tile's first stage is the warp's.
  __device__ Parts(const Params& p, const StageList* lists, int quarter, int lane, bool is_next)
      : p_(p), lists_(lists), quarter_(quarter), lane_(lane), is_next_(is_next) {}

  // Behind the last part: whether what follows the tile's stages in the ring is the warp's.
  __device__ bool is_next() const { return is_next_; }

  // Begins to copy the next part to `to`.
  __device__ Part copy_next(uint32_t to) {
    bool first = false;
    if (left_ == 0) {
      stage_ = next_stage();
      if (stage_ < 0) return {Part::kNone};
      from_ = __shfl_sync(kWarp, own_.begin, stage_ % 32);
      left_ = __shfl_sync(kWarp, own_.count, stage_ % 32);
      first = true;
    }
    const int elements = min(left_, kPartElements);
    const uint32_t* const from = p_.lists.elements + int64_t(from_) * kChunk + lane_ * kFour;
#pragma unroll
    for (int i = 0; i < kPartElements; i += kChunk) {
      if (i < elements) copy(to + (i + lane_ * kFour) * int(sizeof(uint32_t)), from + i);
    }
    from_ += kPartElements / kChunk;
    left_ -= elements;
    return Part::of(stage_, elements, first, left_ == 0);
  }

 private:
  __device__ static void copy(uint32_t to, const uint32_t* from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
  }
  // The next one of the warp's.
  __device__ int next_stage() {
    while (true) {
      const int stage = next_with_blocks();
      if (stage < 0) return -1;
      if (Turns == 1) return stage;
      is_next_ = !is_next_;
      if (!is_next_) return stage;
    }
  }
  __device__ int next_with_blocks() {
    while (bits_ == 0) {
      if (window_ >= p_.sizes.stages) return -1;
      const int stage = window_ + lane_;
      bool any = false;
      if (stage < p_.sizes.stages) {
        const auto* const four = reinterpret_cast<const int4*>(lists_ + stage * kQuarters);
        const int4 low = __ldg(four), high = __ldg(four + 1);
        any = (low.y | low.w | high.y | high.w) != 0;
        own_.begin = quarter_ == 0 ? low.x : quarter_ == 1 ? low.z : quarter_ == 2 ? high.x : high.z;
        own_.count = quarter_ == 0 ? low.y : quarter_ == 1 ? low.w : quarter_ == 2 ? high.y : high.w;
      }
      bits_ = __ballot_sync(kWarp, any);
      window_ += 32;
    }
    const int bit = __ffs(int(bits_)) - 1;
    bits_ &= bits_ - 1;
    return window_ - 32 + bit;
  }

  const Params& p_;
  const StageList* lists_;
  int quarter_, lane_;
  bool is_next_;
  StageList own_ = {};  // the warp's list of the lane's stage of the window
  int window_ = 0;      // the stage behind the window of 32
  uint32_t bits_ = 0;   // its stages that are left
  int stage_ = 0, from_ = 0, left_ = 0;
};

// Writes the elements of a part, which lies at `from`, to a quarter.
__device__ inline void write_part(uint32_t quarter, uint32_t from, int elements, int lane) {
  const auto put = [&](uint32_t element) {
    asm volatile("st.shared.u16 [%0], %1;" ::"r"(quarter + (element & kPlaceBits)), "h"(uint16_t(element >> 16))
                 : "memory");
  };
#pragma unroll
  for (int i = 0; i < kPartElements; i += kChunk) {
    if (i >= elements) break;
    uint4 four;
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(four.x), "=r"(four.y), "=r"(four.z), "=r"(four.w)
                 : "r"(from + (i + lane * kFour) * int(sizeof(uint32_t)))
                 : "memory");
    put(four.x);
    if (i + 32 < elements) put(four.y);
    if (i + 64 < elements) put(four.z);
    if (i + 96 < elements) put(four.w);
  }
}

__device__ inline void clear_quarter(uint32_t quarter, int lane) {
#pragma unroll
  for (int i = 0; i < kQuarterBytes; i += 512) {
    asm volatile("st.shared.v4.u32 [%0], {%1, %1, %1, %1};" ::"r"(quarter + i + lane * 16), "r"(0) : "memory");
  }
}

}  // namespace wgmma_scatter_kernel
}  // namespace sparsek::cuda
