// SPDX-License-Identifier: Apache-2.0
#include "cuda/plan_arrays.h"

#include <type_traits>
#include <vector>

#include "cuda/layout.h"
#include "cuda/stream.h"

namespace sparsek::cuda {
namespace {

PlanSizes sizes_of(const Plan& plan) {
  PlanSizes sizes;
  sizes.tiles = static_cast<int64_t>(plan.tiles.size());
  sizes.entries = plan.entries();
  sizes.groups = static_cast<int64_t>(plan.slot_row.size()) / plan.slots;
  sizes.slots = plan.slots;
  sizes.split_tiles = static_cast<int32_t>(plan.split_tiles.size());
  sizes.parts = plan.parts;
  return sizes;
}

template <class T>
HostPart part(const std::vector<T>& from, size_t at) {
  return {from.data(), from.size() * sizeof(T), at};
}

}  // namespace

PlanArrays::PlanArrays(PlanMemory& memory, const PlanSizes& sizes, const StreamUses& uses) : sizes_(sizes) {
  Layout layout;
  begin_[kTiles] = layout.place<WorkTile>(sizes.tiles);
  begin_[kEntryK] = layout.place<int32_t>(sizes.entries);
  begin_[kEntryBlock] = layout.place<int32_t>(sizes.entries * sizes.slots);
  begin_[kSlotRow] = layout.place<int64_t>(sizes.groups * sizes.slots);
  begin_[kSplitTiles] = layout.place<SplitTile>(sizes.split_tiles);
  begin_[kRecomputed] = layout.place<unsigned long long>(1);
  block_ = memory.allocate(layout.bytes(), &uses);
}

PlanArrays::PlanArrays(PlanMemory& memory, const Plan& plan, const StreamUses& uses)
    : PlanArrays(memory, sizes_of(plan), uses) {
  const unsigned long long none = 0;
  memory.write(block_, {part(plan.tiles, begin_[kTiles]),
                        part(plan.entry_k, begin_[kEntryK]),
                        part(plan.entry_block, begin_[kEntryBlock]),
                        part(plan.slot_row, begin_[kSlotRow]),
                        part(plan.split_tiles, begin_[kSplitTiles]),
                        {&none, sizeof(none), begin_[kRecomputed]}});
}

void PlanArrays::add_to(Digest& digest) const {
  const Stream stream;
  const auto add = [&](const auto* from, int64_t count) {
    std::vector<std::remove_const_t<std::remove_pointer_t<decltype(from)>>> host(static_cast<size_t>(count));
    if (count > 0) {
      check(cudaMemcpyAsync(host.data(), from, host.size() * sizeof(host[0]), cudaMemcpyDeviceToHost, stream),
            "cudaMemcpyAsync");
      stream.wait();
    }
    digest.add(host);
  };
  digest.add(sizes_.slots);
  digest.add(sizes_.parts);
  if (sizes_.tiles == 0) return;
  add(tiles(), sizes_.tiles);
  add(entry_k(), sizes_.entries);
  add(entry_block(), sizes_.entries * sizes_.slots);
  add(slot_row(), sizes_.groups * sizes_.slots);
  add(split_tiles(), sizes_.split_tiles);
}

}  // namespace sparsek::cuda
