// SPDX-License-Identifier: Apache-2.0
// The device memory of a plan's products, and the layout of A's values that the plan keeps.
#include <algorithm>

#include "abi/dtype.h"
#include "cuda/add_parts.h"
#include "cuda/add_row_sums.h"
#include "cuda/cuda_error.h"
#include "cuda/cuda_plan.h"
#include "cuda/find_kernel.h"
#include "cuda/pack_b.h"

namespace sparsek::cuda {

void CudaPlan::prepare_workspace() {
  if (packs_b(*kernel_, options_)) {
    packed_pitch_ = packed_pitch(options_.n, dtype_bytes(options_.dtype_b));
    check(prepare_pack_b(), "cudaFuncGetAttributes");
  }
  if (arrays_.sizes().parts > 0) check(prepare_add_parts(), "cudaFuncGetAttributes");
  if (cuts_rows_) check(prepare_add_row_sums(options_.dtype_b == SPARSEK_FP64), "cudaFuncGetAttributes");
  product_ = memory_of_product(nullptr);
}

CudaPlan::ProductMemory CudaPlan::memory_of_product(void* laid_out) const {
  ProductMemory memory;
  if (kernel_->ops->workspace_bytes != nullptr) {
    LaunchArgs sizes = sizes_of(matrix_.shape(), options_.n, workers_, cluster_);
    sizes.laid_out = laid_out;
    memory.of_kernel = kernel_->ops->workspace_bytes(sizes);
  }
  memory.bytes = bytes_of_parts() + bytes_of_row_sums() + memory.of_kernel +
                 static_cast<size_t>(matrix_.shape().cols * packed_pitch_ * dtype_bytes(options_.dtype_b));
  return memory;
}

void CudaPlan::make_layout() {
  if (!matrix_.lets_plans_keep_values()) return;
  const size_t bytes = kept_bytes(*kernel_, sizes_of(matrix_.shape(), options_.n, workers_, cluster_));
  if (bytes == 0) return;
  layout_ = {matrix_.join_layout(layout_kind(*kernel_, matrix_.shape()), bytes, *this), LeaveLayout{this}};
  if (layout_ != nullptr) laid_out_ = memory_of_product(layout_->data());
}

void CudaPlan::write_layout(const void* values, void* to, cudaStream_t stream) {
  if (stream != matrix_.memory().stream()) matrix_.memory().releases().use(uses_, stream);
  const ScatteredRows rows = rows_of_plan(options_.n);
  LaunchArgs args = args_of_plan(options_.n, rows);
  args.values = values;
  args.stream = stream;
  check(kernel_->ops->lay_out(args, to), kernel_->name);
}

size_t CudaPlan::bytes_of_parts() const {
  return static_cast<size_t>(arrays_.sizes().parts * part_layout().bytes_of_part());
}

int64_t CudaPlan::bytes_of_sum() const { return options_.dtype_b == SPARSEK_FP64 ? sizeof(double) : sizeof(float); }

int64_t CudaPlan::rows_of_sums() const { return int64_t{2} * arrays_.sizes().chunks * matrix_.shape().block_m; }

// Whole panels, of which the sums of rows that are cut do not take more memory than that.
int64_t CudaPlan::columns_of_pass() const {
  constexpr int64_t kMostBytes = int64_t{256} << 20;
  const int64_t panels = kMostBytes / bytes_of_sum() / (rows_of_sums() * lanes_.columns);
  return std::max<int64_t>(1, panels) * lanes_.columns;
}

size_t CudaPlan::bytes_of_row_sums() const {
  if (!cuts_rows_) return 0;
  const int64_t columns = std::min<int64_t>(columns_of_pass(), panels_of(options_.n) * int64_t{lanes_.columns});
  return static_cast<size_t>(rows_of_sums() * columns * bytes_of_sum());
}

}  // namespace sparsek::cuda
