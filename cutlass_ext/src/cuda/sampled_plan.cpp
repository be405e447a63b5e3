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
#include "cuda/time_runs.h"
#include "cuda/transpose.h"
#include "plan/digest.h"

namespace sparsek::cuda {
namespace {

constexpr int64_t kVectorBytes = 16;

// A family of kernels.
struct SampledKernel {
  const char* name;
  sparsek_dtype dtype;
  SampledOps (*ops)(sparsek_dtype dtype, int32_t block_m);
  int32_t of_rows, of_columns, least_columns, most_columns;  // of blocks
  double rate;                                               // operations a second, of blocks of 64 x 64
};

constexpr int32_t kAny = 1, kMost = INT32_MAX;
constexpr SampledKernel kSampledKernels[] = {
    {"sampled_wgmma_bf16", SPARSEK_BF16, sampled_wgmma, 64, 8, 32, 256, 3e14},
    {"sampled_wgmma_fp16", SPARSEK_FP16, sampled_wgmma, 64, 8, 32, 256, 3e14},
    {"sampled_mma_bf16", SPARSEK_BF16, sampled_mma, 16, 8, 8, 256, 2e14},
    {"sampled_mma_fp16", SPARSEK_FP16, sampled_mma, 16, 8, 8, 256, 2e14},
    {"sampled_simt_bf16", SPARSEK_BF16, sampled_simt, kAny, kAny, kAny, kMost, 1e12},
    {"sampled_simt_fp16", SPARSEK_FP16, sampled_simt, kAny, kAny, kAny, kMost, 1e12},
    {"sampled_simt_fp32", SPARSEK_FP32, sampled_simt, kAny, kAny, kAny, kMost, 1e12},
    {"sampled_simt_fp64", SPARSEK_FP64, sampled_simt, kAny, kAny, kAny, kMost, 1e12}};

bool uses_tensor_cores(const SampledKernel& kernel) { return kernel.ops != sampled_simt; }

std::string obstacle(const SampledKernel& kernel, const CudaMatrix& matrix, const PlanOptions& options) {
  const BsrShape& shape = matrix.shape();
  if (shape.block_m % kernel.of_rows != 0) return "another block height";
  if (shape.block_k % kernel.of_columns != 0 || shape.block_k < kernel.least_columns ||
      shape.block_k > kernel.most_columns) {
    return "another block width";
  }
  if (kernel.ops == sampled_wgmma && std::max({shape.rows, shape.cols, options.n}) > INT32_MAX) {
    return "extents of more than 31 bits";
  }
  return "";
}

// Seconds of a product, by a rate for blocks of its height: lower ones use more of memory's bandwidth.
double predict(const SampledKernel& kernel, const CudaMatrix& matrix, const PlanOptions& options,
               const DeviceRates& device) {
  constexpr double kLaunch = 4e-6, kHeight = 64, kSms = 132;
  const BsrShape& shape = matrix.shape();
  const double flops =
      2. * static_cast<double>(shape.nnzb * shape.block_m * shape.block_k) * static_cast<double>(options.n);
  double seconds = flops / (kernel.rate * device.sm_count / kSms);
  if (uses_tensor_cores(kernel)) seconds *= (1 + kHeight / shape.block_m) / 2;
  return kLaunch + seconds;
}

bool across_x(const PlanOptions& options) { return options.order_x == SPARSEK_COLUMN_MAJOR; }
bool across_y(const PlanOptions& options) { return options.order_b == SPARSEK_ROW_MAJOR; }

}  // namespace

std::vector<tune::Candidate> list_sampled(const CudaMatrix& matrix, const PlanOptions& options,
                                          const DeviceRates& device) {
  std::vector<tune::Candidate> list;
  for (const SampledKernel& kernel : kSampledKernels) {
    if (kernel.dtype != matrix.dtype) continue;
    tune::Candidate candidate;
    candidate.kernel = kernel.name;
    candidate.obstacle = obstacle(kernel, matrix, options);
    if (candidate.obstacle.empty()) candidate.predicted_seconds = predict(kernel, matrix, options, device);
    list.push_back(std::move(candidate));
  }
  return list;
}

SampledPlan::SampledPlan(CudaMatrix& matrix, const PlanOptions& options)
    : matrix_(matrix), options_(options), blocks_(matrix.shape().nnzb) {
  choose_kernel();
  if (const auto* const host = std::get_if<BsrIndex>(&matrix.index())) copy_index(*host);
  if (bytes_ == 0) return;
  workspace_ = std::make_unique<Workspace>(matrix.memory().pool(), bytes_);
  if (!matrix.is_async()) workspace_->take_in_store(matrix.memory().stream());
}

SampledPlan::SampledPlan(CudaMatrix& matrix, const PlanOptions& options, std::byte* memory)
    : matrix_(matrix), options_(options), is_data_(true), blocks_(matrix.shape().nnzb) {
  choose_kernel();
  Layout layout;
  index_ = IndexLayout(matrix.shape(), layout).within(memory);
  data_bytes_ = layout.bytes();
}

SampledPlan::~SampledPlan() { matrix_.add_uses(uses_); }

void SampledPlan::choose_kernel() {
  const BsrShape& shape = matrix_.shape();
  const SampledKernel* found = nullptr;
  for (const SampledKernel& kernel : kSampledKernels) {
    if (options_.kernel == kernel.name && kernel.dtype == matrix_.dtype) found = &kernel;
  }
  if (found == nullptr) {
    fail(SPARSEK_NO_SUCH_KERNEL, "there is no CUDA kernel %s of SPARSEK_SDD", options_.kernel.c_str());
  }
  const std::string why_not = obstacle(*found, matrix_, options_);
  if (!why_not.empty()) {
    fail(SPARSEK_NO_SUCH_KERNEL, "kernel %s does not serve blocks of %dx%d here: %s", found->name, shape.block_m,
         shape.block_k, why_not.c_str());
  }
  name_ = found->name;
  ops_ = found->ops(matrix_.dtype, shape.block_m);
  reads_vectors_ = uses_tensor_cores(*found);
  const int64_t bytes = dtype_bytes(matrix_.dtype);
  if (reads_vectors_) {
    const auto lies_anywhere = [&](int64_t ld) {
      return options_.alignment % kVectorBytes != 0 || ld * bytes % kVectorBytes != 0;
    };
    packs_x_ = !across_x(options_) && lies_anywhere(options_.ldx);
    packs_y_ = !across_y(options_) && lies_anywhere(options_.ldb);
  }
  Layout layout;
  const auto place = [&](bool copies, int64_t rows) {
    if (copies) layout.place<std::byte>(static_cast<size_t>(rows * packed_pitch(options_.n, bytes) * bytes));
  };
  place(across_x(options_) || packs_x_, shape.rows);
  y_at_ = layout.bytes();
  place(across_y(options_) || packs_y_, shape.cols);
  bytes_ = layout.bytes();
  check(ops_.prepare(), "cudaFuncSetAttribute");
  check(prepare_number_blocks(), "cudaFuncGetAttributes");
  check(prepare_transpose(), "cudaFuncGetAttributes");
  check(prepare_pack_b(), "cudaFuncGetAttributes");
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

void SampledPlan::info(sparsek_plan_info& out) const {
  const BsrShape& shape = matrix_.shape();
  out.kernel = name_;
  out.tile_m = shape.block_m;
  out.tile_n = shape.block_k;
  out.tile_k = 32;
  out.stages = 1;
  out.tiles = shape.nnzb;
  out.entries = shape.nnzb;
  out.product_bytes = static_cast<int64_t>(bytes_);
  out.workspace_bytes = static_cast<int64_t>(index_memory_.bytes()) + out.product_bytes;
  out.unit_roundoff = std::ldexp(1., matrix_.dtype == SPARSEK_FP64 ? -53 : reads_vectors_ ? -23 : -24);
  out.copies = across_y(options_) || packs_y_ ? SPARSEK_COPIES_B : 0;
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
  matrix_.update(index);
  blocks_ = index.nnzb;
}

void SampledPlan::write(const sparsek_bsr& index, int64_t* fault) const {
  const auto stream = static_cast<cudaStream_t>(index.stream);
  const CheckedIndex written = enqueue_index(index, index_, stream);
  if (written.block_idx == nullptr) check(number_blocks(index_.block_idx, index.nnzb, stream), "number_blocks");
  enqueue_fault(written, fault, stream);
}

SampledPlan::Lines SampledPlan::in_rows(Lines given, int64_t rows, int64_t n, bool across, bool packs, size_t at,
                                        const MultiplyArgs& args) const {
  if (!across && !packs) return given;
  const auto stream = static_cast<cudaStream_t>(args.stream);
  const int64_t bytes = dtype_bytes(matrix_.dtype);
  auto* const to = static_cast<std::byte*>(args.workspace) + at;
  if (packs) {
    check(pack_b(to, given.data, given.ld, rows, n, bytes, stream), "copy of X or B");
    return {to, packed_pitch(n, bytes)};
  }
  const int64_t pitch = packed_pitch(options_.n, bytes);
  check(transpose(to, {0, pitch}, given.data, {0, given.ld}, 1, n, rows, bytes, stream), "transpose of X or B");
  return {to, pitch};
}

void SampledPlan::multiply(const MultiplyArgs& given) {
  const BsrShape& shape = matrix_.shape();
  if (shape.nnzb == 0) return;
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
    if (!reads_vectors_ || copied || ld * bytes % kVectorBytes == 0) return;
    fail(SPARSEK_BAD_LEADING_DIMENSION,
         "%s = %" PRId64 " is not a multiple of %" PRId64
         " elements, 16 bytes, as it was planned: plan for a stride like that, or for a smaller alignment",
         name, ld, kVectorBytes / bytes);
  };
  require_vectors(packs_x_ || across_x(options_), args.ldx, "args->ldx");
  require_vectors(packs_y_ || across_y(options_), args.ldb, "args->ldb");
  if (is_data_) {
    if (args.workspace == nullptr && bytes_ > 0) {
      fail(SPARSEK_NULL_POINTER, "args->workspace is null: the layout says that a product needs %zu bytes", bytes_);
    }
  } else {
    const bool captured = args.in_own_graph || matrix_.memory().releases().use(uses_, stream);
    matrix_.made().order(stream, captured);
  }
  std::optional<Workspace::Use> own;
  if (args.workspace == nullptr && bytes_ > 0) args.workspace = own.emplace(*workspace_, stream).data();

  const auto* const on_device = std::get_if<DeviceIndex>(&matrix_.index());
  const Lines x = in_rows({args.x, args.ldx}, shape.rows, args.n, across_x(options_), packs_x_, 0, args);
  const Lines y = in_rows({args.b, args.ldb}, shape.cols, args.n, across_y(options_), packs_y_, y_at_, args);
  SampledArgs launch = {};
  launch.index = on_device != nullptr && !is_data_ ? on_device->arrays() : index_;
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
  launch.c = args.c;
  launch.whole_vectors = reinterpret_cast<uintptr_t>(args.c) % kVectorBytes == 0;
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
  launch.workers = options_.workers;
  check(ops_.launch(launch, stream), name_);
}

void SampledPlan::multiply_time(const MultiplyArgs* args, int arg_count, int warmup, int repeats, double* seconds) {
  DeviceScope scope(matrix_.device());
  const auto stream = static_cast<cudaStream_t>(args[0].stream);
  require_not_captured(stream, "multiply_time");
  int turn = 0;
  const auto run = [&] {
    MultiplyArgs now = args[turn++ % arg_count];
    now.stream = stream;  // one stream, so that the times do not overlap
    multiply(now);
  };
  time_runs(stream, warmup, repeats, run, seconds);
}

}  // namespace sparsek::cuda
