// SPDX-License-Identifier: Apache-2.0
// The instruction sets that this processor and its operating system support.
#pragma once

namespace sparsek::cpu {

bool has_avx512();  // F, BW, VL and DQ, with FMA and F16C
bool has_avx2();    // with FMA and F16C

}  // namespace sparsek::cpu
