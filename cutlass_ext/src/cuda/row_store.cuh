// SPDX-License-Identifier: Apache-2.0
// The epilogue of kernels that hold their accumulators as mma_sync.cuh says: any rows, N, pitch and alignment of C.
#pragma once

#include <type_traits>

#include "cuda/epilogue.cuh"
#include "cuda/kernel.h"
#include "cutlass/bfloat16.h"
#include "cutlass/half.h"
#include "cutlass/numeric_conversion.h"

namespace sparsek::cuda {

template <class Element>
__device__ uint32_t pack(float x, float y) {
  const cutlass::Array<float, 2> from = {x, y};
  const auto to = cutlass::NumericArrayConverter<Element, float, 2>::convert(from);
  return reinterpret_cast<const uint32_t&>(to);
}

template <class Element>
constexpr sparsek_dtype kDtypeOf = std::is_same_v<Element, cutlass::bfloat16_t> ? SPARSEK_BF16 : SPARSEK_FP16;

// A warp's 16 rows of C = alpha acc + beta C from the column first_col on, in the type of A and B. row[0] is the lane's
// row of C for acc[.][0] and acc[.][1], row[1] that for acc[.][2] and acc[.][3]. Where rows are aligned, neighbouring
// lanes swap halves so that each group of four stores a full 32-byte sector.
template <class Element, int Groups>
__device__ void store_plain_rows(const LaunchArgs& args, float (&acc)[Groups][4], const uint32_t (&row)[2],
                                 int64_t first_col, int lane) {
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
    for (int i = 0; i < Groups * 2; ++i) acc[i / 2][h * 2 + i % 2] *= args.epilogue.alpha;
    if (args.epilogue.beta != 0) {
#pragma unroll
      for (int i = 0; i < Groups * 2; ++i) {
        const int at = i / 2 * 8 + col + i % 2;
        if (inside && at < columns) acc[i / 2][h * 2 + i % 2] += args.epilogue.beta * float(out[at]);
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

// Two neighbours of a row of C from their sums, by whatever epilogue.
__device__ inline void write_pair(const LaunchArgs& args, int64_t row, int64_t col, float first, float second) {
  const Epilogue& e = args.epilogue;
  const int64_t at = row * args.ldc + col;
  const bool whole = row < args.rows && col + 1 < args.n;
  const bool aligned = (reinterpret_cast<uintptr_t>(args.c) / (e.dtype_c == SPARSEK_FP32 ? 4 : 2) + at) % 2 == 0;
  if (!whole || !aligned) {
    if (row < args.rows && col < args.n) write_element(args, row, col, first);
    if (whole) write_element(args, row, col + 1, second);
    return;
  }
  const bool reads = e.beta != 0.f;
  const float x = finish(e, first, reads ? load_element(e.dtype_c, args.c, at) : 0.f, bias_at(e, row, col));
  const float y = finish(e, second, reads ? load_element(e.dtype_c, args.c, at + 1) : 0.f, bias_at(e, row, col + 1));
  if (e.dtype_c == SPARSEK_FP32) {
    __stcs(reinterpret_cast<float2*>(static_cast<float*>(args.c) + at), float2{x, y});
  } else {
    const uint32_t both = e.dtype_c == SPARSEK_BF16 ? pack<cutlass::bfloat16_t>(x, y) : pack<cutlass::half_t>(x, y);
    __stcs(reinterpret_cast<uint32_t*>(static_cast<uint16_t*>(args.c) + at), both);
  }
}

// As store_plain_rows, for every epilogue.
template <int Groups>
__device__ void store_any_rows(const LaunchArgs& args, float (&acc)[Groups][4], const uint32_t (&row)[2],
                               int64_t first_col, int lane) {
  constexpr int kTogether = 2;
#pragma unroll 1
  for (int first = 0; first < Groups; first += kTogether) {
#pragma unroll
    for (int i = 0; i < kTogether * 2; ++i) {
      const int64_t col = first_col + (first + i / 2) * 8 + lane % 4 * 2;
      write_pair(args, row[i % 2], col, acc[i / 2][i % 2 * 2], acc[i / 2][i % 2 * 2 + 1]);
    }
    // Registers cannot be indexed at run time, and unrolled the code would be 16 times as long: so they are moved up.
#pragma unroll
    for (int i = 0; i < (Groups - kTogether) * 4; ++i) acc[i / 4][i % 4] = acc[i / 4 + kTogether][i % 4];
  }
}

template <class Element, int Groups>
__device__ void store_rows(const LaunchArgs& args, float (&acc)[Groups][4], const uint32_t (&row)[2], int64_t first_col,
                           int lane) {
  const Epilogue& e = args.epilogue;
  if (e.dtype_c == kDtypeOf<Element> && e.bias_kind == SPARSEK_BIAS_NONE && e.activation == SPARSEK_ACTIVATION_NONE) {
    store_plain_rows<Element>(args, acc, row, first_col, lane);
  } else {
    store_any_rows(args, acc, row, first_col, lane);
  }
}

}  // namespace sparsek::cuda
