// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "abi/backend.h"
#include "cuda/chunk_args.h"
#include "cuda/cuda_matrix.h"
#include "cuda/device_plan.h"
#include "cuda/kept_layout.h"
#include "cuda/kernel.h"
#include "cuda/plan_arrays.h"
#include "cuda/stage_values.h"
#include "cuda/value_layout.h"
#include "cuda/workspace.h"

namespace sparsek::cuda {

// One that may lie in memory of the caller's.
class PlanInMemory : public PlanState {
 public:
  // Of such a plan: its size, and what writes it, enqueued in index.stream.
  virtual size_t data_bytes() const = 0;
  virtual void write(const sparsek_bsr& index, int64_t* fault) const = 0;
};

// A kernel and its work list, in device memory. The matrix is op(A), of which the blocks of A^T lie transposed; the
// kernel takes operands in the order that the options say (KernelOps::any_major).
class CudaPlan final : public PlanInMemory, private LayoutWriter {
 public:
  CudaPlan(CudaMatrix& matrix, const PlanOptions& options, int sm_count);
  // One in memory of the caller's, which may be null where only its size is asked for. The matrix is a pattern without
  // an index.
  CudaPlan(CudaMatrix& matrix, const PlanOptions& options, int sm_count, std::byte* memory);
  // Waits for nothing, unless a product was captured into a graph: then for the device.
  ~CudaPlan() override;

  void info(sparsek_plan_info& out) const override;
  int64_t entries() const override;
  int64_t recomputed() const override;
  uint64_t digest() const override;
  size_t product_bytes() const override { return product_.bytes; }
  void end_in(sparsek_stream stream) override;
  void update(const sparsek_bsr& index) override;
  void multiply(const MultiplyArgs& args) override;
  void multiply_time(const MultiplyArgs* args, int arg_count, int warmup, int repeats, double* seconds) override;

  size_t data_bytes() const override { return data_bytes_; }
  void write(const sparsek_bsr& index, int64_t* fault) const override;

 private:
  PlanShape choose_shape(int sm_count);
  struct LeaveLayout {
    CudaPlan* plan;
    void operator()(KeptLayout* layout) const { plan->matrix_.leave_layout(*layout, *plan, plan->uses_); }
  };
  // Of a product.
  struct ProductMemory {
    size_t of_kernel = 0;            // for KernelOps::workspace_bytes
    size_t bytes = 0;                // that and what is needed beside it
    std::unique_ptr<Workspace> own;  // null where the caller gives it, or nothing is needed
  };
  void prepare_workspace();
  ProductMemory memory_of_product(void* laid_out) const;
  // layout_, where the plan may keep one, and there is room.
  void make_layout();
  void write_layout(const void* values, void* to, cudaStream_t stream) override;
  void plan_on_device(const PlanShape& shape);
  int32_t tile_rows() const;
  int32_t tile_columns() const;
  void choose_chunks(int sm_count, PlanShape& shape);
  // Makes the lists, and waits.
  void list_at_once();
  // Of lists that are made: sets has_all_stages_. Waits.
  void count_stages();
  int32_t panels_of(int64_t n) const;  // of a plan with chunks
  // Slabs and groups of a part's sums.
  PartSums part_layout() const;
  // CTAs that share the rows of a tile.
  int64_t ctas_of_tile() const;
  // What a product of n columns gets of the plan. rows: of rows_of_plan; it must live as long as the arguments.
  ScatteredRows rows_of_plan(int64_t n) const;
  LaunchArgs args_of_plan(int64_t n, const ScatteredRows& rows) const;
  // Those that a product of n columns needs, and perhaps some of the others.
  int32_t tiles_within(int64_t n) const;
  // Whether the stream is being captured.
  bool record_use(const MultiplyArgs& args);
  // workspace: the caller's, or null.
  void launch(LaunchArgs args, void* workspace);
  size_t bytes_of_parts() const;
  size_t bytes_of_row_sums() const;
  // Of a plan with chunks: the rows of sums that its product has room for, and the columns that it computes at a time
  // where rows are cut.
  int64_t rows_of_sums() const;
  int64_t bytes_of_sum() const;
  int64_t columns_of_pass() const;
  void launch_passes(const LaunchArgs& args, void* sums);

  CudaMatrix& matrix_;
  PlanOptions options_;
  const KernelDesc* kernel_;
  int32_t cluster_ = 1;                   // CTAs that share a tile
  int32_t panels_ = 1;                    // CTAs of a cluster that compute neighbouring columns of each tile
  int32_t workers_ = 1;                   // clusters that run at once; CTAs of a kernel that scatters
  LaneLayout lanes_ = {};                 // of a plan with chunks
  ListSizes list_sizes_;                  // of a kernel that scatters
  bool has_all_stages_ = false;           // each of its row groups has blocks in all of them, as is known
  bool cuts_rows_ = false;                // its chunks may end within block rows
  int32_t rounds_ = 1;                    // up to so many tiles for each of them, a cluster has one tile
  bool uneven_ = false;                   // the longest block row is far longer than the mean
  StreamUses uses_;                       // of what follows
  std::optional<DevicePlanner> planner_;  // where plans are made in a stream
  const bool is_data_ = false;            // arrays_ are the caller's,
  size_t data_bytes_ = 0;                 // of that size
  CheckedIndex data_index_ = {};          // with room for the index
  PlanArrays arrays_;
  MadeMark made_;                    // behind the making of it, where that was not waited for
  int64_t entries_ = -1;             // -1: the device knows
  std::vector<int32_t> panel_ends_;  // plan/panel_ends.h; empty for chunks, and for an index in device memory
  int64_t packed_pitch_ = 0;         // of B, where it is copied for the kernel; else 0
  std::unique_ptr<KeptLayout, LeaveLayout> layout_;  // A's values as the kernel reads them, where the plan keeps them
  ProductMemory product_, laid_out_;                 // of products in general, and of those that use layout_
};

}  // namespace sparsek::cuda
