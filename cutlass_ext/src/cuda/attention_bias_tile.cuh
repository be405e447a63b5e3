// SPDX-License-Identifier: Apache-2.0
// The bias of a step of cuda/attention_forward.cuh and cuda/attention_gradient.cuh, through shared memory. A warp has a
// tile of its own there, of its 16 own rows and those that a step meets, so that it waits for no other one: it begins
// copies long before the scores are there, and then adds what they brought, so that their latency lies under other
// work.
//
// Rows of a tile are of queries, since keys follow each other in memory. Where own rows are queries, a tile has 16 rows
// as long as a step, and each row of 8 has its vectors of 16 bytes in another order, so that neither ldmatrix, which
// reads a vector of 8 rows, nor loads of pairs of fp32, which read two vectors of 4 rows, meet a bank twice. Where own
// rows are keys, it has as many rows of 16 keys as a step has queries, which ldmatrix transposes.
#pragma once

#include <cuda_fp16.h>

#include <type_traits>

#include "cuda/attention.h"
#include "cuda/attention_pieces.cuh"
#include "cuda/attention_store.cuh"
#include "cuda/mma_sync.cuh"

namespace sparsek::cuda {
namespace attention_forward {

// What the place of a byte in a row is XORed with: of tiles of 16 rows, and of tiles of rows of 16 keys.
__device__ constexpr uint32_t bias_swizzle(uint32_t row) { return (row % 4 * 2 + row / 4 % 2) * 16; }
template <int Bytes>
__device__ constexpr uint32_t bias_swizzle_of_keys(uint32_t row) {
  return Bytes == 4 ? row / 2 % 4 * 32 : row / 4 % 2 * 16;
}
// Bytes of a row of a tile of 16 rows. The swizzle needs 128.
template <int Met, int Bytes>
constexpr int kBiasPitch = Met * Bytes < 128 ? 128 : Met * Bytes;

// What is computed from a lane's number is computed anew in each step: else it would stay in registers that are needed.
__device__ inline void keep_nothing_of(uint32_t& lane) { asm volatile("" : "+r"(lane)); }

__device__ inline void store_pointer(uint32_t to, const uint8_t* pointer) {
  asm volatile("st.shared.u64 [%0], %1;" ::"r"(to), "l"(pointer) : "memory");
}
__device__ inline const uint8_t* load_pointer(uint32_t from) {
  const uint8_t* pointer;
  asm volatile("ld.shared.u64 %0, [%1];" : "=l"(pointer) : "r"(from) : "memory");
  return pointer;
}

// Where a warp has its tile in shared memory, and where the bias of its rows begins.
struct BiasPlace {
  uint32_t tile, rows;
};

// Where the bias of a warp's own rows comes from.
struct BiasRows {
  const uint8_t* first;            // of the first own row and the first row that may be met
  int64_t stride_own, stride_met;  // in bytes
  int count;                       // own rows that are there; others become 0
};

// Met rows of a step that follow each other.
struct MetRun {
  int first;  // of the sequence
  int count;  // from it on, that are there; others become 0
};

// Row `at` of a step and those behind it, as far as a warp meets them. users: bits of its warpgroup, or of its 16 rows.
__device__ inline MetRun met_run(const AttentionStep& step, uint32_t at, int met_end, uint32_t users) {
  const uint32_t unit = at < kAttentionUnit ? step.unit[0] : step.unit[1];
  const int first = int(unit & kUnitNumber) * kAttentionUnit + int(at % kAttentionUnit);
  return {first, (unit & users) != 0 ? met_end - first : 0};
}
template <int Pieces>
__device__ MetRun met_run(const PieceStep<Pieces>& step, uint32_t at, int met_end, uint32_t users) {
  const uint32_t word = step.word_of(at / kAttentionPiece);
  const int first = PieceStep<Pieces>::first_row(word) + int(at % kAttentionPiece);
  return {first, (word >> kPieceBits & users) != 0 ? met_end - first : 0};
}

// Copies the first `bytes` of Width, and zeros behind them.
template <int Width>
__device__ void begin_copy(uint32_t to, const uint8_t* from, int bytes) {
  if constexpr (Width == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(from), "n"(Width), "r"(bytes)
                 : "memory");
  }
}

// Copies an element of 2 bytes of each of so many rows. to(row): where to.
template <int Rows, class To>
__device__ void copy_elements(const uint8_t* from, int64_t stride, int count, const To& to) {
  uint16_t of_row[Rows];
#pragma unroll
  for (int row = 0; row < Rows; ++row) {
    of_row[row] = 0;
    if (row < count) of_row[row] = __ldg(reinterpret_cast<const uint16_t*>(from + row * stride));
  }
#pragma unroll
  for (int row = 0; row < Rows; ++row)
    asm volatile("st.shared.u16 [%0], %1;" ::"r"(to(row)), "h"(of_row[row]) : "memory");
}

// Begins to copy a tile whose 16 rows are of so many keys, Width bytes at a time, of elements of so many Bytes; where
// Width is more than one element keys follow each other in memory. keys(i): the MetRun from key i of the step on.
template <int Keys, int Bytes, int Width, class Of>
__device__ void begin_bias_of_queries(uint32_t tile, const BiasRows& rows, uint32_t lane, const Of& keys) {
  keep_nothing_of(lane);
  constexpr int kKeys = Width / Bytes, kOfRow = Keys / kKeys;  // keys of a copy, and copies of a row
  constexpr int kAtOnce = kOfRow < 32 ? 32 / kOfRow : 1, kPitch = kBiasPitch<Keys, Bytes>;
  const uint32_t top = kOfRow < 32 ? lane / kOfRow : 0;
#pragma unroll 1
  for (uint32_t at = lane % kOfRow; at < kOfRow; at += 32) {
    const MetRun found = keys(at * kKeys);
    const int bytes = min(max(found.count, 0), kKeys) * Bytes;
    const uint32_t to = tile + top * kPitch + (at * Width ^ bias_swizzle(top));
    const uint8_t* from = rows.first + top * rows.stride_own + found.first * (kKeys == 1 ? rows.stride_met : Bytes);
    if constexpr (Width == 2) {
      copy_elements<kWarpRows>(from, rows.stride_own, bytes > 0 ? rows.count : 0,
                               [&](int row) { return (to ^ bias_swizzle(row)) + row * kPitch; });
    } else if (rows.count >= kWarpRows) {
#pragma unroll(Width == 16 ? kWarpRows : 4)
      for (int row = 0; row < kWarpRows; row += kAtOnce) {
        begin_copy<Width>((to ^ bias_swizzle(row)) + row * kPitch, from, bytes);
        from += kAtOnce * rows.stride_own;
      }
    } else {
#pragma unroll 1
      for (int row = 0; row < kWarpRows; row += kAtOnce) {
        begin_copy<Width>((to ^ bias_swizzle(row)) + row * kPitch, from, int(top) + row < rows.count ? bytes : 0);
        from += kAtOnce * rows.stride_own;
      }
    }
  }
}

// The same of a tile that has so many rows of 16 own keys. queries(i): the MetRun from query i of the step on.
template <int Queries, int Bytes, int Width, class Of>
__device__ void begin_bias_of_keys(uint32_t tile, const BiasRows& rows, uint32_t lane, const Of& queries) {
  keep_nothing_of(lane);
  constexpr int kKeys = Width / Bytes, kOfRow = kWarpRows / kKeys;  // keys of a copy, and copies of a row
  constexpr int kAtOnce = 32 / kOfRow, kPitch = kWarpRows * Bytes;
  const uint32_t top = lane / kOfRow, column = lane % kOfRow;
  const int bytes = min(max(rows.count - int(column) * kKeys, 0), kKeys) * Bytes;
  const uint32_t to = tile + (top * kPitch + column * Width ^ bias_swizzle_of_keys<Bytes>(top));
  const uint8_t* const of_column = rows.first + column * (kKeys == 1 ? rows.stride_own : Width);
#pragma unroll(Width == 16 ? Queries / kAttentionPiece : 1)
  for (int piece = 0; piece < Queries; piece += kAttentionPiece) {
    const MetRun found = queries(piece);
    const uint8_t* const from = of_column + (found.first + int(top)) * rows.stride_met;
    const auto bytes_of = [&](int row) { return int(top) + row < found.count ? bytes : 0; };
    const auto place_of = [&](int row) { return (to ^ bias_swizzle_of_keys<Bytes>(row)) + (piece + row) * kPitch; };
    if constexpr (Width == 2) {
      const int count = bytes > 0 ? (found.count - int(top) + kAtOnce - 1) / kAtOnce : 0;
      copy_elements<kAttentionPiece / kAtOnce>(from, kAtOnce * rows.stride_met, count,
                                               [&](int i) { return place_of(i * kAtOnce); });
    } else {
#pragma unroll
      for (int row = 0; row < kAttentionPiece; row += kAtOnce) {
        begin_copy<Width>(place_of(row), from + row * rows.stride_met, bytes_of(row));
      }
    }
  }
}

// Lets the warp know where the bias of its rows begins. head: of queries, the first of those whose queries it meets.
template <bool OfKeys>
__device__ void set_bias_rows(const BiasPlace& place, const AttentionTerms& terms, int batch, int head, int first_row,
                              int lane) {
  const int64_t first =
      batch * terms.stride_bias[0] + head * terms.stride_bias[1] + first_row * terms.stride_bias[OfKeys ? 3 : 2];
  const auto* const of = static_cast<const uint8_t*>(terms.bias) + first * (terms.is_float ? 4 : 2);
  if (lane == 0) store_pointer(place.rows, of);
  __syncwarp();
}

template <bool OfKeys, int Met, int Bytes, int Width, class Of>
__device__ void begin_bias_by(const BiasPlace& place, const AttentionTerms& terms, int head, int count, int lane,
                              const Of& met) {
  BiasRows rows = {load_pointer(place.rows), terms.stride_bias[OfKeys ? 3 : 2] * Bytes,
                   terms.stride_bias[OfKeys ? 2 : 3] * Bytes, count};
  if constexpr (OfKeys) {
    rows.first += head * terms.stride_bias[1] * Bytes;
    begin_bias_of_keys<Met, Bytes, Width>(place.tile, rows, lane, met);
  } else {
    begin_bias_of_queries<Met, Bytes, Width>(place.tile, rows, lane, met);
  }
}

// Begins to copy the bias of a step that meets so many rows. head: counted from that of set_bias_rows, where own rows
// are keys. count: own rows that are there, of the warp's 16 or more. met(i): the MetRun from row i of the step on.
template <bool OfKeys, int Met, class Of>
__device__ void begin_bias(const BiasPlace& place, const AttentionTerms& terms, int head, int count, int lane,
                           const Of& met) {
  __syncwarp();  // all lanes have read that of the step before
  if (terms.is_float) {
    if (terms.copy_bytes == 16) return begin_bias_by<OfKeys, Met, 4, 16>(place, terms, head, count, lane, met);
    return begin_bias_by<OfKeys, Met, 4, 4>(place, terms, head, count, lane, met);
  }
  if (terms.copy_bytes == 16) return begin_bias_by<OfKeys, Met, 2, 16>(place, terms, head, count, lane, met);
  if (terms.copy_bytes == 4) return begin_bias_by<OfKeys, Met, 2, 4>(place, terms, head, count, lane, met);
  begin_bias_by<OfKeys, Met, 2, 2>(place, terms, head, count, lane, met);
}

// Waits for what the warp has begun.
__device__ inline void end_bias() {
  asm volatile("cp.async.wait_all;" ::: "memory");
  __syncwarp();
}

template <class Element>
__device__ float2 unpack_pair(uint32_t pair) {
  if constexpr (std::is_same_v<Element, cutlass::bfloat16_t>) {
    return {__uint_as_float(pair << 16), __uint_as_float(pair & 0xffff0000u)};
  } else {
    return __half22float2(reinterpret_cast<const __half2&>(pair));
  }
}

// Reads a tile of a step that meets so many rows: of each 8 of these, what is added to a thread's four scores.
template <class Element, bool OfKeys, int Met>
class BiasReader {
 public:
  __device__ BiasReader(uint32_t tile, uint32_t lane) {
    keep_nothing_of(lane);
    const uint32_t row = kIsFloat ? lane / 4 : lane % 16;  // of 16-bit elements, of those that the lane addresses
    if constexpr (!OfKeys) {
      first_ = tile + row * kPitch + ((kIsFloat ? lane % 4 * 8 : lane / 16 * 16) ^ bias_swizzle(row));
    } else if constexpr (kIsFloat) {
      const uint32_t query = lane % 4 * 2;
      first_ = tile + (query * kPitch + row * 4 ^ bias_swizzle_of_keys<4>(query));
    } else {
      const uint32_t query = lane / 16 * 8 + lane % 8;
      first_ = tile + (query * kPitch + lane / 8 % 2 * 16 ^ bias_swizzle_of_keys<2>(query));
    }
  }

