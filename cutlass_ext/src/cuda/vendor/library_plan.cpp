// SPDX-License-Identifier: Apache-2.0
#include "cuda/vendor/library_plan.h"

#include <cmath>

#include "abi/error.h"
#include "cuda/copy_input.h"
#include "cuda/device_scope.h"
#include "cuda/stream_memory.h"
#include "cuda/time_products.h"
#include "cuda/vendor/dense_plan.h"
#include "cuda/vendor/sparse_plan.h"

namespace sparsek::cuda {
namespace {

std::string case_obstacle(const LibraryKernel& kernel, const CudaMatrix& matrix, const PlanOptions& options) {
  const auto* const host = std::get_if<BsrIndex>(&matrix.index());
  const bool is_named =
      host != nullptr ? !host->block_idx.empty() : std::get<DeviceIndex>(matrix.index()).arrays().block_idx != nullptr;
  if (is_named) return "its blocks of values must be in the order of the index";
  if (matrix.is_bounded()) return "it needs to know how many blocks there are";
  if (matrix.is_async()) return "it needs an index that was checked when the matrix was made";
  return obstacle(kernel, matrix.shape(), longest_row(matrix.index()), matrix.dtype, options);
}

}  // namespace

std::string obstacle(const LibraryKernel& kernel, const CudaMatrix& matrix, const PlanOptions& options) {
  const std::string why_not = case_obstacle(kernel, matrix, options);
  return why_not.empty() ? missing_library(kernel) : why_not;
}

std::unique_ptr<PlanState> make_library_plan(const LibraryKernel& kernel, CudaMatrix& matrix,
                                             const PlanOptions& options, LibraryHandles& handles) {
  const std::string why_not = case_obstacle(kernel, matrix, options);
  if (!why_not.empty()) {
    fail(SPARSEK_NO_SUCH_KERNEL, "kernel %s does not serve blocks of %dx%d here: %s", kernel.name,
         matrix.shape().block_m, matrix.shape().block_k, why_not.c_str());
  }
  if (kernel.format == LibraryFormat::kDense) {
    return std::make_unique<DensePlan>(kernel, matrix, options, handles.cublas());
  }
  return std::make_unique<SparsePlan>(kernel, matrix, options, handles.cusparse());
}

LibraryPlan::LibraryPlan(const LibraryKernel& kernel, CudaMatrix& matrix, const PlanOptions& options,
                         std::shared_ptr<const ExpandedValues> expanded)
    : kernel_(kernel), matrix_(matrix), options_(options), expanded_(std::move(expanded)) {}

LibraryPlan::~LibraryPlan() {
  matrix_.add_uses(uses_);  // also of the expanded values, which are given back behind those
}

void LibraryPlan::info(sparsek_plan_info& out) const {
  out.kernel = kernel_.name;
  out.workspace_bytes = static_cast<int64_t>(bytes() + (expanded_ == nullptr ? 0 : expanded_->bytes()));
  // What they sum with, and in which order, is theirs to choose: as for our tensor-core kernels, see cuda_plan.cpp.
  out.unit_roundoff = std::ldexp(1.0, matrix_.dtype == SPARSEK_FP64 ? -52 : -23);
}

void LibraryPlan::multiply(const MultiplyArgs& given) {
  const RelaxedCapture relaxed;  // for whatever the library does
  require_served(given);
  DeviceScope scope(matrix_.device());
  if (!given.trusted) {
    check_memory(given.c, SPARSEK_DEVICE, matrix_.device(), "c");
    check_memory(given.b, SPARSEK_DEVICE, matrix_.device(), "b");
    if (given.c_in != given.c) check_memory(given.c_in, SPARSEK_DEVICE, matrix_.device(), "c_in");
    if (given.values != nullptr) check_memory(given.values, SPARSEK_DEVICE, matrix_.device(), "values");
  }
  const MultiplyArgs args = with_input_in_c(given, matrix_.shape().rows, options_.dtype_c);
  if (!args.in_own_graph) matrix_.memory().releases().use(uses_, static_cast<cudaStream_t>(args.stream));
  const void* values = args.values != nullptr ? args.values : matrix_.values();
  if (expanded_ != nullptr && args.values != nullptr && !matrix_.is_settled(values)) {
    // The expanded values are the matrix's, for its products in any stream.
    const auto stream = static_cast<cudaStream_t>(args.stream);
    const StreamMemory own(expanded_->element_bytes(), stream);
    expanded_->fill_other(own.data(), values, stream);
    return run(args, own.data());
  }
  if (expanded_ != nullptr) {
    if (!matrix_.is_settled(values)) expanded_->fill(values, static_cast<cudaStream_t>(args.stream));
    values = expanded_->data();
  }
  run(args, values);
}

void LibraryPlan::require_served(const MultiplyArgs& args) const {
  if (args.alpha_device != nullptr || args.beta_device != nullptr) {
    fail(SPARSEK_BAD_ARGUMENT, "kernel %s takes no alpha_device or beta_device: set SPARSEK_OWN_KERNELS", kernel_.name);
  }
  if (args.n == options_.n && args.ldb == options_.ldb && args.ldc == options_.ldc) return;
  PlanOptions given = options_;
  given.n = args.n;
  given.ldb = args.ldb;
  given.ldc = args.ldc;
  const std::string why_not = case_obstacle(kernel_, matrix_, given);
  if (!why_not.empty()) {
    fail(SPARSEK_BAD_LEADING_DIMENSION, "kernel %s does not serve this n, ldb and ldc: %s", kernel_.name,
         why_not.c_str());
  }
}

void LibraryPlan::multiply_time(const MultiplyArgs* args, int arg_count, int warmup, int repeats, double* seconds) {
  time_products(*this, matrix_.device(), args, arg_count, warmup, repeats, seconds);
}

double LibraryPlan::setup_time() {
  if (expanded_ == nullptr) return 0;
  DeviceScope scope(matrix_.device());
  return matrix_.fill_time(*expanded_);
}

}  // namespace sparsek::cuda
