// SPDX-License-Identifier: Apache-2.0
// The plan, made in the plainest way: what make_plan must give, bit for bit, however it gets there.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "plan/plan.h"

// The union of the block columns of the slots' block rows, appended to the plan's entries.
inline void reference_union(const sparsek::BsrIndex& index, const std::vector<int64_t>& block_rows,
                            sparsek::Plan& plan) {
  std::map<int32_t, std::vector<int32_t>> blocks;  // column -> storage index by slot
  for (int32_t slot = 0; slot < plan.slots; ++slot) {
    if (block_rows[slot] >= index.block_rows) continue;
    for (int32_t i = index.row_ptr[block_rows[slot]]; i < index.row_ptr[block_rows[slot] + 1]; ++i) {
      const auto [found, added] = blocks.try_emplace(index.col_idx[i], plan.slots, sparsek::kNoBlock);
      found->second[slot] = i;
    }
  }
  for (const auto& [col, slots] : blocks) {
    plan.entry_k.push_back(col * index.block_k);
    plan.entry_block.insert(plan.entry_block.end(), slots.begin(), slots.end());
  }
}

struct ReferenceGroup {
  std::vector<int64_t> block_rows;
  int32_t begin, count;
};

// Three quarters of the rows of B that lie within a group's span are read by it, and from group to group that span
// moves by no more than a quarter of what a group reads, both in the mean.
// And the span has no more than 6144 rows in the mean.
inline bool reference_is_band(const std::vector<int32_t>& entry_k, const std::vector<ReferenceGroup>& groups,
                              int32_t block_k) {
  std::map<int32_t, int32_t> group_ends;  // of each group that has entries of its own: begin, end
  for (const ReferenceGroup& group : groups) {
    if (group.count > 0) group_ends[group.begin] = group.begin + group.count;
  }
  double read = 0, spanned = 0, moved = 0;
  for (const auto& [begin, end] : group_ends) {
    read += static_cast<double>(end - begin) * block_k;
    spanned += entry_k[end - 1] + block_k - entry_k[begin];
  }
  for (size_t g = 1; g < groups.size(); ++g) {
    if (groups[g].count > 0 && groups[g - 1].count > 0) {
      moved += std::abs(entry_k[groups[g].begin] - entry_k[groups[g - 1].begin]);
    }
  }
  const double rows = 6144 * static_cast<double>(group_ends.size());
  return spanned <= read * 4 / 3 && moved <= read / 4 && spanned <= rows;
}

// With the rows of `made`, where the planner was free to choose them.
inline sparsek::Plan reference_plan(const sparsek::BsrIndex& index, const sparsek::PlanShape& shape,
                                    const sparsek::Plan& made) {
  sparsek::Plan plan;
  plan.shape = shape;
  plan.slot_rows = std::gcd(shape.tile_m, index.block_m);
  plan.slots = shape.tile_m / plan.slot_rows;
  plan.slot_row = made.slot_row;

  // Row groups. One that lies in one block row, as the one before did, has its entries too.
  std::vector<ReferenceGroup> groups;
  for (size_t first = 0; first < plan.slot_row.size(); first += plan.slots) {
    ReferenceGroup group = {{}, static_cast<int32_t>(plan.entry_k.size()), 0};
    for (int32_t slot = 0; slot < plan.slots; ++slot) {
      const int64_t row = plan.slot_row[first + slot];
      group.block_rows.push_back(row < index.rows ? row / index.block_m : index.block_rows);
    }
    const bool one = std::count(group.block_rows.begin(), group.block_rows.end(), group.block_rows[0]) == plan.slots;
    if (one && !groups.empty() && groups.back().block_rows == group.block_rows) {
      group = groups.back();
    } else {
      reference_union(index, group.block_rows, plan);
      group.count = static_cast<int32_t>(plan.entry_k.size()) - group.begin;
    }
    groups.push_back(group);
  }
  if (plan.shape.panels_in_flight == 0) {
    const bool share = plan.slots == 1 || index.nnzb * 5 >= plan.entries() * plan.slots * 4;
    const bool band = shape.n > 1024 && reference_is_band(plan.entry_k, groups, index.block_k);
    plan.shape.panels_in_flight = !share ? 2 : band ? 8 : 4;
  }

  std::vector<int32_t> order(groups.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return groups[a].count > groups[b].count; });
  const int64_t panels = (shape.n + shape.tile_n - 1) / shape.tile_n;
  const auto add = [&](int32_t g, int64_t first, int64_t last) {
    for (int64_t panel = first; panel < std::min(last, panels); ++panel) {
      plan.tiles.push_back({g, static_cast<int32_t>(panel), groups[g].begin, groups[g].count});
    }
  };
  // Row groups half as long again as the mean, and as a worker's share of the panels in flight, come ahead of all.
  double entries = 0;
  for (const ReferenceGroup& group : groups) entries += group.count;
  const double mean = entries / static_cast<double>(groups.size());
  const double share = entries * plan.shape.panels_in_flight / shape.workers;
  const auto is_long = [&](int32_t g) { return groups[g].count > 1.5 * mean && groups[g].count > 1.5 * share; };
  for (const bool long_ones : {true, false}) {
    for (int64_t first = 0; first < panels; first += plan.shape.panels_in_flight) {
      for (const int32_t g : order) {
        if (is_long(g) == long_ones) add(g, first, first + plan.shape.panels_in_flight);
      }
    }
  }
  return plan;
}
