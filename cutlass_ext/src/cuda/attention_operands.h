// SPDX-License-Identifier: Apache-2.0
// What kernels of attention ask of their operands.
#pragma once

#include <array>
#include <cstdint>

#include "cuda/attention.h"
#include "sparsek.h"

namespace sparsek::cuda {

using HeadExtents = std::array<int64_t, 3>;  // batches or pages, heads, rows

struct OperandsOf {
  int device;
  const char* kernel;
};

// Throws SPARSEK_MISALIGNED, with the name of the member of sparsek_attention_args.
void require_aligned(const void* data, const char* name);

// Of an operand as the kernel reads it: in device memory, aligned to 16 bytes as its strides are. Throws where it is
// not.
HeadStrides head_strides(const void* data, const int64_t (&stride)[3], const char* name, const HeadExtents& extents,
                         sparsek_dtype dtype, const OperandsOf& of);

}  // namespace sparsek::cuda
