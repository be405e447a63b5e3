// SPDX-License-Identifier: Apache-2.0
// The plan, made in the plainest way: what make_plan must give, bit for bit, however it gets there.
#pragma once

#include <algorithm>
#include <cstdint>
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

// With the rows of `made`, where the planner was free to choose them.
inline sparsek::Plan reference_plan(const sparsek::BsrIndex& index, const sparsek::PlanShape& shape,
                                    const sparsek::Plan& made) {
  sparsek::Plan plan;
  plan.shape = shape;
  plan.slot_rows = std::gcd(shape.tile_m, index.block_m);
  plan.slots = shape.tile_m / plan.slot_rows;
  plan.slot_row = made.slot_row;

  // Row groups. One that lies in one block row, as the one before did, has its entries too.
  struct Group {
    std::vector<int64_t> block_rows;
    int32_t begin, count;
  };
  std::vector<Group> groups;
  for (size_t first = 0; first < plan.slot_row.size(); first += plan.slots) {
    Group group = {{}, static_cast<int32_t>(plan.entry_k.size()), 0};
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
    const bool share = index.nnzb * 5 >= plan.entries() * plan.slots * 4;
    plan.shape.panels_in_flight = plan.slots > 1 && !share ? 2 : 4;
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
  for (const Group& group : groups) entries += group.count;
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
