// SPDX-License-Identifier: Apache-2.0
// The CPU kernels, and which of them run on this processor.
#pragma once

#include <string>
#include <vector>

#include "cpu/kernel.h"

namespace sparsek::cpu {

// A CPU kernel, and why it does not run on this processor; empty where it does.
struct ListedKernel {
  const Kernel* kernel;
  std::string obstacle;
};

// All of them, in the order of priority.
std::vector<ListedKernel> listed_kernels();

// The first kernel that runs here: the generic one always does.
const Kernel& first_kernel();

// The kernel of that name. Throws SPARSEK_NO_SUCH_KERNEL where there is none or this processor lacks its instructions.
const Kernel& kernel_named(const std::string& name);

}  // namespace sparsek::cpu
