// SPDX-License-Identifier: Apache-2.0
// Products with A^T, whose index has a plan of its own, and those of which the kernel does not read or write operands
// as they lie: they are copied to the order that it reads, and C back, in the product's workspace, around a plan of
// op(A) B.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "abi/backend.h"
#include "cuda/cuda_matrix.h"
#include "cuda/cuda_plan.h"
#include "cuda/form_copies.h"
#include "cuda/transposed_index.h"
#include "cuda/workspace.h"

namespace sparsek::cuda {

// Whether a product, whose kernel is named, is one of these.
bool has_form_plan(const BsrShape& matrix, const PlanOptions& options);

class FormPlan final : public PlanInMemory {
 public:
  FormPlan(CudaMatrix& matrix, const PlanOptions& options, int sm_count);
  // As the CudaPlan with that parameter.
  FormPlan(CudaMatrix& matrix, const PlanOptions& options, int sm_count, std::byte* memory);
  ~FormPlan() override;

  void info(sparsek_plan_info& out) const override;
  int64_t entries() const override { return inner_->entries(); }
  int64_t recomputed() const override { return inner_->recomputed(); }
  uint64_t digest() const override { return inner_->digest(); }
  size_t product_bytes() const override { return bytes_; }
  void end_in(sparsek_stream stream) override;
  void update(const sparsek_bsr& index) override;
  void multiply(const MultiplyArgs& args) override;
  void multiply_time(const MultiplyArgs* args, int arg_count, int warmup, int repeats, double* seconds) override;

  size_t data_bytes() const override { return data_bytes_; }
  void write(const sparsek_bsr& index, int64_t* fault) const override;

 private:
  // Where the copies lie in the workspace, and the workspace of the plan between.
  void place_copies();
  void transpose_on_device();
  void check_operands(const MultiplyArgs& args) const;
  void copy_input(MultiplyArgs& args, void* to, int64_t pitch) const;

  CudaMatrix& matrix_;
  const PlanOptions options_;
  const bool transposes_;
  const FormCopies copies_;
  const bool is_data_ = false;
  StreamUses uses_;  // of the arrays of the transposed index, and of the matrix's values
  PoolArray<std::byte> index_memory_;
  TransposedIndex index_ = {};  // where the matrix's is in device memory and A is transposed
  CheckedIndex given_ = {};     // of a plan in the caller's memory: the copy of the index
  size_t data_bytes_ = 0;
  std::shared_ptr<CudaMatrix> transposed_;
  std::optional<CudaPlan> inner_;
  size_t b_at_ = 0, c_at_ = 0, inner_at_ = 0, bytes_ = 0;  // a copy of A is at 0
  std::unique_ptr<Workspace> workspace_;
};

}  // namespace sparsek::cuda
