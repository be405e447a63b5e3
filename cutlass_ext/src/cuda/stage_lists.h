// SPDX-License-Identifier: Apache-2.0
// A, listed by stages for kernel family "wgmma_scatter". A stage is 128 rows by up to 64 columns, and each 32 of its
// rows, a quarter, are a list of the elements of their blocks: where each lies in a dense quarter, and where in the
// matrix's values. Elements have 16 bits. The lists are of the plan; with each product its values are copied to their
// order (cuda/stage_values.h), unless the plan keeps them so, or the stages that the lists make (cuda/stage_tiles.h).
//
//   steps     (row groups, 4, stages), row-major: where the list of a quarter lies. Stages in which no row of the group
//             has a block are left out: the others come first, as many as counts says
//   counts    (row groups + 1): stages that have blocks; behind them: units of all lists
//   places    (units of all lists, 64): in bytes, in a quarter, which is (32 rows, 64 columns), K-major, swizzled over
//             128 bytes. A list has a unit at least. Behind its elements come some of the same place and value as the
//             last one; where it has none, zeros
//   sources   (units of all lists, 64): which element of the values; kNoSource: zero
//
// Element i of a unit lies at at_of(i): a lane of a warp has two neighbours in memory, and the lanes write what are
// neighbours in the list together, as these lie in different banks more often than others.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "cuda/row_bounds.h"

namespace sparsek::cuda {

constexpr int kListRows = 128, kListColumns = 64;  // of a stage; columns at most
constexpr int kQuarters = 4, kQuarterRows = kListRows / kQuarters;
constexpr int kListRowBytes = kListColumns * 2;
constexpr int kUnit = 64;                                        // elements, a pair for each lane
constexpr int kMostUnits = kQuarterRows * kListColumns / kUnit;  // of a list
constexpr uint32_t kNoSource = 0xffffffff;

// Of an element, in a quarter.
constexpr uint32_t place_of(uint32_t row, uint32_t column) {
  return row * kListRowBytes + (column / 8 ^ row % 8) * 16 + column % 8 * 2;
}

constexpr int at_of(int i) { return i % 32 * 2 + i / 32; }

// Element i of a row's blocks in a stage is in its block i / block_k, at most kListColumns of them.
constexpr uint32_t reciprocal_of(int32_t block_k) { return (65536u + block_k - 1) / block_k; }
constexpr uint32_t block_of(uint32_t i, uint32_t reciprocal) { return i * reciprocal >> 16; }

// The first unit of a list: behind the elements of the lists before, with room for one unit more in each.
constexpr int64_t first_unit(int64_t elements_before, int64_t lists_before) {
  return elements_before / kUnit + lists_before;
}
constexpr int kMostStages = 512;
constexpr int64_t kMostBoundBytes = int64_t{64} << 20;
constexpr int64_t kMostListBytes = int64_t{2} << 30;
// Of lists so many bytes for one of the values, beside those that every matrix may have: a list without elements takes
// 520.
constexpr int64_t kMostListBytesOfValues = 16, kFreeListBytes = int64_t{128} << 20;
constexpr int64_t kMostTiles = int64_t{1} << 30;

// The list of a quarter in a stage.
struct Step {
  static constexpr int kStageShift = 16;
  int32_t begin;  // unit
  int32_t word;   // units; above kStageShift the stage

  constexpr int32_t units() const { return word & ((1 << kStageShift) - 1); }
  constexpr int32_t stage() const { return word >> kStageShift; }
};

struct ListSizes {
  int32_t columns = 0;  // of A in a stage: whole blocks. 0: a plan without lists
  int64_t block_rows = 0, stages = 0, groups = 0;
  int64_t elements = 0;  // of all blocks

  constexpr int64_t lists() const { return groups * stages * kQuarters; }
  constexpr int64_t units() const { return elements / kUnit + lists(); }
  // Each a multiple of 256, so that what lies behind is aligned.
  static constexpr int64_t aligned(int64_t bytes) { return (bytes + 255) / 256 * 256; }
  constexpr int64_t step_bytes() const { return aligned(lists() * int64_t{sizeof(Step)}); }
  constexpr int64_t count_bytes() const { return aligned((groups + 1) * int64_t{sizeof(int32_t)}); }
  constexpr int64_t place_bytes() const { return aligned(units() * kUnit * int64_t{sizeof(uint16_t)}); }
  constexpr int64_t source_bytes() const { return aligned(units() * kUnit * int64_t{sizeof(uint32_t)}); }
  constexpr int64_t bytes() const {
    return columns == 0 ? 0 : step_bytes() + count_bytes() + place_bytes() + source_bytes();
  }
  // Of a product: its values in the order of the lists.
  constexpr int64_t value_bytes() const { return place_bytes(); }
  // Whether most of that is of lists with few elements or none.
  constexpr bool are_sparse() const {
    const int64_t values = elements * int64_t{sizeof(uint16_t)};
    return bytes() + value_bytes() > kFreeListBytes + kMostListBytesOfValues * values;
  }
  // While the lists are made: (block rows, stages + 1), row-major: a row's first entry in this stage, or behind it.
  constexpr int64_t bound_bytes() const { return bytes_of_bounds(block_rows, stages); }
};

// Columns of A in a stage: whole blocks. block_k: at most kListColumns, here and in the next.
constexpr int32_t stage_columns(int32_t block_k) { return kListColumns / block_k * block_k; }

constexpr ListSizes list_sizes(int64_t rows, int64_t cols, int64_t nnzb, int32_t block_m, int32_t block_k) {
  const int32_t columns = stage_columns(block_k);
  const int64_t stages = cols > 0 ? (cols + columns - 1) / columns : 1;  // a product has a column at least
  return {columns, (rows + block_m - 1) / block_m, stages, (rows + kListRows - 1) / kListRows,
          nnzb * block_m * block_k};
}

// Where they lie in the plan's memory.
struct StageLists {
  Step* steps;
  int32_t* counts;
  uint16_t* places;
  uint32_t* sources;

  StageLists(const ListSizes& sizes, void* memory)
      : steps(static_cast<Step*>(memory)),
        counts(reinterpret_cast<int32_t*>(static_cast<char*>(memory) + sizes.step_bytes())),
        places(reinterpret_cast<uint16_t*>(reinterpret_cast<char*>(counts) + sizes.count_bytes())),
        sources(reinterpret_cast<uint32_t*>(reinterpret_cast<char*>(places) + sizes.place_bytes())) {}
};

// What lists are made of: the sizes of the matrix, and what the plan has of its index.
struct ListedIndex {
  int64_t rows, cols;
  int32_t block_m, block_k;
  const int32_t* row_ptr;      // (block rows + 1)
  const int32_t* entry_k;      // (entries): first column of each block
  const int32_t* entry_block;  // (entries): which block of the values; not read where they are in place
  const int32_t* entry_end;    // (1): negative: blocks are not in the places of their entries
};

// Loads the kernels. Call it before the first launch on a device, since a capture does not allow loading.
cudaError_t prepare_stage_lists();

// Makes the lists in the stream. bounds: sizes.bound_bytes(), for as long as that takes. `to` has room for all elements
// of the sizes, which are a bound of those that there are.
cudaError_t list_stages(const ListedIndex& index, const ListSizes& sizes, const StageLists& to, void* bounds,
                        cudaStream_t stream);

}  // namespace sparsek::cuda
