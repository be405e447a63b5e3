// SPDX-License-Identifier: Apache-2.0
// A step of plan/attention_steps.h. Kernels include this, and not what only the host needs.
#pragma once

#include <cstdint>

namespace sparsek {

constexpr int32_t kAttentionUnit = 64;   // keys of a unit, and queries of a warpgroup
constexpr int32_t kAttentionTile = 128;  // queries of a tile, and keys of a step

// The word of a unit: its number, and which warpgroups use it. Where none does, there is no such unit.
constexpr uint32_t kUnitNumber = (1u << 28) - 1;
constexpr uint32_t kFirstUses = 1u << 29, kSecondUses = 1u << 30;
constexpr uint32_t kPartialUnit = 1u << 31;  // some query of the tile does not see some key
constexpr uint32_t kEitherUses = kFirstUses | kSecondUses;

struct AttentionStep {
  uint32_t unit[2];
};

// Where blocks are no multiples of units, the rows that are met are named in pieces of 16, and each 16 of the 128 own
// rows of a tile have a bit of their own. The word of a piece: its number, then these bits, then kPartialUnit. Padding
// has no bits.
constexpr int32_t kAttentionPiece = 16;
constexpr int kPieceBits = 23;  // of the number
constexpr uint32_t kPieceNumber = (1u << kPieceBits) - 1;
constexpr uint32_t kPieceRows = 0xff, kPieceRowsOfUnit = 0xf;  // the bits, moved down by kPieceBits

// A step in pieces: 8, 4 or 2 of them.
struct AttentionPieces {
  uint32_t word[8];
  uint32_t used;  // (2, 8) bits: by a warpgroup, of a piece; and from bit 16 on the own rows that see all of the step
  uint32_t head;  // as unit[1] of the backward pass
  int32_t end;    // behind the last row that is met
  uint32_t unused;
};

}  // namespace sparsek
