// SPDX-License-Identifier: Apache-2.0
// The index of the transpose of a matrix whose index is in device memory, made there.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "cuda/index_verdict.h"
#include "cuda/layout.h"
#include "plan/bsr_index.h"
#include "sparsek.h"

namespace sparsek::cuda {

// Its arrays. The columns of a block row are in any order.
struct TransposedIndex {
  int32_t* row_ptr;    // (block columns + 1)
  int32_t* col_idx;    // (nnzb): block rows
  int32_t* block_idx;  // (nnzb): the blocks of values, where they lie
  int32_t* cursor;     // (block columns + 1): scratch
};

// Where they lie within a block of memory.
class TransposedLayout {
 public:
  TransposedLayout(const BsrShape& shape, Layout& layout);
  TransposedIndex within(std::byte* memory) const;

 private:
  size_t row_ptr_, col_idx_, block_idx_, cursor_;
};

// Loads the kernels. Call it before the first launch on a device, since a capture does not allow loading.
void prepare_transposed_index();

// Enqueues the making of it. shape: of the matrix. Of a faulty index it has no blocks. Returns it as a matrix of that
// stream, whose rows are to be sorted, without values.
sparsek_bsr enqueue_transposed(const CheckedIndex& from, const BsrShape& shape, sparsek_dtype dtype,
                               const TransposedIndex& to, cudaStream_t stream);

}  // namespace sparsek::cuda
