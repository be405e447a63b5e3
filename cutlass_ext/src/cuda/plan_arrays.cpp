// SPDX-License-Identifier: Apache-2.0
#include "cuda/plan_arrays.h"

#include <cstring>
#include <memory>

#include "cuda/layout.h"

namespace sparsek::cuda {
namespace {

PlanSizes sizes_of(const Plan& plan) {
  PlanSizes sizes;
  sizes.tiles = static_cast<int64_t>(plan.tiles.size());
  sizes.entries = plan.entries();
  sizes.groups = static_cast<int64_t>(plan.slot_row.size()) / plan.slots;
  sizes.workers = plan.shape.workers;
  sizes.slots = plan.slots;
  return sizes;
}

template <class T>
void copy(std::byte* to, const std::vector<T>& from) {
  if (!from.empty()) std::memcpy(to, from.data(), from.size() * sizeof(T));
}

}  // namespace

PlanArrays::PlanArrays(const PlanSizes& sizes) : sizes_(sizes) {
  Layout layout;
  begin_[kTiles] = layout.place<WorkTile>(sizes.tiles);
  begin_[kWorkerBegin] = layout.place<int32_t>(sizes.workers + size_t{1});
  begin_[kEntryCol] = layout.place<int32_t>(sizes.entries);
  begin_[kEntryBlock] = layout.place<int32_t>(sizes.entries * sizes.slots);
  begin_[kSlotRow] = layout.place<int64_t>(sizes.groups * sizes.slots);
  begin_[kRecomputed] = layout.place<unsigned long long>(1);
  memory_ = DeviceArray<std::byte>(layout.bytes());
}

PlanArrays::PlanArrays(const Plan& plan) : PlanArrays(sizes_of(plan)) {
  // Not cleared first, and so each page is touched once.
  const std::unique_ptr<std::byte[]> host(new std::byte[bytes()]);
  copy(host.get() + begin_[kTiles], plan.tiles);
  copy(host.get() + begin_[kWorkerBegin], plan.worker_begin);
  copy(host.get() + begin_[kEntryCol], plan.entry_col);
  copy(host.get() + begin_[kEntryBlock], plan.entry_block);
  copy(host.get() + begin_[kSlotRow], plan.slot_row);
  std::memset(host.get() + begin_[kRecomputed], 0, sizeof(unsigned long long));
  memory_.write(host.get());
}

}  // namespace sparsek::cuda
