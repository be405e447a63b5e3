// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <xmmintrin.h>

namespace sparsek::cpu {

// While it lives: rounding to nearest, subnormals kept, no traps, whatever the thread had set. Results must not depend
// on which thread computes them.
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
