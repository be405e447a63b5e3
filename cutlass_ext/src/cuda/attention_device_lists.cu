// SPDX-License-Identifier: Apache-2.0
#include "cuda/attention_device_lists.h"

#include <algorithm>
#include <cinttypes>

#include "abi/error.h"
#include "cuda/dependent_launch.cuh"
#include "cuda/launch_dependent.h"
#include "plan/attention_units.h"

namespace sparsek::cuda {
// Named, since the symbols of kernels in an unnamed namespace depend on the path of the checkout.
namespace attention_lists {

constexpr int kWarp = 32, kThreads = 256, kOrderThreads = 128;
constexpr int64_t kMostCtas = 132 * 16;
constexpr unsigned kAll = ~0u;

// Blocks of a block row.
struct Blocks {
  int32_t begin, end;
};

// Those that 64 queries have. None where there are no such queries.
__device__ Blocks blocks_of(const LayoutView& layout, int32_t layout_head, int32_t unit_q) {
  if (unit_q * kAttentionUnit >= layout.rules.seq_q) return {0, 0};
  const int32_t* const at = layout.index.row_ptr + layout_head * layout.query_blocks + unit_q / layout.per_q;
  return {at[0], at[1]};
}

// The first of the blocks whose column is not below `col`.
__device__ int32_t lower_bound(const int32_t* col_idx, Blocks blocks, int32_t col) {
  while (blocks.begin < blocks.end) {
    const int32_t middle = blocks.begin + (blocks.end - blocks.begin) / 2;
    if (col_idx[middle] < col) {
      blocks.begin = middle + 1;
    } else {
      blocks.end = middle;
    }
  }
  return blocks.begin;
}

__device__ bool has_at(const int32_t* col_idx, Blocks blocks, int32_t at, int32_t col) {
  return at < blocks.end && col_idx[at] == col;
}

// The word of a unit, 0 where neither warpgroup uses it.
__device__ uint32_t word_of(int32_t unit, UnitCover first, UnitCover second) {
  uint32_t word = 0;
  if (first != UnitCover::kNone) word |= kFirstUses;
  if (second != UnitCover::kNone) word |= kSecondUses;
  if (word == 0) return 0;
  if (first == UnitCover::kPartial || second == UnitCover::kPartial) word |= kPartialUnit;
  return word | static_cast<uint32_t>(unit);
}

// Calls take(word) of all lanes of a warp, for the units of keys that a tile of queries meets: those of both, and those
// of one warpgroup alone, are in ascending order.
template <class Take>
__device__ void meet_keys(const LayoutView& layout, int32_t layout_head, int32_t tile, Take& take) {
  const int lane = threadIdx.x % kWarp;
  const int32_t* const col_idx = layout.index.col_idx;
  const Blocks blocks[2] = {blocks_of(layout, layout_head, 2 * tile), blocks_of(layout, layout_head, 2 * tile + 1)};
  const bool same = blocks[0].begin == blocks[1].begin && blocks[0].end == blocks[1].end;
  for (int g = 0; g < (same ? 1 : 2); ++g) {
    const int32_t units = (blocks[g].end - blocks[g].begin) * layout.per_k;
    for (int32_t base = 0; base < units; base += kWarp) {
      const int32_t at = base + lane;
      uint32_t word = 0;
      if (at < units) {
        const int32_t col = col_idx[blocks[g].begin + at / layout.per_k], unit = col * layout.per_k + at % layout.per_k;
        const Blocks& others = blocks[1 - g];
        const bool shared = same || has_at(col_idx, others, lower_bound(col_idx, others, col), col);
        UnitCover seen[2];
        seen[g] = unit_cover(layout.rules, 2 * tile + g, unit);
        seen[1 - g] = shared ? unit_cover(layout.rules, 2 * tile + 1 - g, unit) : UnitCover::kNone;
        // Of different block rows, the first's blocks are met before those that the second has alone.
        const bool is_met_there = !same && (g == 0 ? seen[0] == UnitCover::kNone : seen[0] != UnitCover::kNone);
        if (!is_met_there) word = word_of(unit, seen[0], seen[1]);
      }
      take(word);
    }
  }
}

// Which layout head a query head among those of a list of keys has.
struct KeyLists {
  int32_t lists, tiles, group;
  int32_t lists_of_batch, layout_heads, sharing;  // `sharing` consecutive query heads have a layout head

