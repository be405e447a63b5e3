// SPDX-License-Identifier: Apache-2.0
// The places that plan/attention_places.h gives each unit of a tile for itself, of random layouts and rules, against
// the steps that the planner on the host makes one after the other.
#include <vector>

#include "attention_case.h"
#include "plan/attention_gradient_steps.h"
#include "plan/attention_places.h"
#include "plan/attention_units.h"

using namespace sparsek;

namespace {

UnitRules rules_of(const AttentionShape& s) {
  constexpr int64_t kFar = 1 << 29;
  const AttentionBand band = s.band(s.seq_q, s.seq_k);
  const auto narrow = [](int64_t value) { return static_cast<int32_t>(value); };
  return {narrow(s.seq_q), narrow(s.seq_k), narrow(std::clamp(band.low, -kFar, kFar)),
          narrow(std::clamp(band.high, -kFar, kFar))};
}

// The units of keys that a tile of queries meets.
AttentionUnits units_of(const Case& c, const AttentionLists& lists, const WorkTile& tile) {
  const AttentionShape& s = c.shape;
  const int64_t row = s.layout_row(tile.n_tile / s.heads_q, tile.n_tile % s.heads_q);
  std::vector<uint32_t> words[2];
  for (int g = 0; g < 2; ++g) list_units(s, lists, row, tile.m_tile * int64_t{2} + g, words[g]);
  AttentionUnits units;
  merge_units(words, units);
  return units;
}

UnitCounts count(const AttentionUnits& units) {
  const auto size = [](const std::vector<uint32_t>& list) { return static_cast<int32_t>(list.size()); };
  return {size(units.both), {size(units.alone[0]), size(units.alone[1])}};
}

void require_same(const AttentionSteps& want, const WorkTile& tile, const std::vector<AttentionStep>& got) {
  if (static_cast<size_t>(tile.entry_count) != got.size()) wrong("another number of steps");
  for (int32_t i = 0; i < tile.entry_count; ++i) {
    const AttentionStep& step = want.steps[static_cast<size_t>(tile.entry_begin + i)];
    if (step.unit[0] != got[static_cast<size_t>(i)].unit[0] || step.unit[1] != got[static_cast<size_t>(i)].unit[1]) {
      wrong("another step");
    }
  }
}

constexpr AttentionStep kUnwritten = {{~0u, ~0u}};

void check_forward(const Case& c, const AttentionLists& lists) {
  const AttentionSteps want = make_attention_steps(c.shape, lists, 1);
  for (const WorkTile& tile : want.tiles) {
    const AttentionUnits units = units_of(c, lists, tile);
    const ForwardPlaces places{count(units)};
    std::vector<AttentionStep> got(static_cast<size_t>(places.steps_of(places.counts.words())), kUnwritten);
    const auto put = [&](StepPlace at, uint32_t word) { got.at(static_cast<size_t>(at.step)).unit[at.unit] = word; };
    if (places.counts.words() % 2 != 0) put({places.half_step(), 1}, 0);
    for (size_t i = 0; i < units.both.size(); ++i) put(places.both(static_cast<int32_t>(i)), units.both[i]);
    for (int g = 0; g < 2; ++g) {
      for (size_t i = 0; i < units.alone[g].size(); ++i) {
        put(places.alone(g, static_cast<int32_t>(i)), units.alone[g][i]);
      }
    }
    require_same(want, tile, got);
  }
}

void check_gradient(const Case& c, const AttentionLists& lists) {
  const AttentionSteps want = make_query_gradient_steps(c.shape, lists, 1);
  for (const WorkTile& tile : want.tiles) {
    const AttentionUnits units = units_of(c, lists, tile);
    const GradientPlaces places{count(units)};
    std::vector<AttentionStep> got(static_cast<size_t>(places.steps_of(places.counts.words())), kUnwritten);
    for (size_t i = 0; i < units.both.size(); ++i) got.at(i) = {{units.both[i], 0}};
    for (int g = 0; g < 2; ++g) {
      for (size_t i = 0; i < units.alone[g].size(); ++i) {
        got.at(static_cast<size_t>(places.alone(g, static_cast<int32_t>(i)))) = {{units.alone[g][i], 0}};
      }
    }
    require_same(want, tile, got);
  }
}

// What some query sees, and whether all see all of it, as `needed` counts it pair by pair.
void check_cover(const Case& c) {
  const UnitRules rules = rules_of(c.shape);
  for (int64_t i = 0; i < c.shape.seq_q + 2 * kAttentionUnit; i += kAttentionUnit) {
    const std::map<uint32_t, bool> want = needed(c, 0, 0, i);
    for (int64_t j = 0; j < c.shape.seq_k + 2 * kAttentionUnit; j += kAttentionUnit) {
      const auto unit = static_cast<uint32_t>(j / kAttentionUnit);
      if (i < c.shape.seq_q && j < c.shape.seq_k && !lists(c, 0, 0, i, j)) continue;
      const UnitCover cover = unit_cover(rules, static_cast<int32_t>(i / kAttentionUnit), static_cast<int32_t>(unit));
      const auto at = want.find(unit);
      if ((at == want.end()) != (cover == UnitCover::kNone)) wrong("a unit that no query sees, or none that one sees");
      if (at != want.end() && !at->second && cover == UnitCover::kFull) wrong("a unit that is not seen whole");
    }
  }
}

}  // namespace

int main() {
  for (int n = 0; n < 400; ++n) {
    const Case c = random_case();
    const AttentionLists lists = list_blocks(c.shape, c.layout);
    check_forward(c, lists);
    check_gradient(c, lists);
    check_cover(c);
  }
}
