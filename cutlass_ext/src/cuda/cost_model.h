// SPDX-License-Identifier: Apache-2.0
// Predicts how long a product takes, from its sizes and a few figures of its pattern: well enough to compare kernels,
// without measuring anything.
#pragma once

#include "abi/backend.h"
#include "cuda/cost_coefficients.h"
#include "cuda/device_rates.h"
#include "cuda/form_copies.h"
#include "cuda/kernel.h"
#include "cuda/vendor/library_kernels.h"
#include "plan/pattern_stats.h"

namespace sparsek::cuda {

// A product whose time is predicted.
struct Work {
  const BsrShape& shape;
  const PatternStats& stats;
  int64_t n;                                                // columns of B and C
  int64_t element_bytes, element_bytes_b, element_bytes_c;  // of A, B and C; of A and B the same, but for some kernels
  DeviceRates device;
  bool packs_b;              // B is copied for the kernel
  bool shares_tiles = true;  // a tile may be computed by several CTAs, which have a part of its sums each
  int32_t workers = 0;       // the most CTAs; 0: all that run at once
  bool knows_rows = true;    // stats.longest_row was counted; else all rows are assumed to be equally long
  bool is_laid_out = false;  // the plan keeps A's values as the kernel reads them
};

// Seconds of one product by a kernel that serves it.
double predict(const KernelDesc& kernel, const Work& work, const CostCoefficients& costs = kCostCoefficients);
// Of the copies of operands to another order and back. Of what beta is multiplied with there is none where beta is 0.
double predict_copies(const FormCopies& copies, const Work& work);
// By one of NVIDIA's libraries: dense and of the whole size, on BSR, or on Blocked-ELL, whose rows are padded to the
// longest.
double predict(LibraryFormat format, const Work& work, const CostCoefficients& costs = kCostCoefficients);

}  // namespace sparsek::cuda
