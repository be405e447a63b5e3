// SPDX-License-Identifier: Apache-2.0
// A plan in memory of the caller's: on the CPU, the index.
#pragma once

#include <cstddef>
#include <cstdint>

#include "plan/bsr_index.h"

namespace sparsek::cpu {

// Of at most shape.nnzb blocks.
size_t plan_data_bytes(const BsrShape& shape);
// *fault (may be null) gets the status of a fault, which is also thrown, or 0. Such an index is written without blocks.
void write_plan_data(const BsrShape& shape, const sparsek_bsr& index, void* memory, int64_t* fault);
BsrIndex read_plan_data(const BsrShape& shape, const void* memory);

}  // namespace sparsek::cpu
