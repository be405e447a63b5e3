// SPDX-License-Identifier: Apache-2.0
#include "cpu/plan_data.h"

#include <algorithm>
#include <numeric>

#include "abi/error.h"
#include "abi/require.h"

namespace sparsek::cpu {
namespace {

// row_ptr, then col_idx, then block_idx.
size_t ends(const BsrShape& shape) { return static_cast<size_t>(shape.block_rows) + 1; }

}  // namespace

size_t plan_data_bytes(const BsrShape& shape) {
  return sizeof(int32_t) * (ends(shape) + 2 * static_cast<size_t>(shape.nnzb));
}

void write_plan_data(const BsrShape& shape, const sparsek_bsr& given, void* memory, int64_t* fault) {
  if (given.memory != SPARSEK_HOST) {
    fail(SPARSEK_WRONG_MEMORY, "the CPU back-end takes host arrays: index->memory is not SPARSEK_HOST");
  }
  auto* const to = static_cast<int32_t*>(memory);
  std::fill_n(to, ends(shape), 0);
  try {
    const BsrIndex index = make_bsr_index(with_its_blocks(given));
    int32_t* const col_idx = std::copy(index.col_idx.begin(), index.col_idx.end(), to + ends(shape));
    if (index.block_idx.empty()) {
      std::iota(col_idx, col_idx + index.nnzb, 0);
    } else {
      std::copy(index.block_idx.begin(), index.block_idx.end(), col_idx);
    }
    std::copy(index.row_ptr.begin(), index.row_ptr.end(), to);
    if (fault != nullptr) *fault = 0;
  } catch (const Error& error) {
    if (fault != nullptr) *fault = error.status();
    throw;
  }
}

BsrIndex read_plan_data(const BsrShape& shape, const void* memory) {
  const auto* const from = static_cast<const int32_t*>(memory);
  BsrIndex index;
  static_cast<BsrShape&>(index) = shape;
  index.row_ptr.assign(from, from + ends(shape));
  index.nnzb = index.row_ptr.back();
  const int32_t* const col_idx = from + ends(shape);
  index.col_idx.assign(col_idx, col_idx + index.nnzb);
  index.block_idx.assign(col_idx + index.nnzb, col_idx + 2 * index.nnzb);
  return index;
}

}  // namespace sparsek::cpu
