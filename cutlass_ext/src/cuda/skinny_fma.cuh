// SPDX-License-Identifier: Apache-2.0
// Kernel family "skinny_fma": fp32 and fp64 by few columns, blocks of multiples of 8 rows. The time is that of reading
// A once; ordinary cores.
//
// A CTA computes 16 rows of C, a row group of the plan, by up to 8 columns. A unit is 16 rows of 128 bytes of A, of one
// entry. The warps take the units of the tile in turns, and read them straight from global memory, some at once: 8
// lanes have a row of a unit, 16 bytes each, and the same lane of 4 rows multiplies them by the same rows of B. At the
// end the lanes of a row are added up, then the warps in their order. Where block rows are no multiples of 16 high, a
// tile is two slots of 8 rows, and one without a block in an entry is left out.
//
//   A   values (nnzb, bm, bk):(bm bk, bk, 1), read from global memory, 16 bytes a lane
//   B   (K, N):(ldb, 1), read from global memory through L1: by 16 bytes where it is aligned, else by elements
//   C   (M, N):(ldc, 1), from registers: any rows, M, N, pitch and alignment
//
// A sum is that of the same products in the same order, whatever the number of columns.
#pragma once

#include "abi/sum_type.h"
#include "cuda/dependent_launch.cuh"
#include "cuda/epilogue.cuh"
#include "cuda/epilogue_fp64.cuh"
#include "cuda/launch.cuh"
#include "cuda/launch_args.h"
#include "cuda/load_tile.cuh"

namespace sparsek::cuda {
namespace skinny_fma_kernel {

constexpr int kTileM = 16, kTileN = 8, kUnitBytes = 128;
constexpr int kWarps = 8, kThreads = kWarps * 32, kCtasPerSm = 2;
constexpr int kLanesOfRow = kUnitBytes / 16, kRowsAtOnce = 32 / kLanesOfRow, kRowsOfLane = kTileM / kRowsAtOnce;
constexpr int kSlots = 2, kSlotRows = kTileM / kSlots;
// Units of a warp whose loads are under way together, as far as there are registers.
template <class Element, int kColumns>
constexpr int kUnitsAtOnce = sizeof(Element) * kColumns > 32 ? 1 : 2;
constexpr int kPartColumns = 4;  // of B that a lane has at a time
constexpr unsigned kAllLanes = 0xffffffffu;

// Elements of 16 bytes.
template <class Element>
struct alignas(16) Vector {
  static constexpr int kCount = 16 / sizeof(Element);
  Element of[kCount];
};

template <class Element>
__device__ inline Vector<Element> load_vector(const Element* from) {
  Vector<Element> loaded;
  *reinterpret_cast<uint4*>(&loaded) = __ldg(reinterpret_cast<const uint4*>(from));
  return loaded;
}

// What a lane has of a unit: its part of 4 rows of A, and the rows of B that these meet.
template <class Element>
struct Unit {
  Vector<Element> a[kRowsOfLane];
  int32_t k;             // first row of B
  int count;             // rows of B: 0 where the lane has none, below the vector's at the last columns of A
  bool present[kSlots];  // whether the slot has a block
};

// The rows of A of a tile, and where a lane finds its part of them.
template <class Element>
class TileOfA {
 public:
  __device__ TileOfA(const LaunchArgs& args, const WorkTile& tile, int lane)
      : args_(args), tile_(tile), in_unit_(lane % kLanesOfRow * Vector<Element>::kCount) {
    parts_ = (args.block_k + kUnitColumns - 1) / kUnitColumns;
    const int64_t at = int64_t(tile.m_tile) * args.slots;
#pragma unroll
    for (int s = 0; s < kSlots; ++s) {
      row_[s] = uint32_t(args.slots == 1 ? args.slot_row[at] + s * kSlotRows : args.slot_row[at + s]);
      in_block_[s] = row_[s] % uint32_t(args.block_m) + lane / kLanesOfRow;
    }
  }

  __device__ int units() const { return tile_.entry_count * parts_; }
  __device__ int64_t row(int in_tile) const {
    return int64_t(in_tile < kSlotRows ? row_[0] : row_[1]) + in_tile % kSlotRows;
  }

