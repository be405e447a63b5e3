// SPDX-License-Identifier: Apache-2.0
// The values of a product in the order of its plan's lists (cuda/stage_lists.h). Zeros of blocks become -0, which adds
// what 0 adds, so that they differ from the zeros of absent elements (cuda/marked_pairs.cuh).
#pragma once

#include "cuda/chunk_args.h"
#include "cuda/stage_lists.h"

namespace sparsek::cuda {

// LaunchArgs::rows_in_chunks of kernels that scatter: the plan has lists too.
struct ScatteredRows : RowChunks {
  ListSizes sizes;
  StageLists lists;
  bool has_all_stages;  // of each row group, as is known; else counts say how many
};

// Loads the kernel. Call it before the first launch on a device, since a capture does not allow loading.
cudaError_t prepare_stage_values();

// Writes them to `to`, of sizes.value_bytes(). A kernel that follows may begin while this one runs.
cudaError_t copy_stage_values(const ListSizes& sizes, const StageLists& lists, const void* values, void* to,
                              cudaStream_t stream);

}  // namespace sparsek::cuda
