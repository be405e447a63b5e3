// SPDX-License-Identifier: Apache-2.0
// Kernel family "skinny_fma": fp32 and fp64 by few columns, blocks of multiples of 8 rows. The time is that of reading
// A once; ordinary cores.
//
// A CTA computes 16 rows of C, a row group of the plan, by up to 64 bytes of columns. A unit is 16 rows of 128 bytes of
// A, of one entry, and the rows of B that it meets. The warps take the units of the tile in turns, and each has a ring
// of its own in shared memory, some units ahead. 8 lanes have a row of a unit, 16 bytes each, and a lane the same
// columns of four rows, which it multiplies by the same rows of B. At the end the lanes of a row are added up, then the
// warps in their order. Where block rows are no multiples of 16 high, a tile is two slots of 8 rows, and one without a
// block in an entry is left out.
//
//   A   stage (16, 128 bytes), each lane's 16 bytes of a row as it reads them; by cp.async
//   B   (K, N):(ldb, 1), stage: see RowsOfB; by cp.async, 16 bytes at a time where B and N are aligned, else by
//   elements C   (M, N):(ldc, 1), from registers: any rows, M, N, pitch and alignment
//
// A sum is that of the same products in the same order, whatever the number of columns.
#pragma once

#include <cstdint>
#include <type_traits>

#include "cuda/dependent_launch.cuh"
#include "cuda/epilogue.cuh"
#include "cuda/epilogue_fp64.cuh"
#include "cuda/launch.cuh"
#include "cuda/launch_args.h"
#include "cuda/load_tile.cuh"

namespace sparsek::cuda {
namespace skinny_fma_kernel {

constexpr int kTileM = 16, kUnitBytes = 128;
// Columns of a tile: a lane has sums of four rows of them.
template <class Element>
constexpr int kTileN = 64 / sizeof(Element);
constexpr int kWarps = 8, kThreads = kWarps * 32, kCtasPerSm = 2;
constexpr int kLanesOfRow = kUnitBytes / 16, kRowsAtOnce = 32 / kLanesOfRow, kRowsOfLane = kTileM / kRowsAtOnce;
constexpr int kSlots = 2, kSlotRows = kTileM / kSlots, kRowsOfSlot = kRowsOfLane / kSlots;
constexpr int kMostStages = 4, kSharedBytesOfCta = 112 * 1024;
constexpr unsigned kAllLanes = 0xffffffffu;

// Elements of 16 bytes.
template <class Element>
struct alignas(16) Vector {
  static constexpr int kCount = 16 / sizeof(Element);
  Element of[kCount];
};

// Begins a copy to shared memory, or writes zeros there.
template <int kBytes>
__device__ inline void copy_or_clear(void* to, const void* from, bool there) {
  const auto at = static_cast<unsigned>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(at), "l"(from), "n"(kBytes),
               "r"(there ? kBytes : 0)
               : "memory");
}

// The rows of B of a unit: (columns / kCount, kCount, lanes of a row), 16 bytes each. Piece [c][j][l] is of kCount
// columns and of row kCount l + j. So the lanes of a row read 128 bytes that lie together; l is permuted by j, so that
// those that arrive together lie apart.
template <class Element, int kColumns>
struct RowsOfB {
  static constexpr int kCount = Vector<Element>::kCount, kRows = kUnitBytes / sizeof(Element);
  static constexpr int kPieces = kRows * kColumns / kCount;
  Vector<Element> pieces[kPieces];

  static __device__ int place(int row, int c) {
    const int j = row % kCount, lane = row / kCount ^ j * (kLanesOfRow / kCount);
    return (c * kCount + j) * kLanesOfRow + lane;
  }

  // Begins to copy `rows` rows from `b` on. Other rows are zeros, and so are columns behind C.
  template <bool kVectors>
  __device__ void load(const Element* b, int64_t ldb, int rows, int columns, int lane) {
#pragma unroll
    for (int i = 0; i < kPieces; i += 32) {
      const int row = (i + lane) / (kColumns / kCount), c = (i + lane) % (kColumns / kCount) * kCount;
      auto& piece = pieces[place(row, c / kCount)];
      const Element* const from = b + (row < rows ? row * ldb : 0);
      if constexpr (kVectors) {
        const bool there = row < rows && c < columns;
        copy_or_clear<16>(&piece, from + (there ? c : 0), there);
      } else {
#pragma unroll
        for (int e = 0; e < kCount; ++e) {
          const bool there = row < rows && c + e < columns;
          copy_or_clear<sizeof(Element)>(&piece.of[e], from + (there ? c + e : 0), there);
        }
      }
    }
  }

