// SPDX-License-Identifier: Apache-2.0
#include "cuda/vendor/index_arrays.h"

#include <algorithm>
#include <vector>

namespace sparsek::cuda {
namespace {

PoolArray<int32_t> copy(const std::vector<int32_t>& host, PlanMemory& memory, const StreamUses& uses) {
  PoolArray<int32_t> array(memory, host.size(), &uses);
  if (!host.empty()) memory.write(array.block(), {{host.data(), array.bytes(), 0}});
  return array;
}

}  // namespace

int64_t longest_row(const AnyIndex& index) {
  if (const auto* const device = std::get_if<DeviceIndex>(&index)) return device->longest_row;
  const std::vector<int32_t>& row_ptr = std::get<BsrIndex>(index).row_ptr;
  int64_t longest = 0;
  for (size_t row = 1; row < row_ptr.size(); ++row) {
    longest = std::max<int64_t>(longest, row_ptr[row] - row_ptr[row - 1]);
  }
  return longest;
}

IndexArrays::IndexArrays(const AnyIndex& index, PlanMemory& memory, const StreamUses& uses) {
  if (const auto* const device = std::get_if<DeviceIndex>(&index)) {
    row_ptr_ = device->arrays().row_ptr;
    col_idx_ = device->arrays().col_idx;
    return;
  }
  const auto& host = std::get<BsrIndex>(index);
  copies_[0] = copy(host.row_ptr, memory, uses);
  copies_[1] = copy(host.col_idx, memory, uses);
  row_ptr_ = copies_[0].data();
  col_idx_ = copies_[1].data();
}

}  // namespace sparsek::cuda
