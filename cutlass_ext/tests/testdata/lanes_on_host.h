// SPDX-License-Identifier: Apache-2.0
// Runs device code of warps on the host: each lane is a coroutine, and goes on until it waits for the others of its
// warp. What is exchanged between lanes has the meaning that CUDA gives it; all lanes of a warp must take part.
#pragma once

#include <ucontext.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#define __device__

namespace on_host {

constexpr int kLanes = 32;

struct Lane {
  ucontext_t context;
  std::vector<char> stack = std::vector<char>(size_t{1} << 16);
  int warp = 0, lane = 0;
  int64_t waits = 0;  // for the other lanes, so many times
  bool ended = false;
  std::function<void()> run;
};

// What the lanes of a warp exchange, by turns, so that a lane may be one ahead.
struct Warp {
  uint32_t words[2][kLanes];
};

inline std::vector<std::unique_ptr<Lane>> lanes;
inline std::vector<Warp> warps;
inline ucontext_t outside;
inline Lane* running = nullptr;

inline void leave() { swapcontext(&running->context, &outside); }

inline void start() {
  running->run();
  running->ended = true;
  leave();
}

// Waits for the other lanes of the warp.
inline void sync() {
  const int64_t own = ++running->waits;
  Lane* const self = running;
  const size_t first = static_cast<size_t>(self->warp) * kLanes;
  while (true) {
    bool all = true;
    for (size_t i = first; i < first + kLanes; ++i) all = all && lanes[i]->waits >= own;
    if (all) return;
    leave();
  }
}

inline uint32_t* exchange(uint32_t word) {
  Warp& warp = warps[static_cast<size_t>(running->warp)];
  uint32_t* const words = warp.words[running->waits % 2];
  words[running->lane] = word;
  sync();
  return words;
}

// Runs f(warp, lane) for all lanes of so many warps, until all have ended. Ends the program where none can go on.
inline void run(int count, const std::function<void(int, int)>& f) {
  lanes.clear();
  warps.assign(static_cast<size_t>(count), {});
  for (int i = 0; i < count * kLanes; ++i) {
    lanes.push_back(std::make_unique<Lane>());
    Lane& lane = *lanes.back();
    lane.warp = i / kLanes;
    lane.lane = i % kLanes;
    lane.run = [f, warp = lane.warp, at = lane.lane] { f(warp, at); };
    getcontext(&lane.context);
    lane.context.uc_stack.ss_sp = lane.stack.data();
    lane.context.uc_stack.ss_size = lane.stack.size();
    lane.context.uc_link = nullptr;
    makecontext(&lane.context, start, 0);
  }
  for (bool any = true; any;) {
    any = false;
    for (const auto& lane : lanes) {
      if (lane->ended) continue;
      any = true;
      running = lane.get();
      swapcontext(&outside, &running->context);
    }
  }
}

template <class T>
T from_word(uint32_t word) {
  T value;
  std::memcpy(&value, &word, sizeof(value));
  return value;
}
template <class T>
uint32_t to_word(T value) {
  static_assert(sizeof(T) == sizeof(uint32_t));
  uint32_t word;
  std::memcpy(&word, &value, sizeof(word));
  return word;
}

}  // namespace on_host

inline void __syncwarp() { on_host::sync(); }

template <class T>
T __shfl_sync(uint32_t, T value, int from) {
  return on_host::from_word<T>(on_host::exchange(on_host::to_word(value))[from % on_host::kLanes]);
}

template <class T>
T __shfl_up_sync(uint32_t, T value, int by) {
  const int from = on_host::running->lane - by;
  const T got = on_host::from_word<T>(on_host::exchange(on_host::to_word(value))[std::max(from, 0)]);
  return from < 0 ? value : got;
}

inline uint32_t __ballot_sync(uint32_t, bool value) {
  const uint32_t* const words = on_host::exchange(value ? 1 : 0);
  uint32_t bits = 0;
  for (int i = 0; i < on_host::kLanes; ++i) bits |= words[i] << i;
  return bits;
}

inline bool __any_sync(uint32_t lanes, bool value) { return __ballot_sync(lanes, value) != 0; }
inline bool __all_sync(uint32_t lanes, bool value) { return __ballot_sync(lanes, !value) == 0; }

inline uint32_t __reduce_or_sync(uint32_t, uint32_t value) {
  const uint32_t* const words = on_host::exchange(value);
  uint32_t all = 0;
  for (int i = 0; i < on_host::kLanes; ++i) all |= words[i];
  return all;
}

inline int __reduce_add_sync(uint32_t, int value) {
  const uint32_t* const words = on_host::exchange(on_host::to_word(value));
  uint32_t sum = 0;
  for (int i = 0; i < on_host::kLanes; ++i) sum += words[i];
  return on_host::from_word<int>(sum);
}

inline int __reduce_max_sync(uint32_t, int value) {
  const uint32_t* const words = on_host::exchange(on_host::to_word(value));
  int most = value;
  for (int i = 0; i < on_host::kLanes; ++i) most = std::max(most, on_host::from_word<int>(words[i]));
  return most;
}

inline int __popc(uint32_t bits) { return __builtin_popcount(bits); }

template <class T>
T __ldg(const T* from) {
  return *from;
}

struct uint2 {
  uint32_t x, y;
};
struct int2 {
  int x, y;
};

using std::max;
using std::min;
