// SPDX-License-Identifier: Apache-2.0
// Element types in memory. Plain data: files for different instruction sets share this header.
#pragma once

#include <cstdint>

namespace sparsek::cpu {

struct Bf16 {
  uint16_t bits;
};
struct Fp16 {
  uint16_t bits;
};
struct E4m3 {
  uint8_t bits;
};

}  // namespace sparsek::cpu
