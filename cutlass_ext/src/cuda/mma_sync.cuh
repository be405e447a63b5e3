// SPDX-License-Identifier: Apache-2.0
// The tensor-core instruction of one warp, and the loads of its operands from shared memory.
//
// m16n8k16, lane = 4 r + c with r in 0..7 and c in 0..3:
//   A (16, 16)  a[0] (r, 2c..), a[1] (r + 8, 2c..), a[2] (r, 2c + 8..), a[3] (r + 8, 2c + 8..), two elements each
//   B (16, 8)   b0 (2c.., r), b1 (2c + 8.., r), two elements of a column each
//   D (16, 8)   d[0], d[1] (r, 2c..), d[2], d[3] (r + 8, 2c..)
// A warp's 16 rows of wgmma m64nNk16 have the same layout of A and D.
#pragma once

#include <cstdint>

#include "cutlass/bfloat16.h"
#include "cutlass/half.h"

namespace sparsek::cuda {

// d += a b
template <class Element>
__device__ void mma_m16n8k16(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1);

template <>
__device__ inline void mma_m16n8k16<cutlass::bfloat16_t>(float (&d)[4], const uint32_t (&a)[4], uint32_t b0,
                                                         uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

template <>
__device__ inline void mma_m16n8k16<cutlass::half_t>(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Four 8 x 8 matrices of 16-bit elements; lanes 8 i to 8 i + 7 give the addresses of the rows of matrix i.
__device__ inline void load_matrices(uint32_t (&r)[4], uint32_t shared_address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address));
}

// Like load_matrices, with each matrix transposed.
__device__ inline void load_matrices_transposed(uint32_t (&r)[4], uint32_t shared_address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address));
}

}  // namespace sparsek::cuda
