// SPDX-License-Identifier: Apache-2.0
// Types that stand for those of CUTLASS, where only their names matter.
#pragma once

namespace cutlass {
struct bfloat16_t;
struct half_t;
}  // namespace cutlass
