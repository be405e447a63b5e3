// SPDX-License-Identifier: Apache-2.0
// Attention of one tile. Its lanes lie along vectors: queries for O and grad_q, keys for grad_k and grad_v. The rows
// that they meet, up to kAttentionRows at once whatever the size of blocks, are copied as numbers of the sums' type.
#pragma once

#include "abi/sum_type.h"
#include "cpu/attention_kernel.h"
#include "cpu/attention_terms.h"
#include "cpu/attention_vectors.h"

namespace sparsek::cpu {
namespace {

constexpr int64_t kPitch = kAttentionLanes;

inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
inline int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

// Rows that a tile meets at once.
struct RowGroup {
  int64_t row[kAttentionRows];
  int64_t count = 0;
  bool partial = false;  // some lanes do not see some of them
};

// A tile's memory. Names are those of a tile of queries; where lanes are keys, the rows are queries.
template <typename S>
struct Memory {
  S *lanes_x, *lanes_y;  // (size, lanes), (size_v, lanes): Q and dO, or K and V, transposed
  S *rows_x, *rows_y;    // (rows, size), (rows, size_v): K and V, or Q and dO
  S *s, *t;              // (rows, lanes): scores, then weights; their gradients
  S *sums_x, *sums_y;    // (size, lanes), (size_v, lanes)
  S *max, *total;        // (lanes)
  S* terms;              // (lanes), of one row
  S *lse, *delta;        // (lanes), or (rows) where lanes are keys

