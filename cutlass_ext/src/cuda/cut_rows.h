// SPDX-License-Identifier: Apache-2.0
// Makes plans with chunks by a kernel, as plan/chunk_plan.cpp does on the host.
#pragma once

#include <cuda_runtime_api.h>

#include "cuda/index_verdict.h"
#include "cuda/plan_arrays.h"
#include "plan/row_chunks.h"

namespace sparsek::cuda {

// Fills the arrays of a plan with rule.count chunks. One with a fault in its index has no entries. One kernel in the
// stream.
void cut_rows(const CheckedIndex& index, const ChunkRule& rule, int32_t block_k, const PlanArrays::Views& to,
              cudaStream_t stream);

}  // namespace sparsek::cuda
