// SPDX-License-Identifier: Apache-2.0
// Makes the union lists of row groups by kernels, as plan/column_union.h does on the host.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "plan/row_grid.h"

namespace sparsek::cuda {

// A pattern in device memory and the row groups of its plan.
struct GroupedPattern {
  RowGrid grid;
  int32_t block_k;
  const int32_t* row_ptr;  // (block_rows + 1)
  const int32_t* col_idx;  // (nnzb)
};

// begin (groups + 1): the first entry of each group, and at the end their number. A group that shares its leader's
// entries has none here. counts (groups): the entries of each group, set for leaders only. scratch: scan_bytes(groups)
// bytes of device memory. All of these functions enqueue their work in the stream.
void count_entries(const GroupedPattern& pattern, int64_t* counts, int64_t* begin, void* scratch, cudaStream_t stream);
size_t scan_bytes(int32_t groups);

// Fills entry_k (entries) and entry_block (entries, slots), given `begin`.
void fill_entries(const GroupedPattern& pattern, const int64_t* begin, int64_t entries, int32_t* entry_k,
                  int32_t* entry_block, cudaStream_t stream);

}  // namespace sparsek::cuda
