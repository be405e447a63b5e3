// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plan/bsr_index.h"

namespace sparsek {

// The sizes of the transpose: blocks of bk x bm.
BsrShape transposed(const BsrShape& shape);

// The index of the transpose. block_idx names the blocks of the given one, whose values stay where and as they are: its
// block e is the transpose of the block block_idx[e] of values.
BsrIndex transpose_index(const BsrIndex& index);

}  // namespace sparsek
