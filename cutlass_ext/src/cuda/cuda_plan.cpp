// SPDX-License-Identifier: Apache-2.0
#include "cuda/cuda_plan.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <variant>
#include <vector>

#include "abi/dtype.h"
#include "abi/error.h"
#include "abi/product_form.h"
#include "cuda/abi_types.h"
#include "cuda/add_parts.h"
#include "cuda/add_row_sums.h"
#include "cuda/choose_cluster.h"
#include "cuda/chunk_sizes.h"
#include "cuda/copy_input.h"
#include "cuda/device_scope.h"
#include "cuda/find_kernel.h"
#include "cuda/pack_b.h"
#include "cuda/prepared.h"
#include "cuda/row_mma_sizes.h"
#include "cuda/stage_parts.h"
#include "cuda/time_products.h"
#include "cuda/value_layout.h"
#include "cuda/vendor/index_arrays.h"
#include "cuda/window_layout.h"
#include "cuda/worker_count.h"
#include "plan/panel_ends.h"

namespace sparsek::cuda {
namespace {

// What a tile costs beside its entries (epilogue, refill of the ring), in entries of 64 columns of A.
constexpr double kTileCost = 2.4;

// What splitting costs beside (plan/split.h), in the same unit, of which one takes about 0.8 us: a second kernel and
// its latency, 3 us; and reading the sums of a whole tile, 128 KB of the 4 TB/s or so that L2 gives to plain loads.
constexpr double kJoinCost = 4;
constexpr double kPartCost = 0.05;
// At most so much for the sums of parts: they are to stay in L2 from one kernel to the other.
constexpr int64_t kMostWorkspace = int64_t{32} << 20;

// From so many times the mean on, the longest block row may come before the others: is_long in plan/schedule.h.
constexpr double kUneven = 1.5;

// Has the kernel launch on the current device, which is this one. Once, since it takes a while.
void prepare(const KernelDesc& kernel, int device) {
  static std::vector<Prepared> kernels(kKernelCount);
  kernels[static_cast<size_t>(&kernel - kKernels)].on(device,
                                                      [&] { check(kernel.ops->prepare(), "cudaFuncSetAttribute"); });
}

}  // namespace

CudaPlan::CudaPlan(CudaMatrix& matrix, const PlanOptions& options, int sm_count) : matrix_(matrix), options_(options) {
  PlanMemory& memory = matrix.memory();
  const PlanShape shape = choose_shape(sm_count);
  if (RowOrders* const orders = matrix.orders()) {
    const Plan plan = sparsek::make_plan(*orders, shape);
    arrays_ = PlanArrays(memory, plan, uses_, list_sizes_);
    if (list_sizes_.columns > 0) list_at_once();
    entries_ = plan.entries();
    if (plan.chunks.empty()) panel_ends_ = panel_ends(plan);
  } else {
    plan_on_device(shape);
  }
  prepare(*kernel_, matrix.device());
  prepare_workspace();
  make_layout();
  if (product_.bytes > 0) product_.own = std::make_unique<Workspace>(memory.pool(), product_.bytes);
  if (laid_out_.bytes > 0) laid_out_.own = std::make_unique<Workspace>(memory.pool(), laid_out_.bytes);
  const ProductMemory& usual = layout_ != nullptr ? laid_out_ : product_;
  if (usual.own != nullptr && !matrix.is_async()) usual.own->take_in_store(memory.stream());
}

CudaPlan::CudaPlan(CudaMatrix& matrix, const PlanOptions& options, int sm_count, std::byte* memory)
    : matrix_(matrix), options_(options), is_data_(true) {
  const PlanShape shape = choose_shape(sm_count);
  planner_.emplace(matrix.shape(), shape, list_sizes_);
  Layout layout;
  const IndexLayout index(matrix.shape(), layout);
  const PlanLayout plan(planner_->sizes(), layout);
  data_bytes_ = layout.bytes();
  data_index_ = index.within(memory);
  arrays_ = PlanArrays(planner_->sizes(), plan, memory);
  prepare(*kernel_, matrix.device());
  prepare_workspace();
}

void CudaPlan::write(const sparsek_bsr& index, int64_t* fault) const {
  const auto stream = static_cast<cudaStream_t>(index.stream);
  const CheckedIndex copied = enqueue_index(index, data_index_, stream);
  planner_->enqueue(copied, arrays_.views(), stream);
  enqueue_fault(copied, fault, stream);
}

// Also the kernel, and the CTAs that share a tile.
PlanShape CudaPlan::choose_shape(int sm_count) {
  const BsrShape& pattern = matrix_.shape();
  constexpr int64_t kLimit = INT32_MAX;
  if (pattern.rows > kLimit || pattern.cols > kLimit || options_.n > kLimit) {
    fail(SPARSEK_BAD_SIZE, "the CUDA kernels take extents up to 2^31 - 1");
  }
  kernel_ = &kernel_named(pattern, matrix_.dtype, options_);

  PlanShape shape;
  shape.tile_m = tile_rows();
  shape.tile_n = kernel_->tile_n;
  shape.n = options_.n;
  shape.panels_in_flight = 0;
  // Of the other types with wider elements no other number of panels was measured (docs/notes/tf32-kernel.md).
  if (cuts_to_tf32(*kernel_)) shape.element_bytes = static_cast<int32_t>(dtype_bytes(options_.dtype_b));
  shape.tile_cost = kTileCost * 64 / pattern.block_k;
  int32_t ctas = sm_count * kernel_->ops->ctas_per_sm;
  if (options_.workers > 0) ctas = std::min(ctas, options_.workers);
  cluster_ = kernel_->ops->most_cluster == 1 || options_.batch_invariant
                 ? 1
                 : choose_cluster(pattern, longest_row(matrix_.index()), shape, kernel_->ops->most_cluster, ctas);
  if (cluster_ == 1 && kernel_->ops->most_panels > 1 && ctas > 1) {
    panels_ = choose_neighbours(pattern, longest_row(matrix_.index()), shape, kernel_->ops->most_panels, ctas);
    shape.tile_n = tile_columns();
  }
  workers_ = shape.workers = ctas / (cluster_ * panels_);
  uneven_ = unevenness(pattern, longest_row(matrix_.index())) > kUneven;
  if (kernel_->ops->takes_chunks && pattern.rows > 0 && options_.n > 0) {
    choose_chunks(sm_count, shape);
    return shape;
  }
  const int64_t groups = (pattern.rows + shape.tile_m - 1) / shape.tile_m;
  const bool long_enough = pattern.nnzb * pattern.block_m * pattern.block_k >= kernel_->ops->least_elements * groups;
  rounds_ = options_.workers == 0 && long_enough ? kernel_->ops->most_rounds : 1;
  shape.any_rows = kernel_->ops->any_rows && (!matrix_.is_async() || is_matching_worthwhile(pattern, shape));
  if (kernel_->ops->may_split && options_.n > 0 && !options_.batch_invariant) {
    shape.most_parts =
        static_cast<int32_t>(std::min<int64_t>(kMostParts, kMostWorkspace / part_layout().bytes_of_part()));
    shape.join_cost = kJoinCost * 64 / pattern.block_k;
    shape.part_cost = kPartCost * 64 / pattern.block_k * part_layout().groups * 8 / shape.tile_n;
  }
  return shape;
}

void CudaPlan::choose_chunks(int sm_count, PlanShape& shape) {
  constexpr int64_t kColumnsOfAll = 8;  // of a plan whose order of summation does not depend on the columns
  const BsrShape& pattern = matrix_.shape();
  const int64_t bytes = dtype_bytes(matrix_.dtype);
  if (scatters(*kernel_)) {
    list_sizes_ = list_sizes(pattern.rows, pattern.cols, pattern.nnzb, pattern.block_m, pattern.block_k);
  }
  if (!options_.batch_invariant) {
    const int64_t panels = (options_.n + kernel_->tile_n - 1) / kernel_->tile_n;
    const auto parts_of = [&](const auto& sizes) { return parts_of_tiles(sizes, pattern.nnzb, panels, workers_); };
    if (scatters(*kernel_)) cluster_ = parts_of(list_sizes_);
    if (packs_planes(*kernel_)) cluster_ = parts_of(PlaneStripSizes(pattern.rows, pattern.cols, pattern.block_m));
    if (packs_fp64(*kernel_)) cluster_ = parts_of(strip_sizes(pattern.rows, pattern.cols, pattern.block_m));
  }
  if (reads_rows(*kernel_)) {
    // A chunk for each row group, so that a plan tells how many tiles there are; no row is cut.
    lanes_.way = LaneWay::kScatter;
    lanes_.columns = kernel_->tile_n;
    lanes_.warps = lanes_.teams = 1;
    shape.chunks = static_cast<int32_t>((pattern.rows + kernel_->tile_m - 1) / kernel_->tile_m);
    shape.longest_whole = INT32_MAX;
    return;
  }
  const double blocks_of_row = static_cast<double>(pattern.nnzb) / pattern.block_rows;
  const int64_t n = options_.batch_invariant ? kColumnsOfAll : options_.n;
  const ElementBytes elements = {static_cast<int>(bytes), static_cast<int>(dtype_bytes(options_.dtype_b))};
  lanes_ = has_window(*kernel_) ? window_layout(pattern.block_m, n, elements.b, blocks_of_row)
                                : lane_layout(pattern.block_m, pattern.block_k, n, elements, blocks_of_row);
  const ChunkSizes sizes = chunk_sizes(pattern, lanes_, bytes, sm_count);
  shape.chunks = sizes.count;
  shape.longest_whole = sizes.longest_whole;
  const bool knows_rows = !matrix_.is_async() && !is_data_;
  cuts_rows_ = shape.chunks > 1 && (!knows_rows || longest_row(matrix_.index()) > shape.longest_whole);
}

int32_t CudaPlan::panels_of(int64_t n) const { return static_cast<int32_t>((n + lanes_.columns - 1) / lanes_.columns); }

void CudaPlan::list_at_once() {
  PlanMemory& memory = matrix_.memory();
  const PlanMemory::Block bounds = memory.allocate(static_cast<size_t>(list_sizes_.bound_bytes()), nullptr);
  enqueue_lists(matrix_.shape(), list_sizes_, arrays_.views(), bounds.data(), memory.stream());
  count_stages();  // waits
}

void CudaPlan::count_stages() {
  constexpr int64_t kMost = 1 << 16;
  std::vector<int32_t> counts(static_cast<size_t>(std::min(list_sizes_.groups, kMost)));
  matrix_.memory().read(counts.data(), arrays_.lists().counts, counts.size());
  const auto has_all = [&](int32_t count) { return count == list_sizes_.stages; };
  has_all_stages_ = list_sizes_.groups <= kMost && std::all_of(counts.begin(), counts.end(), has_all);
}

CudaPlan::~CudaPlan() { matrix_.add_uses(uses_); }

void CudaPlan::plan_on_device(const PlanShape& shape) {
  PlanMemory& memory = matrix_.memory();
  const auto& index = std::get<DeviceIndex>(matrix_.index());
  if (!matrix_.is_async()) {
    const DevicePlanner planner(matrix_.shape(), shape, list_sizes_);
    PlanSizes sizes = planner.sizes();
    sizes.scratch = 0;  // only until the plan is made
    const PlanMemory::Block scratch = memory.allocate(std::max<size_t>(planner.sizes().scratch, 1), nullptr);
    arrays_ = PlanArrays(memory, sizes, uses_, memory.stream());
    PlanArrays::Views to = arrays_.views();
    to.scratch = scratch.data();
    planner.enqueue(index.arrays(), to, memory.stream());
    entries_ = static_cast<int64_t>(memory.read(to.entries));
    if (list_sizes_.columns > 0) count_stages();
    return;
  }
  const cudaStream_t stream = matrix_.stream();
  if (is_captured(stream)) {
    fail(SPARSEK_BAD_ARGUMENT,
         "the stream of the matrix is being captured into a graph, which may run when the plan is gone: make the plan "
         "before the capture");
  }
  uses_.begin_as(matrix_.uses());
  planner_.emplace(matrix_.shape(), shape, list_sizes_);
  arrays_ = PlanArrays(memory, planner_->sizes(), uses_, stream);
  matrix_.made().order(stream, false);
  planner_->enqueue(index.arrays(), arrays_.views(), stream);
  made_.record(memory.events(), stream);
}

void CudaPlan::update(const sparsek_bsr& index) {
  DeviceScope scope(matrix_.device());
  const auto stream = static_cast<cudaStream_t>(index.stream);
  const bool captured = matrix_.update(index);
  matrix_.memory().releases().use(uses_, stream);
  made_.order(stream, captured);
  const CheckedIndex& arrays = std::get<DeviceIndex>(matrix_.index()).arrays();
  planner_->enqueue(arrays, arrays_.views(), stream);
  // Elsewhere the mark keeps products from beginning before the plan is written.
  if (captured) return enqueue_fault(arrays, nullptr, stream);
  made_.record(matrix_.memory().events(), stream);
}

int64_t CudaPlan::entries() const {
  if (entries_ >= 0) return entries_;
  DeviceScope scope(matrix_.device());
  made_.wait();
  return static_cast<int64_t>(matrix_.memory().read(arrays_.views().entries));
}

void CudaPlan::end_in(sparsek_stream stream) {
  const auto order = static_cast<cudaStream_t>(stream);
  // The matrix may have filled the layout again in a stream that the caller of this does not know of.
  if (layout_ != nullptr) return;
  if (!is_captured(order)) uses_.end_in(order);
}

int32_t CudaPlan::tile_rows() const { return kernel_->tile_m > 0 ? kernel_->tile_m : matrix_.shape().block_m; }

int32_t CudaPlan::tile_columns() const {
  return kernel_->ops->takes_chunks && lanes_.columns > 0 ? lanes_.columns : kernel_->tile_n * panels_;
}

PartSums CudaPlan::part_layout() const {
  PartSums layout = {};
  layout.slabs = tile_rows() / 16;
  layout.groups = static_cast<int32_t>((std::min<int64_t>(options_.n, kernel_->tile_n) + 7) / 8);
  return layout;
}

int64_t CudaPlan::ctas_of_tile() const {
  return has_block_row(*kernel_) ? row_mma::slices(matrix_.shape().block_m) : 1;
}

ScatteredRows CudaPlan::rows_of_plan(int64_t n) const {
  const PlanSizes& sizes = arrays_.sizes();
  ScatteredRows rows = {
      {arrays_.chunks(), arrays_.row_ptr(), sizes.chunks, matrix_.shape().block_rows, lanes_, nullptr},
      sizes.lists,
      arrays_.lists(),
      has_all_stages_};
  if (sizes.chunks > 0) rows.lanes.panels = panels_of(n);
  return rows;
}

LaunchArgs CudaPlan::args_of_plan(int64_t n, const ScatteredRows& rows) const {
  const PlanSizes& sizes = arrays_.sizes();
  LaunchArgs args = sizes_of(matrix_.shape(), n, workers_, cluster_);
  args.cols = std::max<int64_t>(args.cols, 1);
  args.tiles = arrays_.tiles();
  args.tiles_count = tiles_within(n);
  args.entry_k = arrays_.entry_k();
  args.entry_block = arrays_.entry_block();
  args.slot_row = arrays_.slot_row();
  args.slots = sizes.slots;
  args.panels = panels_;
  args.batch_invariant = options_.batch_invariant;
  args.uneven = uneven_;
  args.recomputed = arrays_.recomputed();
  if (sizes.chunks > 0) args.rows_in_chunks = &rows;
  return args;
}

void CudaPlan::multiply(const MultiplyArgs& given) {
  MultiplyArgs args = given;
  const BsrShape& shape = matrix_.shape();
  const PlanSizes& sizes = arrays_.sizes();
  if (sizes.tiles == 0 && sizes.chunks == 0) return;
  require_strides(*kernel_, packed_pitch_ > 0, args.ldb, args.ldc);
  if (!kernel_->ops->any_epilogue && (args.alpha_device != nullptr || args.beta_device != nullptr)) {
    fail(SPARSEK_BAD_ARGUMENT, "kernel %s takes no alpha_device or beta_device: name another", kernel_->name);
  }
  const void* const values = args.values != nullptr ? args.values : matrix_.values();
  if (reinterpret_cast<uintptr_t>(values) % kernel_->ops->align_values != 0) {
    fail(SPARSEK_MISALIGNED, "values = %p is not aligned to the %d bytes that kernel %s needs", values,
         kernel_->ops->align_values, kernel_->name);
  }
  DeviceScope scope(matrix_.device());
  if (!args.trusted) {
    check_memory(args.c, SPARSEK_DEVICE, matrix_.device(), "c");
    if (shape.cols > 0) check_memory(args.b, SPARSEK_DEVICE, matrix_.device(), "b");
    const auto check_given = [&](const void* pointer, const char* name) {
      if (pointer != nullptr) check_memory(pointer, SPARSEK_DEVICE, matrix_.device(), name);
    };
    check_given(args.bias, "bias");
    check_given(args.values, "values");
    check_given(args.c_in == args.c ? nullptr : args.c_in, "c_in");
    check_given(args.alpha_device, "alpha_device");
    check_given(args.beta_device, "beta_device");
    check_given(args.workspace, "workspace");
  }

  if (!kernel_->ops->any_epilogue) args = with_input_in_c(args, shape.rows, options_.dtype_c);

  // Descriptors need an address and an extent even where nothing is read through them. A plan has tiles or chunks.
  const void* const unread = sizes.tiles > 0 ? static_cast<const void*>(arrays_.tiles()) : arrays_.chunks();
  ScatteredRows rows = rows_of_plan(args.n);
  LaunchArgs launch = args_of_plan(args.n, rows);
  launch.values = shape.nnzb > 0 ? values : unread;
  launch.b = shape.cols > 0 ? args.b : unread;
  launch.ldb = shape.cols > 0 ? args.ldb
                              : packed_pitch(args.n, dtype_bytes(options_.dtype_b));  // a stride that descriptors take
  launch.c = args.c;
  launch.ldc = args.ldc;
  launch.a_m_major = transposes_a(options_.op);
  launch.b_k_major = options_.order_b == SPARSEK_COLUMN_MAJOR;
  launch.c_m_major = options_.order_c == SPARSEK_COLUMN_MAJOR;
  launch.epilogue = {args.alpha,
                     args.beta,
                     args.alpha_device,
                     args.beta_device,
                     args.c_in,
                     args.ldc_in,
                     args.bias,
                     bias_kind(options_.bias),
                     activation(options_.activation),
                     element_type(options_.dtype_c),
                     /*input_across=*/args.ldc_in == 0 && is_turned_over(options_.op) != launch.c_m_major};
  launch.workers = worker_count(launch.tiles_count * ctas_of_tile(), workers_, rounds_);
  if (sizes.chunks > 0) launch.workers = has_window(*kernel_) || reads_rows(*kernel_) ? workers_ : options_.workers;
  // Where there is no room for all CTAs at once, most of them begin when the kernel before has long ended.
  launch.values_static = options_.values_static && launch.tiles_count <= 2 * workers_;
  launch.stream = static_cast<cudaStream_t>(args.stream);
  if (layout_ != nullptr && matrix_.is_settled(values)) launch.laid_out = layout_->data();
  const bool captured = record_use(args);
  // A CTA begins with the tile of its number, or is one of the last without one, and takes further ones if there are
  // any.
  if (kernel_->ops->takes_tiles && launch.tiles_count > launch.workers) {
    launch.tiles_taken = matrix_.memory().tile_counters().of(launch.stream, captured);
    launch.late_workers = late_workers(launch.tiles_count, launch.workers);
  }
  this->launch(launch, args.workspace);
}

int32_t CudaPlan::tiles_within(int64_t n) const {
  if (panel_ends_.empty()) return static_cast<int32_t>(arrays_.sizes().tiles);
  return panel_ends_[static_cast<size_t>((n - 1) / tile_columns())];
}

bool CudaPlan::record_use(const MultiplyArgs& args) {
  const auto stream = static_cast<cudaStream_t>(args.stream);
  if (is_data_) return is_captured(stream);
  // A graph of the library's own is gone when the call ends that made it.
  const bool captured = args.in_own_graph || matrix_.memory().releases().use(uses_, stream);
  made_.order(stream, captured);
  return captured;
}

void CudaPlan::launch(LaunchArgs args, void* workspace) {
  const ProductMemory& memory = args.laid_out != nullptr ? laid_out_ : product_;
  if (memory.bytes == 0) return check(kernel_->ops->launch(args), kernel_->name);
  if (is_data_ && workspace == nullptr) {
    fail(SPARSEK_NULL_POINTER, "args->workspace is null: the layout says that a product needs %zu bytes", memory.bytes);
  }
  std::optional<Workspace::Use> own;
  if (workspace == nullptr) workspace = own.emplace(*memory.own, args.stream).data();
  args.workspace = workspace;  // of a kernel that splits no tile
  if (packed_pitch_ > 0 && matrix_.shape().cols > 0) {
    char* const packed = static_cast<char*>(workspace) + bytes_of_parts() + memory.of_kernel;
    const int64_t bytes = dtype_bytes(options_.dtype_b);
    check(pack_b(packed, args.b, args.ldb, args.cols, args.n, bytes, args.stream), "pack_b");
    args.b = packed;
    args.ldb = packed_pitch(args.n, bytes);
    args.padded_b = true;
  }
  if (cuts_rows_) return launch_passes(args, workspace);
  if (arrays_.sizes().parts == 0) return check(kernel_->ops->launch(args), kernel_->name);
  args.parts = part_layout();
  args.parts.sums = static_cast<float4*>(workspace);
  check(kernel_->ops->launch(args), kernel_->name);
  check(add_parts(args, arrays_.split_tiles(), arrays_.sizes().split_tiles, kernel_->tile_n), "add_parts");
}

void CudaPlan::launch_passes(const LaunchArgs& args, void* sums) {
  const auto behind = [](const void* of, int64_t elements, int64_t bytes) {
    return of == nullptr ? nullptr : static_cast<const char*>(of) + elements * bytes;
  };
  const int64_t bytes = dtype_bytes(options_.dtype_b), bytes_c = dtype_bytes(options_.dtype_c);
  for (int64_t col = 0; col < args.n; col += columns_of_pass()) {
    LaunchArgs pass = args;
    pass.n = std::min(args.n - col, columns_of_pass());
    pass.b = behind(args.b, col, bytes);
    pass.c = static_cast<char*>(args.c) + col * bytes_c;
    pass.epilogue.c_in = behind(args.epilogue.c_in, col, bytes_c);
    if (args.epilogue.bias_kind == BiasKind::kColumn) pass.epilogue.bias = behind(args.epilogue.bias, col, bytes_c);
    RowChunks rows = *args.rows_in_chunks;
    rows.lanes.panels = panels_of(pass.n);
    rows.sums = sums;
    pass.rows_in_chunks = &rows;
    check(kernel_->ops->launch(pass), kernel_->name);
    check(add_row_sums(pass, options_.dtype_b == SPARSEK_FP64), "add_row_sums");
  }
}

void CudaPlan::multiply_time(const MultiplyArgs* args, int arg_count, int warmup, int repeats, double* seconds) {
  time_products(*this, matrix_.device(), args, arg_count, warmup, repeats, seconds);
}

}  // namespace sparsek::cuda
