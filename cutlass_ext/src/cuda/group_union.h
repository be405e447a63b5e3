// SPDX-License-Identifier: Apache-2.0
// The union lists of row groups, made by kernels: what plan/column_union.h makes on the host.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "plan/row_grid.h"

namespace sparsek::cuda {

// A pattern in device memory and the row groups of its plan.
struct GroupedPattern {
  RowGrid grid;
  const int32_t* row_ptr;  // (block_rows + 1)
  const int32_t* col_idx;  // (nnzb)
};

// begin (groups + 1): the first entry of each group, and their number at the end. A group that has its entries in
// common with its leader has none of its own. counts (groups): the entries of each group, for a leader only.
// scratch: scan_bytes(groups) of device memory. Enqueued in the stream; so are all of these.
void count_entries(const GroupedPattern& pattern, int64_t* counts, int64_t* begin, void* scratch, cudaStream_t stream);
size_t scan_bytes(int32_t groups);

// entry_col (entries) and entry_block (entries, slots), from `begin`.
void fill_entries(const GroupedPattern& pattern, const int64_t* begin, int64_t entries, int32_t* entry_col,
                  int32_t* entry_block, cudaStream_t stream);

}  // namespace sparsek::cuda
