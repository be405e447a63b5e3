// SPDX-License-Identifier: Apache-2.0
// What of a step is left where a call's lengths and rules cut it off, of steps in units and in pieces of 16 rows
// (plan/attention_step.h), and what general kernels of attention do besides others.
#pragma once

#include "cuda/attention.h"
#include "cuda/attention_shared.cuh"

namespace sparsek::cuda {

enum class Sees { kNone, kSome, kAll };

// Of one tile: its rows that are there, and what these see.
struct TileLimits {
  int own, own_end;  // the first row, and the end of the sequence
  int met_end;
  int low, high;  // own row i meets rows i + low up to i + high
  bool moves;
  uint32_t rows;  // bits of a word

  __device__ bool sees_none() const { return own >= own_end || met_end == 0; }

  // How much the 64 rows of a warpgroup see of the rows from `first` on.
  __device__ Sees cover(int warpgroup, int first, int rows) const {
    const int from = own + warpgroup * kAttentionUnit, end = min(from + kAttentionUnit, own_end);
    const int least = first - (end - 1), most = first + rows - 1 - from;
    if (most < low || least > high) return Sees::kNone;
    return least >= low && most <= high ? Sees::kAll : Sees::kSome;
  }
  // Lets the compiler know that all lanes have the same.
  __device__ void share() {
    for (int* const x : {&own_end, &met_end, &low, &high}) *x = __shfl_sync(0xffffffffu, *x, 0);
  }
};

__device__ inline int length_of(const int32_t* lengths, int batch, int seq) {
  return lengths == nullptr ? seq : min(max(__ldg(lengths + batch), 0), seq);
}

template <bool OfKeys, class Args>
__device__ TileLimits tile_limits(const Args& args, int tile, int batch) {
  const int q = length_of(args.general.lengths_q, batch, args.seq_q),
            k = length_of(args.general.lengths_k, batch, args.seq_k);
  const int shift = args.general.moves ? (k - q) - (args.seq_k - args.seq_q) : 0;
  TileLimits of;
  of.own = tile * kAttentionTile;
  of.own_end = OfKeys ? k : q;
  of.met_end = OfKeys ? q : k;
  of.low = OfKeys ? -(args.high + shift) : args.low + shift;
  of.high = OfKeys ? -(args.low + shift) : args.high + shift;
  of.moves = args.general.moves;
  const int pieces = min(max((of.own_end - of.own + kAttentionPiece - 1) / kAttentionPiece, 0), 8);
  of.rows = ((1u << pieces) - 1) << kPieceBits;
  return of;
}

// Takes off the word of a unit what a tile of the limits does not see.
__device__ inline uint32_t cut_unit(uint32_t unit, const TileLimits& limits) {
  const int first = int(unit & kUnitNumber) * kAttentionUnit;
  if (first >= limits.met_end) unit &= ~kEitherUses;
  if (limits.own + kAttentionUnit >= limits.own_end) unit &= ~kSecondUses;
  if (first + kAttentionUnit > limits.met_end) unit |= kPartialUnit;
  if (limits.moves) {
#pragma unroll
    for (int g = 0; g < 2; ++g) {
      const Sees seen = limits.cover(g, first, kAttentionUnit);
      if (seen == Sees::kNone) unit &= ~(g == 0 ? kFirstUses : kSecondUses);
      if (seen == Sees::kSome) unit |= kPartialUnit;
    }
  }
  return unit;
}

// A step of so many pieces.
template <int Pieces>
struct PieceStep {
  uint32_t word[Pieces];
  uint32_t used;   // as of AttentionPieces, without `whole`
  uint32_t whole;  // own rows that see all of the step
  uint32_t head;
  bool has_end;  // some piece has rows beyond the end

