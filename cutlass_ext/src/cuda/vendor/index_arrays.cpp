// SPDX-License-Identifier: Apache-2.0
#include "cuda/vendor/index_arrays.h"

#include <algorithm>
#include <vector>

namespace sparsek::cuda {
namespace {

DeviceArray<int32_t> copy(const std::vector<int32_t>& host) {
  DeviceArray<int32_t> array(host.size());
  if (host.empty()) return array;
  check(cudaMemcpy(array.data(), host.data(), array.bytes(), cudaMemcpyHostToDevice), "cudaMemcpy");
  // From pageable memory the call may return before the last byte has landed, and other streams do not wait for it.
  check(cudaStreamSynchronize(cudaStreamLegacy), "cudaStreamSynchronize");
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

IndexArrays::IndexArrays(const AnyIndex& index) {
  if (const auto* const device = std::get_if<DeviceIndex>(&index)) {
    row_ptr_ = device->row_ptr.data();
    col_idx_ = device->col_idx.data();
    return;
  }
  const auto& host = std::get<BsrIndex>(index);
  copies_[0] = copy(host.row_ptr);
  copies_[1] = copy(host.col_idx);
  row_ptr_ = copies_[0].data();
  col_idx_ = copies_[1].data();
}

}  // namespace sparsek::cuda