  Memory(void* scratch, const AttentionTile& tile) {
    S* next = static_cast<S*>(scratch);
    const auto take = [&](int64_t rows) {
      S* const own = next;
      next += rows * kPitch;
      return own;
    };
    lanes_x = take(tile.size), lanes_y = take(tile.size_v);
    rows_x = take(tile.size), rows_y = take(tile.size_v);
    s = take(kAttentionRows), t = take(kAttentionRows);
    sums_x = take(tile.size), sums_y = take(tile.size_v);
    max = take(1), total = take(1), lse = take(1), delta = take(1), terms = take(1);
  }
};

template <typename S>
void fill(S* p, int64_t count, S value) {
  for (int64_t i = 0; i < count; ++i) p[i] = value;
}

template <typename S>
int64_t whole_vectors(const AttentionTile& tile) {
  const int64_t lanes = tile.lane_end - tile.lane;
  return (lanes + kWidth<S> - 1) / kWidth<S> * kWidth<S>;
}

template <typename T, typename S>
void load_lanes(const HeadRows& from, const AttentionTile& tile, int64_t size, S* to) {
  fill<S>(to, size * kPitch, 0);
  for (int64_t i = tile.lane; i < tile.lane_end; ++i) {
    const T* const row = static_cast<const T*>(from.data) + i * from.stride;
    for (int64_t d = 0; d < size; ++d) to[d * kPitch + i - tile.lane] = widen(row[d]);
  }
}

// Whether there is a row, which may be of a page that is none of the cache.
inline bool has_row(const HeadRows& from, int64_t row) {
  const HeadPages& pages = from.pages;
  if (pages.table == nullptr) return true;
  const int32_t page = pages.table[row / pages.rows];
  return page >= 0 && page < pages.count;
}

template <typename T>
const T* row_at(const HeadRows& from, int64_t row) {
  const HeadPages& pages = from.pages;
  const T* const first = static_cast<const T*>(from.data);
  if (pages.table == nullptr) return first + row * from.stride;
  return first + pages.table[row / pages.rows] * pages.stride + row % pages.rows * from.stride;
}

template <typename T, typename S>
void load_rows(const HeadRows& from, const RowGroup& group, int64_t size, S* to) {
  for (int64_t r = 0; r < group.count; ++r) {
    const T* const row = row_at<T>(from, group.row[r]);
    for (int64_t d = 0; d < size; ++d) to[r * size + d] = widen(row[d]);
  }
}

// factors: (lanes), or null: 1.
template <typename T, typename S>
void store_lanes(const S* sums, int64_t size, const AttentionTile& tile, S factor, const S* factors,
                 const HeadOutput& to) {
  for (int64_t i = tile.lane; i < tile.pad_end; ++i) {
    T* const row = static_cast<T*>(to.data) + i * to.stride;
    const int64_t lane = i - tile.lane;
    const S own = i < tile.lane_end ? (factors == nullptr ? factor : factors[lane]) : 0;
    for (int64_t d = 0; d < size; ++d) narrow(own == 0 ? 0 : sums[d * kPitch + lane] * own, row + d);
  }
}

// Calls visit(group) for all rows that the tile meets, in ascending order.
template <bool kLanesAreKeys, typename Visit>
void walk(const AttentionTile& tile, Visit visit) {
  const int64_t block = kLanesAreKeys ? tile.block_q : tile.block_k;
  const int64_t length = kLanesAreKeys ? tile.length_q : tile.length_k;
  if (tile.lane_end <= tile.lane) return;
  RowGroup group;
  for (int64_t e = 0; e < tile.block_count; ++e) {
    const int64_t begin = tile.blocks[e] * block, end = least(begin + block, length);
    if (begin >= end) continue;
    const int64_t first = kLanesAreKeys ? tile.lane - (end - 1) : begin - (tile.lane_end - 1);  // the least key - query
    const int64_t last = kLanesAreKeys ? tile.lane_end - 1 - begin : end - 1 - tile.lane;
    if (last < tile.low || first > tile.high) continue;
    const bool partial = first < tile.low || last > tile.high;
    for (int64_t row = begin; row < end; ++row) {
      if (!kLanesAreKeys && !has_row(tile.k, row)) continue;
      group.row[group.count++] = row;
      group.partial = group.partial || partial;
      if (group.count < kAttentionRows) continue;
      visit(group);
      group.count = 0;
      group.partial = false;
    }
  }
  if (group.count > 0) visit(group);
}

// Which lanes a row meets, of a group that is partial.
template <typename S, bool kLanesAreKeys>
struct LaneRange {
  int64_t first, last;
  LaneRange(const AttentionTile& tile, int64_t row) {
    first = (kLanesAreKeys ? row + tile.low : row - tile.high) - tile.lane;
    last = (kLanesAreKeys ? row + tile.high : row - tile.low) - tile.lane;
    first = most(0, least(first, kAttentionLanes));
    last = most(-1, least(last, kAttentionLanes - 1));
  }
  // All bits of the lanes from `lane` on that are in the range.
  BitVector<S> mask(int64_t lane) const {
    using Bit = typename VectorOf<S>::Bit;
    BitVector<S> at;
    for (int i = 0; i < kWidth<S>; ++i) at[i] = static_cast<Bit>(lane + i);
    return (at >= static_cast<Bit>(first)) & (at <= static_cast<Bit>(last));
  }
};

// Scores of scale * <q, k>, capped.
template <typename S>
Vector<S> score(Vector<S> product, S scale, S cap) {
  const Vector<S> x = product * scale;
  return cap > 0 ? cap * tanh_of<S>(x / cap) : x;
}

// s (rows, lanes) = scores without their terms, -Inf where the rules hide them.
template <typename T, typename S, bool kLanesAreKeys>
void find_scores(const AttentionTile& tile, const RowGroup& group, const Memory<S>& m) {
  load_rows<T>(kLanesAreKeys ? tile.q : tile.k, group, tile.size, m.rows_x);
  const int64_t lanes = whole_vectors<S>(tile);
  fill<S>(m.s, group.count * kPitch, 0);
  add_product<S>(m.rows_x, tile.size, 1, group.count, m.lanes_x, m.s, kPitch, tile.size, lanes);
  const S scale = static_cast<S>(tile.scale), cap = static_cast<S>(tile.soft_cap);
  for (int64_t r = 0; r < group.count; ++r) {
    const LaneRange<S, kLanesAreKeys> seen(tile, group.row[r]);
    for (int64_t l = 0; l < lanes; l += kWidth<S>) {
      Vector<S>& at = vector_at(m.s + r * kPitch + l);
      const Vector<S> x = score<S>(at, scale, cap);
      at = group.partial ? (seen.mask(l) ? x : splat<S>(-kInfinity<S>)) : x;
    }
  }
}

// Adds their terms to the scores.
template <typename T, typename S>
void add_terms(const AttentionTile& tile, const RowGroup& group, const Memory<S>& m) {
  if (!has_terms(tile.terms)) return;
  for (int64_t r = 0; r < group.count; ++r) {
    load_terms<T, S, false>(tile, group.row[r], m.terms);
    for (int64_t l = 0; l < whole_vectors<S>(tile); l += kWidth<S>) {
      vector_at(m.s + r * kPitch + l) += vector_at(m.terms + l);
    }
  }
}

// Scores of a group become weights, relative to the greatest score so far; what was summed before is scaled to it.
template <typename S>
void weigh(const AttentionTile& tile, const RowGroup& group, const Memory<S>& m) {
  for (int64_t l = 0; l < whole_vectors<S>(tile); l += kWidth<S>) {
    const Vector<S> before = vector_at(m.max + l);
    Vector<S> max = before;
    for (int64_t r = 0; r < group.count; ++r) {
      const Vector<S> x = vector_at(m.s + r * kPitch + l);
      max = x > max ? x : max;
    }
    const Vector<S> finite = max == -kInfinity<S> ? Vector<S>{} : max;
    const Vector<S> factor = exp_of<S>(before - finite);
    Vector<S> total = vector_at(m.total + l) * factor;
    for (int64_t r = 0; r < group.count; ++r) {
      Vector<S>& at = vector_at(m.s + r * kPitch + l);
      at = exp_of<S>(at - finite);
      total += at;
    }
    vector_at(m.max + l) = max;
    vector_at(m.total + l) = total;
    for (int64_t d = 0; d < tile.size_v; ++d) vector_at(m.sums_y + d * kPitch + l) *= factor;
  }
}

// Out: the type of O.
template <typename T, typename Out = T>
void forward_tile(const AttentionTile& tile, void* scratch) {
  using S = Sum<T>;
  const Memory<S> m(scratch, tile);
  load_lanes<T>(tile.q, tile, tile.size, m.lanes_x);
  fill<S>(m.sums_y, tile.size_v * kPitch, 0);
  fill<S>(m.max, kPitch, -kInfinity<S>);
  fill<S>(m.total, kPitch, 0);
  walk<false>(tile, [&](const RowGroup& group) {
    find_scores<T, S, false>(tile, group, m);
    add_terms<Out, S>(tile, group, m);
    weigh<S>(tile, group, m);
    load_rows<T>(tile.v, group, tile.size_v, m.rows_y);
    add_product<S>(m.rows_y, 1, tile.size_v, tile.size_v, m.s, m.sums_y, kPitch, group.count, whole_vectors<S>(tile));
  });
  S* const lse = static_cast<S*>(tile.lse);
  for (int64_t i = tile.lane; i < tile.pad_end; ++i) {
    const int64_t lane = i - tile.lane;
    const bool empty = i >= tile.lane_end || m.total[lane] == 0;
    if (lse != nullptr) lse[i] = empty ? -kInfinity<S> : m.max[lane] + static_cast<S>(__builtin_log(m.total[lane]));
    m.total[lane] = empty ? 0 : static_cast<S>(tile.scale_v) / m.total[lane];
  }
  store_lanes<Out, S>(m.sums_y, tile.size_v, tile, 1, m.total, tile.out_o);
}

template <typename T>
void delta_tile(const AttentionTile& tile, void*) {
  using S = Sum<T>;
  for (int64_t i = tile.lane; i < tile.lane_end; ++i) {
    const T* const o = static_cast<const T*>(tile.o.data) + i * tile.o.stride;
    const T* const grad_o = static_cast<const T*>(tile.grad_o.data) + i * tile.grad_o.stride;
    S sum = 0;
    for (int64_t d = 0; d < tile.size_v; ++d) sum += static_cast<S>(widen(o[d])) * static_cast<S>(widen(grad_o[d]));
    static_cast<S*>(tile.delta)[i] = sum;
  }
}

// LSE and delta of a query. One that sees no key has +Inf for its LSE, so that its weights are 0.
template <typename S>
void load_query(const AttentionTile& tile, int64_t query, int64_t at, const Memory<S>& m) {
  const S lse = static_cast<const S*>(tile.lse)[query];
  m.lse[at] = lse == -kInfinity<S> ? kInfinity<S> : lse;
  m.delta[at] = static_cast<const S*>(tile.delta)[query];
}

// The gradients of what is added to the scores of a key, which are the columns of a row of lanes.
template <typename S>
void store_grad_bias(const AttentionTile& tile, int64_t key, const S* from) {
  for (int64_t i = tile.lane; i < tile.lane_end; ++i) {
    static_cast<S*>(tile.grad_bias)[i * tile.seq_k + key] = from[i - tile.lane];
  }
}

// s (rows, lanes) = weights P, and t = dS = P (dP - delta), times the derivative of the soft cap.
template <typename T, typename S, bool kLanesAreKeys>
void find_gradients(const AttentionTile& tile, const RowGroup& group, const Memory<S>& m) {
  find_scores<T, S, kLanesAreKeys>(tile, group, m);
  load_rows<T>(kLanesAreKeys ? tile.grad_o : tile.v, group, tile.size_v, m.rows_y);
  const int64_t lanes = whole_vectors<S>(tile);
  fill<S>(m.t, group.count * kPitch, 0);
  add_product<S>(m.rows_y, tile.size_v, 1, group.count, m.lanes_y, m.t, kPitch, tile.size_v, lanes);
  const S cap = static_cast<S>(tile.soft_cap);
  for (int64_t r = 0; r < group.count; ++r) {
    if (kLanesAreKeys) load_query<S>(tile, group.row[r], r, m);
    const bool with_terms = has_terms(tile.terms);
    if (with_terms) load_terms<T, S, kLanesAreKeys>(tile, group.row[r], m.terms);
    for (int64_t l = 0; l < lanes; l += kWidth<S>) {
      Vector<S>& s = vector_at(m.s + r * kPitch + l);
      Vector<S>& t = vector_at(m.t + r * kPitch + l);
      const Vector<S> lse = kLanesAreKeys ? splat<S>(m.lse[r]) : vector_at(m.lse + l);
      const Vector<S> delta = kLanesAreKeys ? splat<S>(m.delta[r]) : vector_at(m.delta + l);
      const Vector<S> weight = exp_of<S>((with_terms ? s + vector_at(m.terms + l) : s) - lse);
      Vector<S> gradient = weight * (t - delta);
      if (tile.grad_bias != nullptr) vector_at(m.terms + l) = gradient;
      if (cap > 0) {
        const Vector<S> tanh = s / cap;
        // Where a score is -Inf, the weight is 0.
        gradient = weight == 0 ? Vector<S>{} : gradient * (1 - tanh * tanh);
      }
      s = weight;
      t = gradient;
    }
    if (!kLanesAreKeys && tile.grad_bias != nullptr) store_grad_bias<S>(tile, group.row[r], m.terms);
  }
}

template <typename T>
void mass_tile(const AttentionTile& tile, void* scratch) {
  using S = Sum<T>;
  const Memory<S> m(scratch, tile);
  load_lanes<T>(tile.q, tile, tile.size, m.lanes_x);
  fill<S>(m.lse, kPitch, kInfinity<S>);
  for (int64_t i = tile.lane; i < tile.lane_end; ++i) {
    const S lse = static_cast<const S*>(tile.lse)[i];
    if (lse != -kInfinity<S>) m.lse[i - tile.lane] = lse;
  }
  walk<false>(tile, [&](const RowGroup& group) {
    find_scores<T, S, false>(tile, group, m);
    add_terms<T, S>(tile, group, m);
    for (int64_t r = 0; r < group.count; ++r) {
      S sum = 0;
      for (int64_t l = 0; l < whole_vectors<S>(tile); l += kWidth<S>) {
        const Vector<S> weight = exp_of<S>(vector_at(m.s + r * kPitch + l) - vector_at(m.lse + l));
        for (int i = 0; i < kWidth<S>; ++i) sum += weight[i];
      }
      static_cast<S*>(tile.mass)[group.row[r] / tile.block_k] += sum;
    }
  });
}

template <typename T>
void queries_tile(const AttentionTile& tile, void* scratch) {
  using S = Sum<T>;
  const Memory<S> m(scratch, tile);
  load_lanes<T>(tile.q, tile, tile.size, m.lanes_x);
  load_lanes<T>(tile.grad_o, tile, tile.size_v, m.lanes_y);
  fill<S>(m.lse, kPitch, 0);
  fill<S>(m.delta, kPitch, 0);
  for (int64_t i = tile.lane; i < tile.lane_end; ++i) load_query<S>(tile, i, i - tile.lane, m);
  fill<S>(m.sums_x, tile.size * kPitch, 0);
  for (int64_t i = tile.lane; i < tile.pad_end && tile.grad_bias != nullptr; ++i) {
    fill<S>(static_cast<S*>(tile.grad_bias) + i * tile.seq_k, tile.seq_k, 0);
  }
  walk<false>(tile, [&](const RowGroup& group) {
    find_gradients<T, S, false>(tile, group, m);
    add_product<S>(m.rows_x, 1, tile.size, tile.size, m.t, m.sums_x, kPitch, group.count, whole_vectors<S>(tile));
  });
  if (tile.grad_q.data == nullptr) return;
  store_lanes<T, S>(m.sums_x, tile.size, tile, static_cast<S>(tile.scale), nullptr, tile.grad_q);
}

template <typename T>
void keys_tile(const AttentionTile& tile, void* scratch) {
  using S = Sum<T>;
  const Memory<S> m(scratch, tile);
  if (tile.first) {
    load_lanes<T>(tile.k, tile, tile.size, m.lanes_x);
    load_lanes<T>(tile.v, tile, tile.size_v, m.lanes_y);
    fill<S>(m.sums_x, tile.size * kPitch, 0);
    fill<S>(m.sums_y, tile.size_v * kPitch, 0);
  }
  walk<true>(tile, [&](const RowGroup& group) {
    find_gradients<T, S, true>(tile, group, m);
    const int64_t lanes = whole_vectors<S>(tile);
    add_product<S>(m.rows_y, 1, tile.size_v, tile.size_v, m.s, m.sums_y, kPitch, group.count, lanes);
    add_product<S>(m.rows_x, 1, tile.size, tile.size, m.t, m.sums_x, kPitch, group.count, lanes);
  });
  if (!tile.last) return;
  if (tile.grad_k.data != nullptr) {
    store_lanes<T, S>(m.sums_x, tile.size, tile, static_cast<S>(tile.scale), nullptr, tile.grad_k);
  }
  if (tile.grad_v.data != nullptr) store_lanes<T, S>(m.sums_y, tile.size_v, tile, 1, nullptr, tile.grad_v);
}

template <typename T>
constexpr AttentionFunctions functions() {
  return {forward_tile<T>, mass_tile<T>, delta_tile<T>, queries_tile<T>, keys_tile<T>};
}

constexpr AttentionKernel all_functions() {
  return {functions<Bf16>(),
          functions<Fp16>(),
          functions<float>(),
          functions<double>(),
          {forward_tile<E4m3, Bf16>, nullptr, nullptr, nullptr, nullptr},
          {forward_tile<E4m3, Fp16>, nullptr, nullptr, nullptr, nullptr}};
}

}  // namespace
}  // namespace sparsek::cpu
