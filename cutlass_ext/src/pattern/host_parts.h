// SPDX-License-Identifier: Apache-2.0
// What pattern/host.cpp is made of.
#pragma once

#include "pattern/job.h"

namespace sparsek::pattern {

// host_csr.cpp
void make_from_csr(const MakeJob& job);
void make_csr(const MakeJob& job);

// host_topk.cpp
void make_from_scores(const MakeJob& job);  // also above a threshold
void make_from_columns(const MakeJob& job);

// host_norms.cpp
void norm_dense_blocks(const MakeJob& job);
void norm_blocks(const ValuesJob& job);

// host_sums.cpp
void sum_rows(const ValuesJob& job);

// host_values.cpp: the blocks of an index from a dense matrix.
void gather_blocks(const Given& index, sparsek_dtype dtype, const void* dense, int64_t ld, sparsek_order order,
                   void* values);

// Entries that a matrix in host memory has.
inline int64_t entries_of(const Given& a) { return a.bounded ? a.row_ptr.get(a.shape.block_rows) : a.shape.nnzb; }

// The index that was made, to be read.
inline Given as_given(const Made& made) {
  return {made.shape, made.row_ptr, made.col_idx, {}, made.values, true, false};
}

}  // namespace sparsek::pattern
