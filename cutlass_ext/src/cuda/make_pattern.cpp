// SPDX-License-Identifier: Apache-2.0
#include "cuda/make_pattern.h"

#include "cuda/cuda_matrix.h"
#include "cuda/pattern_parts.h"

namespace sparsek::cuda {
namespace {

using pattern::Given;
using pattern::Made;
using pattern::Make;
using pattern::MakeJob;
using pattern::ValuesJob;
using pattern::Work;

class MemoryCheck {
 public:
  explicit MemoryCheck(int device) : device_(device) {}

  void check(const void* pointer, const char* name) const {
    if (pointer != nullptr) check_memory(pointer, SPARSEK_DEVICE, device_, name);
  }
  void check(const Given& index) const {
    check(index.row_ptr.data, "row_ptr");
    check(index.col_idx.data, "col_idx");
    check(index.block_idx.data, "block_idx");
    check(index.values, "values");
  }
  void check(const Made& index) const {
    check(index.row_ptr.data, "row_ptr");
    check(index.col_idx.data, "col_idx");
    check(index.block_idx.data, "block_idx");
    check(index.row_idx.data, "row_idx");
    check(index.values, "values");
    check(index.blocks, "blocks");
    check(index.fault, "fault");
  }

 private:
  const int device_;
};

void make_from_dense(const MakeJob& job) {
  norm_dense_blocks(job);
  MakeJob by_norm = job;
  by_norm.what = Make::kScores;
  by_norm.to.values = nullptr;
  by_norm.source = job.norms;
  by_norm.ld = job.to.shape.block_cols;
  by_norm.dtype = job.dtype == SPARSEK_FP64 ? SPARSEK_FP64 : SPARSEK_FP32;
  make_from_mask(by_norm);
  if (job.to.values == nullptr) return;
  const Given made = {job.to.shape, job.to.row_ptr, job.to.col_idx, {}, nullptr, true, false};
  gather_blocks(made, job.dtype, job.source, job.ld, job.order, job.to.values, job.stream);
}

}  // namespace

void make_pattern(const MakeJob& job, int device) {
  const MemoryCheck memory(device);
  memory.check(job.to);
  memory.check(job.source, "source");
  memory.check(job.source_index.data, "source");
  memory.check(job.norms, "norms");
  memory.check(job.bins.data, "bins");
  for (const Given& from : job.from) memory.check(from);
  switch (job.what) {
    case Make::kMask:
    case Make::kScores:
    case Make::kBlocks:
      return make_from_mask(job);
    case Make::kTopScores:
    case Make::kTopBlocks:
      return make_from_scores(job);
    case Make::kTopColumns:
      return make_from_columns(job);
    case Make::kDense:
      return make_from_dense(job);
    case Make::kCsr:
      return make_from_csr(job);
    case Make::kCounts:
      return make_from_counts(job);
    case Make::kBlockDiagonal:
      return make_block_diagonal(job);
    case Make::kTransposed:
      return make_transposed(job);
    case Make::kToCsr:
      return make_csr(job);
  }
}

void work_on_values(const ValuesJob& job, int device) {
  const MemoryCheck memory(device);
  memory.check(job.a);
  memory.check(job.out, "out");
  memory.check(job.b, "b");
  memory.check(job.row_factors, "row_factors");
  memory.check(job.column_factors, "column_factors");
  switch (job.what) {
    case Work::kToDense:
      return expand_blocks(job);
    case Work::kGather:
      return gather_blocks(job.a, job.dtype, job.b, job.ld, job.order, job.out, job.stream);
    case Work::kNorms:
      return norm_blocks(job);
    case Work::kSum:
      return sum_rows(job);
    case Work::kScale:
      return scale_blocks(job);
    case Work::kMultiply:
    case Work::kAdd:
      return combine_blocks(job);
  }
}

}  // namespace sparsek::cuda
