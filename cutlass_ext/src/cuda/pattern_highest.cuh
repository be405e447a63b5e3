// SPDX-License-Identifier: Apache-2.0
// The highest of few scores, by one warp that keeps all of them in registers.
#pragma once

#include <cstdint>

#include "cuda/dependent_launch.cuh"
#include "pattern/job.h"

namespace sparsek::cuda {
namespace pattern_select {

constexpr int kHighestThreads = 256;

// The least key of which so many places have one at least as high, or one of which exactly so many have. `own` are the
// keys of a lane.
template <class Key, int PerLane>
__device__ Key lowest_of_highest(const Key (&own)[PerLane], int32_t wanted) {
  Key lowest = 0;
  for (Key bit = Key{1} << (8 * sizeof(Key) - 1); bit != 0; bit >>= 1) {
    const Key tried = lowest | bit;
    int32_t as_high = 0;
#pragma unroll
    for (int p = 0; p < PerLane; ++p) as_high += own[p] >= tried ? 1 : 0;
    as_high = __reduce_add_sync(~0u, as_high);
    if (as_high >= wanted) lowest = tried;
    if (as_high == wanted) break;
  }
  return lowest;
}

// A warp a row, of at most 32 * PerLane places. Of equal keys those of the first places are taken.
template <class Keys, int PerLane>
__global__ void __launch_bounds__(kHighestThreads) write_highest_of_few(Keys keys, pattern::Made to, int64_t count) {
  using Key = typename Keys::Key;
  constexpr int kLanes = 32;
  start_dependent();
  const int lane = threadIdx.x % kLanes;
  const unsigned before = (1u << lane) - 1;
  const int64_t warps = int64_t(gridDim.x) * (kHighestThreads / kLanes);
  for (int64_t row = (blockIdx.x * int64_t{kHighestThreads} + threadIdx.x) / kLanes; row < to.shape.block_rows;
       row += warps) {
    int64_t at = to.row_ptr.get(row);
    const int64_t end = to.row_ptr.get(row + 1), length = keys.length(row), first = keys.begin(row);
    Key own[PerLane];
    int32_t wanted = 0;
#pragma unroll
    for (int p = 0; p < PerLane; ++p) {
      const int64_t mine = p * kLanes + lane;
      own[p] = mine < length ? keys.key(first + mine) : 0;
      wanted += own[p] > Keys::kNever ? 1 : 0;
    }
    wanted = static_cast<int32_t>(min(int64_t{__reduce_add_sync(~0u, wanted)}, count));
    if (wanted == 0) continue;
    const Key lowest = lowest_of_highest(own, wanted);
    int32_t above = 0;
#pragma unroll
    for (int p = 0; p < PerLane; ++p) above += own[p] > lowest ? 1 : 0;
    int32_t equal = wanted - __reduce_add_sync(~0u, above);  // so many of the keys that are equal to it are taken
#pragma unroll
    for (int p = 0; p < PerLane; ++p) {
      const unsigned equals = __ballot_sync(~0u, own[p] == lowest);
      const bool is_taken = own[p] > lowest || (own[p] == lowest && __popc(equals & before) < equal);
      const unsigned taken = __ballot_sync(~0u, is_taken);
      const int64_t place = at + __popc(taken & before), mine = p * kLanes + lane;
      if (is_taken && place < end) keys.write(to, place, first + mine, mine);
      at += __popc(taken);
      equal -= min(equal, static_cast<int32_t>(__popc(equals)));
    }
  }
}

}  // namespace pattern_select
}  // namespace sparsek::cuda
