// SPDX-License-Identifier: Apache-2.0
#include "cuda/cuda_attention.h"

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cmath>
#include <optional>

#include "abi/dtype.h"
#include "abi/error.h"
#include "cuda/attention_join.h"
#include "cuda/attention_operands.h"
#include "cuda/attention_ops.h"
#include "cuda/attention_terms.h"
#include "cuda/attention_transpose_values.h"
#include "cuda/attention_works.h"
#include "cuda/cuda_error.h"
#include "cuda/cuda_matrix.h"
#include "cuda/device_scope.h"
#include "cuda/layout.h"
#include "cuda/stream_uses.h"
#include "cuda/time_runs.h"
#include "cuda/workspace.h"
#include "plan/attention_pieces.h"

namespace sparsek::cuda {
namespace {

constexpr int32_t kFar = 1 << 29;  // beyond all differences of positions

class CudaAttention final : public AttentionState {
 public:
  // BlockLayout: AttentionLayout, or sparsek_bsr of one in device memory. Of the second-level cache, half is for what
  // is not read again.
  template <class BlockLayout>
  CudaAttention(const AttentionShape& shape, const BlockLayout& layout, PlanMemory& memory, int device, int sm_count,
                size_t l2_bytes)
      : shape_(shape),
        memory_(memory),
        device_(device),
        sm_count_(sm_count),
        workers_(shape.workers > 0 ? std::min(shape.workers, sm_count) : sm_count),
        padded_((shape.seq_q + kAttentionTile - 1) / kAttentionTile * kAttentionTile),
        work_(shape, layout, {memory, uses_, device, static_cast<int64_t>(l2_bytes / 2), sm_count}),
        ops_(work_->parts() > 1 ? general_attention_ops(shape) : attention_ops(shape, work_->mostly_alone(), sm_count)),
        general_ops_(general_attention_ops(shape)),
        terms_ops_(attention_ops_with_terms(shape)),
        paged_ops_(paged_attention_ops(shape)),
        mass_ops_(attention_mass_ops(shape)),
        any_order_ops_(work_->keys_mostly_alone() ? std::nullopt : attention_any_order_ops(shape)),
        lists_at_(end_of_rows()),
        sums_q_at_(lists_at_ + work_->scratch_bytes()),
        workspace_(memory.pool(), is_e4m3(shape) ? 0 : sums_q_at_ + sums_q_bytes()),
        part_workspace_(memory.pool(), part_bytes()),
        mass_lists_at_(end_of_cells()),
        mass_workspace_(memory.pool(), is_e4m3(shape) ? 0 : mass_lists_at_ + work_->scratch_bytes()),
        values_workspace_(memory.pool(), is_e4m3(shape) ? values_bytes() : 0) {
    ops_.prepare();
    general_ops_.prepare();
    check(prepare_attention_join(dtype_o()), "cudaFuncGetAttributes");
    if (is_e4m3(shape)) {
      check(prepare_transpose_values(), "cudaFuncGetAttributes");
      return;
    }
    terms_ops_.prepare();
    check(paged_ops_.prepare(), "cudaFuncSetAttribute");
    check(mass_ops_.prepare(), "cudaFuncSetAttribute");
    if (any_order_ops_.has_value()) check(any_order_ops_->prepare(), "cudaFuncSetAttribute");
    check(prepare_mass_sums(), "cudaFuncGetAttributes");
  }

  void info(sparsek_attention_info& out) const override {
    out.kernel = out.backward = attention_kernel_name(shape_.dtype);
    out.backward_bytes = static_cast<int64_t>(workspace_.bytes());
    if (is_e4m3(shape_)) {
      out.backward = "";
      out.unit_roundoff = std::ldexp(1., -13);  // tensor cores add products of bytes with so many bits of fraction
      out.product_roundoff = std::ldexp(1., -4);
      return;
    }
    out.unit_roundoff = std::ldexp(1., -22);  // ex2.approx, and the sums of tensor cores
    out.product_roundoff = std::ldexp(1., shape_.dtype == SPARSEK_BF16 ? -8 : -11);
  }

