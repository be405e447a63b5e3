// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "cuda/attention_work.h"
#include "cuda/plan_memory.h"
#include "cuda/stream_uses.h"
#include "plan/attention_steps.h"

namespace sparsek::cuda {

// The steps and tiles of a kernel of attention, from the host.
class AttentionList {
 public:
  AttentionList(PlanMemory& memory, const AttentionSteps& list, const StreamUses* uses)
      : tile_count_(static_cast<int32_t>(list.tiles.size())), in_pieces_(!list.pieces.empty()), box_(list.box) {
    if (tile_count_ == 0) return;
    const void* const steps = in_pieces_ ? static_cast<const void*>(list.pieces.data()) : list.steps.data();
    const size_t step_bytes = list.pieces.size() * sizeof(AttentionPieces) + list.steps.size() * sizeof(AttentionStep);
    tiles_at_ = (step_bytes + sizeof(WorkTile) - 1) / sizeof(WorkTile) * sizeof(WorkTile);
    const size_t tile_bytes = list.tiles.size() * sizeof(WorkTile);
    memory_ = PoolArray<std::byte>(memory, tiles_at_ + tile_bytes, uses);
    std::vector<HostPart> parts;
    if (step_bytes > 0) parts.push_back({steps, step_bytes, 0});
    parts.push_back({list.tiles.data(), tile_bytes, tiles_at_});
    memory.write(memory_.block(), parts);
  }

  AttentionListView view() const {
    const auto* const tiles = reinterpret_cast<const WorkTile*>(memory_.data() + tiles_at_);
    if (in_pieces_) {
      return {nullptr, tiles, tile_count_, reinterpret_cast<const AttentionPieces*>(memory_.data()), box_};
    }
    return {reinterpret_cast<const AttentionStep*>(memory_.data()), tiles, tile_count_};
  }

 private:
  PoolArray<std::byte> memory_;  // steps, then tiles
  size_t tiles_at_ = 0;
  int32_t tile_count_;
  bool in_pieces_;
  int32_t box_;
};

}  // namespace sparsek::cuda
