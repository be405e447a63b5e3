// SPDX-License-Identifier: Apache-2.0
// How a producer warp of kernel family "wgmma_scatter" brings the lists of its quarter to shared memory, part by part,
// and writes their elements to a stage.
#pragma once

#include "cuda/scatter_shared.cuh"
#include "cuda/shared_address.cuh"
#include "cuda/shared_store.cuh"

namespace sparsek::cuda {
namespace wgmma_scatter_kernel {

// A part of a list: its stage, its units, whether it is the first or the last one of the list, and what is to be loaded
// of B for the stage.
struct Part {
  static constexpr uint32_t kFirst = 1u << 30, kLast = 1u << 31;
  uint32_t word;  // 0: none
  int panel;

  __device__ static Part of(int stage, int units, int boxes, int panel, bool first, bool last) {
    return {uint32_t(units) | uint32_t(boxes) << 8 | uint32_t(stage) << 12 | (first ? kFirst : 0) | (last ? kLast : 0),
            panel};
  }
  __device__ bool is_none() const { return word == 0; }
  __device__ bool is_first() const { return (word & kFirst) != 0; }
  __device__ bool is_last() const { return (word & kLast) != 0; }
  __device__ int units() const { return int(word & 0xff); }
  __device__ int boxes() const { return int(word >> 8 & 0xf); }
  __device__ int stage() const { return int(word >> 12 & 0xffff); }
};
static_assert(kPartUnits <= 0xff && kMostStages <= 0x10000);

// The parts of a warp's lists, one after the other, of all tiles of its CTA: of every other stage.
template <class Storage>
class Parts {
 public:
  // turn: the first stage that is the warp's.
  __device__ Parts(const Params& p, int quarter, int turn, int lane)
      : p_(p), quarter_(quarter), lane_(lane), tile_(blockIdx.x), at_(turn) {
    enter_tile();
  }

  // Begins to copy the next part to `to`.
  __device__ Part copy_next(uint32_t to, uint32_t copied) {
    bool first = false;
    if (left_ == 0) {
      if (!next_step()) return {};
      first = true;
    }
    const int units = min(left_, kPartUnits);
    if (lane_ == 0) {
      const int64_t from = int64_t(from_) * kUnit;
      const uint32_t bytes = units * (kUnit * kElementBytes);
      arrive_and_expect(copied, 2 * bytes);
      copy_to_shared(to, p_.rows.lists.places + from, bytes, copied);
      copy_to_shared(to + kHalfPartBytes, p_.values + from, bytes, copied);
    }
    from_ += units;
    left_ -= units;
    return Part::of(stage_, units, boxes_, panel_, first, left_ == 0);
  }

 private:
  __device__ void enter_tile() {
    in_window_ = 32;
    count_ = 0;
    if (tile_ >= p_.tiles) return;
    const Place place(p_, tile_);
    panel_ = place.panel;
    const PartOfSteps steps(p_, place.steps(p_));
    count_ = steps.count;
    steps_ = p_.rows.lists.steps + (int64_t(place.group) * kQuarters + quarter_) * p_.rows.sizes.stages + steps.begin;
    boxes_ = boxes_of<Storage>(p_, panel_);
  }
  __device__ bool next_step() {
    while (at_ >= count_) {
      if (tile_ >= p_.tiles) return false;
      at_ -= count_;
      tile_ += gridDim.x;
      enter_tile();
    }
    if (in_window_ == 32) {
      const int own = at_ + lane_ * kTurns;
      const int2 step = own < count_ ? __ldg(reinterpret_cast<const int2*>(steps_ + own)) : int2{};
      window_ = {step.x, step.y};
      in_window_ = 0;
    }
    const Step step = {__shfl_sync(kWarp, window_.begin, in_window_), __shfl_sync(kWarp, window_.word, in_window_)};
    ++in_window_;
    at_ += kTurns;
    from_ = step.begin;
    left_ = step.units();
    stage_ = step.stage();
    return true;
  }

  const Params& p_;
  int quarter_, lane_;
  int tile_, panel_ = 0, boxes_ = 0;
  const Step* steps_ = nullptr;  // of the tile
  int count_, at_;               // of them, and the warp's next one
  Step window_ = {};             // the warp's next step but as many as the lane's number
  int in_window_;                // those of 32 that the warp has taken
  int stage_ = 0, from_ = 0, left_ = 0;
};
static_assert(sizeof(Step) == sizeof(int2));

// A part's elements of a lane, a pair of each unit.
struct Pairs {
  uint32_t place[kPartUnits], value[kPartUnits];

  __device__ void read(uint32_t part, int units, int lane) {
    constexpr int kAlways = 2;
#pragma unroll
    for (int u = 0; u < kAlways; ++u) read_unit(part, u, lane);
    if (units <= kAlways) return;
#pragma unroll
    for (int u = kAlways; u < kPartUnits; ++u) read_unit(part, u, lane);
  }
  // To a quarter.
  __device__ void write(uint32_t quarter, int units) const {
#pragma unroll
    for (int u = 0; u < kPartUnits; ++u) {
      if (u >= units) break;
      store_half(quarter + (place[u] & 0xffff), value[u]);
      store_half(quarter + (place[u] >> 16), value[u] >> 16);
    }
  }

 private:
  __device__ void read_unit(uint32_t part, int u, int lane) {
    const uint32_t from = part + u * (kUnit * kElementBytes) + lane * int(sizeof(uint32_t));
    place[u] = load_word(from);
    value[u] = load_word(from + kHalfPartBytes);
  }
};

__device__ inline void clear_quarter(uint32_t quarter, int lane) {
#pragma unroll
  for (int i = 0; i < kQuarterBytes; i += 512) clear_vector(quarter + i + lane * 16);
}

}  // namespace wgmma_scatter_kernel
}  // namespace sparsek::cuda