  void forward(const sparsek_attention_args& args) override {
    if (is_e4m3(shape_)) require_e4m3_serves(args);
    if (work_->query_tiles() == 0) return;
    DeviceScope scope(device_);
    AttentionForwardArgs launch = {};
    const AttentionPages pages = pages_of(args);
    const AttentionScales scales = scales_of(args);
    AttentionWorkLists& work = work_.of(moves(args));
    set_operands(launch, args);
    launch.o = args.o;
    launch.stride_o = strides(args.o, args.stride_o, "o", query_extents(), dtype_o());
    launch.lse = static_cast<float*>(args.lse);
    if (args.lse != nullptr) check_memory(args.lse, SPARSEK_DEVICE, device_, "lse");
    const auto stream = static_cast<cudaStream_t>(args.stream);
    const bool captured = memory_.releases().use(uses_, stream);
    // Queries of a tile share a factor.
    const bool packs =
        work_.packed() != nullptr && args.lengths_q == nullptr && !has_terms(args) && scales.q == nullptr;
    if (packs) pack_heads(launch);
    AttentionWorkLists& own = packs ? *work_.packed() : work;
    own.forward(stream, captured).give(launch);
    launch.tiles_taken = memory_.tile_counters().of(stream, captured);
    const bool in_pages = pages.table != nullptr;
    if (in_pages) launch.general.box = std::min(launch.general.box, attention_box(pages.rows, kAttentionUnit));
    const AttentionForwardOps& kernel = in_pages ? paged_ops_ : packs ? general_ops_.forward : ops(args).forward;
    std::optional<Workspace::Use> values;
    if (values_workspace_.bytes() > 0) transpose(launch, values.emplace(values_workspace_, stream).data(), stream);
    if (own.parts() > 1) {
      compute_parts(launch, pages, scales, kernel, own.parts(), stream);
    } else {
      check(kernel.launch(launch, pages, scales, stream), attention_kernel_name(shape_.dtype));
    }
    if (args.mass != nullptr) write_mass(args, work, stream, captured);
  }

  void backward(const sparsek_attention_args& args) override {
    if (is_e4m3(shape_)) {
      fail(SPARSEK_NO_SUCH_KERNEL, "kernel %s does not serve a backward pass", attention_kernel_name(shape_.dtype));
    }
    if (work_->query_tiles() == 0 && work_->key_tiles() == 0) return;
    DeviceScope scope(device_);
    AttentionGradientArgs launch = {};
    AttentionWorkLists& work = work_.of(moves(args));
    set_operands(launch, args);
    launch.grad_o = args.grad_o;
    launch.padded = static_cast<int32_t>(padded_);
    AttentionRowsArgs rows = {};
    if (shape_.seq_q > 0) {
      launch.stride_grad_o = rows.stride_grad_o = of_queries(args.grad_o, args.stride_grad_o, "grad_o");
      rows.stride_o = of_queries(args.o, args.stride_o, "o");
      check_memory(args.lse, SPARSEK_DEVICE, device_, "lse");
    }
    AttentionGradientArgs of_keys_only = launch;
    if (args.grad_q != nullptr) launch.stride_grad_x = of_queries(args.grad_q, args.stride_grad_q, "grad_q");
    launch.grad_x = args.grad_q;
    if (args.grad_k != nullptr) of_keys_only.stride_grad_x = of_keys(args.grad_k, args.stride_grad_k, "grad_k");
    of_keys_only.grad_x = args.grad_k;
    if (args.grad_v != nullptr) of_keys_only.stride_grad_y = of_keys(args.grad_v, args.stride_grad_v, "grad_v");
    of_keys_only.grad_y = args.grad_v;

    const auto stream = static_cast<cudaStream_t>(args.stream);
    const bool captured = memory_.releases().use(uses_, stream);
    std::optional<Workspace::Use> own;
    void* workspace = args.workspace != nullptr ? given_workspace(args) : nullptr;
    if (workspace == nullptr && workspace_.bytes() > 0) workspace = own.emplace(workspace_, stream).data();
    rows.o = args.o;
    rows.grad_o = args.grad_o;
    rows.lse = static_cast<const float*>(args.lse);
    rows.rows = static_cast<RowSums*>(workspace);
    rows.batch = static_cast<int32_t>(shape_.batch);
    rows.heads_q = static_cast<int32_t>(shape_.heads_q);
    rows.seq_q = static_cast<int32_t>(shape_.seq_q);
    rows.head_size = static_cast<int32_t>(shape_.head_size);
    rows.padded = static_cast<int32_t>(padded_);
    rows.lengths_q = args.lengths_q;
    const AttentionBackwardOps& kernels = ops(args).backward;
    check(kernels.rows(rows, stream), attention_kernel_name(shape_.dtype));
    launch.rows = of_keys_only.rows = rows.rows;
    launch.tiles_taken = of_keys_only.tiles_taken = memory_.tile_counters().of(stream, captured);
    if (walks_once(args)) {
      walk_once(launch, of_keys_only, static_cast<std::byte*>(workspace), stream, captured);
      return;
    }
    std::byte* const lists = static_cast<std::byte*>(workspace) + lists_at_;
    launch.general.terms.grad_bias = clear_grad_bias(shape_, args, device_, stream);
    if (args.grad_q != nullptr || args.grad_bias != nullptr) {
      work.queries(lists, stream, captured).give(launch);
      check(kernels.queries(launch, stream), attention_kernel_name(shape_.dtype));
    }
    if (args.grad_k != nullptr || args.grad_v != nullptr) {
      work.keys(lists, stream, captured).give(of_keys_only);
      check(kernels.keys(of_keys_only, stream), attention_kernel_name(shape_.dtype));
    }
  }

