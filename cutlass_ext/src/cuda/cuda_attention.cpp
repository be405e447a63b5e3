// SPDX-License-Identifier: Apache-2.0
#include "cuda/cuda_attention.h"

#include <algorithm>
#include <cinttypes>
#include <cmath>

#include "abi/dtype.h"
#include "abi/error.h"
#include "cuda/attention.h"
#include "cuda/cuda_error.h"
#include "cuda/cuda_matrix.h"
#include "cuda/device_scope.h"
#include "cuda/stream_uses.h"
#include "cuda/time_runs.h"
#include "plan/attention_steps.h"

namespace sparsek::cuda {
namespace {

constexpr int64_t kVectorBytes = 16;

const char* name_of(sparsek_dtype dtype) {
  return dtype == SPARSEK_BF16 ? "attention_wgmma_bf16" : dtype == SPARSEK_FP16 ? "attention_wgmma_fp16" : nullptr;
}

// Why the kernel does not serve a shape; null: it does.
const char* obstacle(const AttentionShape& shape) {
  constexpr int64_t kMost = 1 << 28;
  if (shape.head_size != shape.head_size_v) return "head_size_v is another than head_size";
  if (shape.head_size != 64 && shape.head_size != 128) return "head_size is neither 64 nor 128";
  if (!has_attention_steps(shape)) return "blocks are no multiples of 64 x 64";
  if (shape.soft_cap != 0) return "it has no soft_cap";
  if (!(shape.scale > 0)) return "scale is not above 0";
  if (std::max(shape.seq_q, shape.seq_k) > kMost || shape.batch * shape.heads_q > kMost) return "it is too large";
  return nullptr;
}

void require_served(const AttentionShape& shape, const std::string& kernel) {
  const char* const name = name_of(shape.dtype);
  if (name == nullptr) fail(SPARSEK_NO_SUCH_KERNEL, "the CUDA back-end has attention in bf16 and fp16 only");
  if (!kernel.empty() && kernel != name) {
    fail(SPARSEK_NO_SUCH_KERNEL, "there is no CUDA kernel %s of attention for this type: there is %s", kernel.c_str(),
         name);
  }
  if (const char* const why = obstacle(shape)) {
    fail(SPARSEK_NO_SUCH_KERNEL, "kernel %s does not serve this attention: %s", name, why);
  }
}

class CudaAttention final : public AttentionState {
 public:
  CudaAttention(const AttentionShape& shape, const AttentionLayout& layout, PlanMemory& memory, int device,
                int sm_count, size_t l2_bytes)
      : shape_(shape),
        memory_(memory),
        device_(device),
        workers_(shape.workers > 0 ? std::min(shape.workers, sm_count) : sm_count),
        ops_(shape.head_size == 64 ? attention_forward_64(shape.dtype) : attention_forward_128(shape.dtype)) {
    check(ops_.prepare(), "cudaFuncSetAttribute");
    // Of the second-level cache, half is for what is not read again.
    write(make_attention_steps(shape, list_blocks(shape, layout), static_cast<int64_t>(l2_bytes / 2)));
  }

  void info(sparsek_attention_info& out) const override {
    out.kernel = name_of(shape_.dtype);
    out.backward = "";
    out.unit_roundoff = std::ldexp(1., -22);  // ex2.approx, and the sums of tensor cores
    out.product_roundoff = std::ldexp(1., shape_.dtype == SPARSEK_BF16 ? -8 : -11);
  }

