// SPDX-License-Identifier: Apache-2.0
// Making of patterns and work on values in host memory.
#pragma once

#include "pattern/job.h"
#include "plan/row_pool.h"

namespace sparsek::pattern {

void make_on_host(const MakeJob& job);
void work_on_host(const ValuesJob& job);
void pool_on_host(const RowPool& job);  // host_pool.cpp

// The first fault of an index, as make_fault makes it; else kNoFault.
uint64_t find_fault(const Given& index);

}  // namespace sparsek::pattern
