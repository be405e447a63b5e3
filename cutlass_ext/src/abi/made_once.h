// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>

namespace sparsek {

// What is made when it is first needed. There is no lock, which a fork could copy while it is held: where several
// threads come first, each makes one, and one of them stays. make: gives a std::unique_ptr<T>; where it throws, the
// next call tries again.
template <class T, class Make>
T& made_once(std::atomic<T*>& place, Make&& make) {
  T* known = place.load(std::memory_order_acquire);
  if (known == nullptr) {
    std::unique_ptr<T> own = make();
    if (place.compare_exchange_strong(known, own.get(), std::memory_order_acq_rel, std::memory_order_acquire)) {
      known = own.release();
    }
  }
  return *known;
}

}  // namespace sparsek
