// SPDX-License-Identifier: Apache-2.0
// Pairs of bundles of block rows become bundles: the pairs of the plainest greedy matching (plan/row_matching.cpp),
// found by all bundles at once.
#pragma once

#include "cuda/bundle_partners.cuh"
#include "cuda/matching_work.cuh"

namespace sparsek::cuda {
// Named, since the symbols of kernels in an unnamed namespace depend on the path of the checkout.
namespace matching {

constexpr int kPairThreads = 512;
static_assert(kPairThreads == kMostMatched, "one thread a bundle");

struct Pairing {
  int32_t blocks[kMostMatched];
  int32_t partner[kMostMatched];
  int32_t best[kMostMatched];  // of those without a partner: the best one that is left
  int32_t alone[kMostMatched];
  int32_t pairs[kMostMatched / 2][2];
  int32_t before[kMostMatched / 32];
  uint32_t left[kMostMatched / 32];  // a bit for each bundle that has no partner

  __device__ bool is_left(int32_t i) const { return i != kNobody && (left[i / 32] >> i % 32 & 1) != 0; }
};

// A bundle's list of partners, the best first.
class Partners {
 public:
  __device__ Partners(const uint16_t* list, int32_t places) : list_(list), places_(places) { queue_from(0); }

  // Called by all threads of a warp: the best partner that is left, for those that look for one.
  __device__ int32_t best(const Pairing& p, bool looks) {
    int32_t found = kNobody;
    if (looks) {
#pragma unroll
      for (int q = kQueued - 1; q >= 0; --q) {
        const auto partner = static_cast<int32_t>(queue_[q / 2] >> q % 2 * 16 & 0xffff);
        if (p.is_left(partner)) found = partner;
      }
    }
    // A list may have hundreds that are gone: a quarter of the warp reads one together, four lists at a time.
    const int lane = threadIdx.x % 32, quarter = lane / kReaders;
    unsigned searching = __ballot_sync(kAllLanes, looks && found == kNobody && next_ < places_);
    while (searching != 0) {
      unsigned rest = searching;  // without those that the quarters before read
      for (int q = 0; q < quarter; ++q) rest &= rest - 1;
      const Found one = search(p, rest != 0, rest != 0 ? __ffs(rest) - 1 : lane);
      const int turn = __popc(searching & ((1u << lane) - 1));
      const bool mine = (searching >> lane & 1) != 0 && turn < 32 / kReaders;
      const int reader = mine ? turn * kReaders : lane;
      const int32_t partner = __shfl_sync(kAllLanes, one.partner, reader);
      const int32_t place = __shfl_sync(kAllLanes, one.place, reader);
      if (mine) {
        found = partner;
        next_ = place;
        if (partner != kNobody) queue_from(place);
      }
      for (int q = 0; q < 32 / kReaders; ++q) searching &= searching - 1;
    }
    return found;
  }

 private:
  static constexpr int kReaders = 8;  // lanes that read a list, kQueued places each

  struct Found {
    int32_t partner, place;  // the partner is among the kQueued from `place` on
  };

  // Called by all lanes: each quarter searches the list of a lane `who`, from its next place on.
  __device__ Found search(const Pairing& p, bool active, int who) const {
    const int quarter = threadIdx.x % 32 / kReaders, reader = threadIdx.x % kReaders;
    const auto* const list =
        reinterpret_cast<const uint16_t*>(__shfl_sync(kAllLanes, reinterpret_cast<unsigned long long>(list_), who));
    const int32_t places = __shfl_sync(kAllLanes, places_, who);
    Found one = {kNobody, __shfl_sync(kAllLanes, next_, who)};
    while (__any_sync(kAllLanes, active)) {
      const int32_t at = one.place + reader * kQueued;
      int32_t partner = kNobody;
      if (active && at < places) {
        const uint4 read = *reinterpret_cast<const uint4*>(list + at);
        const uint32_t queue[kQueued / 2] = {read.x, read.y, read.z, read.w};
#pragma unroll
        for (int q = kQueued - 1; q >= 0; --q) {
          const auto other = static_cast<int32_t>(queue[q / 2] >> q % 2 * 16 & 0xffff);
          if (p.is_left(other)) partner = other;
        }
      }
      const unsigned found =
          __ballot_sync(kAllLanes, partner != kNobody) >> quarter * kReaders & ((1u << kReaders) - 1);
      const int first = found != 0 ? __ffs(found) - 1 : 0;
      partner = __shfl_sync(kAllLanes, partner, quarter * kReaders + first);
      if (!active) continue;
      one.partner = partner;
      one.place += found != 0 ? first * kQueued : kReaders * kQueued;
      active = found == 0 && one.place < places;
    }
    return one;
  }

  __device__ void queue_from(int32_t place) {
    const uint4 queue = *reinterpret_cast<const uint4*>(list_ + place);
    queue_[0] = queue.x, queue_[1] = queue.y, queue_[2] = queue.z, queue_[3] = queue.w;
    next_ = place + kQueued;
  }

