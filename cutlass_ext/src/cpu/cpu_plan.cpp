// SPDX-License-Identifier: Apache-2.0
#include "cpu/cpu_plan.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <utility>

#include "abi/dtype.h"
#include "abi/error.h"
#include "abi/product_form.h"
#include "cpu/floating_point.h"
#include "cpu/plan_shape.h"
#include "plan/digest.h"
#include "plan/transpose_index.h"

namespace sparsek::cpu {
namespace {

// Of an accumulation step.
double unit_roundoff(sparsek_dtype dtype) { return dtype == SPARSEK_FP64 ? 0x1p-53 : 0x1p-24; }

int threads_of(const PlanOptions& options, const Workers& workers) {
  const int threads = workers.pool.threads();
  return options.workers > 0 ? std::min(threads, options.workers) : threads;
}

// Null for products that have none: see cpu/row_rule.h.
TileFunction tile_function(const Kernel& kernel, OperandTypes types) {
  if (types.a != types.b) return nullptr;
  switch (types.a) {
    case SPARSEK_BF16:
      return kernel.tile_bf16;
    case SPARSEK_FP16:
      return kernel.tile_fp16;
    case SPARSEK_FP32:
      return kernel.tile_fp32;
    case SPARSEK_FP64:
      return nullptr;
    case SPARSEK_E4M3:
      break;
  }
  fail(SPARSEK_UNSUPPORTED_DTYPE, "the CPU back-end does not multiply dtype %d", static_cast<int>(types.a));
}

RowFunction mixed_row_function(const Kernel& kernel, OperandTypes types) {
  if (types.b == SPARSEK_FP32) return types.a == SPARSEK_BF16 ? kernel.rows_bf16_fp32 : kernel.rows_fp16_fp32;
  if (types.a == SPARSEK_FP32) return kernel.rows_fp32_fp64;
  return types.a == SPARSEK_BF16 ? kernel.rows_bf16_fp64 : kernel.rows_fp16_fp64;
}

RowFunction row_function(const Kernel& kernel, OperandTypes types) {
  if (types.a != types.b) return mixed_row_function(kernel, types);
  switch (types.a) {
    case SPARSEK_BF16:
      return kernel.rows_bf16;
    case SPARSEK_FP16:
      return kernel.rows_fp16;
    case SPARSEK_FP32:
      return kernel.rows_fp32;
    case SPARSEK_FP64:
    case SPARSEK_E4M3:  // of no matrix
      break;
  }
  return kernel.rows_fp64;
}

BlockFunction block_function(const Kernel& kernel, sparsek_dtype dtype) {
  switch (dtype) {
    case SPARSEK_BF16:
      return kernel.blocks_bf16;
    case SPARSEK_FP16:
      return kernel.blocks_fp16;
    case SPARSEK_FP32:
      return kernel.blocks_fp32;
    case SPARSEK_FP64:
    case SPARSEK_E4M3:  // of no matrix
      break;
  }
  return kernel.blocks_fp64;
}

float scaled(float factor, const float* other) { return other == nullptr ? factor : factor * *other; }

// Of op(A), as its product is computed.
BsrShape shape_of(const BsrShape& a, const PlanOptions& options) {
  return transposes_a(options.op) ? transposed(a) : a;
}

Plan plan_of(const BsrIndex& index, sparsek_dtype dtype, const PlanOptions& options, const Workers& workers) {
  const int threads = threads_of(options, workers);
  if (options.op == SPARSEK_SDD) {
    require_blocks_apart(index);
    return make_plan(index, choose_block_shape(index, options.n, threads));
  }
  const PlanShape shape = choose_shape(shape_of(index, options), {dtype, options.dtype_b}, options.n, threads);
  return transposes_a(options.op) ? make_plan(transpose_index(index), shape) : make_plan(index, shape);
}

char* bytes_of(const void* data) { return static_cast<char*>(const_cast<void*>(data)); }

// The length of the rows of a copy: so that those of a column do not all fall into the same sets of a cache.
int64_t padded_row(int64_t length, int64_t bytes) {
  constexpr int64_t kLine = 64, kPage = 4096;
  const int64_t padded = (length * bytes + kLine - 1) / kLine * kLine;
  return (padded % kPage == 0 ? padded + kLine : padded) / bytes;
}

}  // namespace

CpuMatrix::CpuMatrix(const sparsek_bsr& a) {
  if (a.memory != SPARSEK_HOST) {
    fail(SPARSEK_WRONG_MEMORY, "the CPU back-end takes host arrays: bsr->memory is not SPARSEK_HOST");
  }
  index_ = make_bsr_index(a);
  most_blocks_ = a.nnzb;
  dtype = static_cast<sparsek_dtype>(a.dtype);
  if (a.values != nullptr) set_values(a.values, SPARSEK_HOST, nullptr);
}

CpuMatrix::CpuMatrix(const BsrShape& shape, sparsek_dtype type) {
  static_cast<BsrShape&>(index_) = shape;
  most_blocks_ = shape.nnzb;
  dtype = type;
}

BsrIndex CpuMatrix::read_update(const sparsek_bsr& a) const {
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
  if (a.nnzb > most_blocks_) {
    fail(SPARSEK_BAD_SIZE, "index->nnzb = %lld: the matrix was made for at most %lld blocks",
         static_cast<long long>(a.nnzb), static_cast<long long>(most_blocks_));
  }
  return make_bsr_index(a);
}

void CpuMatrix::update(BsrIndex index, const void* values) {
  index_ = std::move(index);
  if (values != nullptr) set_values(values, SPARSEK_HOST, nullptr);
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
      run_tile_(tile_function(*kernel_, {matrix.dtype, options.dtype_b})),
      run_rows_(row_function(*kernel_, {matrix.dtype, options.dtype_b})),
      run_blocks_(block_function(*kernel_, matrix.dtype)),
      shape_(shape_of(matrix.shape(), options)),
      plan_(plan_of(matrix.index(), matrix.dtype, options, *workers)),
      blocks_(matrix.index().nnzb),
      workers_(std::move(workers)) {}

void CpuPlan::update(const sparsek_bsr& index) {
  BsrIndex now = matrix_.read_update(index);
  Plan plan = plan_of(now, matrix_.dtype, options_, *workers_);
  blocks_ = now.nnzb;
  plan_ = std::move(plan);
  matrix_.update(std::move(now), index.values);
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
  out.unit_roundoff = unit_roundoff(options_.dtype_b);
  out.copies = (copies_b() ? SPARSEK_COPIES_B : 0) | (copies_c() ? SPARSEK_COPIES_C : 0);
}

bool CpuPlan::copies_b() const { return options_.order_b == SPARSEK_COLUMN_MAJOR; }
bool CpuPlan::copies_c() const { return options_.op != SPARSEK_SDD && options_.order_c == SPARSEK_COLUMN_MAJOR; }

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
  const int32_t panels = options_.op == SPARSEK_SDD ? 1 : count_panels(plan_.shape);
  return plan_.chunks.size() * static_cast<size_t>(pieces() * panels);
}

// Block rows that are too high to be summed at once are cut into pieces.
int32_t CpuPlan::pieces() const { return (shape_.block_m + kRowsAtOnce - 1) / kRowsAtOnce; }

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

void CpuPlan::run_blocks(const SampledProduct& product, size_t task, const Scratch& scratch) const {
  const size_t height = static_cast<size_t>(pieces());
  const RowChunk& chunk = plan_.chunks[task / height];
  const int32_t piece = static_cast<int32_t>(task % height), block_m = product.product.block_m;
  const int32_t rows = (block_m + pieces() - 1) / pieces();
  const int32_t entry_end = chunk.entry_end < 0 ? ~chunk.entry_end : chunk.entry_end;
  run_blocks_(product,
              {chunk.row_begin, chunk.row_end, chunk.entry_begin, entry_end, piece * rows,
               std::min((piece + 1) * rows, block_m)},
              scratch);
}

void CpuPlan::run_worker(const SampledProduct& sampled, std::atomic<size_t>& taken, const Scratch& scratch) const {
  const Product& product = sampled.product;
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
      if (options_.op == SPARSEK_SDD) {
        run_blocks(sampled, i, scratch);
      } else if (plan_.chunks.empty()) {
        run_tile(product, plan_.tiles[i], scratch);
      } else {
        run_chunk(product, i, scratch);
      }
    }
  }
}

