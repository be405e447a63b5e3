// SPDX-License-Identifier: Apache-2.0
#include "cuda/sampled_kernels.h"

#include <algorithm>
#include <cmath>

#include "abi/dtype.h"
#include "abi/error.h"

namespace sparsek::cuda {
namespace {

constexpr SampledKernel kSampledKernels[] = {{"sampled_wgmma_bf16", SPARSEK_BF16, SampledFamily::kWgmma, 6.6e14},
                                             {"sampled_wgmma_fp16", SPARSEK_FP16, SampledFamily::kWgmma, 6.6e14},
                                             {"sampled_mma_bf16", SPARSEK_BF16, SampledFamily::kMma, 1.5e14},
                                             {"sampled_mma_fp16", SPARSEK_FP16, SampledFamily::kMma, 1.5e14},
                                             {"sampled_simt_bf16", SPARSEK_BF16, SampledFamily::kSimt, 0},
                                             {"sampled_simt_fp16", SPARSEK_FP16, SampledFamily::kSimt, 0},
                                             {"sampled_simt_fp32", SPARSEK_FP32, SampledFamily::kSimt, 0},
                                             {"sampled_simt_fp64", SPARSEK_FP64, SampledFamily::kSimt, 0}};

std::string obstacle(const SampledKernel& kernel, const CudaMatrix& matrix, const PlanOptions& options) {
  const BsrShape& shape = matrix.shape();
  if (kernel.family == SampledFamily::kWgmma) {
    if (!can_list_sampled(shape)) return "blocks of other extents than 16, 32 and multiples of 64";
    if (std::max({shape.rows, shape.cols, options.n}) > INT32_MAX) return "extents of more than 31 bits";
  }
  if (kernel.family == SampledFamily::kMma) {
    constexpr int32_t kHeight = 16, kWidth = 8, kMostWidth = 256;
    if (shape.block_m % kHeight != 0) return "another block height";
    if (shape.block_k % kWidth != 0 || shape.block_k > kMostWidth) return "another block width";
  }
  return "";
}

bool across_x(const PlanOptions& options) { return options.order_x == SPARSEK_COLUMN_MAJOR; }
bool across_y(const PlanOptions& options) { return options.order_b == SPARSEK_ROW_MAJOR; }

// What a family's tiles load of X and Y, in rows of n elements, how many tiles there are at most, and how many
// operations it does.
struct Loads {
  double rows, tiles, operations;
};

Loads loads_of_wgmma(const BsrShape& shape, int64_t n) {
  const double width = std::min(shape.block_k, 64), above = std::max(1, kStripRows / shape.block_m);
  const double places = static_cast<double>(shape.block_rows) * shape.block_cols;
  const double density = places > 0 ? static_cast<double>(shape.nnzb) / places : 0;
  // Of blocks above one another in a strip, those of a random pattern have few columns in common.
  const double columns = places / above * (1 - std::pow(1 - density, above)) * (shape.block_k / width);
  const double cells = columns * std::max(1, shape.block_m / kStripRows), most = kSampledColumns / width;
  const bool in_pairs = shape.block_m % (2 * kStripRows) == 0;
  const double of_tile = in_pairs ? most * width + 2 * kStripRows : 2 * most * width + kStripRows;
  return {cells / (2 * most) * of_tile, cells / 2, cells * kStripRows * width * 2 * static_cast<double>(n)};
}

Loads loads_of_mma(const BsrShape& shape, int64_t n) {
  constexpr double kColumns = 256;
  const double height = shape.block_m % 64 == 0 ? 64 : shape.block_m % 32 == 0 ? 32 : 16;
  const double elements = static_cast<double>(shape.nnzb) * shape.block_m * shape.block_k;
  const double tiles = elements / (height * kColumns);
  return {tiles * (height + kColumns), tiles, elements * 2 * static_cast<double>(n)};
}

// The slower of tensor cores and the second-level cache, and what is copied.
double predict(const SampledKernel& kernel, const CudaMatrix& matrix, const PlanOptions& options,
               const DeviceRates& device) {
  constexpr double kLaunch = 4e-6, kSms = 132, kL2Rate = 7.9e12, kCopyRate = 1.2e12, kOrdinaryRate = 1e12;
  const BsrShape& shape = matrix.shape();
  const double sms = device.sm_count / kSms, bytes = static_cast<double>(dtype_bytes(matrix.dtype));
  const auto lines = [&](double rows) { return rows * static_cast<double>(options.n) * bytes; };
  const SampledCopies copies = sampled_copies(kernel, shape, options);
  const double copied =
      lines((copies.x ? static_cast<double>(shape.rows) : 0) + (copies.y ? static_cast<double>(shape.cols) : 0));
  const double before = kLaunch + copied / kCopyRate;
  if (kernel.family == SampledFamily::kSimt) {
    const double elements = static_cast<double>(shape.nnzb) * shape.block_m * shape.block_k;
    return before + elements * 2 * static_cast<double>(options.n) / (kOrdinaryRate * sms);
  }
  const Loads loads =
      kernel.family == SampledFamily::kWgmma ? loads_of_wgmma(shape, options.n) : loads_of_mma(shape, options.n);
  const double busy = std::clamp(loads.tiles / device.sm_count, 1. / device.sm_count, 1.);
  return before + std::max(lines(loads.rows) / kL2Rate, loads.operations / kernel.rate) / (sms * busy);
}

}  // namespace

bool uses_tensor_cores(const SampledKernel& kernel) { return kernel.family != SampledFamily::kSimt; }

const SampledKernel& sampled_kernel(const CudaMatrix& matrix, const PlanOptions& options) {
  const SampledKernel* found = nullptr;
  for (const SampledKernel& kernel : kSampledKernels) {
    if (options.kernel == kernel.name && kernel.dtype == matrix.dtype) found = &kernel;
  }
  if (found == nullptr) {
    fail(SPARSEK_NO_SUCH_KERNEL, "there is no CUDA kernel %s of SPARSEK_SDD", options.kernel.c_str());
  }
  const std::string why_not = obstacle(*found, matrix, options);
  if (!why_not.empty()) {
    fail(SPARSEK_NO_SUCH_KERNEL, "kernel %s does not serve blocks of %dx%d here: %s", found->name,
         matrix.shape().block_m, matrix.shape().block_k, why_not.c_str());
  }
  return *found;
}

std::vector<tune::Candidate> list_sampled(const CudaMatrix& matrix, const PlanOptions& options,
                                          const DeviceRates& device) {
  std::vector<tune::Candidate> list;
  for (const SampledKernel& kernel : kSampledKernels) {
    if (kernel.dtype != matrix.dtype) continue;
    tune::Candidate candidate;
    candidate.kernel = kernel.name;
    candidate.obstacle = obstacle(kernel, matrix, options);
    if (candidate.obstacle.empty()) candidate.predicted_seconds = predict(kernel, matrix, options, device);
    list.push_back(std::move(candidate));
  }
  return list;
}

SampledCopies sampled_copies(const SampledKernel& kernel, const BsrShape& shape, const PlanOptions& options) {
  const int64_t bytes = dtype_bytes(kernel.dtype);
  const auto lies_anywhere = [&](int64_t ld) {
    return uses_tensor_cores(kernel) &&
           (options.alignment % kSampledVectorBytes != 0 || ld * bytes % kSampledVectorBytes != 0);
  };
  // Of narrow cells of a Y that lies across, TMA would read rows of 32 or 64 bytes, which took twice to four times as
  // long as the whole product.
  const bool reads_across_x = kernel.family == SampledFamily::kWgmma;
  const bool reads_across_y = reads_across_x && shape.block_k % 64 == 0;
  return {(across_x(options) && !reads_across_x) || lies_anywhere(options.ldx),
          (across_y(options) && !reads_across_y) || lies_anywhere(options.ldb)};
}

std::optional<SampledGrid> sampled_grid(const SampledKernel& kernel, const BsrShape& shape, int ctas) {
  if (kernel.family != SampledFamily::kWgmma) return std::nullopt;
  return sampled_grid(shape, ctas);
}

SampledOps sampled_ops(const SampledKernel& kernel, const BsrShape& shape) {
  if (kernel.family == SampledFamily::kSimt) return sampled_simt(kernel.dtype, shape.block_m);
  if (kernel.family == SampledFamily::kMma) return sampled_mma(kernel.dtype, shape.block_m);
  if (shape.block_k == 16) return sampled_wgmma_16(kernel.dtype);
  return shape.block_k == 32 ? sampled_wgmma_32(kernel.dtype) : sampled_wgmma_64(kernel.dtype);
}

}  // namespace sparsek::cuda