  void time(const sparsek_attention_args* args, int arg_count, bool is_backward, int warmup, int repeats,
            double* seconds) override {
    DeviceScope scope(device_);
    const auto stream = static_cast<cudaStream_t>(args[0].stream);
    require_not_captured(stream, "attention_time");
    int turn = 0;
    const auto run = [&] {
      sparsek_attention_args now = args[turn++ % arg_count];
      now.stream = stream;  // one stream, so that the times do not overlap
      is_backward ? backward(now) : forward(now);
    };
    time_runs(stream, warmup, repeats, run, seconds);
  }

  void update_on_device(const sparsek_bsr& layout) override {
    DeviceScope scope(device_);
    work_->update(layout);
  }
  bool check_index(bool wait) override { return work_->check_index(wait); }

  void end_in(sparsek_stream stream) override {
    const auto order = static_cast<cudaStream_t>(stream);
    if (is_captured(order)) return;
    uses_.end_in(order);
    work_->end_in(order);
  }

 private:
  static bool has_lengths(const sparsek_attention_args& args) {
    return args.lengths_q != nullptr || args.lengths_k != nullptr;
  }
  const AttentionOps& ops(const sparsek_attention_args& args) const {
    return has_terms(args) ? terms_ops_ : has_lengths(args) ? general_ops_ : ops_;
  }

  // Whether one kernel computes all gradients of a backward pass.
  bool walks_once(const sparsek_attention_args& args) const {
    return any_order_ops_.has_value() && !has_terms(args) && !has_lengths(args) && args.grad_q != nullptr &&
           (args.grad_k != nullptr || args.grad_v != nullptr);
  }
  void walk_once(const AttentionGradientArgs& of_queries, AttentionGradientArgs& of_keys, std::byte* workspace,
                 cudaStream_t stream, bool captured) {
    AttentionQuerySumsArgs sums = {};
    auto* const sums_q = reinterpret_cast<float*>(workspace + sums_q_at_);
    if (sums_q_bytes() > 0) check(cudaMemsetAsync(sums_q, 0, sums_q_bytes(), stream), "cudaMemsetAsync");
    work_->keys(workspace + lists_at_, stream, captured).give(of_keys);
    check(any_order_ops_->keys(of_keys, sums_q, stream), attention_kernel_name(shape_.dtype));
    sums.sums_q = sums_q;
    sums.scale = of_queries.scale;
    sums.grad_q = of_queries.grad_x;
    sums.stride_grad_q = of_queries.stride_grad_x;
    sums.batch = of_queries.batch;
    sums.heads_q = of_queries.heads_q;
    sums.seq_q = of_queries.seq_q;
    sums.head_size = of_queries.head_size;
    sums.padded = of_queries.padded;
    check(any_order_ops_->queries(sums, stream), attention_kernel_name(shape_.dtype));
  }
  size_t sums_q_bytes() const {
    if (!any_order_ops_.has_value()) return 0;
    Layout layout;
    const int64_t rows = shape_.batch * shape_.heads_q * padded_;
    layout.place<float>(static_cast<size_t>(rows * any_order_columns(shape_.head_size)));
    return layout.bytes();
  }

  bool moves(const sparsek_attention_args& args) const { return has_lengths(args) && lengths_move(shape_); }

