// SPDX-License-Identifier: Apache-2.0
// A BSR matrix without its values: its sizes, and its checked index in host memory.
#pragma once

#include <cstdint>
#include <vector>

#include "sparsek.h"

namespace sparsek {

struct BsrShape {
  int64_t rows = 0, cols = 0;        // M, K
  int32_t block_m = 0, block_k = 0;  // bm, bk
  int32_t block_rows = 0;            // ceil(M / bm)
  int32_t block_cols = 0;            // ceil(K / bk)
  int64_t nnzb = 0;                  // blocks that are stored
};

struct BsrIndex : BsrShape {
  std::vector<int32_t> row_ptr;  // (block_rows + 1)
  std::vector<int32_t> col_idx;  // (nnzb), strictly increasing within a block row
  // (nnzb): the storage index of each block, whose values are that many blocks from the first. Empty: 0, 1, ...
  std::vector<int32_t> block_idx;
};

// Copies the index from host arrays and checks it in the same pass. Throws Error; each fault has its own status, and
// the message names the place. Does not read the values. Pointers are assumed to be host pointers.
BsrIndex make_bsr_index(const sparsek_bsr& a);

// Throws where two places name one block of values: blocks that are written must be different ones.
void require_blocks_apart(const BsrIndex& index);

// Checks the sizes and enumerations, without reading an array: extents positive (rows, cols and n may be 0), nnzb and
// the block counts within int32, bytes of the values within int64, types known. Throws Error.
void check_bsr_header(const sparsek_bsr& a);

// The sizes of a matrix, checked as by check_bsr_header. Throws Error.
BsrShape make_bsr_shape(const sparsek_bsr& a);

}  // namespace sparsek