  const uint16_t* list_;
  int32_t places_;
  uint32_t queue_[kQueued / 2];  // those before next_
  int32_t next_;
};

// Pairs up those who are each other's best partner, again and again: the pairs of the plainest greedy matching
// (plan/row_matching.cpp).
__device__ inline void pair_best(Pairing& p, int32_t bundles, const uint16_t* lists, int32_t places) {
  const int32_t i = threadIdx.x;
  Partners partners(lists + int64_t(min(i, bundles - 1)) * list_places(places), list_places(places));
  int32_t best = partners.best(p, i < bundles);
  do {
    if (i < bundles) p.best[i] = best;
    __syncthreads();
    const bool mutual = best != kNobody && p.best[best] == i;
    if (mutual) {
      p.partner[i] = best;
      best = kNobody;
      atomicAnd(&p.left[i / 32], ~(1u << i % 32));
    }
    __syncthreads();
    const bool looks = best != kNobody && !p.is_left(best);
    const int32_t found = partners.best(p, looks);
    if (looks) best = found;
  } while (__syncthreads_or(best != kNobody));
}

// Pairs up the bundles that are left because they are too long for each other: the longest with the shortest.
__device__ inline void pair_others(Pairing& p, int32_t bundles) {
  const int32_t i = threadIdx.x;
  const bool alone = i < bundles && p.partner[i] == kNobody;
  const int32_t count = __syncthreads_count(alone);
  if (count == 0) return;
  int32_t rank = 0;
  if (alone) {
    for (int32_t j = 0; j < bundles; ++j) {
      if (p.partner[j] != kNobody) continue;
      rank += p.blocks[j] > p.blocks[i] || (p.blocks[j] == p.blocks[i] && j < i);
    }
    p.alone[rank] = i;
  }
  __syncthreads();
  if (alone) p.partner[i] = p.alone[count - 1 - rank];
  __syncthreads();
}

// Numbers the pairs in the order of their first bundles.
__device__ inline void number_pairs(Pairing& p, int32_t bundles) {
  const int32_t i = threadIdx.x, warp = i / 32;
  const bool is_first = i < bundles && i < p.partner[i];
  const unsigned firsts = __ballot_sync(kAllLanes, is_first);
  if (i % 32 == 0 && warp < kMostMatched / 32) p.before[warp] = __popc(firsts);
  __syncthreads();
  if (is_first) {
    int32_t number = __popc(firsts & ((1u << i % 32) - 1));
    for (int32_t w = 0; w < warp; ++w) number += p.before[w];
    p.pairs[number][0] = i;
    p.pairs[number][1] = p.partner[i];
  }
  __syncthreads();
}

// By one CTA a chunk: makes pairs of its bundles the bundles of the next level. here: of the chunk, among those at
// once.
__device__ inline void pair_up(const Work& work, int level, int32_t here, int32_t chunk, Pairing& p) {
  const int32_t bundles = work.rows_of(chunk) >> level, places = work.together >> level;
  const int32_t from = level % 2, to = 1 - from;
  const int32_t* const blocks = work.blocks[from] + int64_t(chunk) * places;
  const uint32_t* const common = work.common + int64_t(here) * places * places;
  for (int32_t i = threadIdx.x; i < bundles; i += kPairThreads) {
    p.blocks[i] = blocks[i];
    p.partner[i] = kNobody;
  }
  const uint32_t exist = __ballot_sync(kAllLanes, int32_t(threadIdx.x) < bundles);
  if (threadIdx.x % 32 == 0) p.left[threadIdx.x / 32] = exist;
  __syncthreads();
  pair_best(p, bundles, work.partners + int64_t(here) * places * list_places(places), places);
  __syncthreads();
  pair_others(p, bundles);
  number_pairs(p, bundles);

  const int32_t pairs = bundles / 2, size = 1 << level;
  const int32_t* const rows = work.rows[from] + int64_t(chunk) * work.together;
  int32_t* const paired_rows = work.rows[to] + int64_t(chunk) * work.together;
  for (int32_t i = threadIdx.x; i < pairs * 2 * size; i += kPairThreads) {
    paired_rows[i] = rows[p.pairs[i / (2 * size)][i / size % 2] * size + i % size];
  }
  const bool is_last = 2 * size == work.group;
  int32_t all_loads = 0, longest = 0;
  for (int32_t i = threadIdx.x; i < pairs; i += kPairThreads) {
    const int32_t a = p.pairs[i][0], b = p.pairs[i][1];
    const int32_t* const loads = work.loads[from] + int64_t(chunk) * places;
    const int32_t sum = p.blocks[a] + p.blocks[b];
    const int32_t united = loads[a] + loads[b] - static_cast<int32_t>(common[int64_t(a) * places + b]);
    work.blocks[to][int64_t(chunk) * (places / 2) + i] = sum;
    work.loads[to][int64_t(chunk) * (places / 2) + i] = united;
    all_loads += united;
    longest = max(longest, sum);
  }
  if (is_last) {
    all_loads = __reduce_add_sync(kAllLanes, all_loads);
    longest = __reduce_max_sync(kAllLanes, longest);
    if (threadIdx.x % 32 == 0 && longest > 0) {
      atomicAdd(&work.costs->loads[kMatched], static_cast<unsigned long long>(all_loads));
      atomicMax(&work.costs->longest[kMatched], longest);
    }
    return;
  }
  const uint32_t* const columns = work.columns[from] + int64_t(here) * work.words * places;
  uint32_t* const paired_columns = work.columns[to] + int64_t(here) * work.words * (places / 2);
  for (int32_t i = threadIdx.x; i < pairs * work.words; i += kPairThreads) {
    const int32_t w = i / pairs, pair = i % pairs;
    const uint32_t* const word = columns + int64_t(w) * places;
    paired_columns[int64_t(w) * (places / 2) + pair] = word[p.pairs[pair][0]] | word[p.pairs[pair][1]];
  }
}

}  // namespace matching
}  // namespace sparsek::cuda
