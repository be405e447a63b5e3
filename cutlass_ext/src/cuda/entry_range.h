// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace sparsek::cuda {

// The entries of a row group.
struct EntryRange {
  int32_t begin, count;
};

}  // namespace sparsek::cuda
