// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "abi/backend.h"
#include "cuda/cuda_matrix.h"
#include "cuda/cuda_plan.h"
#include "cuda/made_mark.h"
#include "cuda/sampled.h"
#include "cuda/sampled_list.h"
#include "cuda/workspace.h"

namespace sparsek::cuda {

// SPARSEK_SDD. The plan is the index itself, or of some kernels a list of tiles. Of a matrix that may get another
// index, the plan has a copy of it, since a plan keeps its index when another one of the matrix is updated.
class SampledPlan final : public PlanInMemory {
 public:
  SampledPlan(CudaMatrix& matrix, const PlanOptions& options, int sm_count);
  // As the CudaPlan with that parameter.
  SampledPlan(CudaMatrix& matrix, const PlanOptions& options, int sm_count, std::byte* memory);
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
  // An operand as a kernel reads it.
  struct Lines {
    const void* data;
    int64_t ld;
    bool across;  // its rows follow each other, else the n elements of a row
  };

  void choose_kernel(int sm_count);
  void copy_index(const BsrIndex& index);
  void make_on_device();
  // The list, or the copy of the index, from that of the matrix.
  void enqueue_made(cudaStream_t stream);
  const CheckedIndex& index() const;
  Lines as_read(Lines given, int64_t rows, int64_t n, bool copies, size_t at, const MultiplyArgs& args) const;

  CudaMatrix& matrix_;
  const PlanOptions options_;
  const bool is_data_ = false;
  const char* name_ = nullptr;  // of the kernel
  SampledOps ops_ = {};
  bool reads_vectors_ = false;                // lines of X and Y begin at multiples of 16 bytes
  bool copies_x_ = false, copies_y_ = false;  // to aligned rows
  std::optional<SampledGrid> grid_;           // of kernels with a list of tiles
  int32_t workers_ = 0;                       // the most CTAs; 0: all
  StreamUses uses_;
  PoolArray<std::byte> index_memory_;  // of an index on the host
  PoolArray<std::byte> made_memory_;   // of the list, or of the copy of an index in device memory
  CheckedIndex index_ = {};            // without arrays where the matrix has them
  bool names_blocks_ = true;           // where the index has block_idx
  SampledList list_ = {};
  MadeMark made_;  // behind the making of what is in made_memory_
  size_t data_bytes_ = 0;
  int64_t blocks_;
  size_t y_at_ = 0, bytes_ = 0;  // in the workspace; the copy of x is at 0
  std::unique_ptr<Workspace> workspace_;
};

}  // namespace sparsek::cuda
