// SPDX-License-Identifier: Apache-2.0
#include "cuda/vendor/library_plan.h"

#include <cmath>

#include "abi/error.h"
#include "cuda/device_scope.h"
#include "cuda/time_runs.h"
#include "cuda/vendor/dense_plan.h"
#include "cuda/vendor/sparse_plan.h"

namespace sparsek::cuda {
namespace {

std::string case_obstacle(const LibraryKernel& kernel, const CudaMatrix& matrix, const PlanOptions& options) {
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
  out.unit_roundoff = std::ldexp(1.0, -23);
}

void LibraryPlan::multiply(const MultiplyArgs& args) {
  const RelaxedCapture relaxed;  // for whatever the library does
  DeviceScope scope(matrix_.device());
  check_memory(args.c, SPARSEK_DEVICE, matrix_.device(), "c");
  check_memory(args.b, SPARSEK_DEVICE, matrix_.device(), "b");
  if (!args.in_own_graph) matrix_.memory().releases().use(uses_, static_cast<cudaStream_t>(args.stream));
  const void* values = matrix_.values();
  if (expanded_ != nullptr) {
    if (matrix_.is_referenced(values)) expanded_->fill(values, static_cast<cudaStream_t>(args.stream));
    values = expanded_->data();
  }
  run(args, values);
}

void LibraryPlan::multiply_time(const MultiplyArgs* args, int arg_count, int warmup, int repeats, double* seconds) {
  DeviceScope scope(matrix_.device());
  require_not_captured(static_cast<cudaStream_t>(args[0].stream), "multiply_time");
  int turn = 0;
  const auto run = [&] {
    MultiplyArgs now = args[turn++ % arg_count];
    now.stream = args[0].stream;  // one stream, so that the times do not overlap
    multiply(now);
  };
  time_runs(static_cast<cudaStream_t>(args[0].stream), warmup, repeats, run, seconds);
}

double LibraryPlan::setup_time() {
  if (expanded_ == nullptr) return 0;
  DeviceScope scope(matrix_.device());
  return matrix_.fill_time(*expanded_);
}

}  // namespace sparsek::cuda
