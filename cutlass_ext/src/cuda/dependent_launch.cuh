// SPDX-License-Identifier: Apache-2.0
// Programmatic dependent launch: a kernel that was launched with the attribute may begin while the kernel before it in
// the stream still runs, once that kernel allows it.
#pragma once

namespace sparsek::cuda {

// Allows the next kernel to begin.
__device__ inline void allow_dependent_launch() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }

// Waits until the previous kernel has ended and its writes are visible. Every thread that accesses memory which another
// kernel may access must have called this, or must be synchronised with a thread that has.
__device__ inline void wait_for_previous_launch() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

// The begin of a kernel that reads and writes what others write and read, and itself may be followed by one that begins
// early. In this order: what began early may rely on all that ended before the kernel which let it begin.
__device__ inline void start_dependent() {
  wait_for_previous_launch();
  allow_dependent_launch();
}

}  // namespace sparsek::cuda
