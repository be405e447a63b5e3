// SPDX-License-Identifier: Apache-2.0
// The epilogue of kernels that hold their sums in the layout of D in mma_sync.cuh: any rows, N, pitch and alignment of
// C. It computes the same as epilogue.cuh, with conditions checked once for many sums.
#pragma once

#include <type_traits>

#include "cuda/epilogue.cuh"
#include "cuda/launch_args.h"
#include "cutlass/bfloat16.h"
#include "cutlass/half.h"
#include "cutlass/numeric_conversion.h"

namespace sparsek::cuda {

// A lane's elements of a warp's 16 rows of C: sums[g][0] and sums[g][1] are in row[0], sums[g][2] and sums[g][3] in
// row[1], at columns first_col + 8 g + col and the next.
struct RowTile {
  uint32_t row[2];
  uint32_t first_col;
  int columns;  // columns of C from first_col on; may be negative, or more than there are sums
  int col;      // the lane's first column within a group
};

// Calls f(type{}) with the type of C's elements.
template <class Function>
__device__ void with_type(ElementType dtype, const Function& f) {
  switch (dtype) {
    case ElementType::kBf16:
      return f(cutlass::bfloat16_t{});
    case ElementType::kFp16:
      return f(cutlass::half_t{});
    default:
      return f(float{});
  }
}

// From an element of what beta is multiplied with to the next.
struct InputStep {
  int64_t row, col;

  template <bool AnyMajor>
  __device__ static InputStep of(const LaunchArgs& args) {
    const Epilogue& e = args.epilogue;
    if constexpr (AnyMajor) {
      if (e.input_across) return {args.c_m_major ? 0 : 1, args.c_m_major ? 1 : 0};
      if (args.c_m_major) return {1, e.ldc_in};
    }
    return {e.ldc_in, 1};
  }
};

// sums = alpha sums + beta c_in. AnyMajor: C may be M-major, and c_in one column.
template <class Type, bool AnyMajor, int Groups>
__device__ void scale(const LaunchArgs& args, float (&sums)[Groups][4], const RowTile& tile) {
  const Epilogue& e = args.epilogue;
  const float alpha = alpha_of(e), beta = beta_of(e);
#pragma unroll
  for (int i = 0; i < Groups * 4; ++i) sums[i / 4][i % 4] *= alpha;
  if (beta == 0.f) return;
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const InputStep step = InputStep::of<AnyMajor>(args);
    const Type* const c =
        static_cast<const Type*>(e.c_in) + int64_t(tile.row[h]) * step.row + int64_t(tile.first_col) * step.col;
#pragma unroll
    for (int i = 0; i < Groups * 2; ++i) {
      const int at = i / 2 * 8 + tile.col + i % 2;
      float& x = sums[i / 2][h * 2 + i % 2];
      if (tile.row[h] < args.rows && at < tile.columns) x = fmaf(beta, float(c[at * step.col]), x);
      if (i % 16 == 15) asm volatile("" ::: "memory");  // limits the loads in flight: there are no registers for more
    }
  }
}

template <class Type, int Groups>
__device__ void add_bias(const LaunchArgs& args, float (&sums)[Groups][4], const RowTile& tile) {
  const auto* const bias = static_cast<const Type*>(args.epilogue.bias);
  if (args.epilogue.bias_kind == BiasKind::kRow) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const float of_row = tile.row[h] < args.rows ? float(bias[tile.row[h]]) : 0.f;
#pragma unroll
      for (int i = 0; i < Groups * 2; ++i) sums[i / 2][h * 2 + i % 2] += of_row;
    }
  } else {
#pragma unroll
    for (int i = 0; i < Groups * 2; ++i) {
      const int at = i / 2 * 8 + tile.col + i % 2;
      const float of_column = at < tile.columns ? float(bias[tile.first_col + at]) : 0.f;
      sums[i / 2][i % 2] += of_column;
      sums[i / 2][2 + i % 2] += of_column;
    }
  }
}

