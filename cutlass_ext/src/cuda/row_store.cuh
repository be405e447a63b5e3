// SPDX-License-Identifier: Apache-2.0
// The epilogue of kernels that hold their accumulators as mma_sync.cuh says: any rows, N, pitch and alignment of C.
#pragma once

#include "cuda/kernel.h"
#include "cutlass/numeric_conversion.h"

namespace sparsek::cuda {

template <class Element>
__device__ uint32_t pack(float x, float y) {
  const cutlass::Array<float, 2> from = {x, y};
  const auto to = cutlass::NumericArrayConverter<Element, float, 2>::convert(from);
  return reinterpret_cast<const uint32_t&>(to);
}

// C = alpha acc + beta C for a warp's 16 rows and the columns from first_col on. row[0] is the lane's row of C for
// acc[.][0] and acc[.][1], row[1] that for acc[.][2] and acc[.][3]. Where rows are aligned, neighbouring lanes swap
// halves so that each group of four stores a full 32-byte sector.
template <class Element, int Groups>
__device__ void store_rows(const LaunchArgs& args, float (&acc)[Groups][4], const uint32_t (&row)[2], int64_t first_col,
                           int lane) {
  auto* const c = static_cast<Element*>(args.c);
  const bool vectors = first_col + Groups * 8 <= args.n && (args.ldc % 4 | reinterpret_cast<uintptr_t>(c) % 8) == 0;
  const int columns = int(min(int64_t(Groups * 8), args.n - first_col));  // of C, from first_col on
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const bool inside = row[h] < args.rows;
    Element* const out = c + int64_t(row[h]) * args.ldc + first_col;
    const int col = lane % 4 * 2;
    const bool odd = lane % 2;
    const int quad_col = odd ? 8 + (lane % 4 - 1) * 2 : col;
#pragma unroll
    for (int i = 0; i < Groups * 2; ++i) acc[i / 2][h * 2 + i % 2] *= args.alpha;
    if (args.beta != 0) {
#pragma unroll
      for (int i = 0; i < Groups * 2; ++i) {
        const int at = i / 2 * 8 + col + i % 2;
        if (inside && at < columns) acc[i / 2][h * 2 + i % 2] += args.beta * float(out[at]);
        if (i % 16 == 15) asm volatile("" ::: "memory");  // no registers for more loads at once
      }
    }
    if (vectors) {
#pragma unroll
      for (int g = 0; g < Groups; g += 2) {
        const uint32_t first = pack<Element>(acc[g][h * 2], acc[g][h * 2 + 1]);
        const uint32_t second = pack<Element>(acc[g + 1][h * 2], acc[g + 1][h * 2 + 1]);
        const uint32_t other = __shfl_xor_sync(0xffffffffu, odd ? first : second, 1);
        if (inside) {
          // C is not read again: it should not displace A and B from L2.
          __stcs(reinterpret_cast<uint2*>(out + g * 8 + quad_col), odd ? uint2{other, second} : uint2{first, other});
        }
      }
    } else {
#pragma unroll
      for (int i = 0; i < Groups * 2; ++i) {
        const int at = i / 2 * 8 + col + i % 2;
        if (inside && at < columns) out[at] = Element(acc[i / 2][h * 2 + i % 2]);
      }
    }
  }
}

}  // namespace sparsek::cuda