// Operands that the kernels cannot take as they lie are copied: B, what beta is multiplied with, and C back.
void CpuPlan::multiply(const MultiplyArgs& given) {
  MultiplyArgs args = given;
  const int64_t element = dtype_bytes(matrix_.dtype), element_c = dtype_bytes(options_.dtype_c);
  const int64_t inner = options_.op == SPARSEK_SDD ? args.n : shape_.cols, outer = shape_.rows;
  const int64_t cols = options_.op == SPARSEK_SDD ? shape_.cols : args.n;  // of B
  const int64_t ldb = padded_row(cols, element), ldc = padded_row(args.n, element_c);
  // One row for all is one column of a product that is turned over.
  const bool copies_input = args.beta != 0 && (copies_c() || (is_turned_over(options_.op) && args.ldc_in == 0));
  const BufferPool::Loan b(workers_->buffers, copies_b() ? static_cast<size_t>(inner * ldb * element) : 0);
  const BufferPool::Loan c(workers_->buffers, copies_c() ? static_cast<size_t>(outer * ldc * element_c) : 0);
  const BufferPool::Loan input(workers_->buffers,
                               copies_input && !copies_c() ? static_cast<size_t>(outer * ldc * element_c) : 0);
  if (copies_b()) {
    copy(inner, cols, element, {bytes_of(args.b), 1, args.ldb}, {b.data(), ldb, 1});
    args.b = b.data();
    args.ldb = ldb;
  }
  if (copies_input) {
    char* const to = copies_c() ? c.data() : input.data();
    const bool over = is_turned_over(options_.op);
    const Strided from = {bytes_of(args.c_in), args.ldc_in == 0 ? (over ? 1 : 0) : 1,
                          args.ldc_in == 0 ? (over ? 0 : 1) : args.ldc_in};
    copy(outer, args.n, element_c, from, {to, ldc, 1});
    args.c_in = to;
    args.ldc_in = ldc;
  }
  if (copies_c()) {
    args.c = c.data();
    args.ldc = ldc;
  }
  compute(args);
  if (copies_c()) copy(outer, args.n, element_c, {c.data(), ldc, 1}, {static_cast<char*>(given.c), 1, given.ldc});
}

