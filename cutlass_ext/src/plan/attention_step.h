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

}  // namespace sparsek
