// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace sparsek {

// A hash of numbers in their order: FNV-1a with 64 bits. It is the same on every machine of the same byte order.
class Digest {
 public:
  template <class T>
  void add(const T* values, size_t count) {
    static_assert(std::has_unique_object_representations_v<T>, "padding has any value");
    const auto* const bytes = reinterpret_cast<const unsigned char*>(values);
    for (size_t i = 0; i < count * sizeof(T); ++i) value_ = (value_ ^ bytes[i]) * 0x100000001b3;
  }
  // With its length, so that what moves from one array to the next is seen.
  template <class T>
  void add(const std::vector<T>& values) {
    add(values.size());
    add(values.data(), values.size());
  }
  template <class T, class = std::enable_if_t<std::is_integral_v<T>>>
  void add(T value) {
    add(&value, 1);
  }

  // Never 0.
  uint64_t value() const { return value_ == 0 ? 1 : value_; }

 private:
  uint64_t value_ = 0xcbf29ce484222325;
};

}  // namespace sparsek
