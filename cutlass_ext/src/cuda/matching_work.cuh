// SPDX-License-Identifier: Apache-2.0
// What the kernels of row_matching.cu work on.
#pragma once

#include <cstdint>

#include "cuda/row_pattern.h"
#include "plan/pairing.h"

namespace sparsek::cuda {
// Named, since the symbols of kernels in an unnamed namespace depend on the path of the checkout.
namespace matching {

constexpr int kMostLevels = 9;  // of pairs, then pairs of these, and so on
static_assert(1 << kMostLevels == kMostMatched);
constexpr unsigned kAllLanes = ~0u;

// The orders of the block rows that are compared.
enum Order { kNatural, kByMiddle, kByHash, kMatched, kOrders };

// What they cost. All zero at first.
struct Costs {
  unsigned long long loads[kOrders];        // as RowOrder::loads
  int32_t longest[kOrders];                 // blocks of the longest group
  int32_t longest_neighbours[kMostLevels];  // [l]: blocks of the longest 2 << l neighbours
};

// Rows are matched within chunks of `together` consecutive rows of an order, several chunks at once. A bundle is the
// rows that are together already: 1 << level of them.
struct Work {
  RowPattern pattern;
  int32_t group, padded_rows;
  int32_t together;              // a power of two, and a multiple of group
  int32_t words;                 // of 32 columns
  bool sorted;                   // there are other orders than the natural one before rows are matched
  int32_t batch;                 // chunks at once
  Costs* costs;                  // (1)
  uint32_t* arrived;             // (batch): see is_last_cta
  int32_t *by_middle, *by_hash;  // (block_rows), if sorted
  uint32_t* common;              // (batch, bundles, bundles): columns that two bundles have in common
  uint16_t* partners;            // (batch, bundles, bundles): of each bundle, the best first; then kNobody
  // Of the level, and of the next one. A chunk has together >> level places for bundles.
  uint32_t* columns[2];  // (batch, words, bundles): as ColumnBits
  int32_t* rows[2];      // (chunks, bundles, rows of a bundle)
  int32_t* blocks[2];    // (chunks, bundles): stored blocks
  int32_t* loads[2];     // (chunks, bundles): columns that one of the rows has
  int32_t* order;        // (padded_rows): the result
  int32_t* zero;         // (1)

  __host__ __device__ bool matches() const { return together > group; }
  __host__ __device__ int32_t chunks() const { return (padded_rows + together - 1) / together; }
  __host__ __device__ int32_t rows_of(int32_t chunk) const { return min(together, padded_rows - chunk * together); }
};

// The best of the orders up to `last`, as order_rows chooses it. Past L1, which may hold costs from before they were
// added up.
__device__ inline Order best_order(const Work& work, Order last) {
  const volatile Costs& costs = *work.costs;
  const auto loads_of = [&](int o) { return static_cast<int64_t>(costs.loads[o]); };
  const auto longest_of = [&](int o) { return costs.longest[o]; };
  const int64_t natural = loads_of(kNatural), natural_longest = longest_of(kNatural);
  int best = kNatural;
  int64_t fewest = natural;
  for (int o = kNatural + 1; o <= last; ++o) {
    if (o == kMatched ? !work.matches() : !work.sorted) continue;
    const int64_t loads = loads_of(o);
    if (loads < fewest && is_better_order(loads, longest_of(o), natural, natural_longest)) {
      best = o;
      fewest = loads;
    }
  }
  return static_cast<Order>(best);
}

// The block row at a place of an order that is not kMatched.
__device__ inline int32_t row_at(const Work& work, Order order, int32_t place) {
  if (order == kNatural || place >= work.pattern.block_rows) return place;
  return (order == kByMiddle ? work.by_middle : work.by_hash)[place];
}

// The result at a place, given the rows of the last level: those of a group ascend.
__device__ inline void write_order(const Work& work, const int32_t* matched, int32_t place) {
  if (place == 0) *work.zero = 0;
  if (place >= work.padded_rows) return;
  const Order best = best_order(work, kMatched);
  const auto row_of = [&](int32_t at) { return best == kMatched ? matched[at] : row_at(work, best, at); };
  const int32_t first = place / work.group * work.group, own = row_of(place);
  int32_t rank = 0;
  for (int32_t at = first; at < first + work.group; ++at) rank += row_of(at) < own;
  work.order[first + rank] = own;
}

__device__ inline int64_t most_of_level(const Work& work, int level) {
  return most_blocks(work.costs->longest_neighbours[level]);
}

}  // namespace matching
}  // namespace sparsek::cuda
