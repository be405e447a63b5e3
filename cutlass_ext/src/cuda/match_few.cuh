// SPDX-License-Identifier: Apache-2.0
// Few block rows are matched by one CTA, from the index to their order. Bits and counts lie in shared memory, and no
// other kernel is waited for.
#pragma once

#include "cuda/bundle_pairs.cuh"
#include "cuda/dependent_launch.cuh"
#include "cuda/matching_work.cuh"
#include "plan/pairing.h"

namespace sparsek::cuda {
// Named, since the symbols of kernels in an unnamed namespace depend on the path of the checkout.
namespace matching {

constexpr int32_t kFewRows = 128;
constexpr int32_t kFewWords = 64;  // of 32 columns

struct FewRows {
  Costs costs;
  Pairing pairing;
  int32_t row_ptr[kFewRows + 1];
  int32_t natural_loads, matched_loads;
  // Of the level, and of the next one, as in Work.
  int32_t rows[2][kFewRows], blocks[2][kFewRows], loads[2][kFewRows];
  alignas(16) uint32_t left[kFewRows / 32];  // a bit for each bundle that has no partner
  Merit merit[kFewRows][kFewRows];           // of two bundles; kNoMerit: they may not be a pair
};

// The columns of the level and of the next one lie behind it, (words, kFewRows) each.
constexpr size_t few_rows_bytes(int32_t words) {
  return sizeof(FewRows) + 2 * sizeof(uint32_t) * static_cast<size_t>(words) * kFewRows;
}

// Makes each row a bundle.
__device__ inline void read_rows(const Work& work, FewRows& shared, uint32_t* columns) {
  const RowPattern& pattern = work.pattern;
  const int32_t i = threadIdx.x;
  const int32_t end_before = i <= pattern.block_rows ? pattern.index.row_ptr[i] : 0;  // also of a faulty index
  for (int32_t w = i; w < work.words * kFewRows; w += kPairThreads) columns[w] = 0;
  if (i == 0) {
    shared.costs = {};
    shared.natural_loads = shared.matched_loads = 0;
  }
  const bool good = is_good(pattern.index);
  if (i <= pattern.block_rows) shared.row_ptr[i] = good ? end_before : 0;
  __syncthreads();

  constexpr int32_t kLanes = kPairThreads / kFewRows, kTogether = 4;  // of a row; columns that a lane reads at once
  const int32_t row = i / kLanes;
  if (row < work.padded_rows) {
    const bool exists = row < pattern.block_rows;
    const int32_t begin = exists ? shared.row_ptr[row] : 0, end = exists ? shared.row_ptr[row + 1] : 0;
    for (int32_t b = begin + i % kLanes; b < end; b += kLanes * kTogether) {
      int32_t cols[kTogether];
#pragma unroll
      for (int t = 0; t < kTogether; ++t) cols[t] = b + t * kLanes < end ? pattern.index.col_idx[b + t * kLanes] : -1;
#pragma unroll
      for (int t = 0; t < kTogether; ++t) {
        if (cols[t] >= 0) atomicOr(&columns[cols[t] / 32 * kFewRows + row], 1u << cols[t] % 32);
      }
    }
    if (i % kLanes == 0) {
      shared.rows[0][row] = row;
      shared.blocks[0][row] = shared.loads[0][row] = end - begin;
    }
  }
  __syncthreads();
}

__device__ inline void add_by_warp(int32_t value, int32_t* sum) {
  value = __reduce_add_sync(kAllLanes, value);
  if (threadIdx.x % 32 == 0 && value > 0) atomicAdd(sum, value);
}

__device__ inline void raise_by_warp(int32_t value, int32_t* most) {
  value = __reduce_max_sync(kAllLanes, value);
  if (threadIdx.x % 32 == 0 && value > 0) atomicMax(most, value);
}

// What the natural order costs.
__device__ inline void add_natural_costs(const Work& work, FewRows& shared, const uint32_t* columns) {
  constexpr int32_t kAtOnce = kPairThreads / (kFewRows / 2);  // words
  const int32_t i = threadIdx.x, block_rows = work.pattern.block_rows;
  int32_t loads = 0;
  const int32_t first = i % (kFewRows / 2) * work.group;
  for (int32_t w = i / (kFewRows / 2); first < work.padded_rows && w < work.words; w += kAtOnce) {
    uint32_t united = 0;
    for (int32_t r = first; r < first + work.group; ++r) united |= columns[w * kFewRows + r];
    loads += __popc(united);
  }
  add_by_warp(loads, &shared.natural_loads);
  if (i >= kFewRows / 2) return;
  for (int32_t size = 2, level = 0; size <= work.group; size *= 2, ++level) {
    const int32_t from = min(i * size, block_rows), to = min(from + size, block_rows);
    const int32_t blocks = shared.row_ptr[to] - shared.row_ptr[from];
    raise_by_warp(blocks, &shared.costs.longest_neighbours[level]);
    if (size == work.group) raise_by_warp(blocks, &shared.costs.longest[kNatural]);
  }
}

__device__ inline int32_t common_columns(const uint32_t* columns, int32_t words, int32_t i, int32_t j) {
  int32_t sum = 0;
#pragma unroll 4
  for (int32_t w = 0; w < words; ++w) sum += __popc(columns[w * kFewRows + i] & columns[w * kFewRows + j]);
  return sum;
}

// The merits of each two bundles: of i and i + 1, of i and i + 2, and so on, half around.
__device__ inline void compare_all(const uint32_t* columns, int32_t words, int32_t bundles, const int32_t* blocks,
                                   int64_t most, FewRows& shared) {
  for (int32_t apart = 1 + threadIdx.x / 32; apart <= bundles / 2; apart += kPairThreads / 32) {
    for (int32_t i = threadIdx.x % 32; i < bundles; i += 32) {
      const int32_t j = i + apart < bundles ? i + apart : i + apart - bundles;
      const int32_t common = common_columns(columns, words, i, j);
      const Merit merit = blocks[i] + blocks[j] <= most ? merit_of(common, i, j) : kNoMerit;
      shared.merit[i][j] = shared.merit[j][i] = merit;
    }
  }
  if (threadIdx.x < bundles) shared.merit[threadIdx.x][threadIdx.x] = kNoMerit;
}

// By a warp: the best partner of bundle i that is left.
__device__ inline int32_t best_left(const FewRows& shared, int32_t i, int lane) {
  const uint4 words = *reinterpret_cast<const uint4*>(shared.left);
  const uint32_t left[] = {words.x, words.y, words.z, words.w};
  static_assert(sizeof(left) == sizeof(shared.left));
  Merit best = kNoMerit;
#pragma unroll
  for (int w = 0; w < kFewRows / 32; ++w) {
    const Merit merit = shared.merit[i][w * 32 + lane];
    if ((left[w] >> lane & 1) != 0) best = max(best, merit);
  }
  best = __reduce_max_sync(kAllLanes, best);
  return best == kNoMerit ? int32_t{kNobody} : partner_of(best, i);
}

// As pair_best. Bundle w + 16 l is that of lane l of warp w, which looks for its partners.
__device__ inline void pair_best_of_few(FewRows& shared, int32_t bundles) {
  constexpr int kWarps = kPairThreads / 32;
  Pairing& p = shared.pairing;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int32_t own = warp + kWarps * lane;
  const auto is_left = [&](int32_t i) { return (shared.left[i / 32] >> i % 32 & 1) != 0; };
  bool alone = own < bundles, looks = alone;
  int32_t best = kNobody;
  do {
    for (unsigned searching = __ballot_sync(kAllLanes, looks); searching != 0; searching &= searching - 1) {
      const int of = __ffs(searching) - 1;
      const int32_t found = best_left(shared, warp + kWarps * of, lane);
      if (lane == of) best = p.best[own] = found;
    }
    __syncthreads();
    alone = alone && best != kNobody;
    if (alone && p.best[best] == own) {
      alone = false;
      p.partner[own] = best;
      atomicAnd(&shared.left[own / 32], ~(1u << own % 32));
    }
    __syncthreads();
    looks = alone && !is_left(best);
  } while (__syncthreads_or(alone));
}

// Makes pairs of the level's bundles those of the next level.
__device__ inline void pair_up_few(const Work& work, int level, FewRows& shared, const uint32_t* columns,
                                   uint32_t* paired_columns) {
  Pairing& p = shared.pairing;
  const int32_t i = threadIdx.x, bundles = work.padded_rows >> level, from = level % 2, to = 1 - from;
  compare_all(columns, work.words, bundles, shared.blocks[from], most_of_level(work, level), shared);
  if (i < bundles) {
    p.blocks[i] = shared.blocks[from][i];
    p.partner[i] = kNobody;
  }
  if (i < kFewRows) {
    const uint32_t exist = __ballot_sync(kAllLanes, i < bundles);
    if (i % 32 == 0) shared.left[i / 32] = exist;
  }
  __syncthreads();
  pair_best_of_few(shared, bundles);
  pair_others(p, bundles);
  number_pairs(p, bundles);

  const int32_t pairs = bundles / 2, size = 1 << level;
  if (i < pairs * 2 * size) {
    shared.rows[to][i] = shared.rows[from][p.pairs[i >> (level + 1)][i >> level & 1] * size + i % size];
  }
  const int32_t pair = i % (kFewRows / 2);
  if (pair < pairs) {
    const int32_t a = p.pairs[pair][0], b = p.pairs[pair][1];
    for (int32_t w = i / (kFewRows / 2); w < work.words; w += kPairThreads / (kFewRows / 2)) {
      const uint32_t* const word = columns + w * kFewRows;
      paired_columns[w * kFewRows + pair] = word[a] | word[b];
    }
  }
  int32_t united = 0, sum = 0;
  if (i < pairs) {
    const int32_t a = p.pairs[i][0], b = p.pairs[i][1];
    shared.blocks[to][i] = sum = p.blocks[a] + p.blocks[b];
    united = shared.loads[from][a] + shared.loads[from][b] - common_columns(columns, work.words, a, b);
    shared.loads[to][i] = united;
  }
  if (2 * size == work.group) {
    add_by_warp(united, &shared.matched_loads);
    raise_by_warp(sum, &shared.costs.longest[kMatched]);
  }
  __syncthreads();
}

// One CTA, for one chunk of at most kFewRows rows with kFewWords words.
__global__ void __launch_bounds__(kPairThreads) match_few(Work work, int levels) {
  extern __shared__ __align__(16) uint32_t memory[];
  FewRows& shared = *reinterpret_cast<FewRows*>(memory);
  uint32_t* columns = memory + sizeof(FewRows) / sizeof(uint32_t);
  uint32_t* next = columns + work.words * kFewRows;
  start_dependent();
  work.costs = &shared.costs;
  read_rows(work, shared, columns);
  add_natural_costs(work, shared, columns);
  __syncthreads();
  for (int level = 0; level < levels; ++level) {
    pair_up_few(work, level, shared, columns, next);
    uint32_t* const done = columns;
    columns = next;
    next = done;
  }
  const int32_t place = threadIdx.x;
  if (place == 0) {
    shared.costs.loads[kNatural] = shared.natural_loads;
    shared.costs.loads[kMatched] = shared.matched_loads;
  }
  __syncthreads();
  if (place < work.padded_rows) write_order(work, shared.rows[levels % 2], place);
}

}  // namespace matching
}  // namespace sparsek::cuda