  // Without a table where keys and values do not lie in pages, or there are none.
  AttentionPages pages_of(const sparsek_attention_args& args) const {
    if (!sparsek::has_pages(args) || shape_.seq_k == 0) return {};
    if (args.page_rows % kAttentionPiece != 0) {
      fail(SPARSEK_NO_SUCH_KERNEL,
           "kernel %s does not serve pages of %" PRId64 " rows: it serves those of multiples of 16",
           attention_kernel_name(shape_.dtype), args.page_rows);
    }
    if (has_terms(args)) {
      fail(SPARSEK_NO_SUCH_KERNEL,
           "kernel %s does not serve a bias or bits of blocks where keys and values lie in pages",
           attention_kernel_name(shape_.dtype));
    }
    check_memory(args.page_table, SPARSEK_DEVICE, device_, "page_table");
    return {args.page_table, args.page_table_stride, static_cast<int32_t>(args.page_rows),
            static_cast<int32_t>(args.pages)};
  }

  sparsek_dtype dtype_o() const { return is_e4m3(shape_) ? shape_.dtype_o : shape_.dtype; }

  void require_e4m3_serves(const sparsek_attention_args& args) const {
    const char* const what = args.bias != nullptr       ? "a bias"
                             : args.mask != nullptr     ? "bits of blocks"
                             : args.mass != nullptr     ? "the mass of blocks"
                             : sparsek::has_pages(args) ? "keys and values in pages"
                                                        : nullptr;
    if (what == nullptr) return;
    fail(SPARSEK_NO_SUCH_KERNEL, "kernel %s does not serve %s", attention_kernel_name(shape_.dtype), what);
  }

  AttentionScales scales_of(const sparsek_attention_args& args) const {
    if (args.scale_q != nullptr) check_memory(args.scale_q, SPARSEK_DEVICE, device_, "scale_q");
    if (args.scale_k != nullptr) check_memory(args.scale_k, SPARSEK_DEVICE, device_, "scale_k");
    if (args.scale_v != nullptr) check_memory(args.scale_v, SPARSEK_DEVICE, device_, "scale_v");
    return {args.scale_q, args.scale_k, args.scale_v};
  }

  // Of e4m3: the values of a call, transposed.
  size_t values_bytes() const {
    return static_cast<size_t>(shape_.batch * shape_.heads_k * shape_.head_size * transposed_keys(shape_.seq_k));
  }
  void transpose(AttentionForwardArgs& launch, void* to, cudaStream_t stream) const {
    TransposeValuesArgs values = {};
    values.v = launch.v;
    values.stride = launch.stride_v;
    values.to = to;
    values.batch = static_cast<int32_t>(shape_.batch);
    values.heads = static_cast<int32_t>(shape_.heads_k);
    values.seq = static_cast<int32_t>(shape_.seq_k);
    values.head_size = static_cast<int32_t>(shape_.head_size);
    values.lengths = launch.general.lengths_k;
    check(transpose_values(values, stream), attention_kernel_name(shape_.dtype));
    launch.v = to;
    launch.stride_v.row = transposed_keys(shape_.seq_k);
    launch.stride_v.head = launch.stride_v.row * shape_.head_size;
    launch.stride_v.batch = launch.stride_v.head * shape_.heads_k;
  }

  // The query heads of a key head become its queries.
  void pack_heads(AttentionForwardArgs& launch) const {
    const auto group = static_cast<int32_t>(shape_.heads_q / shape_.heads_k);
    const auto pack = [&](HeadStrides& stride) {
      stride.row = stride.head;
      stride.head *= group;
    };
    pack(launch.stride_q);
    pack(launch.stride_o);
    launch.heads_q = launch.heads_k;
    launch.seq_q = group;
    launch.low = -kFar;
    launch.high = kFar;
    launch.general.moves = false;
  }

