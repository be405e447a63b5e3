// SPDX-License-Identifier: Apache-2.0
// Programmatic dependent launch: a kernel that was launched with the attribute may begin while the one before it in the
// stream still runs, once that one allows it or has ended.
#pragma once

namespace sparsek::cuda {

// Allows the next kernel to begin.
__device__ inline void allow_dependent_launch() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }

// Waits until the kernel before has ended and what it wrote is seen. Every thread that touches memory which another
// kernel may write or read must have called it, or wait for one that has.
__device__ inline void wait_for_previous_launch() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

}  // namespace sparsek::cuda