  __device__ int32_t layout_head(int32_t list, int32_t head) const {
    return list / lists_of_batch * layout_heads + (list % lists_of_batch * group + head) / sharing;
  }
};

// Calls take(word, head) of all lanes of a warp, for the units of queries that a tile of keys meets, head by head. Each
// head has so many pieces of a unit for each lane, of which this takes those from first to last.
template <class Take>
__device__ void meet_queries(const LayoutView& layout, const KeyLists& keys, int32_t list, int32_t tile, int32_t pieces,
                             int32_t first, int32_t last, Take& take) {
  const int32_t* const col_idx = layout.index.col_idx;
  const int32_t cols[2] = {2 * tile / layout.per_k, (2 * tile + 1) / layout.per_k};
  for (int32_t piece = first; piece < last; ++piece) {
    const int32_t head = piece / pieces, unit = piece % pieces * kWarp + static_cast<int32_t>(threadIdx.x) % kWarp;
    const UnitCover seen[2] = {unit_cover(layout.rules, unit, 2 * tile), unit_cover(layout.rules, unit, 2 * tile + 1)};
    uint32_t word = 0;
    if (seen[0] != UnitCover::kNone || seen[1] != UnitCover::kNone) {
      const Blocks blocks = blocks_of(layout, keys.layout_head(list, head), unit);
      const int32_t at = lower_bound(col_idx, blocks, cols[0]);
      const bool has_first = has_at(col_idx, blocks, at, cols[0]);
      const bool has_second =
          cols[1] == cols[0] ? has_first : has_at(col_idx, blocks, at + (has_first ? 1 : 0), cols[1]);
      word = word_of(unit, has_first ? seen[0] : UnitCover::kNone, has_second ? seen[1] : UnitCover::kNone);
    }
    take(word, head);
  }
}

// Which lanes have a unit of both, and of one alone.
struct Lanes {
  unsigned both, alone[2];

  __device__ explicit Lanes(uint32_t word) {
    const uint32_t uses = word & kEitherUses;
    both = __ballot_sync(kAll, uses == kEitherUses);
    alone[0] = __ballot_sync(kAll, uses == kFirstUses);
    alone[1] = __ballot_sync(kAll, uses == kSecondUses);
  }
};

__device__ void add(UnitCounts& to, const UnitCounts& more) {
  to.both += more.both;
  to.alone[0] += more.alone[0];
  to.alone[1] += more.alone[1];
}

struct Count {
  UnitCounts counts = {};

  __device__ void operator()(uint32_t word, int32_t /*head*/ = 0) {
    const Lanes lanes(word);
    add(counts, {__popc(lanes.both), {__popc(lanes.alone[0]), __popc(lanes.alone[1])}});
  }
};

// Calls write(word, kind, i) for each unit: kind 2 is of both, 0 and 1 of that warpgroup alone, of which it is the
// i-th.
template <class Write>
struct Place {
  Write write;
  UnitCounts seen;  // before

  __device__ void operator()(uint32_t word, int32_t head = 0) {
    const Lanes lanes(word);
    const unsigned before = (1u << (threadIdx.x % kWarp)) - 1;
    const uint32_t uses = word & kEitherUses;
    if (uses == kEitherUses) write(word, head, 2, seen.both + __popc(lanes.both & before));
    if (uses == kFirstUses) write(word, head, 0, seen.alone[0] + __popc(lanes.alone[0] & before));
    if (uses == kSecondUses) write(word, head, 1, seen.alone[1] + __popc(lanes.alone[1] & before));
    add(seen, {__popc(lanes.both), {__popc(lanes.alone[0]), __popc(lanes.alone[1])}});
  }
};

struct WriteForward {
  AttentionStep* steps;
  ForwardPlaces places;

  __device__ void operator()(uint32_t word, int32_t /*head*/, int kind, int32_t i) const {
    const StepPlace at = kind == 2 ? places.both(i) : places.alone(kind, i);
    steps[at.step].unit[at.unit] = word;
  }
};

struct WriteGradient {
  AttentionStep* steps;
  GradientPlaces places;

