// SPDX-License-Identifier: Apache-2.0
// The plan, made in the plainest way: what make_plan must give, bit for bit, however it gets there.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <queue>
#include <utility>
#include <vector>

#include "plan/plan.h"

// The union of the block columns of block rows [first, last], appended to the plan's entries.
inline void reference_union(const sparsek::BsrIndex& index, int64_t first, int64_t last, sparsek::Plan& plan) {
  std::map<int32_t, std::vector<int32_t>> blocks;  // column -> storage index by slot
  for (int64_t row = first; row <= last; ++row) {
    for (int32_t i = index.row_ptr[row]; i < index.row_ptr[row + 1]; ++i) {
      const auto [found, added] = blocks.try_emplace(index.col_idx[i], plan.slots, sparsek::kNoBlock);
      found->second[row - first] = i;
    }
  }
  for (const auto& [col, slots] : blocks) {
    plan.entry_col.push_back(col);
    plan.entry_block.insert(plan.entry_block.end(), slots.begin(), slots.end());
  }
}

inline sparsek::Plan reference_plan(const sparsek::BsrIndex& index, const sparsek::PlanShape& shape) {
  sparsek::Plan plan;
  plan.shape = shape;
  const int64_t step = std::gcd(shape.tile_m, index.block_m);
  plan.slots = static_cast<int32_t>((index.block_m - step + shape.tile_m + index.block_m - 1) / index.block_m);

  // Row groups. One that lies in the same block rows as the one before has its entries too.
  struct Group {
    int64_t first, last;
    int32_t begin, count;
  };
  std::vector<Group> groups;
  for (int64_t row = 0; row < index.rows; row += shape.tile_m) {
    Group group = {row / index.block_m, (std::min(row + shape.tile_m, index.rows) - 1) / index.block_m,
                   static_cast<int32_t>(plan.entry_col.size()), 0};
    if (!groups.empty() && groups.back().first == group.first && groups.back().last == group.last) {
      group = groups.back();
    } else {
      reference_union(index, group.first, group.last, plan);
      group.count = static_cast<int32_t>(plan.entry_col.size()) - group.begin;
    }
    groups.push_back(group);
  }
  if (plan.shape.panels_in_flight == 0) {
    const bool share = index.nnzb() * 5 >= plan.entries() * plan.slots * 4;
    plan.shape.panels_in_flight = plan.slots > 1 && !share ? 2 : 4;
  }

  std::vector<int32_t> order(groups.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return groups[a].count > groups[b].count; });
  using Load = std::pair<double, int32_t>;
  std::priority_queue<Load, std::vector<Load>, std::greater<Load>> loads;
  for (int32_t w = 0; w < shape.workers; ++w) loads.emplace(0.0, w);
  std::vector<std::vector<sparsek::WorkTile>> lists(shape.workers);
  const int64_t panels = (shape.n + shape.tile_n - 1) / shape.tile_n;
  for (int64_t first = 0; first < panels; first += plan.shape.panels_in_flight) {
    for (const int32_t g : order) {
      for (int64_t panel = first; panel < std::min(first + plan.shape.panels_in_flight, panels); ++panel) {
        const auto [work, worker] = loads.top();
        loads.pop();
        lists[worker].push_back({g, static_cast<int32_t>(panel), groups[g].begin, groups[g].count});
        loads.emplace(work + shape.tile_cost + groups[g].count, worker);
      }
    }
  }
  plan.worker_begin.assign(1, 0);
  for (const auto& list : lists) {
    plan.tiles.insert(plan.tiles.end(), list.begin(), list.end());
    plan.worker_begin.push_back(static_cast<int32_t>(plan.tiles.size()));
  }
  return plan;
}
