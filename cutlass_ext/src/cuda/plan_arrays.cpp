// SPDX-License-Identifier: Apache-2.0
#include "cuda/plan_arrays.h"

#include <cstring>
#include <memory>

namespace sparsek::cuda {
namespace {

constexpr size_t kAlignment = 256;  // as of an allocation of its own

template <class T>
void copy(std::byte* to, const std::vector<T>& from) {
  if (!from.empty()) std::memcpy(to, from.data(), from.size() * sizeof(T));
}

}  // namespace

PlanArrays::PlanArrays(const Plan& plan) {
  size_t end = 0;
  const auto place = [&](Part part, size_t bytes) {
    begin_[part] = end;
    end += (bytes + kAlignment - 1) / kAlignment * kAlignment;
  };
  place(kTiles, plan.tiles.size() * sizeof(WorkTile));
  place(kWorkerBegin, plan.worker_begin.size() * sizeof(int32_t));
  place(kEntryCol, plan.entry_col.size() * sizeof(int32_t));
  place(kEntryBlock, plan.entry_block.size() * sizeof(int32_t));
  place(kSlotRow, plan.slot_row.size() * sizeof(int64_t));

  // Not cleared first, and so each page is touched once.
  const std::unique_ptr<std::byte[]> host(new std::byte[end]);
  copy(host.get() + begin_[kTiles], plan.tiles);
  copy(host.get() + begin_[kWorkerBegin], plan.worker_begin);
  copy(host.get() + begin_[kEntryCol], plan.entry_col);
  copy(host.get() + begin_[kEntryBlock], plan.entry_block);
  copy(host.get() + begin_[kSlotRow], plan.slot_row);
  memory_ = DeviceArray<std::byte>(host.get(), end);
}

}  // namespace sparsek::cuda