  void forward(const sparsek_attention_args& args) override {
    if (tile_count_ == 0) return;
    DeviceScope scope(device_);
    if (args.lengths_q != nullptr || args.lengths_k != nullptr) {
      fail(SPARSEK_NO_SUCH_KERNEL, "kernel %s does not serve lengths yet: args->lengths_q and lengths_k must be null",
           name_of(shape_.dtype));
    }
    AttentionForwardArgs launch = {};
    launch.q = args.q;
    launch.k = args.k;
    launch.v = args.v;
    launch.o = args.o;
    launch.lse = static_cast<float*>(args.lse);
    launch.stride_q = strides(args.q, args.stride_q, "q", shape_.heads_q, shape_.seq_q);
    launch.stride_o = strides(args.o, args.stride_o, "o", shape_.heads_q, shape_.seq_q);
    if (shape_.seq_k > 0) {
      launch.stride_k = strides(args.k, args.stride_k, "k", shape_.heads_k, shape_.seq_k);
      launch.stride_v = strides(args.v, args.stride_v, "v", shape_.heads_k, shape_.seq_k);
    }
    if (args.lse != nullptr) check_memory(args.lse, SPARSEK_DEVICE, device_, "lse");
    const auto stream = static_cast<cudaStream_t>(args.stream);
    const bool captured = memory_.releases().use(uses_, stream);
    launch.steps = reinterpret_cast<const AttentionStep*>(work_.data());
    launch.tiles = reinterpret_cast<const WorkTile*>(work_.data() + tiles_at_);
    launch.tile_count = tile_count_;
    launch.tiles_taken = memory_.tile_counters().of(stream, captured);
    launch.batch = static_cast<int32_t>(shape_.batch);
    launch.heads_q = static_cast<int32_t>(shape_.heads_q);
    launch.heads_k = static_cast<int32_t>(shape_.heads_k);
    launch.seq_q = static_cast<int32_t>(shape_.seq_q);
    launch.seq_k = static_cast<int32_t>(shape_.seq_k);
    const AttentionBand band = shape_.band(shape_.seq_q, shape_.seq_k);
    constexpr int64_t kFar = 1 << 29;  // beyond all differences of positions
    launch.low = static_cast<int32_t>(std::clamp(band.low, -kFar, kFar));
    launch.high = static_cast<int32_t>(std::clamp(band.high, -kFar, kFar));
    launch.scale = shape_.scale;
    launch.workers = workers_;
    check(ops_.launch(launch, stream), name_of(shape_.dtype));
  }

  void backward(const sparsek_attention_args&) override {
    fail(SPARSEK_NO_SUCH_KERNEL, "the CUDA back-end has no backward pass of attention yet: use a context of the CPU");
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

  void end_in(sparsek_stream stream) override {
    const auto order = static_cast<cudaStream_t>(stream);
    if (!is_captured(order)) uses_.end_in(order);
  }

 private:
  void write(const AttentionSteps& steps) {
    tile_count_ = static_cast<int32_t>(steps.tiles.size());
    if (tile_count_ == 0) return;
    const size_t step_bytes = steps.steps.size() * sizeof(AttentionStep);
    tiles_at_ = (step_bytes + sizeof(WorkTile) - 1) / sizeof(WorkTile) * sizeof(WorkTile);
    const size_t tile_bytes = steps.tiles.size() * sizeof(WorkTile);
    work_ = PoolArray<std::byte>(memory_, tiles_at_ + tile_bytes, &uses_);
    std::vector<HostPart> parts;
    if (step_bytes > 0) parts.push_back({steps.steps.data(), step_bytes, 0});
    parts.push_back({steps.tiles.data(), tile_bytes, tiles_at_});
    memory_.write(work_.block(), parts);
  }

  // Of an operand as the kernel reads it, which must be in device memory.
  HeadStrides strides(const void* data, const int64_t (&stride)[3], const char* name, int64_t heads,
                      int64_t rows) const {
    check_memory(data, SPARSEK_DEVICE, device_, name);
    if (reinterpret_cast<uintptr_t>(data) % kVectorBytes != 0) {
      fail(SPARSEK_MISALIGNED, "args->%s = %p is not aligned to %" PRId64 " bytes", name, data, kVectorBytes);
    }
    const int64_t extents[3] = {shape_.batch, heads, rows}, bytes = dtype_bytes(shape_.dtype);
    for (int i = 0; i < 3; ++i) {
      if (extents[i] > 1 && (stride[i] == 0 || stride[i] * bytes % kVectorBytes != 0)) {
        fail(SPARSEK_BAD_LEADING_DIMENSION,
             "args->stride_%s[%d] = %" PRId64 " is 0 or no multiple of %" PRId64
             " elements, 16 bytes: kernel %s loads "
             "no others",
             name, i, stride[i], kVectorBytes / bytes, name_of(shape_.dtype));
      }
    }
    return {stride[0], stride[1], stride[2]};
  }

  const AttentionShape shape_;
  PlanMemory& memory_;
  const int device_;
  const int32_t workers_;
  const AttentionForwardOps ops_;
  StreamUses uses_;
  PoolArray<std::byte> work_;  // steps, then tiles
  size_t tiles_at_ = 0;        // in work_
  int32_t tile_count_ = 0;
};

}  // namespace

std::unique_ptr<AttentionState> make_attention(const AttentionShape& shape, const AttentionLayout& layout,
                                               const std::string& kernel, PlanMemory& memory, int device, int sm_count,
                                               size_t l2_bytes) {
  require_served(shape, kernel);
  return std::make_unique<CudaAttention>(shape, layout, memory, device, sm_count, l2_bytes);
}

}  // namespace sparsek::cuda
