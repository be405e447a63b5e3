// SPDX-License-Identifier: Apache-2.0
// The values of a BSR matrix as rows of elements, which is how some libraries want them.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "cuda/plan_memory.h"
#include "cuda/vendor/index_arrays.h"

namespace sparsek::cuda {

enum class Expansion {
  kDense,   // each block in its own columns
  kPacked,  // the blocks of a block row one behind the other, in rows of one length: Blocked-ELL
  kRows,    // the same, in rows as long as their blocks are: CSR
};
constexpr int kExpansions = 3;

// Where no block is there are zeros. The index must outlive it. kRows: rows are multiples of blocks.
class ExpandedValues {
 public:
  // Of elements of the type. Complete, with all of it 0, when the constructor returns. Throws SPARSEK_OUT_OF_MEMORY
  // with the bytes that it takes and those that are free. uses: as in PlanMemory::allocate.
  ExpandedValues(const AnyIndex& index, sparsek_dtype dtype, Expansion expansion, PlanMemory& memory,
                 const StreamUses& uses);

  // Puts values, (nnzb, bm, bk), into their places; ordered in the stream. It allocates nothing. Several of it may be
  // at work at once where their values are equal: they write the same.
  void fill(const void* values, cudaStream_t stream) const;

  // The same in memory of element_bytes() that belongs to one product.
  void fill_other(void* elements, const void* values, cudaStream_t stream) const;
  size_t element_bytes() const { return elements_.bytes(); }

  const void* data() const { return elements_.data(); }  // (M, cols):(pitch, 1); kRows: (nnzb * bm * bk)
  int64_t pitch() const { return pitch_; }               // of kRows: 0
  size_t bytes() const { return elements_.bytes() + arrays_.bytes(); }

 private:
  void scatter_to(void* elements, const void* values, cudaStream_t stream) const;
  template <class Unit>
  void scatter_units(void* elements, const void* values, cudaStream_t stream) const;

  BsrShape shape_;
  Expansion expansion_;
  int element_;  // bytes
  int64_t cols_, pitch_;
  IndexArrays arrays_;
  PoolArray<char> elements_;
};

// The column index of Blocked-ELL, (block_rows, width): the columns of each block row, and behind them -1.
// Complete when the call returns. uses: as in PlanMemory::allocate.
PoolArray<int32_t> blocked_ell_columns(const AnyIndex& index, int64_t width, PlanMemory& memory,
                                       const StreamUses& uses);

// The index of CSR: of each element of the blocks. Complete when it is made. uses: as in PlanMemory::allocate.
class CsrIndex {
 public:
  CsrIndex(const AnyIndex& index, PlanMemory& memory, const StreamUses& uses);

  const int32_t* row_ptr() const { return row_ptr_.data(); }  // (M + 1)
  const int32_t* col_idx() const { return col_idx_.data(); }  // (nnzb * bm * bk)
  size_t bytes() const { return row_ptr_.bytes() + col_idx_.bytes(); }

 private:
  PoolArray<int32_t> row_ptr_, col_idx_;
};

// Throws SPARSEK_OUT_OF_MEMORY where less device memory is free; `what` is to be put there.
void require_free_memory(size_t bytes, const char* what);

}  // namespace sparsek::cuda
