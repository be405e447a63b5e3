// SPDX-License-Identifier: Apache-2.0
#include "cuda/form_plan.h"

#include <variant>

#include "abi/dtype.h"
#include "abi/error.h"
#include "abi/product_form.h"
#include "cuda/device_scope.h"
#include "cuda/find_kernel.h"
#include "cuda/time_products.h"
#include "cuda/transpose.h"
#include "plan/transpose_index.h"

namespace sparsek::cuda {
namespace {

size_t matrix_bytes(int64_t lines, int64_t length, sparsek_dtype dtype) {
  return static_cast<size_t>(lines * copy_pitch(length, dtype) * dtype_bytes(dtype));
}

}  // namespace

bool has_form_plan(const BsrShape& matrix, const PlanOptions& options) {
  return options.op != SPARSEK_SDD &&
         (transposes_a(options.op) || copies_for(find_kernel(options.kernel), options, matrix).any());
}

FormPlan::FormPlan(CudaMatrix& matrix, const PlanOptions& options, int sm_count)
    : matrix_(matrix),
      options_(options),
      transposes_(transposes_a(options.op)),
      copies_(copies_for(find_kernel(options.kernel), options, matrix.shape())) {
  if (transposes_) {
    transposed_ = matrix.transposed();
    if (transposed_ == nullptr) transpose_on_device();
  }
  inner_.emplace(transposes_ ? *transposed_ : matrix,
                 between_copies(copies_, options, inner_extent(options.op, matrix.shape())), sm_count);
  place_copies();
  if (bytes_ > 0) {
    workspace_ = std::make_unique<Workspace>(matrix.memory().pool(), bytes_);
    if (!matrix.is_async()) workspace_->take_in_store(matrix.memory().stream());
  }
}

FormPlan::FormPlan(CudaMatrix& matrix, const PlanOptions& options, int sm_count, std::byte* memory)
    : matrix_(matrix),
      options_(options),
      transposes_(transposes_a(options.op)),
      copies_(copies_for(find_kernel(options.kernel), options, matrix.shape())),
      is_data_(true) {
  Layout layout;
  if (transposes_) {
    const IndexLayout given(matrix.shape(), layout);
    const TransposedLayout index(matrix.shape(), layout);
    given_ = given.within(memory);
    index_ = index.within(memory);
    transposed_ =
        std::make_shared<CudaMatrix>(transposed(matrix.shape()), matrix.dtype, matrix.device(), matrix.memory());
    prepare_transposed_index();
  }
  const size_t before = layout.bytes();
  inner_.emplace(transposes_ ? *transposed_ : matrix,
                 between_copies(copies_, options, inner_extent(options.op, matrix.shape())), sm_count,
                 memory == nullptr ? nullptr : memory + before);
  data_bytes_ = before + inner_->data_bytes();
  place_copies();
}

FormPlan::~FormPlan() { matrix_.add_uses(uses_); }

void FormPlan::place_copies() {
  Layout layout;
  const BsrShape& shape = matrix_.shape();
  if (copies_.a) layout.place<std::byte>(matrix_.value_bytes());
  b_at_ = layout.bytes();
  if (copies_.b) {
    const int64_t inner = inner_extent(options_.op, shape), n = options_.n;
    const bool columns = copies_.b_to_columns;
    layout.place<std::byte>(matrix_bytes(columns ? n : inner, columns ? inner : n, options_.dtype_b));
  }
  c_at_ = layout.bytes();
  if (copies_.input) {
    layout.place<std::byte>(matrix_bytes(outer_extent(options_.op, shape), options_.n, options_.dtype_c));
  }
  inner_at_ = layout.bytes();
  bytes_ = inner_at_ + inner_->product_bytes();
  check(prepare_transpose(), "cudaFuncGetAttributes");
}

void FormPlan::transpose_on_device() {
  prepare_transposed_index();
  PlanMemory& memory = matrix_.memory();
  const cudaStream_t stream = matrix_.is_async() ? matrix_.stream() : memory.stream();
  Layout layout;
  const TransposedLayout places(matrix_.shape(), layout);
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
  index_memory_ = PoolArray<std::byte>(memory, layout.bytes(), &uses_, stream);
  index_ = places.within(index_memory_.data());
  sparsek_bsr bsr = enqueue_transposed(std::get<DeviceIndex>(matrix_.index()).arrays(), matrix_.shape(), matrix_.dtype,
                                       index_, stream);
  if (matrix_.is_async()) bsr.flags |= SPARSEK_BSR_ASYNC;
  transposed_ = std::make_shared<CudaMatrix>(bsr, matrix_.device(), memory);
}

void FormPlan::update(const sparsek_bsr& index) {
  if (!transposes_) return inner_->update(index);
  DeviceScope scope(matrix_.device());
  const auto stream = static_cast<cudaStream_t>(index.stream);
  matrix_.update(index);
  matrix_.memory().releases().use(uses_, stream);
  const sparsek_bsr bsr = enqueue_transposed(std::get<DeviceIndex>(matrix_.index()).arrays(), matrix_.shape(),
                                             matrix_.dtype, index_, stream);
  inner_->update(bsr);
}

void FormPlan::write(const sparsek_bsr& index, int64_t* fault) const {
  if (!transposes_) return inner_->write(index, fault);
  const auto stream = static_cast<cudaStream_t>(index.stream);
  const CheckedIndex given = enqueue_index(index, given_, stream);
  inner_->write(enqueue_transposed(given, matrix_.shape(), matrix_.dtype, index_, stream), nullptr);
  enqueue_fault(given, fault, stream);
}

void FormPlan::info(sparsek_plan_info& out) const {
  inner_->info(out);
  out.workspace_bytes += static_cast<int64_t>(bytes_) - out.product_bytes;
  out.product_bytes = static_cast<int64_t>(bytes_);
  out.copies =
      (copies_.a ? SPARSEK_COPIES_A : 0) | (copies_.b ? SPARSEK_COPIES_B : 0) | (copies_.c ? SPARSEK_COPIES_C : 0);
}

void FormPlan::end_in(sparsek_stream stream) {
  inner_->end_in(stream);
  if (transposes_) transposed_->end_in(stream);
  const auto order = static_cast<cudaStream_t>(stream);
  if (!is_captured(order)) uses_.end_in(order);
}

// Those that the plan between does not see.
void FormPlan::check_operands(const MultiplyArgs& args) const {
  const int device = matrix_.device();
  if (copies_.b && inner_extent(options_.op, matrix_.shape()) > 0) check_memory(args.b, SPARSEK_DEVICE, device, "b");
  if (copies_.c) {
    check_memory(args.c, SPARSEK_DEVICE, device, "c");
    if (args.c_in != args.c) check_memory(args.c_in, SPARSEK_DEVICE, device, "c_in");
  }
  if (copies_.a && args.values != nullptr) check_memory(args.values, SPARSEK_DEVICE, device, "values");
}

// What beta is multiplied with, as the plan between reads it; copied to `to` where it is to be.
void FormPlan::copy_input(MultiplyArgs& args, void* to, int64_t pitch) const {
  if (!copies_.input) return;
  const bool one_row = args.ldc_in == 0, read = args.beta != 0;
  if (!copies_.c && (!read || !one_row || !is_turned_over(options_.op))) return;
  if (read && one_row && !is_turned_over(options_.op)) return;  // as it is
  if (read) {
    check(transpose(to, {0, pitch}, args.c_in, {0, args.ldc_in}, 1, args.n, outer_extent(options_.op, matrix_.shape()),
                    dtype_bytes(options_.dtype_c), static_cast<cudaStream_t>(args.stream)),
          "transpose of C");
  }
  args.c_in = to;
  args.ldc_in = pitch;
}

void FormPlan::multiply(const MultiplyArgs& given) {
  const BsrShape& shape = matrix_.shape();
  const int64_t outer = outer_extent(options_.op, shape), inner = inner_extent(options_.op, shape);
  if (outer == 0 || given.n == 0) return;
  DeviceScope scope(matrix_.device());
  if (!given.trusted) check_operands(given);
  MultiplyArgs args = given;
  const auto stream = static_cast<cudaStream_t>(args.stream);
  if (is_data_) {
    if (args.workspace == nullptr && bytes_ > 0) {
      fail(SPARSEK_NULL_POINTER, "args->workspace is null: the layout says that a product needs %zu bytes", bytes_);
    }
  } else if (!args.in_own_graph) {
    matrix_.memory().releases().use(uses_, stream);
  }
  std::optional<Workspace::Use> own;
  if (args.workspace == nullptr && bytes_ > 0) args.workspace = own.emplace(*workspace_, stream).data();
  auto* const memory = static_cast<std::byte*>(args.workspace);

  // The transposed matrix has none.
  const void* const values = args.values != nullptr ? args.values : matrix_.values();
  if (transposes_) args.values = values;
  if (copies_.a && shape.nnzb > 0) {
    const int64_t size = int64_t{shape.block_m} * shape.block_k;
    check(transpose(memory, {size, shape.block_m}, values, {size, shape.block_k}, shape.nnzb, shape.block_m,
                    shape.block_k, dtype_bytes(matrix_.dtype), stream),
          "transpose of A");
    args.values = memory;
  }
  if (copies_.b) {
    const bool columns = copies_.b_to_columns;
    const int64_t lines = columns ? inner : args.n, length = columns ? args.n : inner;  // of what is read
    const int64_t pitch = copy_pitch(columns ? inner : options_.n, options_.dtype_b);
    check(transpose(memory + b_at_, {0, pitch}, args.b, {0, args.ldb}, 1, lines, length, dtype_bytes(options_.dtype_b),
                    stream),
          "transpose of B");
    args.b = memory + b_at_;
    args.ldb = pitch;
  }
  const int64_t pitch_c = copy_pitch(options_.n, options_.dtype_c);
  copy_input(args, memory + c_at_, pitch_c);
  if (copies_.c) {
    args.c = memory + c_at_;
    args.ldc = pitch_c;
  }
  args.workspace = inner_->product_bytes() > 0 ? memory + inner_at_ : nullptr;
  inner_->multiply(args);
  if (copies_.c) {
    check(transpose(given.c, {0, given.ldc}, args.c, {0, pitch_c}, 1, outer, args.n, dtype_bytes(options_.dtype_c),
                    stream),
          "transpose of C");
  }
}

void FormPlan::multiply_time(const MultiplyArgs* args, int arg_count, int warmup, int repeats, double* seconds) {
  time_products(*this, matrix_.device(), args, arg_count, warmup, repeats, seconds);
}

}  // namespace sparsek::cuda
