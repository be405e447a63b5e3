// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cuda/device_array.h"
#include "plan/plan.h"

namespace sparsek::cuda {

// What kernels read of a plan, in device memory: one allocation, filled by one copy, since each call of the driver
// takes longer than making a small plan.
class PlanArrays {
 public:
  PlanArrays() = default;
  // Complete when the constructor returns.
  explicit PlanArrays(const Plan& plan);

  const WorkTile* tiles() const { return at<WorkTile>(kTiles); }             // (tiles)
  const int32_t* worker_begin() const { return at<int32_t>(kWorkerBegin); }  // (workers + 1)
  const int32_t* entry_col() const { return at<int32_t>(kEntryCol); }        // (entries)
  const int32_t* entry_block() const { return at<int32_t>(kEntryBlock); }    // (entries, slots)
  const int64_t* slot_row() const { return at<int64_t>(kSlotRow); }          // (groups, slots): first row of C
  size_t bytes() const { return memory_.bytes(); }

 private:
  enum Part { kTiles, kWorkerBegin, kEntryCol, kEntryBlock, kSlotRow, kParts };

  template <class T>
  const T* at(Part part) const {
    return reinterpret_cast<const T*>(memory_.data() + begin_[part]);
  }

  DeviceArray<std::byte> memory_;
  size_t begin_[kParts] = {};
};

}  // namespace sparsek::cuda
