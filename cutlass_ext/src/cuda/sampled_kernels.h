// SPDX-License-Identifier: Apache-2.0
// The kernels of SPARSEK_SDD: which serve a product, and how long it takes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "abi/backend.h"
#include "cuda/cuda_matrix.h"
#include "cuda/device_rates.h"
#include "cuda/sampled.h"
#include "cuda/sampled_list.h"
#include "tune/choice.h"

namespace sparsek::cuda {

enum class SampledFamily { kWgmma, kMma, kSimt };

struct SampledKernel {
  const char* name;
  sparsek_dtype dtype;
  SampledFamily family;
  double rate;  // operations a second of the tensor cores; 0: it uses none
};

// Throws where there is none of that name for the matrix, or it does not serve it.
const SampledKernel& sampled_kernel(const CudaMatrix& matrix, const PlanOptions& options);
// Those of the matrix's type, to be chosen.
std::vector<tune::Candidate> list_sampled(const CudaMatrix& matrix, const PlanOptions& options,
                                          const DeviceRates& device);

// Lines of X and Y begin at multiples of so many bytes for tensor cores.
constexpr int64_t kSampledVectorBytes = 16;
bool uses_tensor_cores(const SampledKernel& kernel);

// Whether operands are copied to aligned rows, since the kernel cannot read them as they lie.
struct SampledCopies {
  bool x, y;
};
SampledCopies sampled_copies(const SampledKernel& kernel, const BsrShape& shape, const PlanOptions& options);

// The list of tiles that the kernel works from, if it does. ctas: that run at once.
std::optional<SampledGrid> sampled_grid(const SampledKernel& kernel, const BsrShape& shape, int ctas);
SampledOps sampled_ops(const SampledKernel& kernel, const BsrShape& shape);

}  // namespace sparsek::cuda
