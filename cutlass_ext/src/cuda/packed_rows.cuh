// SPDX-License-Identifier: Apache-2.0
// What packed_again.cuh asks of eight numbers of 16 bits, some of which may be Inf or NaN, and of a warp's rows.
#pragma once

#include <cstdint>
#include <type_traits>

#include "cuda/launch_args.h"
#include "cuda/ring_tile.cuh"
#include "cutlass/bfloat16.h"
#include "cutlass/half.h"
#include "plan/work_tile.h"

namespace sparsek::cuda {
namespace wgmma_packed_kernel {

constexpr uint32_t kWarp = 0xffffffffu;
constexpr int kEight = 8;      // elements of 16 bytes
constexpr int kMostSlots = 4;  // of a warp's 16 rows

template <class Element>
constexpr uint32_t kExponent = std::is_same_v<Element, cutlass::bfloat16_t> ? 0x7f80 : 0x7c00;

// Bit i: number i is NaN.
template <class Element>
__device__ uint32_t which_nan(const uint4& eight) {
  const auto two = [](uint32_t pair) {
    return uint32_t((pair & 0x7fff) > kExponent<Element>) | uint32_t((pair >> 16 & 0x7fff) > kExponent<Element>) << 1;
  };
  return two(eight.x) | two(eight.y) << 2 | two(eight.z) << 4 | two(eight.w) << 6;
}
__device__ inline uint32_t word_of(const uint4& eight, int i) {
  return i < 2 ? (i == 0 ? eight.x : eight.y) : (i == 2 ? eight.z : eight.w);
}

// Eight elements, of which `columns` exist. Whole: all or none.
template <bool Whole>
__device__ uint4 read_eight(const uint16_t* from, int columns) {
  uint4 read = {};
  if constexpr (Whole) {
    if (columns > 0) read = __ldg(reinterpret_cast<const uint4*>(from));
  } else {
    uint32_t words[kEight / 2] = {};
#pragma unroll
    for (int i = 0; i < kEight; ++i) {
      if (i < columns) words[i / 2] |= uint32_t(__ldg(from + i)) << i % 2 * 16;
    }
    read = {words[0], words[1], words[2], words[3]};
  }
  return read;
}

// The slots of a warp's 16 rows.
struct SlotsOfWarp {
  int rows, first, count;
  __device__ SlotsOfWarp(const LaunchArgs& args, int warp)
      : rows(ring_kernel::kTileM / args.slots), first(warp * 16 / rows), count(max(1, 16 / rows)) {}
  // Bit t: slot t of them has a block in an entry.
  __device__ uint32_t with_block(const LaunchArgs& args, int64_t entry) const {
    uint32_t bits = 0;
#pragma unroll
    for (int t = 0; t < kMostSlots; ++t) {
      if (t < count) bits |= uint32_t(__ldg(args.entry_block + entry * args.slots + first + t) != kNoBlock) << t;
    }
    return bits;
  }
  // Likewise, in any entry of a tile.
  __device__ uint32_t with_blocks(const LaunchArgs& args, const WorkTile& tile, int lane) const {
    constexpr int kTogether = 8;  // loads that are under way
    const uint32_t all = (1u << count) - 1;
    uint32_t bits = 0;
#pragma unroll 1
    for (int first = lane; first - lane < tile.entry_count && bits != all; first += 32 * kTogether) {
#pragma unroll
      for (int i = 0; i < kTogether; ++i) {
        const int entry = first + i * 32;
        if (entry < tile.entry_count) bits |= with_block(args, int64_t(tile.entry_begin) + entry);
      }
      bits = __reduce_or_sync(kWarp, bits);
    }
    return bits;
  }
  // The slot of row i of the warp's.
  __device__ int of_row(int i) const { return i >> (__ffs(rows) - 1); }
};

}  // namespace wgmma_packed_kernel
}  // namespace sparsek::cuda
