// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "abi/backend.h"
#include "cuda/cuda_matrix.h"
#include "cuda/cuda_plan.h"
#include "cuda/device_rates.h"
#include "cuda/sampled.h"
#include "cuda/workspace.h"

namespace sparsek::cuda {

// The kernels of SPARSEK_SDD for a matrix, to be chosen.
std::vector<tune::Candidate> list_sampled(const CudaMatrix& matrix, const PlanOptions& options,
                                          const DeviceRates& device);

// SPARSEK_SDD. The plan is the index itself.
class SampledPlan final : public PlanInMemory {
 public:
  SampledPlan(CudaMatrix& matrix, const PlanOptions& options);
  // As the CudaPlan with that parameter.
  SampledPlan(CudaMatrix& matrix, const PlanOptions& options, std::byte* memory);
  ~SampledPlan() override;

  void info(sparsek_plan_info& out) const override;
  size_t product_bytes() const override { return bytes_; }
  int64_t blocks() const override { return blocks_; }
  uint64_t digest() const override;
  void end_in(sparsek_stream stream) override;
  void update(const sparsek_bsr& index) override;
  void multiply(const MultiplyArgs& args) override;
  void multiply_time(const MultiplyArgs* args, int arg_count, int warmup, int repeats, double* seconds) override;

  size_t data_bytes() const override { return data_bytes_; }
  void write(const sparsek_bsr& index, int64_t* fault) const override;

 private:
  // An operand as kernels read it: n elements of each row follow each other.
  struct Lines {
    const void* data;
    int64_t ld;
  };

  void choose_kernel();
  void copy_index(const BsrIndex& index);
  Lines in_rows(Lines given, int64_t rows, int64_t n, bool across, bool packs, size_t at,
                const MultiplyArgs& args) const;

  CudaMatrix& matrix_;
  const PlanOptions options_;
  const bool is_data_ = false;
  const char* name_ = nullptr;  // of the kernel
  SampledOps ops_ = {};
  bool reads_vectors_ = false;  // rows of X and Y begin at multiples of 16 bytes
  bool packs_x_ = false, packs_y_ = false;  // copied to aligned rows; where they lie across, transposed
  StreamUses uses_;
  PoolArray<std::byte> index_memory_;  // of an index on the host
  CheckedIndex index_ = {};            // not of one in device memory, which the matrix has
  size_t data_bytes_ = 0;
  int64_t blocks_;
  size_t y_at_ = 0, bytes_ = 0;  // in the workspace; the copy of x is at 0
  std::unique_ptr<Workspace> workspace_;
};

}  // namespace sparsek::cuda
