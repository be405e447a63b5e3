// SPDX-License-Identifier: Apache-2.0
// What a plan tells of itself.
#include <cmath>

#include "abi/error.h"
#include "cuda/abi_types.h"
#include "cuda/cuda_plan.h"
#include "cuda/device_scope.h"
#include "plan/digest.h"

namespace sparsek::cuda {

void CudaPlan::info(sparsek_plan_info& out) const {
  out.kernel = kernel_->name;
  out.tile_m = tile_rows();
  out.tile_n = tile_columns();
  out.tile_k = kernel_->tile_k;
  out.stages = kernel_->stages;
  out.tiles = arrays_.sizes().tiles;
  if (arrays_.sizes().chunks > 0) out.tiles = ctas_of(arrays_.sizes().chunks, lanes_, panels_of(options_.n));
  out.entries = entries_;
  out.product_bytes = static_cast<int64_t>(product_bytes());
  out.kept_bytes = layout_ != nullptr ? static_cast<int64_t>(layout_->bytes()) : 0;
  out.workspace_bytes = static_cast<int64_t>(arrays_.bytes()) + out.kept_bytes + out.product_bytes;
  // Tensor cores align the products of a step to the largest and cut off (Fasi, Higham, Mikaitis, Pranesh:
  // Numerical behavior of NVIDIA tensor cores, 2021): one unit in the last place a step, twice that of rounding.
  // A split tile's parts change nothing: a bound of L products needs but that each passes through at most L - 1
  // additions that round (Higham, 2nd ed., section 4.2). It passes through those of its part, one for each other
  // product there, and then through one for each other part; one that has no product in C's element adds an exact 0.
  out.unit_roundoff = kernel_->ops->tensor_cores ? std::ldexp(1.0, -23) : std::ldexp(1.0, -24);
  // Each factor is cut off by less than 2^-10 of it.
  if (cuts_to_tf32(*kernel_)) out.product_roundoff = std::ldexp(1.0, -9);
  // Those for fp64 round each addition.
  if (options_.dtype_b == SPARSEK_FP64) out.unit_roundoff = std::ldexp(1.0, -53);
}

int64_t CudaPlan::recomputed() const {
  if (uses_.none()) return 0;  // and so a new plan is described without waiting for the products of others
  DeviceScope scope(matrix_.device());
  PlanMemory& memory = matrix_.memory();
  if (!memory.releases().wait_for_device()) {
    fail(SPARSEK_OUT_OF_MEMORY, "waiting for the products of the plan: out of device memory");
  }
  return static_cast<int64_t>(memory.read(arrays_.recomputed()));
}

uint64_t CudaPlan::digest() const {
  DeviceScope scope(matrix_.device());
  made_.wait();
  Digest digest;
  digest.add(cluster_);
  digest.add(panels_);
  digest.add(packed_pitch_);
  if (lanes_.columns > 0) {
    for (const int32_t extent : {static_cast<int32_t>(lanes_.way), lanes_.tile_m, lanes_.tile_n, lanes_.depth,
                                 lanes_.depth_lanes, lanes_.rows, lanes_.shares}) {
      digest.add(extent);
    }
  }
  arrays_.add_to(digest);
  return digest.value();
}

}  // namespace sparsek::cuda