  PieceStep() = default;
  // What is left of a step of a tile.
  __device__ PieceStep(const AttentionPieces* from, const TileLimits& limits) {
    const auto* const words = reinterpret_cast<const uint4*>(from);
#pragma unroll
    for (int i = 0; i < Pieces; i += 4) {
      const uint4 four = __ldg(words + i / 4);
      word[i] = four.x, word[i + 1] = four.y;
      if (i + 2 < Pieces) word[i + 2] = four.z, word[i + 3] = four.w;
    }
    const uint4 all = __ldg(words + 2);
    used = all.x & 0xffff;
    whole = all.x >> 16;
    head = all.y;
    has_end = int(all.z) > limits.met_end;
    if (has_end || limits.moves || limits.rows != kPieceRows << kPieceBits) cut(limits);
  }
  // The same of one of its pieces.
  __device__ PieceStep(const AttentionPieces& from, int piece, const TileLimits& limits) {
    static_assert(Pieces == 1);
    word[0] = __ldg(from.word + piece);
    used = __ldg(&from.used) >> piece & 0x101;
    has_end = __ldg(&from.end) > limits.met_end;
    if (has_end || limits.moves || limits.rows != kPieceRows << kPieceBits) cut(limits);
  }

  static __device__ int first_row(uint32_t word) { return int(word & kPieceNumber) * kAttentionPiece; }
  __device__ bool is_used_by(int warpgroup) const { return (used >> 8 * warpgroup & 0xff) != 0; }
  __device__ uint32_t uses() const { return (is_used_by(0) ? kFirstUses : 0) | (is_used_by(1) ? kSecondUses : 0); }
  __device__ bool is_used_by(int warpgroup, int piece) const { return (used >> (8 * warpgroup + piece) & 1) != 0; }
  // The word of a piece that lanes choose, halving by halving, so that all stay in registers.
  __device__ uint32_t word_of(uint32_t piece) const {
    uint32_t of[Pieces];
#pragma unroll
    for (int i = 0; i < Pieces; ++i) of[i] = word[i];
#pragma unroll
    for (int half = Pieces / 2; half > 0; half /= 2) {
#pragma unroll
      for (int i = 0; i < half; ++i) of[i] = (piece & half) != 0 ? of[i + half] : of[i];
    }
    return of[0];
  }
  // Has no row see these pieces, which stay in the step. pieces: bits.
  __device__ void hide(uint32_t pieces) {
    if (pieces == 0) return;
    whole = 0;
#pragma unroll
    for (int i = 0; i < Pieces; ++i) {
      if ((pieces >> i & 1) != 0) word[i] &= ~(kPieceRows << kPieceBits);
    }
  }
  // Lets the compiler know that all lanes have the same.
  __device__ void share() { used = __shfl_sync(0xffffffffu, used, 0); }

 private:
  __device__ void cut(const TileLimits& limits) {
    used = whole = 0;
#pragma unroll
    for (int i = 0; i < Pieces; ++i) {
      const int first = first_row(word[i]);
      uint32_t cut = word[i] & (kPieceNumber | kPartialUnit | limits.rows);
      if (first >= limits.met_end) cut &= kPieceNumber;
      if (first + kAttentionPiece > limits.met_end) cut |= kPartialUnit;
#pragma unroll
      for (int g = 0; g < 2; ++g) {
        const uint32_t rows = kPieceRowsOfUnit << (kPieceBits + 4 * g);
        if (limits.moves) {
          const Sees seen = limits.cover(g, first, kAttentionPiece);
          if (seen == Sees::kNone) cut &= ~rows;
          if (seen == Sees::kSome) cut |= kPartialUnit;
        }
        if ((cut & rows) != 0) used |= 1u << (8 * g + i);
      }
      word[i] = cut;
    }
  }
};

// The first row of a piece of 16 that a step meets.
__device__ inline int met_row(const AttentionStep& step, int piece) {
  constexpr int kOfUnit = kAttentionUnit / kAttentionPiece;
  return int(step.unit[piece / kOfUnit] & kUnitNumber) * kAttentionUnit + piece % kOfUnit * kAttentionPiece;
}
template <int Pieces>
__device__ int met_row(const PieceStep<Pieces>& step, int piece) {
  return PieceStep<Pieces>::first_row(step.word[piece]);
}

// Sets scores of pairs that do not see each other to -inf. of: the bit of the warp's rows. row: the thread's first.
template <int Pieces, int Groups>
__device__ void hide_pieces(float (&s)[Groups][4], const PieceStep<Pieces>& step, const TileLimits& limits, uint32_t of,
                            int row, int lane) {
  static_assert(Groups == 2 * Pieces);
#pragma unroll
  for (int i = 0; i < Pieces; ++i) {
    const uint32_t word = step.word[i];
    const bool is_met = (word >> kPieceBits & of) != 0;
    if (is_met && (word & kPartialUnit) == 0) continue;
    const int first = PieceStep<Pieces>::first_row(word) + 2 * (lane % 4);
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int away = first - (row + 8 * r);  // met - own, of the thread's first column
      const int low = limits.low - away;
      const int high = is_met ? min(limits.high - away, limits.met_end - 1 - first) : INT_MIN;
#pragma unroll
      for (int g = 0; g < 2; ++g) {
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          if (g * 8 + e < low || g * 8 + e > high) s[2 * i + g][r * 2 + e] = -INFINITY;
        }
      }
    }
  }
}

