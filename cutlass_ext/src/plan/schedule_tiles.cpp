// SPDX-License-Identifier: Apache-2.0
#include "plan/schedule_tiles.h"

#include <algorithm>

#include "plan/least_loaded.h"
#include "plan/schedule.h"

namespace sparsek {
namespace {

// Calls visit(piece, panel) for each tile in the order of TileOrder.
template <class Visit>
void each_tile(const std::vector<Piece>& pieces, const PlanShape& shape, const Visit& visit) {
  const int32_t panels = count_panels(shape);
  int64_t entries = 0;
  for (const Piece& piece : pieces) entries += piece.count;
  const auto others = std::find_if_not(pieces.begin(), pieces.end(), [&](const Piece& piece) {
    return is_long(piece.count, static_cast<int64_t>(pieces.size()), entries, shape.workers, shape.panels_in_flight);
  });
  const auto visit_all = [&](auto begin, auto end) {
    for (int32_t first = 0; begin != end && first < panels; first += shape.panels_in_flight) {
      const int32_t last = std::min(first + shape.panels_in_flight, panels);
      for (auto piece = begin; piece != end; ++piece) {
        for (int32_t panel = first; panel < last; ++panel) visit(*piece, panel);
      }
    }
  };
  visit_all(pieces.begin(), others);
  visit_all(others, pieces.end());
}

}  // namespace

std::vector<Piece> cut(const std::vector<EntryRange>& groups, const std::vector<int32_t>& parts) {
  std::vector<Piece> pieces;
  pieces.reserve(groups.size());
  for (size_t g = 0; g < groups.size(); ++g) {
    const EntryRange& group = groups[g];
    const auto begin = [&](int64_t part) {
      return static_cast<int32_t>(group.begin + group.count() * part / parts[g]);
    };
    for (int32_t part = 0; part < parts[g]; ++part) {
      pieces.push_back({static_cast<int32_t>(g), part, parts[g], begin(part), begin(part + 1) - begin(part)});
    }
  }
  std::stable_sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) { return a.count > b.count; });
  return pieces;
}

double makespan(const std::vector<Piece>& pieces, const PlanShape& shape) {
  double most = 0;
  LeastLoaded least(shape.workers);
  each_tile(pieces, shape, [&](const Piece& piece, int32_t) {
    const double load = least.load() + shape.tile_cost + piece.count;
    least.set_load(load);
    most = std::max(most, load);
  });
  return most;
}

void schedule_tiles(const std::vector<EntryRange>& groups, const std::vector<int32_t>& parts, Plan& plan) {
  const int32_t panels = count_panels(plan.shape);
  // The parts of a row group lie together in the workspace, panel by panel.
  std::vector<int32_t> first_part(groups.size());
  for (size_t g = 0; g < groups.size(); ++g) {
    first_part[g] = plan.parts;
    for (int32_t panel = 0; parts[g] > 1 && panel < panels; ++panel) {
      plan.split_tiles.push_back({static_cast<int32_t>(g), panel, plan.parts, parts[g]});
      plan.parts += parts[g];
    }
  }

  const std::vector<Piece> pieces = cut(groups, parts);
  plan.tiles.reserve(pieces.size() * panels);
  each_tile(pieces, plan.shape, [&](const Piece& piece, int32_t panel) {
    const int32_t part = first_part[piece.group] + panel * piece.parts + piece.part;
    const int32_t n_tile = piece.parts == 1 ? panel : part_tile(panel, part);
    plan.tiles.push_back({piece.group, n_tile, piece.begin, piece.count});
  });
}

}  // namespace sparsek
