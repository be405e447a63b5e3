// SPDX-License-Identifier: Apache-2.0
// Bundles of block rows are compared with each other: what lists the partners of each, the best first.
#pragma once

#include "cuda/matching_work.cuh"

namespace sparsek::cuda {
// Named, since the symbols of kernels in an unnamed namespace depend on the path of the checkout.
namespace matching {

constexpr uint16_t kNobody = UINT16_MAX;
constexpr int32_t kQueued = 8;  // partners that a thread has in registers

// Places of a bundle's list of partners.
__host__ __device__ constexpr int32_t list_places(int32_t places) { return places < kQueued ? kQueued : places; }

// Sorts a warp's values by a bitonic network, the largest first: then lane l has those from l * kEach on.
template <int kEach>
__device__ void sort_descending(uint32_t (&value)[kEach], int lane) {
#pragma unroll
  for (int block = 2; block <= 32 * kEach; block *= 2) {
#pragma unroll
    for (int distance = block / 2; distance > 0; distance /= 2) {
#pragma unroll
      for (int e = 0; e < kEach; ++e) {
        const int place = lane * kEach + e;
        const bool descends = (place & block) == 0;
        if (distance >= kEach) {
          const uint32_t other = __shfl_xor_sync(kAllLanes, value[e], distance / kEach);
          const bool is_first = (place & distance) == 0;
          value[e] = descends == is_first ? max(value[e], other) : min(value[e], other);
        } else if ((e & distance) == 0) {
          const uint32_t low = min(value[e], value[e | distance]), high = max(value[e], value[e | distance]);
          value[e] = descends ? high : low;
          value[e | distance] = descends ? low : high;
        }
      }
    }
  }
}

constexpr int kCompareThreads = 512;
constexpr int kOwn = 4;  // bundles that a CTA compares with all of their chunk
static_assert(kCompareThreads >= kMostMatched);

template <int kEach>
struct Comparison {
  uint32_t part[kCompareThreads][kOwn];
  Merit merit[kOwn][32 * kEach];
};

// Counts the columns that each two bundles have in common, and lists the partners of each. The CTAs (x, c) are for the
// bundles of chunk first_chunk + c. Each thread has another bundle, and where these are few, a part of the words.
// kEach: places / 32, but at least 1.
template <int kEach>
__device__ void list_partners(const Work& work, int level, int32_t first_chunk, Comparison<kEach>& shared) {
  auto& part = shared.part;
  auto& merit = shared.merit;
  const int32_t here = blockIdx.y, chunk = first_chunk + here;
  const int32_t bundles = work.rows_of(chunk) >> level, places = work.together >> level;
  const int32_t first = blockIdx.x * kOwn;
  if (first >= bundles) return;
  const int32_t j = threadIdx.x % places, parts = kCompareThreads / places;
  const uint32_t* const columns = work.columns[level % 2] + int64_t(here) * work.words * places;
  int32_t own[kOwn];
#pragma unroll
  for (int o = 0; o < kOwn; ++o) own[o] = min(first + o, bundles - 1);
  uint32_t common[kOwn] = {};
  if (j < bundles) {
#pragma unroll 4
    for (int32_t w = threadIdx.x / places; w < work.words; w += parts) {
      const uint32_t* const word = columns + int64_t(w) * places;
      const uint32_t other = word[j];
#pragma unroll
      for (int o = 0; o < kOwn; ++o) common[o] += __popc(word[own[o]] & other);
    }
  }
#pragma unroll
  for (int o = 0; o < kOwn; ++o) part[threadIdx.x][o] = common[o];
  __syncthreads();

  const int32_t* const blocks = work.blocks[level % 2] + int64_t(chunk) * places;
  const int64_t most = most_of_level(work, level);
  for (int32_t k = threadIdx.x; k < kOwn * 32 * kEach; k += kCompareThreads) {
    const int32_t o = k / (32 * kEach), other = k % (32 * kEach), i = first + o;
    Merit found = kNoMerit;
    if (i < bundles && other < bundles) {
      uint32_t sum = 0;
      for (int32_t p = 0; p < parts; ++p) sum += part[p * places + other][o];
      work.common[(int64_t(here) * places + i) * places + other] = sum;
      if (other != i && blocks[i] + blocks[other] <= most) found = merit_of(sum, i, other);
    }
    merit[o][other] = found;
  }
  __syncthreads();
  const int32_t o = threadIdx.x / 32, i = first + o;
  if (o >= kOwn || i >= bundles) return;
  const int lane = threadIdx.x % 32;
  Merit sorted[kEach];
#pragma unroll
  for (int e = 0; e < kEach; ++e) sorted[e] = merit[o][e * 32 + lane];
  sort_descending(sorted, lane);
  uint16_t* const list = work.partners + (int64_t(here) * places + i) * list_places(places);
#pragma unroll
  for (int e = 0; e < kEach; ++e) {
    const int32_t place = lane * kEach + e;
    if (place >= list_places(places)) break;
    list[place] = sorted[e] == kNoMerit ? kNobody : static_cast<uint16_t>(partner_of(sorted[e], i));
  }
}

}  // namespace matching
}  // namespace sparsek::cuda