  // Of a unit beyond the last there is nothing to multiply.
  __device__ Unit<Element> load(int index) const {
    Unit<Element> unit;
    const int entry = uint32_t(index) / uint32_t(parts_), column = (index - entry * parts_) * kUnitColumns + in_unit_;
    const bool inside = index < units() && column < args_.block_k;
    const int64_t at = int64_t(tile_.entry_begin) + (inside ? entry : 0);
    unit.k = __ldg(args_.entry_k + at) + column;
    unit.count = inside ? max(0, min(Vector<Element>::kCount, int32_t(args_.cols) - unit.k)) : 0;
    int32_t block[kSlots];
#pragma unroll
    for (int s = 0; s < kSlots; ++s) {
      block[s] = __ldg(args_.entry_block + at * args_.slots + (args_.slots == 1 ? 0 : s));
      unit.present[s] = block[s] != kNoBlock;
    }
#pragma unroll
    for (int i = 0; i < kRowsOfLane; ++i) {
      constexpr int kOfSlot = kRowsOfLane / kSlots;
      const int s = i / kOfSlot;
      unit.a[i] = {};
      if (inside && unit.present[s]) {
        const int64_t row = int64_t(block[s]) * args_.block_m + in_block_[s] + i % kOfSlot * kRowsAtOnce;
        unit.a[i] = load_vector(static_cast<const Element*>(args_.values) + row * args_.block_k + column);
      }
    }
    return unit;
  }

 private:
  static constexpr int kUnitColumns = kUnitBytes / sizeof(Element);
  const LaunchArgs& args_;
  const WorkTile& tile_;
  const int in_unit_;  // the lane's columns of a unit
  int parts_;          // units of an entry
  uint32_t row_[kSlots];
  int in_block_[kSlots];
};

// The rows of B of a unit. kVectors: they are read by 16 bytes, and of kColumns columns none is missing.
template <class Element, int kColumns, bool kVectors>
__device__ inline void load_rows(Element (&to)[Vector<Element>::kCount][kColumns], const LaunchArgs& args,
                                 const Element* b, const Unit<Element>& unit, int columns) {
  constexpr int kCount = Vector<Element>::kCount;
  const Element* const first = b + int64_t(unit.k) * args.ldb;
#pragma unroll
  for (int j = 0; j < kCount; ++j) {
#pragma unroll
    for (int c = 0; c < kColumns; ++c) to[j][c] = 0;
  }
  if constexpr (kVectors && kColumns == 1) {  // a column without gaps
    if (unit.count == kCount) {
      const Vector<Element> loaded = load_vector(first);
#pragma unroll
      for (int j = 0; j < kCount; ++j) to[j][0] = loaded.of[j];
      return;
    }
  }
#pragma unroll
  for (int j = 0; j < kCount; ++j) {
    if (j >= unit.count) continue;
    if constexpr (kVectors && kColumns > 1) {
#pragma unroll
      for (int c = 0; c < kColumns; c += kCount) {
        const Vector<Element> loaded = load_vector(first + j * args.ldb + c);
#pragma unroll
        for (int i = 0; i < kCount; ++i) to[j][c + i] = loaded.of[i];
      }
    } else {
#pragma unroll
      for (int c = 0; c < kColumns; ++c) {
        if (c < columns) to[j][c] = __ldg(first + j * args.ldb + c);
      }
    }
  }
}

// Adds the products by some columns of B, of which `first` is the first, to sums: (rows of the lane, columns). Rows of
// B behind K do not exist, and what A has there does not count.
template <class Element, int kColumns, int kPart>
__device__ inline void multiply(Element (&sums)[kRowsOfLane * kColumns], const Unit<Element>& unit,
                                const Element (&b)[Vector<Element>::kCount][kPart], int first) {
#pragma unroll
  for (int j = 0; j < Vector<Element>::kCount; ++j) {
#pragma unroll
    for (int i = 0; i < kRowsOfLane; ++i) {
      if (j >= unit.count || !unit.present[i / (kRowsOfLane / kSlots)]) continue;
#pragma unroll
      for (int c = 0; c < kPart; ++c) {
        Element& sum = sums[i * kColumns + first + c];
        sum = fma(unit.a[i].of[j], b[j][c], sum);
      }
    }
  }
}

// Adds up the sums of the lanes of a row, in halves: a lane and the one with the other `kBit` keep one half each. Of
// kCount sums each lane has some at the end, the first ones of `sums`: those from the number on that is returned.
template <int kCount, int kBit = kLanesOfRow / 2, class Number>
__device__ inline int add_lanes(Number* sums, int lane) {
  if constexpr (kBit == 0) {
    return 0;
  } else if constexpr (kCount == 1) {
    sums[0] += __shfl_xor_sync(kAllLanes, sums[0], kBit);
    return add_lanes<1, kBit / 2>(sums, lane);
  } else {
    constexpr int kHalf = kCount / 2;
    const bool upper = (lane & kBit) != 0;
#pragma unroll
    for (int i = 0; i < kHalf; ++i) {
      const Number sent = upper ? sums[i] : sums[i + kHalf], kept = upper ? sums[i + kHalf] : sums[i];
      sums[i] = kept + __shfl_xor_sync(kAllLanes, sent, kBit);
    }
    return (upper ? kHalf : 0) + add_lanes<kHalf, kBit / 2>(sums, lane);
  }
}

// A CTA for each tile, or with a limit on the CTAs several.
template <class Element, int kColumns, bool kVectors>
__global__ void __launch_bounds__(kThreads, kCtasPerSm) kernel(const __grid_constant__ LaunchArgs args) {
  constexpr int kAtOnce = kUnitsAtOnce<Element, kColumns>;
  constexpr int kPart = kColumns < kPartColumns ? kColumns : kPartColumns;
  constexpr int kSums = kRowsOfLane * kColumns, kLeft = kSums > kLanesOfRow ? kSums / kLanesOfRow : 1;
  __shared__ Element of_warps[kWarps][kTileM][kColumns];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  bool waited = false;
  for (int t = blockIdx.x; t < args.tiles_count; t += gridDim.x) {
    const WorkTile tile = load_tile(args.tiles + t);
    const int64_t first_column = int64_t(tile.n_tile) * kTileN;
    if (first_column >= args.n) continue;
    const int columns = int(min(int64_t(kColumns), args.n - first_column));
    const TileOfA<Element> rows(args, tile, lane);
    if (!waited) wait_for_previous_launch();
    waited = true;
    const auto* const b = static_cast<const Element*>(args.b) + first_column;
    Element sums[kSums] = {};
#pragma unroll 1
    for (int first = warp; first < rows.units(); first += kWarps * kAtOnce) {
      Unit<Element> units[kAtOnce];
#pragma unroll
      for (int u = 0; u < kAtOnce; ++u) units[u] = rows.load(first + u * kWarps);
#pragma unroll
      for (int u = 0; u < kAtOnce; ++u) {
#pragma unroll
        for (int c = 0; c < kColumns; c += kPart) {
          Element of_b[Vector<Element>::kCount][kPart];
          if (kVectors && columns == kColumns) {
            load_rows<Element, kPart, kVectors>(of_b, args, b + c, units[u], kPart);
          } else {
            load_rows<Element, kPart, false>(of_b, args, b + c, units[u], columns - c);
          }
          multiply<Element, kColumns>(sums, units[u], of_b, c);
        }
      }
    }
    const int first_sum = add_lanes<kSums>(sums, lane);
    if (kSums >= kLanesOfRow || lane % 2 == 0) {  // of fewer sums two lanes have each
#pragma unroll
      for (int i = 0; i < kLeft; ++i) {
        const int row = (first_sum + i) / kColumns * kRowsAtOnce + lane / kLanesOfRow;
        of_warps[warp][row][(first_sum + i) % kColumns] = sums[i];
      }
    }
    __syncthreads();
    const int row = threadIdx.x / kColumns, column = threadIdx.x % kColumns;
    if (row < kTileM && column < columns && rows.row(row) < args.rows) {
      Element sum = 0;
#pragma unroll
      for (int w = 0; w < kWarps; ++w) sum += of_warps[w][row][column];
      write_element(args, rows.row(row), first_column + column, sum);
    }
    __syncthreads();
  }
}

}  // namespace skinny_fma_kernel

template <class Config>
struct SkinnyFmaKernel {
  using Element = typename Config::Element;
  static_assert(Config::kTileM == skinny_fma_kernel::kTileM && Config::kTileN == skinny_fma_kernel::kTileN);
  static cudaError_t prepare() { return cudaSuccess; }