// Makes scores tanh(scale s / soft_cap).
template <int Groups>
__device__ void cap_scores(float (&s)[Groups][4], float cap_log2) {
#pragma unroll
  for (int g = 0; g < Groups; ++g) {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      float power;
      asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(s[g][e] * cap_log2));
      s[g][e] = 1.f - __fdividef(2.f, power + 1.f);
    }
  }
}

// Makes rows [from, to) of each chunk of a tile zeros. thread: of the warpgroup.
template <int Chunks>
__device__ void zero_rows(uint32_t tile, uint32_t chunk_bytes, int from, int to, int thread) {
  constexpr int kVectors = attention_forward::kRowBytes / 16;
  for (int i = from * kVectors + thread; i < to * kVectors; i += 128) {
#pragma unroll
    for (int chunk = 0; chunk < Chunks; ++chunk) {
      asm volatile("st.shared.v4.u32 [%0], {%1, %1, %1, %1};" ::"r"(tile + chunk * chunk_bytes + i * 16), "r"(0)
                   : "memory");
    }
  }
}

// Which warpgroups use a step of the forward pass.
__device__ inline uint32_t uses_of(const AttentionStep& step) { return (step.unit[0] | step.unit[1]) & kEitherUses; }
template <int Pieces>
__device__ uint32_t uses_of(const PieceStep<Pieces>& step) {
  return step.uses();
}

// Whether rows of a unit, or of some unit or piece of a step, lie beyond the end.
__device__ inline bool has_end(uint32_t unit, int met_end) {
  return (int(unit & kUnitNumber) + 1) * kAttentionUnit > met_end;
}
__device__ inline bool has_end(const AttentionStep& step, int met_end) {
  return has_end(step.unit[0], met_end) || has_end(step.unit[1], met_end);
}
template <int Pieces>
__device__ bool has_end(const PieceStep<Pieces>& step, int /*met_end*/) {
  return step.has_end;
}

// Makes these rows zeros.
template <int Chunks, int Pieces>
__device__ void zero_ends(uint32_t tile, uint32_t chunk_bytes, const PieceStep<Pieces>& step, int met_end, int thread) {
#pragma unroll
  for (int i = 0; i < Pieces; ++i) {
    const int there = min(max(met_end - step.first_row(step.word[i]), 0), kAttentionPiece);
    zero_rows<Chunks>(tile, chunk_bytes, i * kAttentionPiece + there, (i + 1) * kAttentionPiece, thread);
  }
}
// place: of the unit in the step.
template <int Chunks>
__device__ void zero_ends(uint32_t tile, uint32_t chunk_bytes, uint32_t unit, int place, int met_end, int thread) {
  const int there = min(max(met_end - int(unit & kUnitNumber) * kAttentionUnit, 0), kAttentionUnit);
  zero_rows<Chunks>(tile, chunk_bytes, place * kAttentionUnit + there, (place + 1) * kAttentionUnit, thread);
}
template <int Chunks>
__device__ void zero_ends(uint32_t tile, uint32_t chunk_bytes, const AttentionStep& step, int met_end, int thread) {
#pragma unroll
  for (int u = 0; u < 2; ++u) zero_ends<Chunks>(tile, chunk_bytes, step.unit[u], u, met_end, thread);
}

// Of a thread's two rows of sums.
template <int Groups>
__device__ void zero_row(float (&sums)[Groups][4], int row) {
#pragma unroll
  for (int g = 0; g < Groups; ++g) sums[g][2 * row] = sums[g][2 * row + 1] = 0;
}

// Ends writes of a warpgroup before its wgmma reads them.
__device__ inline void end_zeros(int warpgroup) {
  cute::tma_store_fence();
  cutlass::arch::NamedBarrier::sync(128, uint32_t(warpgroup));
}

}  // namespace sparsek::cuda
