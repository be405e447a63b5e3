// SPDX-License-Identifier: Apache-2.0
// Which units of 64 queries and 64 keys meet, and at which place of a tile's steps each of its units comes: the order
// of plan/attention_steps.h and plan/attention_gradient_steps.h, for threads that each place a unit of their own.
#pragma once

#include <cstdint>

#include "pattern/index_array.h"
#include "plan/attention_step.h"

namespace sparsek {

// Query i sees key j where low <= j - i <= high. Lengths are below 2^28, limits are from -2^29 to 2^29.
struct UnitRules {
  int32_t seq_q, seq_k, low, high;
};

enum class UnitCover { kNone, kPartial, kFull };

// Of a unit of queries and one of keys. Beyond the sequences there is nothing.
SPARSEK_ANYWHERE constexpr UnitCover unit_cover(const UnitRules& rules, int32_t unit_q, int32_t unit_k) {
  const int32_t i = unit_q * kAttentionUnit, j = unit_k * kAttentionUnit;
  if (i >= rules.seq_q || j >= rules.seq_k) return UnitCover::kNone;
  const int32_t i_end = i + kAttentionUnit < rules.seq_q ? i + kAttentionUnit : rules.seq_q;
  const int32_t j_end = j + kAttentionUnit < rules.seq_k ? j + kAttentionUnit : rules.seq_k;
  const int32_t least = j - (i_end - 1), most = j_end - 1 - i;
  if (rules.low > rules.high || most < rules.low || least > rules.high) return UnitCover::kNone;
  const bool full = least >= rules.low && most <= rules.high && j_end - j == kAttentionUnit;
  return full ? UnitCover::kFull : UnitCover::kPartial;
}

// How many units a tile meets: both of its warpgroups, and one alone.
struct UnitCounts {
  int32_t both, alone[2];

  SPARSEK_ANYWHERE constexpr int32_t words() const { return both + alone[0] + alone[1]; }
};

struct StepPlace {
  int32_t step, unit;  // of the tile; of the step
};

// The forward pass: two units a step.
struct ForwardPlaces {
  UnitCounts counts;

  static SPARSEK_ANYWHERE constexpr int32_t steps_of(int32_t words) { return (words + 1) / 2; }

  SPARSEK_ANYWHERE constexpr StepPlace both(int32_t i) const { return {i / 2, i % 2}; }

  // The i-th unit of warpgroup g alone.
  SPARSEK_ANYWHERE constexpr StepPlace alone(int g, int32_t i) const {
    int32_t left[2] = {counts.alone[0], counts.alone[1]}, step = (counts.both + 1) / 2;
    const int longer = left[1] > left[0] ? 1 : 0;
    if (counts.both % 2 != 0) {  // the longer list fills the last step of both
      if (g == longer && i-- == 0) return {counts.both / 2, 1};
      if (left[longer] > 0) --left[longer];
    }
    const bool odd[2] = {left[0] % 2 != 0, left[1] % 2 != 0};
    if (odd[g] && i-- == 0) return {step, g == 1 && odd[0] ? 1 : 0};
    if (odd[0] || odd[1]) ++step;
    const int first = odd[0] ? 1 : 0;
    const int32_t pairs = left[1 - g] / 2, before = i / 2 + (g == first ? 0 : 1);
    return {step + i / 2 + (before < pairs ? before : pairs), i % 2};
  }

  // The step that has one unit alone, where the number of units is odd.
  SPARSEK_ANYWHERE constexpr int32_t half_step() const {
    return counts.alone[0] + counts.alone[1] == 0 ? counts.both / 2 : (counts.both + 1) / 2;
  }
};

// A backward kernel: one unit a step.
struct GradientPlaces {
  UnitCounts counts;

  static SPARSEK_ANYWHERE constexpr int32_t steps_of(int32_t words) { return words; }

  SPARSEK_ANYWHERE constexpr int32_t alone(int g, int32_t i) const {
    const int32_t other = counts.alone[1 - g], before = i + g;
    return counts.both + i + (before < other ? before : other);
  }
};

}  // namespace sparsek