  template <int kColumns>
  static cudaError_t launch_one(const LaunchArgs& args, bool vectors) {
    namespace k = skinny_fma_kernel;
    const auto kernel = vectors ? k::kernel<Element, kColumns, true> : k::kernel<Element, kColumns, false>;
    return launch_kernel(kernel, args.workers, k::kThreads, 0, args.stream, {/*overlap=*/true}, args);
  }

  static cudaError_t launch(const LaunchArgs& args) {
    const bool aligned = reinterpret_cast<uintptr_t>(args.b) % 16 == 0;
    if (args.n == 1) return launch_one<1>(args, aligned && args.ldb == 1);
    const bool vectors = aligned && args.ldb * sizeof(Element) % 16 == 0;
    return args.n <= 4 ? launch_one<4>(args, vectors) : launch_one<8>(args, vectors);
  }
};

template <class Config>
constexpr KernelOps skinny_fma_ops() {
  using K = SkinnyFmaKernel<Config>;
  return {&K::prepare,
          &K::launch,
          skinny_fma_kernel::kCtasPerSm,
          /*tensor_cores=*/false,
          /*tma_b=*/false,
          /*any_rows=*/false,
          /*align_values=*/16,
          /*any_epilogue=*/true,
          /*most_cluster=*/1,
          /*may_split=*/false,
          /*takes_tiles=*/false,
          /*most_rounds=*/INT32_MAX};
}

}  // namespace sparsek::cuda