template <Activation kActivation, int Groups>
__device__ void activate(float (&sums)[Groups][4]) {
#pragma unroll
  for (int i = 0; i < Groups * 4; ++i) sums[i / 4][i % 4] = activated<kActivation>(sums[i / 4][i % 4]);
}

template <int Groups>
__device__ void activate(Activation activation, float (&sums)[Groups][4]) {
  switch (activation) {
    case Activation::kRelu:
      return activate<Activation::kRelu>(sums);
    case Activation::kGelu:
      return activate<Activation::kGelu>(sums);
    case Activation::kSilu:
      return activate<Activation::kSilu>(sums);
    default:
      return;
  }
}

template <class Type>
__device__ uint32_t pack(float x, float y) {
  const cutlass::Array<float, 2> from = {x, y};
  const auto to = cutlass::NumericArrayConverter<Type, float, 2>::convert(from);
  return reinterpret_cast<const uint32_t&>(to);
}

// C = sums. Where rows are aligned, each group of four lanes stores full sectors of 32 bytes, for 16-bit elements after
// neighbouring lanes have swapped halves. C is not read again, and should not evict A and B from L2. leave_out: bit g:
// sums[g] are not stored.
template <class Type, int Groups>
__device__ void write(const LaunchArgs& args, const float (&sums)[Groups][4], const RowTile& tile,
                      uint32_t leave_out = 0) {
  constexpr bool kNarrow = sizeof(Type) == 2;
  auto* const c = static_cast<Type*>(args.c);
  // 8 bytes of C: the elements that a lane stores at once lie in C, or outside of it, as a whole.
  constexpr int kVector = kNarrow ? 4 : 2;
  const bool in_vectors = (args.ldc % kVector | reinterpret_cast<uintptr_t>(c) % 8) == 0 &&
                          (tile.columns >= Groups * 8 || tile.columns % kVector == 0);
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const bool inside = tile.row[h] < args.rows;
    Type* const out = c + int64_t(tile.row[h]) * args.ldc + tile.first_col;
    if (!in_vectors) {
#pragma unroll
      for (int i = 0; i < Groups * 2; ++i) {
        const int at = i / 2 * 8 + tile.col + i % 2;
        if (inside && at < tile.columns && (leave_out >> i / 2 & 1) == 0) out[at] = Type(sums[i / 2][h * 2 + i % 2]);
      }
    } else if constexpr (kNarrow) {
      const bool odd = tile.col % 4 != 0;
      const int quad_col = odd ? 8 + tile.col - 2 : tile.col;
#pragma unroll
      for (int g = 0; g < Groups; g += 2) {
        const uint32_t first = pack<Type>(sums[g][h * 2], sums[g][h * 2 + 1]);
        const uint32_t second = pack<Type>(sums[g + 1][h * 2], sums[g + 1][h * 2 + 1]);
        const uint32_t other = __shfl_xor_sync(0xffffffffu, odd ? first : second, 1);
        const uint2 quad = odd ? uint2{other, second} : uint2{first, other};
        if (inside && g * 8 + quad_col < tile.columns && (leave_out >> (g + odd) & 1) == 0) {
          __stcs(reinterpret_cast<uint2*>(out + g * 8 + quad_col), quad);
        }
      }
    } else {
#pragma unroll
      for (int g = 0; g < Groups; ++g) {
        const float2 pair = {sums[g][h * 2], sums[g][h * 2 + 1]};
        if (inside && g * 8 + tile.col < tile.columns && (leave_out >> g & 1) == 0) {
          __stcs(reinterpret_cast<float2*>(out + g * 8 + tile.col), pair);
        }
      }
    }
  }
}

// sums = act(alpha sums + beta c_in + bias)
template <bool AnyMajor, int Groups>
__device__ void apply_epilogue(const LaunchArgs& args, float (&sums)[Groups][4], const RowTile& tile) {
  with_type(args.epilogue.dtype_c, [&](auto type) {
    using Type = decltype(type);
    scale<Type, AnyMajor>(args, sums, tile);
    if (args.epilogue.bias_kind != BiasKind::kNone) add_bias<Type>(args, sums, tile);
  });
  activate(args.epilogue.activation, sums);
}

