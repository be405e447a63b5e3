// SPDX-License-Identifier: Apache-2.0
#include "cuda/attention_operands.h"

#include <cinttypes>

#include "abi/dtype.h"
#include "abi/error.h"
#include "cuda/cuda_matrix.h"

namespace sparsek::cuda {
namespace {

constexpr int64_t kVectorBytes = 16;

}  // namespace

void require_aligned(const void* data, const char* name) {
  if (reinterpret_cast<uintptr_t>(data) % kVectorBytes != 0) {
    fail(SPARSEK_MISALIGNED, "args->%s = %p is not aligned to %" PRId64 " bytes", name, data, kVectorBytes);
  }
}

HeadStrides head_strides(const void* data, const int64_t (&stride)[3], const char* name, const HeadExtents& extents,
                         sparsek_dtype dtype, const OperandsOf& of) {
  if (extents[2] == 0) return {};
  check_memory(data, SPARSEK_DEVICE, of.device, name);
  require_aligned(data, name);
  const int64_t bytes = dtype_bytes(dtype);
  for (int i = 0; i < 3; ++i) {
    if (extents[i] > 1 && (stride[i] == 0 || stride[i] * bytes % kVectorBytes != 0)) {
      fail(SPARSEK_BAD_LEADING_DIMENSION,
           "args->stride_%s[%d] = %" PRId64 " is 0 or no multiple of %" PRId64
           " elements, 16 bytes: kernel %s loads no others",
           name, i, stride[i], kVectorBytes / bytes, of.kernel);
    }
  }
  return {stride[0], stride[1], stride[2]};
}

}  // namespace sparsek::cuda
