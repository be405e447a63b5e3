// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <xmmintrin.h>

namespace sparsek::cpu {

// During its lifetime the thread rounds to nearest, keeps subnormals and does not trap, whatever its settings were.
// Results must not depend on the thread that computes them.
class DefaultFloatingPoint {
 public:
  DefaultFloatingPoint() : before_(_mm_getcsr()) { _mm_setcsr(kAllTrapsMasked); }
  ~DefaultFloatingPoint() { _mm_setcsr(before_); }
  DefaultFloatingPoint(const DefaultFloatingPoint&) = delete;
  DefaultFloatingPoint& operator=(const DefaultFloatingPoint&) = delete;

 private:
  static constexpr unsigned kAllTrapsMasked = 0x1f80;
  const unsigned before_;
};

}  // namespace sparsek::cpu
