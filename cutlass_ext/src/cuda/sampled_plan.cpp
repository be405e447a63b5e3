// SPDX-License-Identifier: Apache-2.0
#include "cuda/sampled_plan.h"

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <optional>
#include <variant>

#include "abi/dtype.h"
#include "abi/error.h"
#include "cuda/abi_types.h"
#include "cuda/device_scope.h"
#include "cuda/pack_b.h"
#include "cuda/prepared.h"
#include "cuda/sampled_kernels.h"
#include "cuda/time_products.h"
#include "cuda/transpose.h"
#include "plan/digest.h"

namespace sparsek::cuda {
namespace {

Prepared helpers;  // kernels beside the product's

}  // namespace

SampledPlan::SampledPlan(CudaMatrix& matrix, const PlanOptions& options, int sm_count)
    : matrix_(matrix), options_(options), blocks_(matrix.shape().nnzb) {
  choose_kernel(sm_count);
  if (const auto* const host = std::get_if<BsrIndex>(&matrix.index())) copy_index(*host);
  if (grid_.has_value() || matrix.is_async()) make_on_device();
  if (bytes_ == 0) return;
  workspace_ = std::make_unique<Workspace>(matrix.memory().pool(), bytes_);
  if (!matrix.is_async()) workspace_->take_in_store(matrix.memory().stream());
}

SampledPlan::SampledPlan(CudaMatrix& matrix, const PlanOptions& options, int sm_count, std::byte* memory)
    : matrix_(matrix), options_(options), is_data_(true), blocks_(matrix.shape().nnzb) {
  choose_kernel(sm_count);
  Layout layout;
  index_ = IndexLayout(matrix.shape(), layout).within(memory);
  if (grid_.has_value()) list_ = SampledListLayout(*grid_, layout).within(memory);
  data_bytes_ = layout.bytes();
}

SampledPlan::~SampledPlan() { matrix_.add_uses(uses_); }

void SampledPlan::choose_kernel(int sm_count) {
  const BsrShape& shape = matrix_.shape();
  const SampledKernel& kernel = sampled_kernel(matrix_, options_);
  name_ = kernel.name;
  workers_ = options_.workers;
  const int ctas = workers_ > 0 ? std::min(workers_, sm_count) : sm_count;
  grid_ = sampled_grid(kernel, shape, ctas);
  if (grid_.has_value()) {
    workers_ = static_cast<int32_t>(std::min<int64_t>(ctas, grid_->capacity));
  }
  ops_ = sampled_ops(kernel, shape);
  reads_vectors_ = uses_tensor_cores(kernel);
  const int64_t bytes = dtype_bytes(matrix_.dtype);
  const SampledCopies copies = sampled_copies(kernel, shape, options_);
  copies_x_ = copies.x;
  copies_y_ = copies.y;
  Layout layout;
  const auto place = [&](bool is_copied, int64_t rows) {
    if (is_copied) layout.place<std::byte>(static_cast<size_t>(rows * packed_pitch(options_.n, bytes) * bytes));
  };
  place(copies_x_, shape.rows);
  y_at_ = layout.bytes();
  place(copies_y_, shape.cols);
  bytes_ = layout.bytes();
  ops_.prepared->on(matrix_.device(), [&] { check(ops_.prepare(), "cudaFuncSetAttribute"); });
  helpers.on(matrix_.device(), [] {
    prepare_sampled_list();
    check(prepare_number_blocks(), "cudaFuncGetAttributes");
    check(prepare_transpose(), "cudaFuncGetAttributes");
    check(prepare_pack_b(), "cudaFuncGetAttributes");
  });
}

void SampledPlan::copy_index(const BsrIndex& index) {
  require_blocks_apart(index);
  Layout layout;
  const size_t row_ptr = layout.place<int32_t>(index.row_ptr.size());
  const size_t col_idx = layout.place<int32_t>(index.col_idx.size());
  const size_t block_idx = layout.place<int32_t>(index.block_idx.size());
  PlanMemory& memory = matrix_.memory();
  index_memory_ = PoolArray<std::byte>(memory, layout.bytes(), &uses_);
  std::byte* const at = index_memory_.data();
  std::vector<HostPart> parts = {{index.row_ptr.data(), index.row_ptr.size() * sizeof(int32_t), row_ptr}};
  if (!index.col_idx.empty()) parts.push_back({index.col_idx.data(), index.col_idx.size() * sizeof(int32_t), col_idx});
  if (!index.block_idx.empty()) {
    parts.push_back({index.block_idx.data(), index.block_idx.size() * sizeof(int32_t), block_idx});
  }
  memory.write(index_memory_.block(), parts);
  index_.row_ptr = reinterpret_cast<int32_t*>(at + row_ptr);
  index_.col_idx = reinterpret_cast<int32_t*>(at + col_idx);
  if (!index.block_idx.empty()) index_.block_idx = reinterpret_cast<int32_t*>(at + block_idx);
}

const CheckedIndex& SampledPlan::index() const {
  const auto* const on_device = std::get_if<DeviceIndex>(&matrix_.index());
  return on_device != nullptr && index_.row_ptr == nullptr ? on_device->arrays() : index_;
}

void SampledPlan::make_on_device() {
  PlanMemory& memory = matrix_.memory();
  const cudaStream_t stream = matrix_.is_async() ? matrix_.stream() : memory.stream();
  if (matrix_.is_async()) {
    if (is_captured(stream)) {
      fail(
          SPARSEK_BAD_ARGUMENT,
          "the stream of the matrix is being captured into a graph, which may run when the plan is gone: make the plan "
          "before the capture");
    }
    uses_.begin_as(matrix_.uses());
    matrix_.made().order(stream, false);
  }
  Layout layout;
  const auto allocate = [&] { made_memory_ = PoolArray<std::byte>(memory, layout.bytes(), &uses_, stream); };
  if (grid_.has_value()) {
    const SampledListLayout places(*grid_, layout);
    allocate();
    list_ = places.within(made_memory_.data());
  } else {
    const IndexLayout places(matrix_.shape(), layout);
    allocate();
    index_ = places.within(made_memory_.data());
  }
  enqueue_made(stream);
  made_.record(memory.events(), stream);
}

void SampledPlan::enqueue_made(cudaStream_t stream) {
  if (grid_.has_value()) return enqueue_sampled_list(index(), *grid_, list_, stream);
  const CheckedIndex& from = std::get<DeviceIndex>(matrix_.index()).arrays();
  const auto copy = [&](auto* to, const auto* of, int64_t count) {
    if (count == 0) return;
    const auto bytes = static_cast<size_t>(count) * sizeof(*to);
    check(cudaMemcpyAsync(to, of, bytes, cudaMemcpyDeviceToDevice, stream), "copy of the index");
  };
  const BsrShape& shape = matrix_.shape();
  copy(index_.row_ptr, from.row_ptr, int64_t{shape.block_rows} + 1);
  copy(index_.col_idx, from.col_idx, shape.nnzb);
  copy(index_.verdicts, from.verdicts, from.verdict_count);
  names_blocks_ = from.block_idx != nullptr;
  if (names_blocks_) copy(index_.block_idx, from.block_idx, shape.nnzb);
}

void SampledPlan::info(sparsek_plan_info& out) const {
  const BsrShape& shape = matrix_.shape();
  out.kernel = name_;
  out.tile_m = shape.block_m;
  out.tile_n = shape.block_k;
  out.tile_k = grid_.has_value() ? 64 : 32;
  out.stages = grid_.has_value() ? 3 : 1;
  out.tiles = shape.nnzb;
  out.entries = shape.nnzb;
  out.product_bytes = static_cast<int64_t>(bytes_);
  out.workspace_bytes = static_cast<int64_t>(index_memory_.bytes() + made_memory_.bytes()) + out.product_bytes;
  out.unit_roundoff = std::ldexp(1., matrix_.dtype == SPARSEK_FP64 ? -53 : reads_vectors_ ? -23 : -24);
  out.copies = copies_y_ ? SPARSEK_COPIES_B : 0;
}

uint64_t SampledPlan::digest() const {
  Digest digest;
  for (const char* c = name_; *c != 0; ++c) digest.add(static_cast<int32_t>(*c));
  digest.add(blocks_);
  return digest.value();
}

void SampledPlan::end_in(sparsek_stream stream) {
  const auto order = static_cast<cudaStream_t>(stream);
  if (!is_captured(order)) uses_.end_in(order);
}

void SampledPlan::update(const sparsek_bsr& index) {
  DeviceScope scope(matrix_.device());
  const bool captured = matrix_.update(index);
  blocks_ = index.nnzb;
  const auto stream = static_cast<cudaStream_t>(index.stream);
  matrix_.memory().releases().use(uses_, stream);
  made_.order(stream, captured);
  enqueue_made(stream);
  if (!captured) made_.record(matrix_.memory().events(), stream);
}

void SampledPlan::write(const sparsek_bsr& index, int64_t* fault) const {
  const auto stream = static_cast<cudaStream_t>(index.stream);
  const CheckedIndex written = enqueue_index(index, index_, stream);
  if (grid_.has_value()) enqueue_sampled_list(written, *grid_, list_, stream);
  if (written.block_idx == nullptr) check(number_blocks(index_.block_idx, index.nnzb, stream), "number_blocks");
  enqueue_fault(written, fault, stream);
}

SampledPlan::Lines SampledPlan::as_read(Lines given, int64_t rows, int64_t n, bool copies, size_t at,
                                        const MultiplyArgs& args) const {
  if (!copies) return given;
  const auto stream = static_cast<cudaStream_t>(args.stream);
  const int64_t bytes = dtype_bytes(matrix_.dtype);
  auto* const to = static_cast<std::byte*>(args.workspace) + at;
  if (!given.across) {
    check(pack_b(to, given.data, given.ld, rows, n, bytes, stream), "copy of X or B");
    return {to, packed_pitch(n, bytes), false};
  }
  const int64_t pitch = packed_pitch(options_.n, bytes);
  check(transpose(to, {0, pitch}, given.data, {0, given.ld}, 1, n, rows, bytes, stream), "transpose of X or B");
  return {to, pitch, false};
}

void SampledPlan::multiply(const MultiplyArgs& given) {
  const BsrShape& shape = matrix_.shape();
  if (shape.nnzb == 0 || shape.rows == 0 || shape.cols == 0) return;  // nnzb may be a bound
  DeviceScope scope(matrix_.device());
  MultiplyArgs args = given;
  const auto stream = static_cast<cudaStream_t>(args.stream);
  if (!args.trusted) {
    const int device = matrix_.device();
    check_memory(args.c, SPARSEK_DEVICE, device, "c");
    if (args.n > 0 && shape.rows > 0) check_memory(args.x, SPARSEK_DEVICE, device, "x");
    if (args.n > 0 && shape.cols > 0) check_memory(args.b, SPARSEK_DEVICE, device, "b");
    if (args.c_in != args.c && args.beta != 0) check_memory(args.c_in, SPARSEK_DEVICE, device, "c_in");
    if (args.alpha_device != nullptr) check_memory(args.alpha_device, SPARSEK_DEVICE, device, "alpha_device");
    if (args.beta_device != nullptr) check_memory(args.beta_device, SPARSEK_DEVICE, device, "beta_device");
    if (args.workspace != nullptr) check_memory(args.workspace, SPARSEK_DEVICE, device, "workspace");
  }
  const int64_t bytes = dtype_bytes(matrix_.dtype);
  const auto require_vectors = [&](bool copied, int64_t ld, const char* name) {
    if (!reads_vectors_ || copied || ld * bytes % kSampledVectorBytes == 0) return;
    fail(SPARSEK_BAD_LEADING_DIMENSION,
         "%s = %" PRId64 " is not a multiple of %" PRId64
         " elements, 16 bytes, as it was planned: plan for a stride like that, or for a smaller alignment",
         name, ld, kSampledVectorBytes / bytes);
  };
  require_vectors(copies_x_, args.ldx, "args->ldx");
  require_vectors(copies_y_, args.ldb, "args->ldb");
  if (is_data_) {
    if (args.workspace == nullptr && bytes_ > 0) {
      fail(SPARSEK_NULL_POINTER, "args->workspace is null: the layout says that a product needs %zu bytes", bytes_);
    }
  }
  const bool captured =
      is_data_ ? is_captured(stream) : args.in_own_graph || matrix_.memory().releases().use(uses_, stream);
  if (!is_data_) {
    matrix_.made().order(stream, captured);
    made_.order(stream, captured);
  }
  std::optional<Workspace::Use> own;
  if (args.workspace == nullptr && bytes_ > 0) args.workspace = own.emplace(*workspace_, stream).data();

  const Lines x =
      as_read({args.x, args.ldx, options_.order_x == SPARSEK_COLUMN_MAJOR}, shape.rows, args.n, copies_x_, 0, args);
  const Lines y =
      as_read({args.b, args.ldb, options_.order_b == SPARSEK_ROW_MAJOR}, shape.cols, args.n, copies_y_, y_at_, args);
  SampledArgs launch = {};
  launch.index = index();
  if (!names_blocks_) launch.index.block_idx = nullptr;
  launch.rows = shape.rows;
  launch.cols = shape.cols;
  launch.n = args.n;
  launch.nnzb = shape.nnzb;
  launch.block_rows = shape.block_rows;
  launch.block_m = shape.block_m;
  launch.block_k = shape.block_k;
  launch.x = x.data;
  launch.ldx = x.ld;
  launch.y = y.data;
  launch.ldy = y.ld;
  launch.x_across = x.across;
  launch.y_across = y.across;
  launch.c = args.c;
  launch.whole_vectors = reinterpret_cast<uintptr_t>(args.c) % kSampledVectorBytes == 0;
  launch.epilogue = {args.alpha,
                     args.beta,
                     args.alpha_device,
                     args.beta_device,
                     args.c_in,
                     0,
                     nullptr,
                     BiasKind::kNone,
                     activation(options_.activation),
                     element_type(options_.dtype_c),
                     /*input_across=*/false};
  launch.workers = workers_;
  if (grid_.has_value()) {
    launch.tiles = list_.tiles;
    launch.tile_count = list_.places + kSampledCosts * grid_->pairs;
    launch.tiles_taken = matrix_.memory().tile_counters().of(stream, captured);
    launch.tile_words = grid_->tile_words();
    launch.blocks_of_cell = grid_->blocks;
  }
  check(ops_.launch(launch, stream), name_);
}

void SampledPlan::multiply_time(const MultiplyArgs* args, int arg_count, int warmup, int repeats, double* seconds) {
  time_products(*this, matrix_.device(), args, arg_count, warmup, repeats, seconds);
}

}  // namespace sparsek::cuda