  // Columns c to c + kCount - 1 of row j of those that the lane meets.
  __device__ Vector<Element> read(int j, int c, int lane) const {
    return pieces[place(lane % kLanesOfRow * kCount + j, c / kCount)];
  }
};

// Of one column, as it lies.
template <class Element>
struct RowsOfB<Element, 1> {
  static constexpr int kCount = Vector<Element>::kCount;
  Vector<Element> pieces[kLanesOfRow];

  template <bool kVectors>
  __device__ void load(const Element* b, int64_t ldb, int rows, int, int lane) {
    if (lane >= kLanesOfRow) return;
    const int first = lane * kCount;
    const bool all = first + kCount <= rows;
    if (kVectors && all) {
      copy_or_clear<16>(&pieces[lane], b + first, true);
    } else {
#pragma unroll
      for (int e = 0; e < kCount; ++e) {
        const bool there = first + e < rows;
        copy_or_clear<sizeof(Element)>(&pieces[lane].of[e], there ? b + (first + e) * ldb : b, there);
      }
    }
  }

  __device__ Element read(int j, int lane) const { return pieces[lane % kLanesOfRow].of[j]; }
};

template <class Element, int kColumns>
struct Stage {
  Vector<Element> a[kRowsOfLane][32];  // (row of the lane, lane)
  RowsOfB<Element, kColumns> b;
  int rows;     // of B that there are
  int present;  // bit s: slot s has a block
};

template <class Element, int kColumns>
constexpr int kFit = kSharedBytesOfCta / (kWarps * static_cast<int>(sizeof(Stage<Element, kColumns>)));
template <class Element, int kColumns>
constexpr int kStages = kFit<Element, kColumns> < kMostStages ? kFit<Element, kColumns> : kMostStages;

template <class Element, int kColumns>
union Shared {
  Stage<Element, kColumns> stages[kWarps][kStages<Element, kColumns>];
  Element of_warps[kWarps][kTileM][kColumns];
};

// Where a unit lies.
struct Place {
  int32_t block[kSlots];
  int32_t k;      // first row of B
  int32_t first;  // column in the block
};

// The units of a tile.
template <class Element>
class Units {
 public:
  __device__ Units(const LaunchArgs& args, const WorkTile& tile, int lane)
      : args_(args),
        tile_(tile),
        parts_((args.block_k + kColumns - 1) / kColumns),
        in_unit_(lane % kLanesOfRow * Vector<Element>::kCount) {
    const int64_t at = int64_t(tile.m_tile) * args.slots;
#pragma unroll
    for (int s = 0; s < kSlots; ++s) {
      row_[s] = uint32_t(args.slots == 1 ? args.slot_row[at] + s * kSlotRows : args.slot_row[at + s]);
      in_block_[s] = row_[s] % uint32_t(args.block_m) + lane / kLanesOfRow;
    }
  }

  __device__ int count() const { return tile_.entry_count * parts_; }
  // Of C.
  __device__ int64_t row(int in_tile) const {
    return int64_t(in_tile < kSlotRows ? row_[0] : row_[1]) + in_tile % kSlotRows;
  }

  // A unit behind the last one has no blocks.
  __device__ Place place(int index) const {
    Place place = {{kNoBlock, kNoBlock}, 0, 0};
    if (index >= count()) return place;
    const int entry = uint32_t(index) / uint32_t(parts_);
    const int64_t at = int64_t(tile_.entry_begin) + entry;
    place.first = (index - entry * parts_) * kColumns;
    place.k = __ldg(args_.entry_k + at) + place.first;
#pragma unroll
    for (int s = 0; s < kSlots; ++s) {
      place.block[s] = __ldg(args_.entry_block + at * args_.slots + (args_.slots == 1 ? 0 : s));
    }
    return place;
  }

