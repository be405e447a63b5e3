// SPDX-License-Identifier: Apache-2.0
// The steps of attention's tiles (plan/attention_steps.h), of random layouts and rules, against what they stand for:
// each 64 queries have each unit of 64 keys that some of them sees, once.
#include <map>
#include <set>

#include "attention_case.h"
#include "plan/attention.h"
#include "plan/attention_steps.h"

using namespace sparsek;

namespace {

// How a kernel waits. Each has a number of stages for keys, and as many for values.
struct Waits {
  int stages;
  bool own_values;  // a step needs its own values before it releases those of the step before, else these alone
};
constexpr Waits kWaits[] = {{2, false},  // cuda/attention_forward.cuh
                            {3, true}};  // cuda/attention_pairs.cuh

// Whether all of a tile is loaded: the values of a step are loaded behind the keys of the next one, and a warpgroup
// releases its step's keys, and the values of its step before, when it has the step's keys and the values that it
// needs.
bool ends(const AttentionSteps& steps, const WorkTile& tile, const Waits& waits) {
  const auto uses = [&](int step, int g) {
    const AttentionStep& s = steps.steps[static_cast<size_t>(tile.entry_begin + step)];
    return ((s.unit[0] | s.unit[1]) & (g == 0 ? kFirstUses : kSecondUses)) != 0;
  };
  const int count = tile.entry_count;
  int keys = 0, values = 0;                    // steps of which they are loaded
  int used_keys[2] = {}, used_values[2] = {};  // steps of which a warpgroup needs them no more
  for (bool moved = true; moved;) {
    moved = false;
    for (int g = 0; g < 2; ++g) {
      int& k = used_keys[g];
      int& v = used_values[g];
      const auto used_from = [&](int step) {
        while (step < count && !uses(step, g)) ++step;
        return step;
      };
      const int held = used_from(v), next = used_from(held + 1);
      const bool first = k <= held;
      const auto has_own = [&](int step) { return !waits.own_values || step < values; };
      if (first && held < count && held < keys && has_own(held)) k = held + 1, moved = true;
      if (!first && next < count && k <= next && next < keys && held < values && has_own(next)) {
        k = next + 1, v = held + 1, moved = true;
      }
      if (!first && next >= count && held < values) k = v = count, moved = true;
      if (held >= count && v < count) k = v = count, moved = true;
    }
    const bool keys_turn = keys == 0 || (keys < count && values == keys - 1);
    int& loaded = keys_turn ? keys : values;
    // A stage may be filled when what it had is used by neither.
    const auto is_free = [&](int step, const int(&used)[2]) {
      for (int g = 0; g < 2 && step >= 0; ++g) {
        if (uses(step, g) && step >= used[g]) return false;
      }
      return true;
    };
    if (loaded < count && is_free(loaded - waits.stages, keys_turn ? used_keys : used_values)) ++loaded, moved = true;
  }
  return values == count;
}

void check_tile(const Case& c, const AttentionSteps& steps, const WorkTile& tile) {
  const int64_t batch = tile.n_tile / c.shape.heads_q, head = tile.n_tile % c.shape.heads_q;
  std::map<uint32_t, bool> want[2];
  for (int g = 0; g < 2; ++g) {
    want[g] = needed(c, batch, head, tile.m_tile * int64_t{kAttentionTile} + g * kAttentionUnit);
  }
  bool alone = false;
  for (int32_t i = 0; i < tile.entry_count; ++i) {
    const AttentionStep& step = steps.steps[static_cast<size_t>(tile.entry_begin + i)];
    const uint32_t use[2] = {kFirstUses, kSecondUses};
    bool uses[2] = {false, false};
    for (const uint32_t word : step.unit) {
      for (int g = 0; g < 2; ++g) {
        if ((word & use[g]) == 0) continue;
        uses[g] = true;
        const auto at = want[g].find(word & kUnitNumber);
        if (at == want[g].end()) wrong("a unit that is not needed, or twice");
        if (!at->second && (word & kPartialUnit) == 0) wrong("a partial unit without its mark");
        want[g].erase(at);
      }
    }
    if (!uses[0] && !uses[1]) wrong("a step of no unit");
    const bool full = (step.unit[0] & step.unit[1] & kEitherUses) == kEitherUses;
    if (alone && full) wrong("units of both behind those of one");
    if (!uses[0] || !uses[1]) alone = true;
  }
  if (!want[0].empty() || !want[1].empty()) wrong("a unit is missing");
  for (const Waits& waits : kWaits) {
    if (!ends(steps, tile, waits)) wrong("loads wait for each other");
  }
}

void check(const Case& c) {
  const int64_t l2_bytes = draw(0, 1) == 0 ? 1 : 1 << 18;
  const AttentionSteps steps = make_attention_steps(c.shape, list_blocks(c.shape, c.layout), l2_bytes);
  std::set<std::pair<int32_t, int32_t>> seen;
  for (const WorkTile& tile : steps.tiles) {
    if (!seen.insert({tile.m_tile, tile.n_tile}).second) wrong("a tile twice");
    check_tile(c, steps, tile);
  }
  const int64_t tiles = (c.shape.seq_q + kAttentionTile - 1) / kAttentionTile;
  if (static_cast<int64_t>(seen.size()) != tiles * c.shape.batch * c.shape.heads_q) wrong("tiles are missing");
}

}  // namespace

int main() {
  for (int i = 0; i < 400; ++i) check(random_case());
}
