// SPDX-License-Identifier: Apache-2.0
// An array of indices whose type is known at run time, for the host and for kernels.
#pragma once

#include <cstdint>

#include "sparsek.h"

#ifdef __CUDACC__
#define SPARSEK_ANYWHERE __host__ __device__
#else
#define SPARSEK_ANYWHERE
#endif

namespace sparsek::pattern {

struct IndexArray {
  const void* data = nullptr;  // of `type`; where it is written, memory that may be
  int32_t type = SPARSEK_INT32;

  SPARSEK_ANYWHERE bool is_there() const { return data != nullptr; }
  SPARSEK_ANYWHERE int64_t get(int64_t i) const {
    return type == SPARSEK_INT32   ? static_cast<const int32_t*>(data)[i]
           : type == SPARSEK_INT64 ? static_cast<const int64_t*>(data)[i]
                                   : static_cast<const int16_t*>(data)[i];
  }
  SPARSEK_ANYWHERE void set(int64_t i, int64_t value) const {
    void* const to = const_cast<void*>(data);
    if (type == SPARSEK_INT32) {
      static_cast<int32_t*>(to)[i] = static_cast<int32_t>(value);
    } else if (type == SPARSEK_INT64) {
      static_cast<int64_t*>(to)[i] = value;
    } else {
      static_cast<int16_t*>(to)[i] = static_cast<int16_t>(value);
    }
  }
};

// The largest number of an index type.
SPARSEK_ANYWHERE constexpr int64_t largest_index(int32_t type) {
  return type == SPARSEK_INT64 ? INT64_MAX : type == SPARSEK_INT16 ? INT16_MAX : INT32_MAX;
}

}  // namespace sparsek::pattern