  void compute_parts(AttentionForwardArgs& launch, const AttentionPages& pages, const AttentionScales& scales,
                     const AttentionForwardOps& kernel, int32_t parts, cudaStream_t stream) {
    AttentionJoinArgs join = {};
    join.parts = parts;
    join.batch = launch.batch;
    join.heads_q = launch.heads_q;
    join.seq_q = launch.seq_q;
    join.head_size = launch.head_size;
    join.o = launch.o;
    join.stride_o = launch.stride_o;
    join.lse = launch.lse;
    Layout layout;
    const size_t rows = static_cast<size_t>(parts) * static_cast<size_t>(shape_.batch * shape_.heads_q * shape_.seq_q);
    const size_t lse_at = layout.place<float>(rows), o_at = layout.place<float>(rows * launch.head_size);
    const Workspace::Use memory(part_workspace_, stream);
    auto* const base = static_cast<std::byte*>(memory.data());
    launch.lse = reinterpret_cast<float*>(base + lse_at);
    launch.general.part_o = reinterpret_cast<float*>(base + o_at);
    join.part_lse = launch.lse;
    join.part_o = launch.general.part_o;
    check(kernel.launch(launch, pages, scales, stream), attention_kernel_name(shape_.dtype));
    check(join_attention(join, dtype_o(), stream), attention_kernel_name(shape_.dtype));
  }
  // For the parts of any list: these fill the SMs at most.
  size_t part_bytes() const {
    const int64_t tiles = work_.packed() != nullptr ? work_.packed()->query_tiles() : work_->query_tiles();
    const int64_t parts = tiles == 0 ? 1 : std::max<int64_t>(sm_count_ / tiles, 1);
    if (parts == 1) return 0;
    Layout layout;
    const auto rows = static_cast<size_t>(parts * shape_.batch * shape_.heads_q * shape_.seq_q);
    layout.place<float>(rows);
    layout.place<float>(rows * static_cast<size_t>(shape_.head_size));
    return layout.bytes();
  }

  // Keys of a cell.
  int64_t mass_box() const {
    return attention_in_units(shape_) ? kAttentionUnit : attention_box(shape_.block_k, gradient_step_rows(shape_));
  }
  int64_t mass_columns() const { return (shape_.seq_k + mass_box() - 1) / mass_box(); }
  size_t end_of_cells() const {
    Layout layout;
    layout.place<float>(
        static_cast<size_t>(shape_.batch * shape_.heads_q * (padded_ / kAttentionPiece) * mass_columns()));
    return layout.bytes();
  }

  // By the lse of the forward pass before it.
  void write_mass(const sparsek_attention_args& args, AttentionWorkLists& work, cudaStream_t stream, bool captured) {
    check_memory(args.mass, SPARSEK_DEVICE, device_, "mass");
    const int64_t heads = shape_.batch * shape_.heads_q;
    AttentionMassArgs sums = {};
    sums.cells.rows = static_cast<int32_t>(padded_ / kAttentionPiece);
    sums.heads = static_cast<int32_t>(heads);
    sums.query_blocks = static_cast<int32_t>(shape_.query_blocks());
    sums.key_blocks = static_cast<int32_t>(shape_.key_blocks());
    sums.rows = static_cast<int32_t>(shape_.block_q / kAttentionPiece);
    sums.mass = static_cast<float*>(args.mass);
    sums.columns = static_cast<int32_t>(shape_.block_k / mass_box());
    sums.cells.columns = static_cast<int32_t>(mass_columns());
    if (sums.key_blocks == 0) return;
    const Workspace::Use memory(mass_workspace_, stream);
    auto* const cells = static_cast<std::byte*>(memory.data());
    check(cudaMemsetAsync(cells, 0, mass_lists_at_, stream), "cudaMemsetAsync");
    sums.cells.sums = reinterpret_cast<float*>(cells);
    sums.cells.lse = static_cast<const float*>(args.lse);
    AttentionGradientArgs launch = {};
    set_operands(launch, args);
    work.queries(cells + mass_lists_at_, stream, captured).give(launch);
    launch.mass = sums.cells;
    launch.padded = static_cast<int32_t>(padded_);
    launch.tiles_taken = memory_.tile_counters().of(stream, captured);
    check(mass_ops_.cells(launch, stream), attention_kernel_name(shape_.dtype));
    check(sum_mass(sums, stream), attention_kernel_name(shape_.dtype));
  }

  // The bytes of the numbers of each query, so that lists behind them are aligned.
  size_t end_of_rows() const {
    Layout layout;
    layout.place<RowSums>(static_cast<size_t>(shape_.batch * shape_.heads_q * padded_));
    return layout.bytes();
  }

