// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "sparsek.h"

namespace sparsek {

// The bytes of an element; 0 for an unknown type.
constexpr int64_t dtype_bytes(int32_t dtype) {
  switch (dtype) {
    case SPARSEK_E4M3:
      return 1;
    case SPARSEK_BF16:
    case SPARSEK_FP16:
      return 2;
    case SPARSEK_FP32:
      return 4;
    case SPARSEK_FP64:
      return 8;
    default:
      return 0;
  }
}

// Whether matrices, dense operands, biases and scores may be of it.
constexpr bool is_general_dtype(int32_t dtype) { return dtype_bytes(dtype) > 0 && dtype != SPARSEK_E4M3; }
// What a message that refuses a type says besides.
constexpr const char* refused_dtype_hint(int32_t dtype) {
  return dtype == SPARSEK_E4M3 ? ": SPARSEK_E4M3 (5) is for Q, K and V of attention's forward pass alone" : "";
}

// Of A and B.
struct OperandTypes {
  sparsek_dtype a, b;
};

// The bytes of an entry of an index whose type is known.
constexpr int64_t index_type_bytes(int32_t index_type) {
  return index_type == SPARSEK_INT64 ? 8 : index_type == SPARSEK_INT16 ? 2 : 4;
}

}  // namespace sparsek
