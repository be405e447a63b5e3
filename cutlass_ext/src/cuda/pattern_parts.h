// SPDX-License-Identifier: Apache-2.0
// What the making of patterns in device memory consists of. Each function enqueues its work in the job's stream.
#pragma once

#include "pattern/job.h"

namespace sparsek::cuda {

// pattern_scan.cu. row_ptr[i + 1] has the entries of row i, and gets their sum up to row i, or with `exclusive` before
// it, at most the capacity. judged: *fault has what was found, or no fault; then there are no rows. Tells fault and
// blocks.
struct Scan {
  bool judged = false, exclusive = false;
};
void enqueue_scan(const pattern::Made& to, Scan scan, sparsek_stream stream);

// pattern_select.cu
void make_from_mask(const pattern::MakeJob& job);    // or scores above a threshold
void make_from_scores(const pattern::MakeJob& job);  // the highest ones
// pattern_columns.cu
void make_from_columns(const pattern::MakeJob& job);
void make_from_csr(const pattern::MakeJob& job);
// pattern_check.cu. *fault gets the first fault there is, if that is before what it has.
void enqueue_find_faults(const pattern::Given& index, int64_t* fault, sparsek_stream stream);
void enqueue_find_faults_of_coo(const pattern::Given& index, const pattern::IndexArray& rows, int64_t* fault,
                                sparsek_stream stream);
// pattern_transpose.cu
void make_transposed(const pattern::MakeJob& job);
// pattern_diagonal.cu
void make_from_counts(const pattern::MakeJob& job);
void make_block_diagonal(const pattern::MakeJob& job);
// pattern_csr.cu
void make_csr(const pattern::MakeJob& job);

// block_norms.cu
void norm_dense_blocks(const pattern::MakeJob& job);
void norm_blocks(const pattern::ValuesJob& job);
// block_sums.cu
void sum_rows(const pattern::ValuesJob& job);
// block_values.cu
void expand_blocks(const pattern::ValuesJob& job);
void gather_blocks(const pattern::Given& index, sparsek_dtype dtype, const void* dense, int64_t ld, sparsek_order order,
                   void* values, sparsek_stream stream);
// The values of entries whose blocks of job.from[0] are named, where values are wanted.
void copy_named_blocks(const pattern::MakeJob& job);
void scale_blocks(const pattern::ValuesJob& job);
void combine_blocks(const pattern::ValuesJob& job);

}  // namespace sparsek::cuda
