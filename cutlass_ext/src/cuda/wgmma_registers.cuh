// SPDX-License-Identifier: Apache-2.0
// The instructions of cuda/wgmma.cuh with A in registers, N = 64, 96, 128 and 256; and that with A in shared memory,
// N = 32.
#pragma once

#include "cuda/wgmma.cuh"

namespace sparsek::cuda {

// The instruction for 8 Groups columns, of a B with N or K contiguous.
template <class Element, Major MajorB, int Groups>
struct WgmmaRs;
#define SPARSEK_WGMMA(GROUPS, COLUMNS)                                                   \
  template <Major MajorB>                                                                \
  struct WgmmaRs<cutlass::bfloat16_t, MajorB, GROUPS> {                                  \
    using Op = cute::SM90::GMMA::MMA_64x##COLUMNS##x16_F32BF16BF16_RS<Major::K, MajorB>; \
  };                                                                                     \
  template <Major MajorB>                                                                \
  struct WgmmaRs<cutlass::half_t, MajorB, GROUPS> {                                      \
    using Op = cute::SM90::GMMA::MMA_64x##COLUMNS##x16_F32F16F16_RS<Major::K, MajorB>;   \
  };
SPARSEK_WGMMA(8, 64)
SPARSEK_WGMMA(12, 96)
SPARSEK_WGMMA(16, 128)
SPARSEK_WGMMA(32, 256)
#undef SPARSEK_WGMMA

template <Major MajorB, Major MajorA>
struct WgmmaSs<cutlass::bfloat16_t, MajorB, MajorA, 4> {
  using Op = cute::SM90::GMMA::MMA_64x32x16_F32BF16BF16_SS<MajorA, MajorB>;
};
template <Major MajorB, Major MajorA>
struct WgmmaSs<cutlass::half_t, MajorB, MajorA, 4> {
  using Op = cute::SM90::GMMA::MMA_64x32x16_F32F16F16_SS<MajorA, MajorB>;
};

template <class Element, Major MajorB, int Groups, size_t... I>
__device__ void wgmma_rs(float (&acc)[Groups][4], const uint32_t (&a)[4], uint64_t b, bool adds,
                         std::index_sequence<I...>) {
  WgmmaRs<Element, MajorB, Groups>::Op::fma(a[0], a[1], a[2], a[3], b, acc[I / 4][I % 4]...,
                                            adds ? cute::SM90::GMMA::ScaleOut::One : cute::SM90::GMMA::ScaleOut::Zero);
}

// Begins acc(64, 8 Groups) += a(64, 16) b(16, 8 Groups), or = where it does not add. a: of two groups of 8 columns of a
// tile that lies as sums do, its two rows' pairs of elements.
template <class Element, Major MajorB = Major::MN, int Groups>
__device__ void wgmma_rs(float (&acc)[Groups][4], const uint32_t (&a)[4], uint64_t b, bool adds = true) {
  wgmma_rs<Element, MajorB>(acc, a, b, adds, std::make_index_sequence<Groups * 4>());
}

}  // namespace sparsek::cuda