// Every epilogue: calls store(sums, tile, groups) for each 64 columns of the sums. Unrolled over all sums, the code
// would be long and need too many registers, and registers cannot be indexed at run time: so each turn moves the
// remaining sums to the registers that the code names. leave_out: bit i: the columns from 64 i on are not stored;
// LeavesGroups: those from 8 i on. groups: of the 64 columns, to be left out.
template <bool AnyMajor, bool LeavesGroups = false, int Groups, class Store>
__device__ void store_in_turns(const LaunchArgs& args, float (&acc)[Groups][4], RowTile tile, uint32_t leave_out,
                               const Store& store) {
  constexpr int kTogether = Groups < 8 ? Groups : 8;
  constexpr uint32_t kAll = LeavesGroups ? (1u << kTogether) - 1 : 1;
#pragma unroll 1
  for (int turn = 0; turn < Groups; turn += kTogether) {
    if ((leave_out & kAll) != kAll) {
      float sums[kTogether][4];
#pragma unroll
      for (int i = 0; i < kTogether * 4; ++i) sums[i / 4][i % 4] = acc[i / 4][i % 4];
      apply_epilogue<AnyMajor>(args, sums, tile);
      store(sums, tile, LeavesGroups ? leave_out & kAll : 0);
    }
    leave_out >>= LeavesGroups ? kTogether : 1;
    tile.first_col += kTogether * 8;
    tile.columns -= kTogether * 8;
#pragma unroll
    for (int i = 0; i < (Groups - kTogether) * 4; ++i) acc[i / 4][i % 4] = acc[i / 4 + kTogether][i % 4];
  }
}

template <bool LeavesGroups = false, int Groups>
__device__ void store_any(const LaunchArgs& args, float (&acc)[Groups][4], const RowTile& tile,
                          uint32_t leave_out = 0) {
  store_in_turns<false, LeavesGroups>(
      args, acc, tile, leave_out, [&](const auto& sums, const RowTile& of, uint32_t groups) {
        with_type(args.epilogue.dtype_c, [&](auto type) { write<decltype(type)>(args, sums, of, groups); });
      });
}

template <class Element>
constexpr ElementType kTypeOf = std::is_same_v<Element, float>                 ? ElementType::kFp32
                                : std::is_same_v<Element, cutlass::bfloat16_t> ? ElementType::kBf16
                                                                               : ElementType::kFp16;

// Whether C is only alpha times the sums, rounded to A's type.
template <class Element>
__host__ __device__ bool only_scales(const Epilogue& e) {
  return e.beta == 0.f && e.bias_kind == BiasKind::kNone && e.activation == Activation::kNone &&
         e.dtype_c == kTypeOf<Element>;
}

// Stores a warp's 16 rows of C, the columns from first_col on, from the sums acc in the layout of D in mma_sync.cuh.
// row: the lane's rows of C. leave_out: as in store_any. Element: the type of A.
template <class Element, bool LeavesGroups = false, int Groups>
__device__ void store_rows(const LaunchArgs& args, float (&acc)[Groups][4], const uint32_t (&row)[2],
                           uint32_t first_col, int lane, uint32_t leave_out = 0) {
  const RowTile tile = {{row[0], row[1]}, first_col, int(min(int64_t(Groups * 8), args.n - first_col)), lane % 4 * 2};
  if (leave_out == 0 && only_scales<Element>(args.epilogue)) {
    const float alpha = alpha_of(args.epilogue);
#pragma unroll
    for (int i = 0; i < Groups * 4; ++i) acc[i / 4][i % 4] *= alpha;
    write<Element>(args, acc, tile);
  } else {
    store_any<LeavesGroups>(args, acc, tile, leave_out);
  }
}

}  // namespace sparsek::cuda