  __device__ void operator()(uint32_t word, int32_t head, int kind, int32_t i) const {
    steps[kind == 2 ? i : places.alone(kind, i)] = {{word, static_cast<uint32_t>(head)}};
  }
};

// How many units the tiles before one meet, at most: what their block rows have. Where a block row has whole tiles,
// both warpgroups of a tile have the same blocks.
__device__ int32_t units_before(const LayoutView& layout, int32_t layout_head, int32_t tile) {
  const bool whole = layout.per_q % 2 == 0;
  const int32_t parts = whole ? layout.per_q / 2 : layout.per_q, part = whole ? tile : 2 * tile;
  const int32_t* const at = layout.index.row_ptr + layout_head * layout.query_blocks + part / parts;
  return (at[0] * parts + part % parts * (at[1] - at[0])) * layout.per_k;
}

// Steps of tiles of queries. A warp a tile.
template <bool Forward>
__global__ void __launch_bounds__(kThreads) list_keys(LayoutView layout, int32_t lists, int32_t tiles, ListArrays to) {
  start_dependent();
  const bool good = is_good(layout.index);
  const int lane = threadIdx.x % kWarp;
  const int32_t warps = gridDim.x * (kThreads / kWarp);
  for (int32_t at = (blockIdx.x * kThreads + threadIdx.x) / kWarp; at < lists * tiles; at += warps) {
    if (!good) {
      if (lane == 0) to.ranges[at] = {0, 0};
      continue;
    }
    const int32_t layout_head = at / tiles, tile = at % tiles;
    Count count;
    meet_keys(layout, layout_head, tile, count);
    const UnitCounts& counts = count.counts;
    const int32_t before = units_before(layout, layout_head, tile);
    if constexpr (Forward) {
      AttentionStep* const steps = to.steps + before / 2 + at;
      const ForwardPlaces places{counts};
      if (lane == 0) to.ranges[at] = {before / 2 + at, places.steps_of(counts.words())};
      if (lane == 0 && counts.words() % 2 != 0) steps[places.half_step()].unit[1] = 0;
      Place<WriteForward> place{{steps, places}, {}};
      meet_keys(layout, layout_head, tile, place);
    } else {
      if (lane == 0) to.ranges[at] = {before, counts.words()};
      Place<WriteGradient> place{{to.steps + before, {counts}}, {}};
      meet_keys(layout, layout_head, tile, place);
    }
  }
}

// Steps of tiles of keys: the units of both come first, head by head; behind them those of one alone take turns, in the
// order of heads. A CTA a tile, whose warps have as many pieces of its units each, one after the other. Where the steps
// of a tile lie depends on which CTA comes first; nothing else does.
__global__ void __launch_bounds__(kThreads) list_queries(LayoutView layout, KeyLists keys, ListArrays to) {
  constexpr int kWarps = kThreads / kWarp;
  __shared__ UnitCounts of_warp[kWarps];
  __shared__ int32_t begin;
  start_dependent();
  const bool good = is_good(layout.index);
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int32_t pieces = (layout.rules.seq_q + kAttentionUnit * kWarp - 1) / (kAttentionUnit * kWarp);
  const int32_t all_pieces = good ? pieces * keys.group : 0, each = (all_pieces + kWarps - 1) / kWarps;
  const int32_t first = min(warp * each, all_pieces), last = min(first + each, all_pieces);
  for (int32_t at = static_cast<int32_t>(blockIdx.x); at < keys.lists * keys.tiles;
       at += static_cast<int32_t>(gridDim.x)) {
    Count count;
    meet_queries(layout, keys, at / keys.tiles, at % keys.tiles, pieces, first, last, count);
    __syncthreads();
    if (threadIdx.x % kWarp == 0) of_warp[warp] = count.counts;
    __syncthreads();
    UnitCounts all = {}, before = {};
    for (int w = 0; w < kWarps; ++w) {
      if (w == warp) before = all;
      add(all, of_warp[w]);
    }
    if (threadIdx.x == 0) {
      begin = atomicAdd(to.taken, all.words());
      to.ranges[at] = {begin, all.words()};
    }
    __syncthreads();
    Place<WriteGradient> place{{to.steps + begin, {all}}, before};
    if (all.words() > 0) meet_queries(layout, keys, at / keys.tiles, at % keys.tiles, pieces, first, last, place);
  }
}

// The tiles of heads that are computed at the same time, the longest first, of equal ones those of lower heads and then
// lower tiles. A thread counts what comes before its tile.
__global__ void __launch_bounds__(kOrderThreads) order_tiles(HeadOrder order, ListArrays to) {
  __shared__ __align__(16) int32_t counts[kOrderThreads];
  start_dependent();
  const int32_t of_group = order.at_once * order.tiles_of_head, parts = (of_group + kOrderThreads - 1) / kOrderThreads;
  const int32_t first_head = static_cast<int32_t>(blockIdx.x) / parts * order.at_once;
  const int32_t tiles = min(order.heads - first_head, order.at_once) * order.tiles_of_head;
  const int32_t here = static_cast<int32_t>(blockIdx.x) % parts * kOrderThreads;
  const int32_t mine = here + static_cast<int32_t>(threadIdx.x);
  const auto range_of = [&](int32_t tile) {
    const int32_t list = order.list_of(first_head + tile / order.tiles_of_head);
    return to.ranges[list * order.tiles_of_head + tile % order.tiles_of_head];
  };
  const StepRange range = mine < tiles ? range_of(mine) : StepRange{0, 0};
  int32_t place = 0;
  for (int32_t base = 0; base < tiles; base += kOrderThreads) {
    const int32_t other = base + static_cast<int32_t>(threadIdx.x);
    __syncthreads();
    counts[threadIdx.x] = other < tiles ? range_of(other).count : -1;
    __syncthreads();
    if (base == here) {
      for (int32_t i = 0; i < kOrderThreads; ++i) {
        place += counts[i] > range.count || (counts[i] == range.count && base + i < mine) ? 1 : 0;
      }
      continue;
    }
    const int32_t below = base < here ? range.count - 1 : range.count;  // of equal ones the first come first
#pragma unroll 8
    for (int32_t i = 0; i < kOrderThreads; i += 4) {
      const int4 four = *reinterpret_cast<const int4*>(counts + i);
      place += (four.x > below) + (four.y > below) + (four.z > below) + (four.w > below);
    }
  }
  if (mine >= tiles) return;
  to.tiles[int64_t{first_head} * order.tiles_of_head + place] = {
      mine % order.tiles_of_head, first_head + mine / order.tiles_of_head, range.begin, range.count};
}

unsigned ctas_for(int64_t warps) {
  constexpr int64_t kWarps = kThreads / kWarp;
  return static_cast<unsigned>(std::clamp<int64_t>((warps + kWarps - 1) / kWarps, 1, kMostCtas));
}

void enqueue_order(const HeadOrder& order, const ListArrays& to, cudaStream_t stream) {
  const int64_t groups = (int64_t{order.heads} + order.at_once - 1) / order.at_once;
  const int64_t parts = (int64_t{order.at_once} * order.tiles_of_head + kOrderThreads - 1) / kOrderThreads;
  launch_dependent("order of attention's tiles", order_tiles, dim3(static_cast<unsigned>(groups * parts)),
                   kOrderThreads, 0, stream, order, to);
}

int32_t tiles_of(int64_t rows) { return static_cast<int32_t>((rows + kAttentionTile - 1) / kAttentionTile); }

int32_t within_int32(int64_t count) {
  if (count > INT32_MAX / 2) {
    fail(SPARSEK_BAD_SIZE,
         "lists for %" PRId64 " units of 64 x 64 are beyond int32: let heads share a layout, or say a lower nnzb",
         count);
  }
  return static_cast<int32_t>(count);
}

}  // namespace attention_lists

ListLayout::ListLayout(int64_t steps, int64_t ranges, int64_t tiles, Layout& layout)
    : steps_(layout.place<AttentionStep>(static_cast<size_t>(steps))),
      ranges_(layout.place<StepRange>(static_cast<size_t>(ranges))),
      tiles_(layout.place<WorkTile>(static_cast<size_t>(tiles))),
      taken_(layout.place<int32_t>(1)) {}

ListArrays ListLayout::within(std::byte* memory) const {
  return {reinterpret_cast<AttentionStep*>(memory + steps_), reinterpret_cast<StepRange*>(memory + ranges_),
          reinterpret_cast<WorkTile*>(memory + tiles_), reinterpret_cast<int32_t*>(memory + taken_)};
}

DeviceLists::DeviceLists(const AttentionShape& shape, int64_t nnzb, int64_t l2_bytes) {
  namespace k = attention_lists;
  constexpr int64_t kFar = 1 << 29;  // beyond all differences of positions
  const auto narrow = [](int64_t value) { return static_cast<int32_t>(value); };
  const AttentionBand band = shape.band(shape.seq_q, shape.seq_k);
  view_ = {};
  view_.query_blocks = narrow(shape.query_blocks());
  view_.per_q = narrow(shape.block_q / kAttentionUnit);
  view_.per_k = narrow(shape.block_k / kAttentionUnit);
  view_.rules = {narrow(shape.seq_q), narrow(shape.seq_k), narrow(std::clamp(band.low, -kFar, kFar)),
                 narrow(std::clamp(band.high, -kFar, kFar))};
  group_ = narrow(shape.heads_q / shape.heads_k);
  layout_heads_ = narrow(shape.layout_heads);
  layout_sharing_ = narrow(shape.heads_q / shape.layout_heads);

  const int32_t heads_k = narrow(shape.heads_k), key_lists = layout_heads_ == 1 ? 1 : heads_k;
  const bool per_batch = shape.layout_batch != 1;
  const auto at_once = [&](int64_t heads, int64_t rows, int64_t sharing) {
    return narrow(std::clamp<int64_t>(heads_at_once(shape, rows, sharing, l2_bytes), 1, std::max<int64_t>(heads, 1)));
  };
  const int64_t heads_q = shape.batch * shape.heads_q, all_keys = shape.batch * shape.heads_k;
  queries_ = {narrow(heads_q),
              k::tiles_of(shape.seq_q),
              at_once(heads_q, shape.seq_k, group_),
              narrow(shape.heads_q),
              layout_heads_,
              layout_sharing_,
              per_batch};
  keys_ = {narrow(all_keys),
           k::tiles_of(shape.seq_k),
           at_once(all_keys, shape.seq_q * group_, 1),
           heads_k,
           key_lists,
           heads_k / key_lists,
           per_batch};
  query_lists_ = k::within_int32(shape.layout_batch * shape.layout_heads);
  key_lists_ = k::within_int32(shape.layout_batch * key_lists);
  k::within_int32(int64_t{queries_.heads} * queries_.tiles_of_head);
  k::within_int32(int64_t{keys_.heads} * keys_.tiles_of_head);

  const int64_t whole = view_.per_q % 2 == 0 ? 2 : 1;
  query_words_ = k::within_int32(nnzb * (view_.per_q / whole) * view_.per_k);
  key_words_ = k::within_int32(nnzb * view_.per_q * view_.per_k * (key_lists == 1 ? group_ : layout_sharing_));

  cudaFuncAttributes attributes;
  check(cudaFuncGetAttributes(&attributes, k::list_keys<true>), "cudaFuncGetAttributes");
  check(cudaFuncGetAttributes(&attributes, k::list_keys<false>), "cudaFuncGetAttributes");
  check(cudaFuncGetAttributes(&attributes, k::list_queries), "cudaFuncGetAttributes");
  check(cudaFuncGetAttributes(&attributes, k::order_tiles), "cudaFuncGetAttributes");
}

ListLayout DeviceLists::forward_layout(Layout& layout) const {
  const int64_t ranges = int64_t{query_lists_} * queries_.tiles_of_head;
  return {query_words_ / 2 + ranges, ranges, query_tiles(), layout};
}

ListLayout DeviceLists::queries_layout(Layout& layout) const {
  return {query_words_, int64_t{query_lists_} * queries_.tiles_of_head, query_tiles(), layout};
}

ListLayout DeviceLists::keys_layout(Layout& layout) const {
  return {key_words_, int64_t{key_lists_} * keys_.tiles_of_head, key_tiles(), layout};
}

void DeviceLists::make_forward(const CheckedIndex& index, const ListArrays& to, cudaStream_t stream) const {
  namespace k = attention_lists;
  if (query_tiles() == 0) return;
  LayoutView layout = view_;
  layout.index = index;
  launch_dependent("steps of attention", k::list_keys<true>,
                   dim3(k::ctas_for(int64_t{query_lists_} * queries_.tiles_of_head)), k::kThreads, 0, stream, layout,
                   query_lists_, queries_.tiles_of_head, to);
  k::enqueue_order(queries_, to, stream);
}

void DeviceLists::make_queries(const CheckedIndex& index, const ListArrays& to, cudaStream_t stream) const {
  namespace k = attention_lists;
  if (query_tiles() == 0) return;
  LayoutView layout = view_;
  layout.index = index;
  launch_dependent("steps of attention's queries", k::list_keys<false>,
                   dim3(k::ctas_for(int64_t{query_lists_} * queries_.tiles_of_head)), k::kThreads, 0, stream, layout,
                   query_lists_, queries_.tiles_of_head, to);
  k::enqueue_order(queries_, to, stream);
}

void DeviceLists::make_keys(const CheckedIndex& index, const ListArrays& to, cudaStream_t stream) const {
  namespace k = attention_lists;
  if (key_tiles() == 0) return;
  LayoutView layout = view_;
  layout.index = index;
  const k::KeyLists lists = {key_lists_,           keys_.tiles_of_head, group_,
                             keys_.lists_of_batch, layout_heads_,       layout_sharing_};
  const int64_t tiles = int64_t{key_lists_} * keys_.tiles_of_head;
  check(cudaMemsetAsync(to.taken, 0, sizeof(*to.taken), stream), "cudaMemsetAsync");
  launch_dependent("steps of attention's keys", k::list_queries,
                   dim3(static_cast<unsigned>(std::min(tiles, k::kMostCtas))), k::kThreads, 0, stream, layout, lists,
                   to);
  k::enqueue_order(keys_, to, stream);
}

}  // namespace sparsek::cuda