  // Begins to copy a unit to a stage. b: the tile's first column.
  template <bool kVectors, int kColumnsOfB>
  __device__ void load(Stage<Element, kColumnsOfB>& stage, const Place& place, const Element* b, int columns,
                       int lane) const {
    const auto* const values = static_cast<const Element*>(args_.values);
    const int column = place.first + in_unit_;
    int present = 0;
#pragma unroll
    for (int i = 0; i < kRowsOfLane; ++i) {
      const int s = i / kRowsOfSlot;
      const bool there = place.block[s] != kNoBlock && column < args_.block_k;
      const int64_t row = int64_t(place.block[s]) * args_.block_m + in_block_[s] + i % kRowsOfSlot * kRowsAtOnce;
      copy_or_clear<16>(&stage.a[i][lane], there ? values + row * args_.block_k + column : values, there);
      present |= int(place.block[s] != kNoBlock) << s;
    }
    const int rows =
        present == 0 ? 0 : max(0, min(min(kColumns, args_.block_k - place.first), int32_t(args_.cols) - place.k));
    stage.b.template load<kVectors>(rows > 0 ? b + int64_t(place.k) * args_.ldb : b, args_.ldb, rows, columns, lane);
    if (lane == 0) {
      stage.rows = rows;
      stage.present = present;
    }
  }

