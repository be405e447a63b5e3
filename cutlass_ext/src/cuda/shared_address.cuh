// SPDX-License-Identifier: Apache-2.0
// Barriers, words and bulk copies by 32-bit addresses in shared memory, for loops in which a pointer would cost too
// much: each use of a generic pointer reads the rank of the CTA in its cluster.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "cute/arch/util.hpp"
#include "cutlass/arch/barrier.h"

namespace sparsek::cuda {

constexpr uint32_t kBarrierBytes = 8;
static_assert(sizeof(cutlass::arch::ClusterBarrier) == kBarrierBytes &&
              sizeof(cutlass::arch::ClusterTransactionBarrier) == kBarrierBytes);

// The address of an object in shared memory, opaque to the compiler, so that it keeps the value in a register.
__device__ inline uint32_t shared_address(const void* of) {
  uint32_t address = cute::cast_smem_ptr_to_uint(of);
  asm volatile("" : "+r"(address));
  return address;
}

__device__ inline void store_word(uint32_t to, uint32_t word) {
  asm volatile("st.shared.u32 [%0], %1;" ::"r"(to), "r"(word) : "memory");
}

__device__ inline uint32_t load_word(uint32_t from) {
  uint32_t word;
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(word) : "r"(from) : "memory");
  return word;
}

// Waits until the phase of a barrier with this parity has ended.
__device__ inline void wait_for_phase(uint32_t barrier, uint32_t parity) {
  asm volatile(
      "{\n"
      ".reg .pred ended;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 ended, [%0], %1;\n"
      "@!ended bra again;\n"
      "}" ::"r"(barrier),
      "r"(parity)
      : "memory");
}

// Arrives at a barrier, whose phase then lasts until `bytes` more bytes have been copied.
__device__ inline void arrive_and_expect(uint32_t barrier, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

// Arrives at a barrier in the shared memory of a CTA of the cluster, which is that of the caller where Ctas = 1.
template <int Ctas>
__device__ void arrive_in_cluster(uint32_t barrier) {
  if constexpr (Ctas == 1) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
  } else {
    asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(barrier) : "memory");
  }
}

// Copies bytes that lie one after the other, a multiple of 16, and signals the barrier.
__device__ inline void copy_to_shared(uint32_t to, const void* from, uint32_t bytes, uint32_t barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
               "l"(from), "r"(bytes), "r"(barrier)
               : "memory");
}

struct BoxOrigin {
  int x, y, z;
};

// Copies the box of a 3-D tensor that begins at the given coordinates, and signals the barrier.
__device__ inline void load_box(const CUtensorMap& map, uint32_t barrier, uint64_t cache_hint, uint32_t to,
                                BoxOrigin from) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
      "[%0], [%1, {%4, %5, %6}], [%2], %3;" ::"r"(to),
      "l"(&map), "r"(barrier), "l"(cache_hint), "r"(from.x), "r"(from.y), "r"(from.z)
      : "memory");
}

// Like load_box, to the same place in the shared memory of all CTAs of the cluster, each of whose barriers is
// signalled.
template <int Ctas>
__device__ void load_box_to_all(const CUtensorMap& map, uint32_t barrier, uint64_t cache_hint, uint32_t to,
                                BoxOrigin from) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint "
      "[%0], [%1, {%4, %5, %6}], [%2], %7, %3;" ::"r"(to),
      "l"(&map), "r"(barrier), "l"(cache_hint), "r"(from.x), "r"(from.y), "r"(from.z), "h"(uint16_t((1 << Ctas) - 1))
      : "memory");
}

}  // namespace sparsek::cuda
