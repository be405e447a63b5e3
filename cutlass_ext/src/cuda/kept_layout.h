// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "cuda/plan_memory.h"
#include "cuda/stream_uses.h"
#include "cuda/value_layout.h"

namespace sparsek::cuda {

// A's values as kernels read them, in device memory, of one plan or of several. Of CudaMatrix, which calls what follows
// the constructor, but for the first three functions, for one thread at a time.
class KeptLayout {
 public:
  // Throws SPARSEK_OUT_OF_MEMORY.
  KeptLayout(PlanMemory& memory, LayoutKind kind, size_t bytes)
      : memory_(memory), kind_(kind), bytes_(memory, bytes, &uses_) {}

  void* data() const { return bytes_.data(); }
  size_t bytes() const { return bytes_.bytes(); }
  // Whether a plan that needs such a layout may have this one.
  bool is_shared_as(LayoutKind kind, size_t bytes) const {
    return kind != LayoutKind::kOfPlan && kind == kind_ && bytes == this->bytes();
  }

  void add(LayoutWriter& plan) { plans_.push_back(&plan); }
  // Returns whether other plans have it. uses: of the plan's products, which read it.
  bool remove(const LayoutWriter& plan, const StreamUses& uses) noexcept {
    plans_.erase(std::remove(plans_.begin(), plans_.end(), &plan), plans_.end());
    uses_.add_all(uses);
    return !plans_.empty();
  }
  // In the order of the stream, which may be captured: by one of the plans, which would all write the same.
  void fill(const void* values, cudaStream_t stream) {
    if (stream != memory_.stream()) memory_.releases().use(uses_, stream);
    plans_.front()->write_layout(values, data(), stream);
  }

 private:
  PlanMemory& memory_;
  const LayoutKind kind_;
  StreamUses uses_;  // of what follows, but for those of the plans that have it
  PoolArray<std::byte> bytes_;
  std::vector<LayoutWriter*> plans_;
};

}  // namespace sparsek::cuda