 private:
  static constexpr int kColumns = kUnitBytes / sizeof(Element);  // of A, of a unit
  const LaunchArgs& args_;
  const WorkTile& tile_;
  const int parts_;    // units of an entry
  const int in_unit_;  // the lane's first column
  uint32_t row_[kSlots];
  int in_block_[kSlots];
};

// Adds a unit's products to sums: (rows of the lane, columns). kAll: all rows of B and both slots are there. Else, rows
// of B behind K do not exist, and what A has there does not count.
template <bool kAll, class Element, int kColumns>
__device__ inline void multiply(Element (&sums)[kRowsOfLane * kColumns], const Stage<Element, kColumns>& stage,
                                int lane) {
  constexpr int kCount = Vector<Element>::kCount;
  const int count = kAll ? kCount : stage.rows - lane % kLanesOfRow * kCount, present = kAll ? 3 : stage.present;
  Vector<Element> a[kRowsOfLane];
#pragma unroll
  for (int i = 0; i < kRowsOfLane; ++i) a[i] = stage.a[i][lane];
#pragma unroll
  for (int j = 0; j < kCount; ++j) {
    const auto add = [&](int first, const auto& of_b, auto width) {
#pragma unroll
      for (int i = 0; i < kRowsOfLane; ++i) {
        if (!kAll && (j >= count || (present >> i / kRowsOfSlot & 1) == 0)) continue;
#pragma unroll
        for (int e = 0; e < decltype(width)::value; ++e) {
          Element& sum = sums[i * kColumns + first + e];
          sum = fma(a[i].of[j], of_b[e], sum);
        }
      }
    };
    if constexpr (kColumns == 1) {
      const Element of_b[1] = {stage.b.read(j, lane)};
      add(0, of_b, std::integral_constant<int, 1>{});
    } else {
#pragma unroll
      for (int c = 0; c < kColumns; c += kCount) {
        add(c, stage.b.read(j, c, lane).of, std::integral_constant<int, kCount>{});
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
  constexpr int kSums = kRowsOfLane * kColumns, kLeft = kSums > kLanesOfRow ? kSums / kLanesOfRow : 1;
  constexpr int kDepth = kStages<Element, kColumns>, kRows = kUnitBytes / sizeof(Element);
  extern __shared__ __align__(128) uint8_t memory[];
  auto& shared = *reinterpret_cast<Shared<Element, kColumns>*>(memory);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  auto& stages = shared.stages[warp];
  bool waited = false;
  for (int t = blockIdx.x; t < args.tiles_count; t += gridDim.x) {
    const WorkTile tile = load_tile(args.tiles + t);
    const int64_t first_column = int64_t(tile.n_tile) * kTileN<Element>;
    if (first_column >= args.n) continue;
    const int columns = int(min(int64_t(kColumns), args.n - first_column));
    const Units<Element> units(args, tile, lane);
    const auto* const b = static_cast<const Element*>(args.b) + first_column;
    const int mine = max(0, (units.count() - warp + kWarps - 1) / kWarps);
    Place next = units.place(warp);
    if (!waited) wait_for_previous_launch();
    waited = true;
    // Unit i of the warp, to stage i % kDepth. What behind the last one is empty keeps the groups of copies in step.
    const auto load = [&](int i, int stage) {
      if (i < mine) {
        units.template load<kVectors>(stages[stage], next, b, columns, lane);
        next = units.place((i + 1) * kWarps + warp);
      }
      asm volatile("cp.async.commit_group;" ::: "memory");
    };
#pragma unroll 1
    for (int i = 0; i < kDepth - 1; ++i) load(i, i);
    Element sums[kSums] = {};
    int stage = 0, free_stage = kDepth - 1;
#pragma unroll 1
    for (int i = 0; i < mine; ++i) {
      asm volatile("cp.async.wait_group %0;" ::"n"(kDepth - 2) : "memory");
      __syncwarp();  // all lanes' copies have arrived, and all have read the stage before
      load(i + kDepth - 1, free_stage);
      const Stage<Element, kColumns>& now = stages[stage];
      if (now.rows == kRows && now.present == 3) {
        multiply<true>(sums, now, lane);
      } else {
        multiply<false>(sums, now, lane);
      }
      free_stage = stage;
      stage = stage == kDepth - 1 ? 0 : stage + 1;
    }
    const int first_sum = add_lanes<kSums>(sums, lane);
    __syncthreads();                              // the sums take the place of the stages, which all warps have read
    if (kSums >= kLanesOfRow || lane % 2 == 0) {  // of fewer sums two lanes have each
#pragma unroll
      for (int i = 0; i < kLeft; ++i) {
        const int row = (first_sum + i) / kColumns * kRowsAtOnce + lane / kLanesOfRow;
        shared.of_warps[warp][row][(first_sum + i) % kColumns] = sums[i];
      }
    }
    __syncthreads();
    const int row = threadIdx.x / kColumns, column = threadIdx.x % kColumns;
    if (row < kTileM && column < columns && units.row(row) < args.rows) {
      Element sum = 0;
#pragma unroll
      for (int w = 0; w < kWarps; ++w) sum += shared.of_warps[w][row][column];
      write_element(args, units.row(row), first_column + column, sum);
    }
    __syncthreads();
  }
}

}  // namespace skinny_fma_kernel

template <class Config>
struct SkinnyFmaKernel {
  using Element = typename Config::Element;
  static constexpr int kTileN = Config::kTileN;
  static_assert(Config::kTileM == skinny_fma_kernel::kTileM && kTileN == skinny_fma_kernel::kTileN<Element>);

  template <int kColumns>
  static constexpr int kSharedBytes = sizeof(skinny_fma_kernel::Shared<Element, kColumns>);
  template <int kColumns, bool kVectors>
  static constexpr auto kKernel = skinny_fma_kernel::kernel<Element, kColumns, kVectors>;

  template <int kColumns>
  static cudaError_t prepare_one() {
    for (const auto kernel : {kKernel<kColumns, false>, kKernel<kColumns, true>}) {
      const cudaError_t error =
          cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes<kColumns>);
      if (error != cudaSuccess) return error;
    }
    return cudaSuccess;
  }
  static cudaError_t prepare() {
    for (const cudaError_t error : {prepare_one<1>(), prepare_one<4>(), prepare_one<8>(), prepare_one<kTileN>()}) {
      if (error != cudaSuccess) return error;
    }
    return cudaSuccess;
  }

  template <int kColumns>
  static cudaError_t launch_one(const LaunchArgs& args, bool vectors) {
    const auto kernel = vectors ? kKernel<kColumns, true> : kKernel<kColumns, false>;
    return launch_kernel(kernel, args.workers, skinny_fma_kernel::kThreads, kSharedBytes<kColumns>, args.stream,
                         {/*overlap=*/true}, args);
  }

  static cudaError_t launch(const LaunchArgs& args) {
    const bool aligned = reinterpret_cast<uintptr_t>(args.b) % 16 == 0;
    if (args.n == 1) return launch_one<1>(args, aligned && args.ldb == 1);
    const bool vectors = aligned && (args.ldb | args.n) * sizeof(Element) % 16 == 0;
    if (args.n <= 4) return launch_one<4>(args, vectors);
    if (args.n <= 8) return launch_one<8>(args, vectors);
    return launch_one<kTileN>(args, vectors);
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
