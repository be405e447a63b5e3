// SPDX-License-Identifier: Apache-2.0
// Stores into the shared memory of another CTA of the cluster, counted by a transaction barrier of that CTA: a thread
// that waits for the barrier sees them, without a fence over the whole cluster.
#pragma once

#include <cstdint>

#include "cute/arch/cluster_sm90.hpp"
#include "cute/arch/util.hpp"

namespace sparsek::cuda {

// The address, in the cluster's shared memory, of the counterpart of *own in CTA `rank`.
template <class T>
__device__ uint32_t address_in(int rank, const T* own) {
  return cute::set_block_rank(cute::cast_smem_ptr_to_uint(own), rank);
}

// Stores 16 bytes, which count for the transaction of the barrier.
__device__ inline void store_in_cluster(uint32_t to, const float (&value)[4], uint32_t barrier) {
  asm volatile(
      "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%1, %2, %3, %4}, [%5];" ::"r"(to),
      "f"(value[0]), "f"(value[1]), "f"(value[2]), "f"(value[3]), "r"(barrier)
      : "memory");
}

}  // namespace sparsek::cuda
