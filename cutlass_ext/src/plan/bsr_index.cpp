// SPDX-License-Identifier: Apache-2.0
#include "plan/bsr_index.h"

#include <algorithm>
#include <cinttypes>
#include <limits>
#include <string>
#include <utility>

#include "abi/dtype.h"
#include "abi/error.h"

namespace sparsek {
namespace {

constexpr int64_t kInt32Max = std::numeric_limits<int32_t>::max();

// ceil(extent / block) without the overflow of extent + block - 1.
int64_t block_count(int64_t extent, int64_t block) { return extent / block + (extent % block != 0 ? 1 : 0); }

void check_extent(int64_t extent, int64_t block, const char* extent_name, const char* block_name) {
  if (extent < 0) fail(SPARSEK_BAD_SIZE, "%s = %" PRId64 " is negative", extent_name, extent);
  if (block <= 0) fail(SPARSEK_BAD_SIZE, "%s = %" PRId64 " is not positive", block_name, block);
  if (block > kInt32Max) {
    fail(SPARSEK_BAD_SIZE, "%s = %" PRId64 " is beyond int32: use smaller blocks", block_name, block);
  }
  if (block_count(extent, block) >= kInt32Max) {
    fail(SPARSEK_BAD_SIZE, "%s = %" PRId64 " has %" PRId64 " blocks of %" PRId64 ", beyond int32: use larger blocks",
         extent_name, extent, block_count(extent, block), block);
  }
}

template <typename Index>
void check_pointer(const void* pointer, const char* name) {
  if (pointer == nullptr) fail(SPARSEK_NULL_POINTER, "%s is null", name);
  if (reinterpret_cast<uintptr_t>(pointer) % alignof(Index) != 0) {
    fail(SPARSEK_MISALIGNED, "%s = %p is not aligned to the %zu bytes of its type", name, pointer, alignof(Index));
  }
}

template <typename Index>
std::vector<int32_t> copy_row_ptr(const Index* row_ptr, int32_t block_rows, int64_t nnzb) {
  std::vector<int32_t> copy(static_cast<size_t>(block_rows) + 1);
  int64_t previous = 0;
  for (int64_t i = 0; i <= block_rows; ++i) {
    const int64_t value = row_ptr[i];  // read once, so that the checked value is the one that is used
    if (i == 0 && value != 0) fail(SPARSEK_ROW_PTR_START, "row_ptr[0] = %" PRId64 " is not 0", value);
    if (value < previous) {
      fail(SPARSEK_ROW_PTR_NOT_MONOTONE, "row_ptr[%" PRId64 "] = %" PRId64 " is below row_ptr[%" PRId64 "] = %" PRId64,
           i, value, i - 1, previous);
    }
    if (i == block_rows && value != nnzb) {
      fail(SPARSEK_ROW_PTR_END, "row_ptr[%" PRId64 "] = %" PRId64 ", the last, is not nnzb = %" PRId64, i, value, nnzb);
    }
    // row_ptr rises monotonically to nnzb, so every range that passes lies within col_idx.
    copy[static_cast<size_t>(i)] = static_cast<int32_t>(value);
    previous = value;
  }
  return copy;
}

template <typename Index>
int32_t read_column(const Index* col_idx, int32_t i, int32_t row, int32_t block_cols) {
  const int64_t col = col_idx[i];  // read once, like all of the caller's arrays
  if (col < 0) {
    fail(SPARSEK_COL_IDX_RANGE, "col_idx[%" PRId32 "] = %" PRId64 " is negative (in block row %" PRId32 ")", i, col,
         row);
  }
  if (col >= block_cols) {
    fail(SPARSEK_COL_IDX_RANGE,
         "col_idx[%" PRId32 "] = %" PRId64 " is not below %" PRId32 " block columns (in block row %" PRId32 ")", i, col,
         block_cols, row);
  }
  return static_cast<int32_t>(col);
}

[[noreturn]] void fail_repeated(int32_t i, int32_t col, int32_t row, const char* what) {
  fail(SPARSEK_COL_IDX_REPEATED,
       "col_idx[%" PRId32 "] = %" PRId32 " repeats %s (in block row %" PRId32 "): add the two blocks up", i, col, what,
       row);
}

template <typename Index>
std::vector<int32_t> copy_col_idx(const Index* col_idx, const std::vector<int32_t>& row_ptr, int32_t block_rows,
                                  int32_t block_cols) {
  std::vector<int32_t> copy(static_cast<size_t>(row_ptr.back()));
  for (int32_t row = 0; row < block_rows; ++row) {
    int32_t previous = -1;
    for (int32_t i = row_ptr[row]; i < row_ptr[row + 1]; ++i) {
      const int32_t col = read_column(col_idx, i, row, block_cols);
      if (col == previous) fail_repeated(i, col, row, "the one before it");
      if (col < previous) {
        fail(SPARSEK_COL_IDX_UNSORTED,
             "col_idx[%" PRId32 "] = %" PRId32 " comes after %" PRId32 " (in block row %" PRId32
             "): sort the columns of each block row, or set SPARSEK_BSR_SORT",
             i, col, previous, row);
      }
      copy[static_cast<size_t>(i)] = col;
      previous = col;
    }
  }
  return copy;
}

// Sorts each block row by its columns while it copies them; index.block_idx gets the place from which each came, and
// stays empty where all rows are sorted already.
template <typename Index>
void sort_columns(const Index* col_idx, BsrIndex& index) {
  struct Entry {
    int32_t col, place;
  };
  std::vector<Entry> entries;
  index.col_idx.resize(static_cast<size_t>(index.row_ptr.back()));
  std::vector<int32_t> places(index.col_idx.size());
  bool moved = false;
  for (int32_t row = 0; row < index.block_rows; ++row) {
    const int32_t begin = index.row_ptr[row];
    entries.clear();
    for (int32_t i = begin; i < index.row_ptr[row + 1]; ++i) {
      entries.push_back({read_column(col_idx, i, row, index.block_cols), i});
    }
    const auto before = [](const Entry& a, const Entry& b) {
      return a.col != b.col ? a.col < b.col : a.place < b.place;
    };
    if (!std::is_sorted(entries.begin(), entries.end(), before)) {
      std::sort(entries.begin(), entries.end(), before);
      moved = true;
    }
    for (size_t i = 0; i < entries.size(); ++i) {
      if (i > 0 && entries[i].col == entries[i - 1].col) {
        fail_repeated(entries[i].place, entries[i].col, row,
                      ("col_idx[" + std::to_string(entries[i - 1].place) + "]").c_str());
      }
      index.col_idx[begin + i] = entries[i].col;
      places[begin + i] = entries[i].place;
    }
  }
  if (moved) index.block_idx = std::move(places);
}

// Replaces each place in the caller's arrays by the block that belongs there.
template <typename Index>
void name_blocks(const Index* block_idx, BsrIndex& index) {
  std::vector<int32_t> named(static_cast<size_t>(index.nnzb));
  for (size_t i = 0; i < named.size(); ++i) {
    const int64_t block = block_idx[i];
    if (block < 0 || block >= index.nnzb) {
      fail(SPARSEK_BLOCK_IDX_RANGE,
           "block_idx[%zu] = %" PRId64 " is not within 0 and %" PRId64 ", the blocks of values", i, block, index.nnzb);
    }
    named[i] = static_cast<int32_t>(block);
  }
  if (index.block_idx.empty()) {
    index.block_idx = std::move(named);
  } else {
    for (int32_t& place : index.block_idx) place = named[place];
  }
}

template <typename Index>
void copy_arrays(const sparsek_bsr& a, BsrIndex& index) {
  check_pointer<Index>(a.row_ptr, "row_ptr");
  if (a.nnzb > 0) check_pointer<Index>(a.col_idx, "col_idx");
  index.row_ptr = copy_row_ptr(static_cast<const Index*>(a.row_ptr), index.block_rows, a.nnzb);
  const auto* const col_idx = static_cast<const Index*>(a.col_idx);
  if ((a.flags & SPARSEK_BSR_SORT) != 0) {
    sort_columns(col_idx, index);
  } else {
    index.col_idx = copy_col_idx(col_idx, index.row_ptr, index.block_rows, index.block_cols);
  }
  if (a.block_idx != nullptr && a.nnzb > 0) {
    check_pointer<Index>(a.block_idx, "block_idx");
    name_blocks(static_cast<const Index*>(a.block_idx), index);
  }
}

}  // namespace

void check_bsr_header(const sparsek_bsr& a) {
  const int64_t bytes = dtype_bytes(a.dtype);
  if (!is_general_dtype(a.dtype)) {
    fail(SPARSEK_UNSUPPORTED_DTYPE,
         "dtype = %" PRId32 " is none of SPARSEK_BF16 (1), SPARSEK_FP16 (2), SPARSEK_FP32 (3), SPARSEK_FP64 (4)%s",
         a.dtype, refused_dtype_hint(a.dtype));
  }
  if (a.index_type != SPARSEK_INT32 && a.index_type != SPARSEK_INT64 && a.index_type != SPARSEK_INT16) {
    fail(SPARSEK_BAD_ARGUMENT,
         "index_type = %" PRId32 " is none of SPARSEK_INT32 (1), SPARSEK_INT64 (2), SPARSEK_INT16 (3)", a.index_type);
  }
  if (a.memory != SPARSEK_HOST && a.memory != SPARSEK_DEVICE) {
    fail(SPARSEK_BAD_ARGUMENT, "memory = %" PRId32 " is neither SPARSEK_HOST (1) nor SPARSEK_DEVICE (2)", a.memory);
  }
  check_extent(a.rows, a.block_m, "rows", "block_m");
  check_extent(a.cols, a.block_k, "cols", "block_k");
  if (a.nnzb < 0) fail(SPARSEK_BAD_SIZE, "nnzb = %" PRId64 " is negative", a.nnzb);
  if (a.nnzb > kInt32Max) {
    fail(SPARSEK_BAD_SIZE, "nnzb = %" PRId64 " is beyond int32: use larger blocks", a.nnzb);
  }
  int64_t total = 0;
  if (__builtin_mul_overflow(a.block_m, a.block_k, &total) || __builtin_mul_overflow(total, bytes, &total) ||
      __builtin_mul_overflow(total, a.nnzb, &total)) {
    fail(SPARSEK_BAD_SIZE, "the values of %" PRId64 " blocks of %" PRId64 " x %" PRId64 " are beyond int64 bytes",
         a.nnzb, a.block_m, a.block_k);
  }
}

BsrShape make_bsr_shape(const sparsek_bsr& a) {
  check_bsr_header(a);
  BsrShape shape;
  shape.rows = a.rows;
  shape.cols = a.cols;
  shape.block_m = static_cast<int32_t>(a.block_m);
  shape.block_k = static_cast<int32_t>(a.block_k);
  shape.block_rows = static_cast<int32_t>(block_count(a.rows, a.block_m));
  shape.block_cols = static_cast<int32_t>(block_count(a.cols, a.block_k));
  shape.nnzb = a.nnzb;
  return shape;
}

BsrIndex make_bsr_index(const sparsek_bsr& a) {
  BsrIndex index;
  static_cast<BsrShape&>(index) = make_bsr_shape(a);
  switch (a.index_type) {
    case SPARSEK_INT16:
      copy_arrays<int16_t>(a, index);
      break;
    case SPARSEK_INT64:
      copy_arrays<int64_t>(a, index);
      break;
    default:
      copy_arrays<int32_t>(a, index);
  }
  return index;
}

void require_blocks_apart(const BsrIndex& index) {
  std::vector<bool> named(index.block_idx.size());
  for (const int32_t block : index.block_idx) {
    if (named[block]) {
      fail(SPARSEK_BAD_ARGUMENT, "block_idx names block %d twice, and SPARSEK_SDD would write it twice", block);
    }
    named[block] = true;
  }
}

}  // namespace sparsek
