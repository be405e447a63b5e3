// SPDX-License-Identifier: Apache-2.0
// The instructions of one warp on the tensor cores for fp64, lane = 4 r + c with r in 0..7 and c in 0..3:
//
//   A (16, 16)  a[2 i] (r, 4 i + c), a[2 i + 1] (r + 8, 4 i + c)
//   B (16, 8)   b[i] (4 i + c, r)
//   D (16, 8)   d[0], d[1] (r, 2c..), d[2], d[3] (r + 8, 2c..)
//
// Products are fused with additions that round to nearest.
#pragma once

namespace sparsek::cuda {

// d += a b
__device__ inline void mma_m16n8k16(double (&d)[4], const double (&a)[8], const double (&b)[4]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 "
      "{%0,%1,%2,%3}, {%4,%5,%6,%7,%8,%9,%10,%11}, {%12,%13,%14,%15}, {%0,%1,%2,%3};"
      : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
      : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(a[4]), "d"(a[5]), "d"(a[6]), "d"(a[7]), "d"(b[0]), "d"(b[1]),
        "d"(b[2]), "d"(b[3]));
}

// The first 8 columns of A alone.
__device__ inline void mma_m16n8k8(double (&d)[4], const double (&a)[8], const double (&b)[4]) {
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
               : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]));
}

}  // namespace sparsek::cuda
