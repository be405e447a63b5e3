// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace sparsek::cuda {

// Arrays one after the other in one allocation, each aligned like a separate allocation.
class Layout {
 public:
  // Where an array of `count` elements begins, in bytes.
  template <class T>
  size_t place(size_t count) {
    const size_t begin = bytes_;
    bytes_ += (count * sizeof(T) + kAlignment - 1) / kAlignment * kAlignment;
    return begin;
  }
  size_t bytes() const { return bytes_; }

 private:
  static constexpr size_t kAlignment = 256;
  size_t bytes_ = 0;
};

}  // namespace sparsek::cuda
