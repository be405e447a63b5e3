// SPDX-License-Identifier: Apache-2.0
// The CPU kernels and which of them this processor runs.
#pragma once

#include <string>

#include "cpu/kernel.h"

namespace sparsek::cpu {

struct KernelChoice {
  const Kernel* kernel;
  std::string reason;
};

// The kernel of that name, or, where the name is empty, the first that this processor runs. Throws
// SPARSEK_NO_SUCH_KERNEL where there is none of the name or this processor lacks its instructions.
KernelChoice choose_kernel(const std::string& name);

}  // namespace sparsek::cpu