  // What the kernels of both passes have in common.
  template <class Args>
  void set_operands(Args& launch, const sparsek_attention_args& args) const {
    if (args.lengths_q != nullptr) check_memory(args.lengths_q, SPARSEK_DEVICE, device_, "lengths_q");
    if (args.lengths_k != nullptr) check_memory(args.lengths_k, SPARSEK_DEVICE, device_, "lengths_k");
    launch.general.lengths_q = args.lengths_q;
    launch.general.lengths_k = args.lengths_k;
    launch.general.moves = moves(args);
    launch.general.soft_cap = static_cast<float>(shape_.soft_cap);
    launch.general.terms = attention_terms(shape_, args, device_);
    launch.q = args.q;
    launch.k = args.k;
    launch.v = args.v;
    if (shape_.seq_q > 0) launch.stride_q = of_queries(args.q, args.stride_q, "q");
    if (shape_.seq_k > 0) {
      const HeadExtents keys =
          sparsek::has_pages(args) ? HeadExtents{args.pages, shape_.heads_k, args.page_rows} : key_extents();
      launch.stride_k = strides(args.k, args.stride_k, "k", keys, shape_.dtype);
      launch.stride_v = strides(args.v, args.stride_v, "v", keys, shape_.dtype);
    }
    launch.batch = static_cast<int32_t>(shape_.batch);
    launch.heads_q = static_cast<int32_t>(shape_.heads_q);
    launch.heads_k = static_cast<int32_t>(shape_.heads_k);
    launch.seq_q = static_cast<int32_t>(shape_.seq_q);
    launch.seq_k = static_cast<int32_t>(shape_.seq_k);
    launch.head_size = static_cast<int32_t>(shape_.head_size);
    const AttentionBand band = shape_.band(shape_.seq_q, shape_.seq_k);
    launch.low = static_cast<int32_t>(std::clamp<int64_t>(band.low, -kFar, kFar));
    launch.high = static_cast<int32_t>(std::clamp<int64_t>(band.high, -kFar, kFar));
    launch.scale = static_cast<float>(shape_.scale);
    launch.workers = workers_;
  }

  void* given_workspace(const sparsek_attention_args& args) const {
    if (args.workspace_bytes < workspace_.bytes()) {
      fail(SPARSEK_BAD_SIZE, "args->workspace_bytes = %zu is below the %zu bytes that a backward pass needs",
           args.workspace_bytes, workspace_.bytes());
    }
    check_memory(args.workspace, SPARSEK_DEVICE, device_, "workspace");
    require_aligned(args.workspace, "workspace");
    return args.workspace;
  }

  HeadStrides of_queries(const void* data, const int64_t (&stride)[3], const char* name) const {
    return strides(data, stride, name, query_extents(), shape_.dtype);
  }
  HeadStrides of_keys(const void* data, const int64_t (&stride)[3], const char* name) const {
    return strides(data, stride, name, key_extents(), shape_.dtype);
  }
  HeadExtents query_extents() const { return {shape_.batch, shape_.heads_q, shape_.seq_q}; }
  HeadExtents key_extents() const { return {shape_.batch, shape_.heads_k, shape_.seq_k}; }

  HeadStrides strides(const void* data, const int64_t (&stride)[3], const char* name, const HeadExtents& extents,
                      sparsek_dtype dtype) const {
    return head_strides(data, stride, name, extents, dtype, {device_, attention_kernel_name(shape_.dtype)});
  }

  const AttentionShape shape_;
  PlanMemory& memory_;
  const int device_;
  const int32_t sm_count_;
  const int32_t workers_;
  const int64_t padded_;  // queries, in whole tiles
  StreamUses uses_;
  Works work_;
  const AttentionOps ops_, general_ops_, terms_ops_;
  const AttentionForwardOps paged_ops_;
  const AttentionMassOps mass_ops_;
  const std::optional<AttentionAnyOrderOps> any_order_ops_;
  const size_t lists_at_;       // of the workspace, behind the numbers of each query
  const size_t sums_q_at_;      // of the workspace, behind the lists
  Workspace workspace_;         // of a backward pass
  Workspace part_workspace_;    // of the parts of a forward pass
  const size_t mass_lists_at_;  // behind the cells
  Workspace mass_workspace_;    // of a forward pass with mass
  Workspace values_workspace_;  // of a forward pass in e4m3
};

}  // namespace

std::unique_ptr<AttentionState> make_attention(const AttentionShape& shape, const AttentionLayout& layout,
                                               const std::string& kernel, PlanMemory& memory, int device, int sm_count,
                                               size_t l2_bytes) {
  require_attention_kernel(shape, kernel);
  return std::make_unique<CudaAttention>(shape, layout, memory, device, sm_count, l2_bytes);
}

std::unique_ptr<AttentionState> make_attention(const AttentionShape& shape, const sparsek_bsr& layout,
                                               const std::string& kernel, PlanMemory& memory, int device, int sm_count,
                                               size_t l2_bytes) {
  require_attention_kernel(shape, kernel);
  return std::make_unique<CudaAttention>(shape, layout, memory, device, sm_count, l2_bytes);
}

}  // namespace sparsek::cuda
