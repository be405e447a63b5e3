// SPDX-License-Identifier: Apache-2.0
// Making of patterns and work on values in device memory: enqueued, waits for nothing, allocates nothing.
#pragma once

#include "pattern/job.h"

namespace sparsek::cuda {

void make_pattern(const pattern::MakeJob& job, int device);
void check_pattern(const pattern::Given& index, int64_t* fault, sparsek_stream stream, int device);
void work_on_values(const pattern::ValuesJob& job, int device);

}  // namespace sparsek::cuda
