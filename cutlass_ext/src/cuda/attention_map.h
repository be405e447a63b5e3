// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "cuda/attention.h"
#include "cuda/head_map.h"

namespace sparsek::cuda {

// An operand of attention, of 16-bit elements.
struct HeadTensor {
  const void* data;
  HeadStrides stride;
  int batch, heads, rows;
};

// Boxes of 64 columns. An extent of 1 or 0 may have any stride, but maps have strides of whole vectors and no empty
// extents.
inline cudaError_t make_attention_map(CUtensorMap* map, const HeadTensor& of, int head_size, int box_rows) {
  constexpr int64_t kElementBytes = 2, kLeast = 16;
  constexpr int kColumns = 64;
  const auto bytes = [](int64_t elements, int extent) { return extent > 1 ? elements * kElementBytes : kLeast; };
  const HeadMapShape shape = {
      {head_size, std::max(of.rows, 1), of.heads, of.batch},
      {bytes(of.stride.row, of.rows), bytes(of.stride.head, of.heads), bytes(of.stride.batch, of.batch)}};
  return make_head_map(map, of.data, shape, kColumns, box_rows);
}

}  // namespace sparsek::cuda
