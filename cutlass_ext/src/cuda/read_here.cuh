// SPDX-License-Identifier: Apache-2.0
// Values that the compiler reads at the place of the call, so that it computes nothing from them earlier, which would
// occupy registers during the mainloop.
#pragma once

namespace sparsek::cuda {

// threadIdx.x
__device__ inline int read_thread() {
  int thread;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
  return thread;
}

// The address of what is behind a kernel's parameters.
template <class T>
__device__ const T* read_here(const T* from) {
  asm volatile("" : "+l"(from));
  return from;
}

}  // namespace sparsek::cuda
