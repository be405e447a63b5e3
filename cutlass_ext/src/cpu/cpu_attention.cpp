// SPDX-License-Identifier: Apache-2.0
#include "cpu/cpu_attention.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <utility>

#include "abi/dtype.h"
#include "cpu/attention_kernel.h"
#include "cpu/floating_point.h"
#include "cpu/kernel_list.h"

namespace sparsek::cpu {
namespace {

const AttentionFunctions& functions_of(const AttentionKernel& kernel, const AttentionShape& shape) {
  switch (shape.dtype) {
    case SPARSEK_E4M3:
      return shape.dtype_o == SPARSEK_BF16 ? kernel.e4m3_to_bf16 : kernel.e4m3_to_fp16;
    case SPARSEK_BF16:
      return kernel.bf16;
    case SPARSEK_FP16:
      return kernel.fp16;
    case SPARSEK_FP64:
      return kernel.fp64;
    default:
      return kernel.fp32;
  }
}

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

class CpuAttention final : public AttentionState {
 public:
  CpuAttention(const AttentionShape& shape, AttentionLayout layout, const Kernel& kernel,
               std::shared_ptr<Workers> workers)
      : shape_(shape),
        kernel_(kernel),
        functions_(functions_of(*kernel.attention, shape)),
        keys_of_(std::move(layout)),
        queries_of_(transposed(shape, keys_of_)),
        workers_(std::move(workers)) {}

  void info(sparsek_attention_info& out) const override {
    out.kernel = kernel_.name;
    out.backward = functions_.queries == nullptr ? "" : kernel_.name;
    out.unit_roundoff = shape_.dtype == SPARSEK_FP64 ? 0x1p-53 : 0x1p-24;
  }

  void update(AttentionLayout layout) override {
    queries_of_ = transposed(shape_, layout);
    keys_of_ = std::move(layout);
  }

  void forward(const sparsek_attention_args& args) override {
    run(query_tiles(), [&](int64_t at, void* scratch) {
      AttentionTile tile = query_tile(args, at);
      functions_.forward(tile, scratch);
    });
    if (args.mass != nullptr) write_mass(args);
  }

  void backward(const sparsek_attention_args& args) override {
    const size_t bytes = static_cast<size_t>(shape_.batch * shape_.heads_q * shape_.seq_q) * sum_bytes();
    const BufferPool::Loan delta(workers_->buffers, bytes);
    const auto with_delta = [&](AttentionTile tile, int64_t head) {
      tile.delta = at_head(delta.data(), head);
      return tile;
    };
    run(query_tiles(), [&](int64_t at, void* scratch) {
      functions_.delta(with_delta(query_tile(args, at), at / tiles(shape_.seq_q, shape_.block_q)), scratch);
    });
    if (args.grad_q != nullptr || args.grad_bias != nullptr) {
      run(query_tiles(), [&](int64_t at, void* scratch) {
        functions_.queries(with_delta(query_tile(args, at), at / tiles(shape_.seq_q, shape_.block_q)), scratch);
      });
    }
    if (args.grad_k == nullptr && args.grad_v == nullptr) return;
    const int64_t group = shape_.heads_q / shape_.heads_k;
    run(shape_.batch * shape_.heads_k * tiles(shape_.seq_k, shape_.block_k), [&](int64_t at, void* scratch) {
      for (int64_t i = 0; i < group; ++i) {
        const int64_t b = at / tiles(shape_.seq_k, shape_.block_k) / shape_.heads_k;
        const int64_t head = at / tiles(shape_.seq_k, shape_.block_k) % shape_.heads_k * group + i;
        AttentionTile tile = with_delta(key_tile(args, at, head), b * shape_.heads_q + head);
        tile.first = i == 0;
        tile.last = i == group - 1;
        functions_.keys(tile, scratch);
      }
    });
  }

  void time(const sparsek_attention_args* args, int arg_count, bool is_backward, int warmup, int repeats,
            double* seconds) override {
    using Clock = std::chrono::steady_clock;
    for (int i = 0; i < warmup + repeats; ++i) {
      const sparsek_attention_args& own = args[i % arg_count];
      const Clock::time_point start = Clock::now();
      is_backward ? backward(own) : forward(own);
      if (i >= warmup) seconds[i - warmup] = std::chrono::duration<double>(Clock::now() - start).count();
    }
  }

 private:
  // The tiles of a block of queries one after the other, since they add to the same sums.
  void write_mass(const sparsek_attention_args& args) const {
    const size_t row_bytes = static_cast<size_t>(shape_.key_blocks()) * sum_bytes();
    const int64_t blocks = shape_.query_blocks(), of_block = tiles_of_block(shape_.block_q);
    run(shape_.batch * shape_.heads_q * blocks, [&](int64_t at, void* scratch) {
      char* const row = static_cast<char*>(args.mass) + static_cast<size_t>(at) * row_bytes;
      std::memset(row, 0, row_bytes);
      for (int64_t i = 0; i < of_block; ++i) {
        AttentionTile tile = query_tile(args, at * of_block + i);
        tile.mass = row;
        functions_.mass(tile, scratch);
      }
    });
  }