  // Of 8 rows that are met, and of the 8 behind them. group: of 8, an even one.
  __device__ void load(float (&to)[2][4], int group) const {
    if constexpr (!kIsFloat) {
      uint32_t pairs[4];  // own rows 0 to 7 and 8 to 15 of the group, then of the next one
      if constexpr (OfKeys) {
        load_matrices_transposed(pairs, first_ + group * 8 * kPitch);
      } else {
        load_matrices(pairs, first_ ^ group * 16);
      }
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float2 pair = unpack_pair<Element>(pairs[i]);
        to[i / 2][i % 2 * 2] = pair.x;
        to[i / 2][i % 2 * 2 + 1] = pair.y;
      }
    } else {
#pragma unroll
      for (int g = 0; g < 2; ++g) {
#pragma unroll
        for (int r = 0; r < 2; ++r) load_floats(to[g][2 * r], to[g][2 * r + 1], group + g, r);
      }
    }
  }

 private:
  static constexpr bool kIsFloat = std::is_same_v<Element, float>;
  static constexpr int kBytes = kIsFloat ? 4 : 2;
  static constexpr int kPitch = OfKeys ? kWarpRows * kBytes : kBiasPitch<Met, kBytes>;

  // Of own row 8 r of the thread.
  __device__ void load_floats(float& first, float& second, int group, int r) const {
    if constexpr (OfKeys) {
      const uint32_t at = (first_ ^ r * 32) + group * 8 * kPitch;
      asm volatile("ld.shared.f32 %0, [%1];" : "=f"(first) : "r"(at) : "memory");
      asm volatile("ld.shared.f32 %0, [%1];" : "=f"(second) : "r"(at ^ kPitch) : "memory");
    } else {
      asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];"
                   : "=f"(first), "=f"(second)
                   : "r"((first_ ^ group * 32) + r * 8 * kPitch)
                   : "memory");
    }
  }

  uint32_t first_;
};

// s = scale s + bias.
template <class Element, int Groups>
__device__ void add_bias(float (&s)[Groups][4], uint32_t tile, float scale, uint32_t lane) {
  const BiasReader<Element, false, Groups * 8> bias(tile, lane);
#pragma unroll
  for (int g = 0; g < Groups; g += 2) {
    float pair[2][4];
    bias.load(pair, g);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      float& of = s[g + i / 4][i % 4];
      of = fmaf(of, scale, pair[i / 4][i % 4]);
    }
  }
}

}  // namespace attention_forward
}  // namespace sparsek::cuda
