// SPDX-License-Identifier: Apache-2.0
#include "cpu/cpu_features.h"

namespace sparsek::cpu {
namespace {

bool has_fma_and_f16c() { return __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c"); }

}  // namespace

bool has_avx512() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") && has_fma_and_f16c();
}

bool has_avx2() { return __builtin_cpu_supports("avx2") && has_fma_and_f16c(); }

}  // namespace sparsek::cpu
