// SPDX-License-Identifier: Apache-2.0
// Layouts of A's values that plans keep for their kernels, so that products need not lay them out each time.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "cuda/kernel.h"
#include "plan/bsr_index.h"

namespace sparsek::cuda {

// A plan that writes the layout which it keeps of values that change by matrix_set_values alone.
class LayoutWriter {
 public:
  // In the order of the stream, which may be captured. It allocates nothing.
  virtual void write_layout(const void* values, void* to, cudaStream_t stream) = 0;

 protected:
  ~LayoutWriter() = default;
};

// Which plans of a matrix have the same layout.
enum class LayoutKind {
  kOfPlan,       // it depends on the plan
  kStages,       // of kernels that scatter (cuda/stage_tiles.h); these and the next ones depend on the matrix alone
  kListValues,   // likewise
  kPlaneStrips,  // of kernels that pack planes
  kStrips,       // of kernels that pack fp64
};
LayoutKind layout_kind(const KernelDesc& kernel, const BsrShape& matrix);

// Bytes of a layout that a plan keeps, at most, and of all layouts of a matrix.
constexpr size_t kMostKeptBytes = size_t{256} << 20, kMostKeptOfMatrix = 2 * kMostKeptBytes;

// Of a product's arguments, what its layout and its workspace depend on.
LaunchArgs sizes_of(const BsrShape& matrix, int64_t n, int32_t workers, int32_t cluster);

// Of the layout that a plan of the kernel, which serves the product, keeps where it may; 0: it keeps none, as the
// kernel has none, or as it would take too much memory.
size_t kept_bytes(const KernelDesc& kernel, const LaunchArgs& sizes);

}  // namespace sparsek::cuda