void CpuPlan::copy(int64_t rows, int64_t cols, int64_t bytes, const Strided& from, const Strided& to) const {
  copy_elements(workers_->pool, threads_of(options_, *workers_), rows, cols, bytes, from, to);
}

void CpuPlan::compute(const MultiplyArgs& args) const {
  const bool sampled = options_.op == SPARSEK_SDD;
  const void* const values = args.values != nullptr ? args.values : matrix_.values();
  const bool x_in_rows = options_.order_x == SPARSEK_ROW_MAJOR;
  const SampledProduct product = {{shape_.block_m,
                                   shape_.block_k,
                                   plan_.slots,
                                   plan_.entry_k.data(),
                                   plan_.entry_block.empty() ? nullptr : plan_.entry_block.data(),
                                   plan_.row_ptr.data(),
                                   shape_.rows,
                                   sampled ? args.n : shape_.cols,
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
                                   !options_.batch_invariant,
                                   transposes_a(options_.op)},
                                  shape_.cols,
                                  args.x,
                                  x_in_rows ? args.ldx : 1,
                                  x_in_rows ? 1 : args.ldx};
  const WorkspacePool::Loan workspace(workers_->workspaces);
  std::atomic<size_t> taken{0};  // tasks that have a worker
  struct Job {
    const CpuPlan& plan;
    const SampledProduct& product;
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
