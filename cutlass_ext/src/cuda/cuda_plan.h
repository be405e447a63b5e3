// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "abi/backend.h"
#include "cuda/cuda_matrix.h"
#include "cuda/device_array.h"
#include "cuda/kernel.h"

namespace sparsek::cuda {

// A kernel and its work list, in device memory.
class CudaPlan final : public PlanState {
 public:
  CudaPlan(CudaMatrix& matrix, const PlanOptions& options, int sm_count);

  void info(sparsek_plan_info& out) const override;
  void multiply(const MultiplyArgs& args) override;
  void multiply_time(const MultiplyArgs* args, int arg_count, int warmup, int repeats, double* seconds) override;

 private:
  int32_t tile_rows() const;

  CudaMatrix& matrix_;
  PlanOptions options_;
  const KernelDesc* kernel_;
  std::string reason_;
  int64_t tile_count_ = 0, entry_count_ = 0;
  int32_t workers_ = 0;
  DeviceArray<WorkTile> tiles_;
  DeviceArray<int32_t> worker_begin_, entry_col_, entry_block_, row_ptr_;
  DeviceArray<uint32_t> entry_mask_;
};

}  // namespace sparsek::cuda
