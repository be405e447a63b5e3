// SPDX-License-Identifier: Apache-2.0
#include "plan/split.h"

#include <algorithm>

#include "plan/schedule_tiles.h"

namespace sparsek {
namespace {

// A smaller relative gain is within the error of the costs.
constexpr double kLeastGain = 0.1;

// Each length that is tried is kStep times the one before. The search ends where a tile would have more than
// kMostOfTile parts, which the second kernel adds one after the other, or after kPatience lengths without an
// improvement.
constexpr double kStep = 0.8;
constexpr int32_t kMostOfTile = 32;
constexpr int32_t kPatience = 4;

// The number of parts of each group if a part has at most `most` entries.
std::vector<int32_t> parts_of(const std::vector<EntryRange>& groups, int32_t most) {
  std::vector<int32_t> parts;
  parts.reserve(groups.size());
  for (const EntryRange& group : groups) parts.push_back(std::max((group.count() - 1) / most + 1, 1));
  return parts;
}

// The number of parts of the groups that are cut.
int64_t count_parts(const std::vector<int32_t>& parts) {
  int64_t sum = 0;
  for (const int32_t of_group : parts) sum += of_group > 1 ? of_group : 0;
  return sum;
}

}  // namespace

std::vector<int32_t> choose_parts(const std::vector<EntryRange>& groups, const PlanShape& shape) {
  std::vector<int32_t> best(groups.size(), 1);
  const int64_t panels = (shape.n + shape.tile_n - 1) / shape.tile_n;
  if (shape.most_parts == 0 || panels > 1 << kPanelBits) return best;

  int32_t longest = 0;
  int64_t entries = 0;
  for (const EntryRange& group : groups) {
    longest = std::max(longest, group.count());
    entries += group.count();
  }
  const double mean = (groups.size() * shape.tile_cost + entries) * panels / shape.workers;
  const auto worth_it = [&](double whole, double split) { return split < (1 - kLeastGain) * whole; };
  // Whole tiles end at most one tile after the mean; split ones end at the mean or later.
  if (!worth_it(mean + shape.tile_cost + longest, mean + shape.join_cost)) return best;
  const double whole = makespan(cut(groups, best), shape);
  if (!worth_it(whole, mean + shape.join_cost)) return best;

  double least = whole;
  int32_t in_vain = 0;
  for (double most = kStep * longest; most >= 1 && longest < kMostOfTile * most && in_vain < kPatience; most *= kStep) {
    const std::vector<int32_t> parts = parts_of(groups, static_cast<int32_t>(most));
    const int64_t count = count_parts(parts) * panels;
    if (count > shape.most_parts) break;
    const double split = makespan(cut(groups, parts), shape) + shape.join_cost + shape.part_cost * count;
    if (split < least && worth_it(whole, split)) {
      least = split;
      best = parts;
      in_vain = 0;
    } else {
      ++in_vain;
    }
  }
  return best;
}

}  // namespace sparsek
