// SPDX-License-Identifier: Apache-2.0
// The steps of attention's backward kernels (plan/attention_gradient_steps.h), of random layouts and rules, against
// what they stand for: each pair of 64 queries and 64 keys, of which some see each other, is a step of both, once.
#include <set>
#include <tuple>

#include "attention_case.h"
#include "plan/attention_gradient_steps.h"

using namespace sparsek;

namespace {

using Pair = std::tuple<int64_t, int64_t, int64_t, int64_t>;  // batch, query head, and units of queries and keys

// All pairs, and whether all of their queries see all of their keys.
std::map<Pair, bool> pairs(const Case& c) {
  std::map<Pair, bool> all;
  for (int64_t b = 0; b < c.shape.batch; ++b) {
    for (int64_t h = 0; h < c.shape.heads_q; ++h) {
      for (int64_t i = 0; i < c.shape.seq_q; i += kAttentionUnit) {
        for (const auto& [unit, full] : needed(c, b, h, i)) all[{b, h, i / kAttentionUnit, unit}] = full;
      }
    }
  }
  return all;
}

void check(const Case& c, const AttentionSteps& steps, bool of_keys) {
  std::map<Pair, bool> want = pairs(c);
  const AttentionShape& s = c.shape;
  const int64_t heads = of_keys ? s.heads_k : s.heads_q, group = s.heads_q / s.heads_k,
                rows = of_keys ? s.seq_k : s.seq_q;
  std::set<std::pair<int32_t, int32_t>> seen;
  for (const WorkTile& tile : steps.tiles) {
    if (!seen.insert({tile.m_tile, tile.n_tile}).second) wrong("a tile twice");
    const int64_t batch = tile.n_tile / heads, head = tile.n_tile % heads;
    int last[2] = {-1, -1};
    for (int32_t i = 0; i < tile.entry_count; ++i) {
      const AttentionStep& step = steps.steps[static_cast<size_t>(tile.entry_begin + i)];
      if ((step.unit[0] & kEitherUses) == 0) wrong("a step that nobody uses");
      for (int g = 0; g < 2; ++g) {
        if ((step.unit[0] & (g == 0 ? kFirstUses : kSecondUses)) == 0) continue;
        // A warpgroup keeps the stage of a step until its next one, and there are four.
        if (last[g] >= 0 && i - last[g] > 2) wrong("a step that is kept too long");
        last[g] = i;
        const int64_t own = tile.m_tile * 2 + g, met = step.unit[0] & kUnitNumber;
        const Pair pair = of_keys ? Pair{batch, head * group + step.unit[1], met, own} : Pair{batch, head, own, met};
        const auto at = want.find(pair);
        if (at == want.end()) wrong("a pair that is not needed, or twice");
        if (!at->second && (step.unit[0] & kPartialUnit) == 0) wrong("a partial unit without its mark");
        want.erase(at);
      }
    }
  }
  if (!want.empty()) wrong("a pair is missing");
  const int64_t tiles = (rows + kAttentionTile - 1) / kAttentionTile;
  if (static_cast<int64_t>(seen.size()) != tiles * s.batch * heads) wrong("tiles are missing");
}

int alone_count = 0, other_count = 0;

// What the steps of keys say, where the rules hide nothing within blocks and all block rows have as many queries.
void check_alone(Case c) {
  c.shape.left = c.shape.right = c.shape.align_ends = false;
  c.shape.seq_q = c.shape.query_blocks() * c.shape.block_q;
  const AttentionLists lists = list_blocks(c.shape, c.layout);
  const AttentionSteps of_keys = make_key_gradient_steps(c.shape, lists, 1);
  int64_t alone = 0;
  for (const AttentionStep& step : of_keys.steps) alone += (step.unit[0] & kEitherUses) != kEitherUses ? 1 : 0;
  const bool mostly = 4 * alone > 3 * static_cast<int64_t>(of_keys.steps.size());
  if (keys_mostly_alone(c.shape, lists) != mostly) wrong("whether most steps of keys are of one warpgroup alone");
  (mostly ? alone_count : other_count) += 1;
}

}  // namespace

int main() {
  for (int i = 0; i < 400; ++i) {
    const Case c = random_case();
    check_alone(c);
    const AttentionLists lists = list_blocks(c.shape, c.layout);
    const int64_t l2_bytes = draw(0, 1) == 0 ? 1 : 1 << 18;
    check(c, make_query_gradient_steps(c.shape, lists, l2_bytes), false);
    check(c, make_key_gradient_steps(c.shape, lists, l2_bytes), true);
  }
  if (alone_count == 0 || other_count == 0) wrong("too few kinds of layouts were drawn");
}