  size_t sum_bytes() const { return shape_.dtype == SPARSEK_FP64 ? 8 : 4; }

  // A block has at least one tile.
  static int64_t tiles_of_block(int64_t block) { return ceil_div(block, kAttentionLanes); }
  // Of a sequence.
  static int64_t tiles(int64_t seq, int64_t block) { return ceil_div(seq, block) * tiles_of_block(block); }
  int64_t query_tiles() const { return shape_.batch * shape_.heads_q * tiles(shape_.seq_q, shape_.block_q); }

  // Calls work(tile, scratch) for each tile, with threads.
  template <typename Work>
  void run(int64_t count, const Work& work) const {
    const int64_t limit =
        shape_.workers > 0 ? std::min(shape_.workers, workers_->pool.threads()) : workers_->pool.threads();
    const int64_t threads = std::min(limit, count);
    if (threads == 0) return;
    const size_t elements = attention_scratch();
    const BufferPool::Loan scratch(workers_->buffers, elements * sum_bytes() * static_cast<size_t>(threads));
    struct Job {
      const Work& work;
      std::atomic<int64_t> next;
      int64_t count;
      char* scratch;
      size_t bytes;
    } job = {work, {0}, count, scratch.data(), elements * sum_bytes()};
    workers_->pool.run(
        static_cast<int>(threads),
        [](void* context, int worker) {
          Job& own = *static_cast<Job*>(context);
          const DefaultFloatingPoint floating_point;
          for (int64_t i = own.next++; i < own.count; i = own.next++) {
            own.work(i, own.scratch + static_cast<size_t>(worker) * own.bytes);
          }
        },
        &job);
  }

  // Elements of a worker's memory, see Memory in attention_tile.h.
  size_t attention_scratch() const {
    const int64_t rows = 3 * (shape_.head_size + shape_.head_size_v) + 2 * kAttentionRows + 5;
    return static_cast<size_t>(rows) * kAttentionLanes;
  }

  int64_t length(const int32_t* lengths, int64_t b, int64_t seq) const {
    return lengths == nullptr ? seq : std::clamp<int64_t>(lengths[b], 0, seq);
  }

  // Of a head, counted over the batches.
  char* at_head(void* data, int64_t head) const {
    return static_cast<char*>(data) + static_cast<size_t>(head * shape_.seq_q) * sum_bytes();
  }

  // What all tiles of a batch and query head have in common.
  AttentionTile head_tile(const sparsek_attention_args& args, int64_t b, int64_t head) const {
    AttentionTile tile{};
    tile.size = shape_.head_size;
    tile.size_v = shape_.head_size_v;
    const int64_t head_k = shape_.head_k(head);
    const int64_t at_q = b * shape_.heads_q + head, at_k = b * shape_.heads_k + head_k;
    tile.scale = shape_.scale * scale(args.scale_q, at_q) * scale(args.scale_k, at_k);
    tile.scale_v = scale(args.scale_v, at_k);
    tile.soft_cap = shape_.soft_cap;
    tile.length_q = length(args.lengths_q, b, shape_.seq_q);
    tile.length_k = length(args.lengths_k, b, shape_.seq_k);
    const AttentionBand band = shape_.band(tile.length_q, tile.length_k);
    tile.low = band.low;
    tile.high = band.high;
    tile.block_q = shape_.block_q;
    tile.block_k = shape_.block_k;
    tile.q = rows(args.q, args.stride_q, b, head);
    tile.k = key_rows(args, args.k, args.stride_k, b, head_k);
    tile.v = key_rows(args, args.v, args.stride_v, b, head_k);
    tile.o = rows(args.o, args.stride_o, b, head, shape_.dtype_o);
    tile.grad_o = rows(args.grad_o, args.stride_grad_o, b, head);
    tile.out_o = output(args.o, args.stride_o, b, head, shape_.dtype_o);
    tile.grad_q = output(args.grad_q, args.stride_grad_q, b, head);
    tile.grad_k = output(args.grad_k, args.stride_grad_k, b, head_k);
    tile.grad_v = output(args.grad_v, args.stride_grad_v, b, head_k);
    if (args.lse != nullptr) tile.lse = at_head(args.lse, at_q);
    tile.terms = terms(args, b, head);
    tile.seq_k = shape_.seq_k;
    if (args.grad_bias != nullptr) {
      tile.grad_bias = at_head(args.grad_bias, at_q * shape_.seq_k);
    }
    return tile;
  }

