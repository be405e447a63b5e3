// SPDX-License-Identifier: Apache-2.0
#include "cpu/cpu_plan.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <utility>

#include "abi/error.h"
#include "cpu/floating_point.h"
#include "cpu/plan_shape.h"
#include "plan/digest.h"

namespace sparsek::cpu {
namespace {

// Of an accumulation step.
double unit_roundoff(sparsek_dtype dtype) { return dtype == SPARSEK_FP64 ? 0x1p-53 : 0x1p-24; }

int threads_of(const PlanOptions& options, const Workers& workers) {
  const int threads = workers.pool.threads();
  return options.workers > 0 ? std::min(threads, options.workers) : threads;
}

TileFunction tile_function(const Kernel& kernel, sparsek_dtype dtype) {
  switch (dtype) {
    case SPARSEK_BF16:
      return kernel.tile_bf16;
    case SPARSEK_FP16:
      return kernel.tile_fp16;
    case SPARSEK_FP32:
      return kernel.tile_fp32;
    case SPARSEK_FP64:
      return nullptr;
  }
  fail(SPARSEK_UNSUPPORTED_DTYPE, "the CPU back-end does not multiply dtype %d", static_cast<int>(dtype));
}

RowFunction row_function(const Kernel& kernel, sparsek_dtype dtype) {
  switch (dtype) {
    case SPARSEK_BF16:
      return kernel.rows_bf16;
    case SPARSEK_FP16:
      return kernel.rows_fp16;
    case SPARSEK_FP32:
      return kernel.rows_fp32;
    case SPARSEK_FP64:
      break;
  }
  return kernel.rows_fp64;
}

float scaled(float factor, const float* other) { return other == nullptr ? factor : factor * *other; }

Plan plan_of(const CpuMatrix& matrix, const PlanOptions& options, const Workers& workers) {
  return make_plan(matrix.index(), choose_shape(matrix.shape(), matrix.dtype, options.n, threads_of(options, workers)));
}

}  // namespace

CpuMatrix::CpuMatrix(const sparsek_bsr& a) {
  if (a.memory != SPARSEK_HOST) {
    fail(SPARSEK_WRONG_MEMORY, "the CPU back-end takes host arrays: bsr->memory is not SPARSEK_HOST");
  }
  index_ = make_bsr_index(a);
  dtype = static_cast<sparsek_dtype>(a.dtype);
  if (a.values != nullptr) set_values(a.values, SPARSEK_HOST, nullptr);
}

CpuMatrix::CpuMatrix(const BsrShape& shape, sparsek_dtype type) {
  static_cast<BsrShape&>(index_) = shape;
  dtype = type;
}

void CpuMatrix::update(const sparsek_bsr& a) {
  if (a.memory != SPARSEK_HOST) {
    fail(SPARSEK_WRONG_MEMORY, "the CPU back-end takes host arrays: index->memory is not SPARSEK_HOST");
  }
  const BsrShape now = make_bsr_shape(a);
  if (now.rows != index_.rows || now.cols != index_.cols || now.block_m != index_.block_m ||
      now.block_k != index_.block_k || a.dtype != dtype) {
    fail(SPARSEK_BAD_SIZE, "the matrix was made for %lld x %lld in blocks of %d x %d, of dtype %d",
         static_cast<long long>(index_.rows), static_cast<long long>(index_.cols), index_.block_m, index_.block_k,
         static_cast<int>(dtype));
  }
  index_ = make_bsr_index(a);
  if (a.values != nullptr) set_values(a.values, SPARSEK_HOST, nullptr);
}

const PatternStats& CpuMatrix::stats() const {
  return stats_.get([this] {
    if (index_.row_ptr.empty()) return expected_stats(index_, index_.nnzb / std::max(index_.block_rows, 1));
    RowOrders orders(index_);
    return pattern_stats(orders);
  });
}

void CpuMatrix::set_values(const void* values, sparsek_memory memory, sparsek_stream) {
  if (memory != SPARSEK_HOST) {
    fail(SPARSEK_WRONG_MEMORY, "the CPU back-end takes host values: memory is not SPARSEK_HOST");
  }
  values_.store(values, std::memory_order_release);
}

CpuPlan::CpuPlan(CpuMatrix& matrix, const PlanOptions& options, std::shared_ptr<Workers> workers)
    : matrix_(matrix),
      options_(options),
      kernel_(&kernel_named(options.kernel)),
      run_tile_(tile_function(*kernel_, matrix.dtype)),
      run_rows_(row_function(*kernel_, matrix.dtype)),
      plan_(plan_of(matrix, options, *workers)),
      workers_(std::move(workers)) {}

void CpuPlan::update(const sparsek_bsr& index) {
  matrix_.update(index);
  plan_ = plan_of(matrix_, options_, *workers_);
}

void CpuPlan::info(sparsek_plan_info& out) const {
  out.kernel = kernel_->name;
  out.tile_m = plan_.shape.tile_m;
  out.tile_n = plan_.shape.tile_n;
  out.tile_k = kDepth;
  out.stages = 1;
  out.tiles = static_cast<int64_t>(tasks());
  out.entries = plan_.entries();
  out.workspace_bytes = out.product_bytes = 0;  // they count device memory only
  out.unit_roundoff = unit_roundoff(matrix_.dtype);
}

uint64_t CpuPlan::digest() const {
  Digest digest;
  digest.add(plan_.slots);
  digest.add(plan_.tiles);
  digest.add(plan_.entry_k);
  digest.add(plan_.entry_block);
  digest.add(plan_.slot_row);
  digest.add(plan_.chunks);
  return digest.value();
}

size_t CpuPlan::tasks() const {
  if (plan_.chunks.empty()) return plan_.tiles.size();
  return plan_.chunks.size() * static_cast<size_t>(pieces() * count_panels(plan_.shape));
}

// Block rows that are too high to be summed at once are cut into pieces.
int32_t CpuPlan::pieces() const { return (matrix_.shape().block_m + kRowsAtOnce - 1) / kRowsAtOnce; }

void CpuPlan::run_tile(const Product& product, const WorkTile& work, const Scratch& scratch) const {
  const PlanShape& shape = plan_.shape;
  Tile tile;
  tile.row = static_cast<int64_t>(work.m_tile) * shape.tile_m;
  tile.row_end = std::min(tile.row + shape.tile_m, product.rows);
  tile.col = static_cast<int64_t>(work.n_tile) * shape.tile_n;
  if (tile.col >= product.cols) return;
  tile.col_end = std::min(tile.col + shape.tile_n, product.cols);
  tile.entry_begin = work.entry_begin;
  tile.entry_count = work.entry_count;
  run_tile_(product, tile, scratch);
}

// All chunks by a panel of columns come before those by the next, whose rows of B are others.
void CpuPlan::run_chunk(const Product& product, size_t task, const Scratch& scratch) const {
  const size_t height = static_cast<size_t>(pieces()), in_panel = plan_.chunks.size() * height;
  const RowChunk& chunk = plan_.chunks[task % in_panel / height];
  const int32_t piece = static_cast<int32_t>(task % height);
  const int64_t col = static_cast<int64_t>(task / in_panel) * plan_.shape.tile_n;
  if (col >= product.cols) return;
  const int32_t rows = (product.block_m + pieces() - 1) / pieces();
  run_rows_(product,
            {chunk.row_begin, chunk.row_end, piece * rows, std::min((piece + 1) * rows, product.block_m), col,
             std::min<int64_t>(col + plan_.shape.tile_n, product.cols)},
            scratch);
}

void CpuPlan::run_worker(const Product& product, std::atomic<size_t>& taken, const Scratch& scratch) const {
  const DefaultFloatingPoint floating_point;
  const PlanShape& shape = plan_.shape;
  // Where tasks are many, and so short, several are taken at once.
  constexpr size_t kTurns = 64, kMostAtOnce = 64;
  const size_t count = tasks();
  const size_t at_once = std::clamp<size_t>(count / (static_cast<size_t>(shape.workers) * kTurns), 1, kMostAtOnce);
  for (;;) {
    const size_t begin = taken.fetch_add(at_once, std::memory_order_relaxed);
    if (begin >= count) return;
    const size_t end = std::min(begin + at_once, count);
    for (size_t i = begin; i < end; ++i) {
      if (plan_.chunks.empty()) {
        run_tile(product, plan_.tiles[i], scratch);
      } else {
        run_chunk(product, i, scratch);
      }
    }
  }
}

void CpuPlan::multiply(const MultiplyArgs& args) {
  const BsrShape& shape = matrix_.shape();
  const void* const values = args.values != nullptr ? args.values : matrix_.values();

  const Product product = {shape.block_m,
                           shape.block_k,
                           plan_.slots,
                           plan_.entry_k.data(),
                           plan_.entry_block.empty() ? nullptr : plan_.entry_block.data(),
                           plan_.row_ptr.data(),
                           shape.rows,
                           shape.cols,
                           args.n,
                           values,
                           args.b,
                           args.ldb,
                           args.c,
                           args.ldc,
                           args.c_in,
                           args.ldc_in,
                           scaled(args.alpha, args.alpha_device),
                           args.beta == 0 ? 0 : scaled(args.beta, args.beta_device),
                           options_.dtype_c,
                           args.bias,
                           options_.bias,
                           options_.activation,
                           !options_.batch_invariant};
  const WorkspacePool::Loan workspace(workers_->workspaces);
  std::atomic<size_t> taken{0};  // tiles that have a worker
  struct Job {
    const CpuPlan& plan;
    const Product& product;
    std::atomic<size_t>& taken;
    const Workspace& workspace;
  } job = {*this, product, taken, *workspace};
  const auto work = [](void* context, int worker) {
    const Job& own = *static_cast<const Job*>(context);
    own.plan.run_worker(own.product, own.taken, own.workspace.scratch(worker));
  };
  workers_->pool.run(plan_.shape.workers, work, &job);
}

void CpuPlan::multiply_time(const MultiplyArgs* args, int arg_count, int warmup, int repeats, double* seconds) {
  using Clock = std::chrono::steady_clock;
  int turn = 0;
  const auto next = [&]() -> const MultiplyArgs& { return args[turn++ % arg_count]; };
  for (int i = 0; i < warmup; ++i) multiply(next());
  for (int i = 0; i < repeats; ++i) {
    const MultiplyArgs& own = next();
    const Clock::time_point start = Clock::now();
    multiply(own);
    seconds[i] = std::chrono::duration<double>(Clock::now() - start).count();
  }
}

}  // namespace sparsek::cpu
