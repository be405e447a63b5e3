// SPDX-License-Identifier: Apache-2.0
// The cost model of the kernels that take a matrix in chunks: microseconds of a product.
#pragma once

#include "cuda/cost_model.h"

namespace sparsek::cuda {

double predict_few_columns(const Work& work, const CostCoefficients& costs);
double predict_window(const Work& work, const CostCoefficients& costs);
double predict_scatter(const KernelDesc& kernel, const Work& work);
double predict_packed_fp64(const KernelDesc& kernel, const Work& work);
double predict_packed_planes(const KernelDesc& kernel, const Work& work);

}  // namespace sparsek::cuda