  PairTerms terms(const sparsek_attention_args& args, int64_t b, int64_t head) const {
    PairTerms own = {};
    if (args.bias != nullptr) {
      own.is_float = args.bias_dtype == SPARSEK_FP32;
      own.stride_q = args.stride_bias[2];
      own.stride_k = args.stride_bias[3];
      own.bias = static_cast<const char*>(args.bias) +
                 (b * args.stride_bias[0] + head * args.stride_bias[1]) * dtype_bytes(args.bias_dtype);
    }
    own.key_blocks = shape_.key_blocks();
    own.mask = args.mask;
    if (args.mask != nullptr) own.index = args.mask_index + shape_.layout_row(b, head) * own.key_blocks;
    own.mask_blocks = args.mask_blocks;
    own.words = ceil_div(shape_.block_k, 32);
    return own;
  }

  // Of Q, K or V, where they have scales.
  static double scale(const float* scales, int64_t at) { return scales == nullptr ? 1 : double{scales[at]}; }

  HeadRows rows(const void* data, const int64_t (&stride)[3], int64_t b, int64_t head) const {
    return rows(data, stride, b, head, shape_.dtype);
  }
  static HeadRows rows(const void* data, const int64_t (&stride)[3], int64_t b, int64_t head, sparsek_dtype dtype) {
    if (data == nullptr) return {};
    const int64_t first = b * stride[0] + head * stride[1];
    return {static_cast<const char*>(data) + first * dtype_bytes(dtype), stride[2], {}};
  }
  HeadRows key_rows(const sparsek_attention_args& args, const void* data, const int64_t (&stride)[3], int64_t b,
                    int64_t head) const {
    if (!has_pages(args)) return rows(data, stride, b, head);
    HeadRows own = rows(data, stride, 0, head);
    own.pages = {args.page_table + b * args.page_table_stride, args.page_rows, args.pages, stride[0]};
    return own;
  }
  HeadOutput output(void* data, const int64_t (&stride)[3], int64_t b, int64_t head) const {
    return output(data, stride, b, head, shape_.dtype);
  }
  static HeadOutput output(void* data, const int64_t (&stride)[3], int64_t b, int64_t head, sparsek_dtype dtype) {
    const HeadRows own = rows(data, stride, b, head, dtype);
    return {const_cast<void*>(own.data), own.stride};
  }

  // Sets lanes of a tile of a block.
  static void set_lanes(AttentionTile& tile, int64_t in_seq, int64_t block, int64_t seq, int64_t length) {
    const int64_t begin = in_seq / tiles_of_block(block) * block;
    tile.lane = begin + in_seq % tiles_of_block(block) * kAttentionLanes;
    tile.pad_end = std::min({tile.lane + kAttentionLanes, begin + block, seq});
    tile.lane_end = std::clamp(length, tile.lane, std::max(tile.lane, tile.pad_end));
  }

  AttentionTile query_tile(const sparsek_attention_args& args, int64_t at) const {
    const int64_t in_head = tiles(shape_.seq_q, shape_.block_q), head = at / in_head % shape_.heads_q;
    const int64_t b = at / in_head / shape_.heads_q;
    AttentionTile tile = head_tile(args, b, head);
    set_lanes(tile, at % in_head, shape_.block_q, shape_.seq_q, tile.length_q);
    const int64_t row = shape_.layout_row(b, head) + at % in_head / tiles_of_block(shape_.block_q);
    tile.blocks = keys_of_.columns.data() + keys_of_.offsets[row];
    tile.block_count = keys_of_.offsets[row + 1] - keys_of_.offsets[row];
    return tile;
  }

  // at: counted over the heads of keys; head: of queries.
  AttentionTile key_tile(const sparsek_attention_args& args, int64_t at, int64_t head) const {
    const int64_t in_head = tiles(shape_.seq_k, shape_.block_k), b = at / in_head / shape_.heads_k;
    AttentionTile tile = head_tile(args, b, head);
    set_lanes(tile, at % in_head, shape_.block_k, shape_.seq_k, tile.length_k);
    const int64_t layout = shape_.query_blocks() == 0 ? 0 : shape_.layout_row(b, head) / shape_.query_blocks();
    const int64_t row = layout * shape_.key_blocks() + at % in_head / tiles_of_block(shape_.block_k);
    tile.blocks = queries_of_.columns.data() + queries_of_.offsets[row];
    tile.block_count = queries_of_.offsets[row + 1] - queries_of_.offsets[row];
    return tile;
  }

  const AttentionShape shape_;
  const Kernel& kernel_;
  const AttentionFunctions& functions_;
  AttentionLayout keys_of_, queries_of_;
  const std::shared_ptr<Workers> workers_;
};

}  // namespace

std::unique_ptr<AttentionState> make_attention(const AttentionShape& shape, AttentionLayout layout,
                                               const std::string& kernel, std::shared_ptr<Workers> workers) {
  const Kernel& own = kernel.empty() ? first_kernel() : kernel_named(kernel);
  return std::make_unique<CpuAttention>(shape, std::move(layout), own, std::move(workers));
}

}  // namespace sparsek::cpu
