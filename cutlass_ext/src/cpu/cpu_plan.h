// SPDX-License-Identifier: Apache-2.0
// Matrices and plans of the CPU back-end.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "abi/backend.h"
#include "cpu/kernel_list.h"
#include "cpu/relayout.h"
#include "cpu/thread_pool.h"
#include "cpu/workspace.h"
#include "plan/plan.h"

namespace sparsek::cpu {

// References the caller's values.
class CpuMatrix final : public MatrixState {
 public:
  // Throws like make_bsr_index, and SPARSEK_WRONG_MEMORY for device arrays.
  explicit CpuMatrix(const sparsek_bsr& a);
  // A pattern of which only the sizes are known, until it gets its index.
  CpuMatrix(const BsrShape& shape, sparsek_dtype type);
  void set_index(BsrIndex index) { index_ = std::move(index); }
  // For plan_update: the new index, checked, and its place. Between the two the plan is made of it, which may fail.
  BsrIndex read_update(const sparsek_bsr& a) const;
  void update(BsrIndex index, const void* values);
  const BsrShape& shape() const override { return index_; }
  const PatternStats& stats() const override;
  void set_values(const void* values, sparsek_memory memory, sparsek_stream stream) override;
  const BsrIndex& index() const { return index_; }
  const void* values() const { return values_.load(std::memory_order_acquire); }

 private:
  BsrIndex index_;
  int64_t most_blocks_;  // that an update may have
  mutable LazyStats stats_;
  std::atomic<const void*> values_{nullptr};
};

// Shared by the plans of a back-end.
struct Workers {
  explicit Workers(int threads) : pool(threads), workspaces(threads) {}
  ThreadPool pool;
  WorkspacePool workspaces;
  BufferPool buffers;
};

class CpuPlan final : public PlanState {
 public:
  CpuPlan(CpuMatrix& matrix, const PlanOptions& options, std::shared_ptr<Workers> workers);
  void info(sparsek_plan_info& out) const override;
  uint64_t digest() const override;
  void update(const sparsek_bsr& index) override;
  int64_t blocks() const override { return blocks_; }
  void multiply(const MultiplyArgs& args) override;
  void multiply_time(const MultiplyArgs* args, int arg_count, int warmup, int repeats, double* seconds) override;

 private:
  size_t tasks() const;
  int32_t pieces() const;
  // Computes tasks until none is left: tiles, or chunks by panels of columns. taken: by all workers of the product.
  void run_tile(const Product& product, const WorkTile& work, const Scratch& scratch) const;
  void run_chunk(const Product& product, size_t task, const Scratch& scratch) const;
  void run_blocks(const SampledProduct& product, size_t task, const Scratch& scratch) const;
  void run_worker(const SampledProduct& product, std::atomic<size_t>& taken, const Scratch& scratch) const;

  // Whether products copy the operand to or from another order.
  bool copies_b() const;
  bool copies_c() const;
  void copy(int64_t rows, int64_t cols, int64_t bytes, const Strided& from, const Strided& to) const;
  // A product of operands in the orders that the kernels take.
  void compute(const MultiplyArgs& args) const;

  CpuMatrix& matrix_;
  const PlanOptions options_;
  const Kernel* const kernel_;
  const TileFunction run_tile_;
  const RowFunction run_rows_;
  const BlockFunction run_blocks_;
  const BsrShape shape_;  // of op(A), as the product is computed
  Plan plan_;
  int64_t blocks_;  // of the plan's index: another plan of the matrix may have got a new one
  const std::shared_ptr<Workers> workers_;
};

}  // namespace sparsek::cpu
