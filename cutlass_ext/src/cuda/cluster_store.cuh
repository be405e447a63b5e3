// SPDX-License-Identifier: Apache-2.0
// Stores into the shared memory of another CTA of the cluster, which a transaction barrier of that CTA counts: who
// waits for the barrier sees them, and no fence over the whole cluster is needed.
#pragma once

#include <cstdint>

#include "cute/arch/cluster_sm90.hpp"
#include "cute/arch/util.hpp"

namespace sparsek::cuda {

// The address, in the cluster's shared memory, of what CTA `rank` has where this CTA has *own.
template <class T>
__device__ uint32_t address_in(int rank, const T* own) {
  return cute::set_block_rank(cute::cast_smem_ptr_to_uint(own), rank);
}

// Counts 16 bytes of the barrier's transaction.
__device__ inline void store_in_cluster(uint32_t to, const float (&value)[4], uint32_t barrier) {
  asm volatile(
      "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%1, %2, %3, %4}, [%5];" ::"r"(to),
      "f"(value[0]), "f"(value[1]), "f"(value[2]), "f"(value[3]), "r"(barrier)
      : "memory");
}

}  // namespace sparsek::cuda
