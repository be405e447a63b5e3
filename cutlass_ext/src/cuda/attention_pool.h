// SPDX-License-Identifier: Apache-2.0
// The mean, the maximum and the minimum of each column of blocks of rows.
#pragma once

#include "plan/row_pool.h"

namespace sparsek::cuda {

// In the job's stream. Arrays must be in device memory.
void pool_rows(const RowPool& job, int device);

}  // namespace sparsek::cuda
