// SPDX-License-Identifier: Apache-2.0
// What a lane of the few_columns family computes of a block.
#pragma once

#include "cuda/few_columns_ring.cuh"

namespace sparsek::cuda::few_columns {

// What a lane computes of each block.
template <int kTileM>
struct LaneTile {
  uint32_t rows[kTileM];  // its first element of each, in bytes
  int first_k, steps;     // columns of the block: the first, and of kDepth how often
  uint32_t step_a;        // bytes from one step to the next
  int64_t step_b;
  uint32_t pitch_b;  // bytes from one row of B to the next
  int left;          // columns behind those steps, fewer than kDepth
  int columns;
  bool aligned_b;
  const char* b;   // its first element of B, if the block's first row were row 0
  int last_whole;  // row of B from which on blocks extend beyond K
  uint32_t block_bytes;
};

// Where a lane is among the lanes of a warp.
struct LanePlace {
  int column, depth, row, entry;
  int64_t col;  // of C, its first
  int columns;  // that it computes

  __device__ LanePlace(const LaneLayout& lanes, int lane, int panel, int tile_n, int64_t n) {
    column = lane % lanes.column_lanes;
    lane /= lanes.column_lanes;
    depth = lane % lanes.depth_lanes;
    lane /= lanes.depth_lanes;
    row = lane % lanes.row_lanes;
    entry = lane / lanes.row_lanes;
    col = int64_t(panel) * lanes.columns + column * tile_n;
    columns = entry < lanes.rows * lanes.shares ? int(max(int64_t(0), min(int64_t(tile_n), n - col))) : 0;
  }
};

template <class Element, int kTileM, int kTileN, int kDepth>
__device__ inline LaneTile<kTileM> lane_tile(const LaunchArgs& args, const LaneLayout& lanes, const LanePlace& place) {
  constexpr int kBytes = sizeof(TypeOfA<Element>), kBytesB = sizeof(TypeOfB<Element>);
  LaneTile<kTileM> tile;
#pragma unroll
  for (int t = 0; t < kTileM; ++t) {
    const int in_block = min(place.row + t * lanes.row_lanes, args.block_m - 1);
    tile.rows[t] = (in_block * args.block_k + place.depth * kDepth) * kBytes;
  }
  const int step_k = lanes.depth_lanes * kDepth, whole = args.block_k / kDepth;  // steps of all lanes
  tile.first_k = place.depth * kDepth;
  tile.steps = place.depth < whole ? (whole - place.depth - 1) / lanes.depth_lanes + 1 : 0;
  tile.pitch_b = uint32_t(args.ldb) * kBytesB;
  tile.step_a = step_k * kBytes;
  tile.step_b = int64_t(step_k) * tile.pitch_b;
  tile.columns = place.columns;
  // The columns that are left are those of the lane whose turn it is.
  tile.left = whole % lanes.depth_lanes == place.depth ? args.block_k - whole * kDepth : 0;
  const auto b_address = reinterpret_cast<uintptr_t>(args.b);
  if constexpr (kTileN == 1) {
    tile.aligned_b = kDepth != 3 && args.ldb == 1 && b_address % (kDepth * kBytesB) == 0;
  } else {
    tile.aligned_b = place.columns == kTileN && b_address % (kTileN * kBytesB) == 0 && args.ldb % kTileN == 0;
  }
  tile.b = static_cast<const char*>(args.b) + place.col * kBytesB + int64_t(tile.first_k) * tile.pitch_b;
  tile.last_whole = int(args.cols - args.block_k);
  tile.block_bytes = args.block_m * args.block_k * kBytes;
  return tile;
}

// kDepth rows of B, from the one at `b` on.
template <class Element, int kTileM, int kTileN, int kDepth>
__device__ inline void load_rows(const char* b, const LaneTile<kTileM>& tile, Sum<Element> (&to)[kDepth][kTileN]) {
  const int64_t pitch = tile.pitch_b;
  const auto row = [&](int i) { return reinterpret_cast<const TypeOfB<Element>*>(b + i * pitch); };
  if constexpr (kTileN == 1 && kDepth > 1) {
    if (tile.aligned_b) {
      Sum<Element> loaded[kDepth];
      load<kDepth>(row(0), true, loaded);
#pragma unroll
      for (int i = 0; i < kDepth; ++i) to[i][0] = loaded[i];
      return;
    }
  } else if constexpr (kTileN > 1) {
    if (tile.aligned_b) {
#pragma unroll
      for (int i = 0; i < kDepth; ++i) load<kTileN>(row(i), true, to[i]);
      return;
    }
  }
#pragma unroll
  for (int i = 0; i < kDepth; ++i) {
#pragma unroll
    for (int j = 0; j < kTileN; ++j) to[i][j] = j < tile.columns ? to_float(row(i)[j]) : 0;
  }
}

// kDepth columns of kTileM rows of A times so many rows of B.
template <class Element, int kTileM, int kTileN, int kDepth>
__device__ inline void multiply_rows(uint32_t a, const LaneTile<kTileM>& tile, const Sum<Element> (&b)[kDepth][kTileN],
                                     Sum<Element> (&sums)[kTileM][kTileN]) {
#pragma unroll
  for (int t = 0; t < kTileM; ++t) {
    Sum<Element> a_values[kDepth];
    load_shared<TypeOfA<Element>>(a + tile.rows[t], a_values);
#pragma unroll
    for (int i = 0; i < kDepth; ++i) {
#pragma unroll
      for (int j = 0; j < kTileN; ++j) sums[t][j] = fma(a_values[i], b[i][j], sums[t][j]);
    }
  }
}

// Of kEntries blocks, one after the other: sums of kTileM rows by kTileN columns, which sums_of(i) has for block i. a:
// the blocks in shared memory; b: the lane's first element of B for each.
template <class Element, int kTileM, int kTileN, int kDepth, int kEntries, class Sums>
__device__ inline void multiply_blocks(uint32_t (&a)[kEntries], const char* (&b)[kEntries],
                                       const LaneTile<kTileM>& tile, const Sums& sums_of) {
#pragma unroll 1
  for (int step = 0; step < tile.steps; ++step) {
    Sum<Element> b_values[kEntries][kDepth][kTileN];
#pragma unroll
    for (int u = 0; u < kEntries; ++u) {
      load_rows<Element, kTileM, kTileN, kDepth>(b[u], tile, b_values[u]);
      b[u] += tile.step_b;
    }
#pragma unroll
    for (int u = 0; u < kEntries; ++u) {
      multiply_rows<Element, kTileM, kTileN, kDepth>(a[u], tile, b_values[u], sums_of(u));
      a[u] += tile.step_a;
    }
  }
}

// The same column by column: those from first_k on, before k_count, that this lane has.
template <class Element, int kTileM, int kTileN>
__device__ inline void multiply_columns(uint32_t a, const char* b, int k_count, const LaneTile<kTileM>& tile,
                                        Sum<Element> (&sums)[kTileM][kTileN]) {
#pragma unroll 1
  for (int k = 0; k < k_count; ++k) {
#pragma unroll
    for (int j = 0; j < kTileN; ++j) {
      if (j >= tile.columns) continue;
      const Sum<Element> b_value = to_float(reinterpret_cast<const TypeOfB<Element>*>(b)[j]);
#pragma unroll
      for (int t = 0; t < kTileM; ++t) {
        sums[t][j] = fma(load_one<TypeOfA<Element>>(a + tile.rows[t]), b_value, sums[t][j]);
      }
    }
    a += sizeof(TypeOfA<Element>);
    b += tile.pitch_b;
  }
}

// The block of an entry, which is in the ring.
template <class Element, int kTileM, int kTileN, int kDepth>
__device__ inline void multiply_entry(const LaunchArgs& args, const Ring<TypeOfA<Element>>& ring,
                                      const LaneTile<kTileM>& tile, int e, Sum<Element> (&sums)[kTileM][kTileN]) {
  const int first_row = ring.first_row(args, e);
  uint32_t a[1] = {ring.values + (e & ring.mask) * tile.block_bytes};
  const char* b[1] = {tile.b + uint64_t(uint32_t(first_row)) * tile.pitch_b};
  if (first_row <= tile.last_whole) {
    multiply_blocks<Element, kTileM, kTileN, kDepth, 1>(a, b, tile, [&](int) -> auto& { return sums; });
    if (tile.left > 0) multiply_columns<Element>(a[0], b[0], tile.left, tile, sums);
  } else if (tile.first_k == 0) {
    multiply_columns<Element>(a[0], b[0], int(args.cols - first_row), tile, sums);
  }
}

// Those of entries e, e + step and so on, before `stop`; the next of them. Where a block needs few rows of B, those of
// several are loaded at once.
template <class Element, int kTileM, int kTileN, int kDepth>
__device__ inline int multiply_entries(const LaunchArgs& args, const Ring<TypeOfA<Element>>& ring,
                                       const LaneTile<kTileM>& tile, int e, int stop, int step,
                                       Sum<Element> (&sums)[kTileM][kTileN]) {
  constexpr int kMostRows = sizeof(Sum<Element>) == 8 ? 1 : 2;
  constexpr int kEntries = kDepth == 1 ? 4 : kDepth == 2 && kTileM <= kMostRows ? 2 : 1;
  if constexpr (kEntries > 1) {
#pragma unroll 1
    for (; tile.left == 0 && e + (kEntries - 1) * step < stop; e += kEntries * step) {
      uint32_t a[kEntries];
      const char* b[kEntries];
      bool whole = true;
#pragma unroll
      for (int u = 0; u < kEntries; ++u) {
        const int first_row = ring.first_row(args, e + u * step);
        whole = whole && first_row <= tile.last_whole;
        a[u] = ring.values + ((e + u * step) & ring.mask) * tile.block_bytes;
        b[u] = tile.b + uint64_t(uint32_t(first_row)) * tile.pitch_b;
      }
      if (!whole) break;
      multiply_blocks<Element, kTileM, kTileN, kDepth, kEntries>(a, b, tile, [&](int) -> auto& { return sums; });
    }
  }
#pragma unroll 1
  for (; e < stop; e += step) multiply_entry<Element, kTileM, kTileN, kDepth>(args, ring, tile, e, sums);
  return e;
}

// Entries e and e + step, those of them that `mine` names: sums of each, from 0 on. B is loaded for both at once.
template <class Element, int kTileM, int kTileN, int kDepth>
__device__ inline void multiply_two(const LaunchArgs& args, const Ring<TypeOfA<Element>>& ring,
                                    const LaneTile<kTileM>& tile, int e, int step, const bool (&mine)[2],
                                    Sum<Element> (&sums)[2][kTileM][kTileN]) {
  if (mine[1] && tile.left == 0) {
    uint32_t a[2];
    const char* b[2];
    bool whole = true;
#pragma unroll
    for (int u = 0; u < 2; ++u) {
      const int first_row = ring.first_row(args, e + u * step);
      whole = whole && first_row <= tile.last_whole;
      a[u] = ring.values + ((e + u * step) & ring.mask) * tile.block_bytes;
      b[u] = tile.b + uint64_t(uint32_t(first_row)) * tile.pitch_b;
    }
    if (whole) {
      return multiply_blocks<Element, kTileM, kTileN, kDepth, 2>(a, b, tile, [&](int u) -> auto& { return sums[u]; });
    }
  }
#pragma unroll
  for (int u = 0; u < 2; ++u) {
    if (mine[u]) multiply_entry<Element, kTileM, kTileN, kDepth>(args, ring, tile, e + u * step, sums[u]);
  }
}

// To the first of `count` lanes, which are `stride` apart, the sums of all of them.
template <class Number, int kTileM, int kTileN>
__device__ inline void add_lanes(int count, int stride, Number (&sums)[kTileM][kTileN]) {
#pragma unroll 1
  for (int half = count / 2; half > 0; half /= 2) {
#pragma unroll
    for (int t = 0; t < kTileM; ++t) {
#pragma unroll
      for (int j = 0; j < kTileN; ++j) sums[t][j] += __shfl_down_sync(kAllLanes, sums[t][j], half * stride);
    }
  }
}

}  // namespace sparsek::cuda::few_columns
