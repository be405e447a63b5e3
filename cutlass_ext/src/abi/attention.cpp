// SPDX-License-Identifier: Apache-2.0
#include <cinttypes>
#include <string>
#include <utility>
#include <vector>

#include "abi/abi_size.h"
#include "abi/attention_args.h"
#include "abi/entry.h"
#include "abi/error.h"
#include "abi/guard.h"
#include "abi/handles.h"
#include "abi/require.h"

namespace sparsek::entry {
namespace {

// Of a layout in device memory.
constexpr AttentionWork kUnknownWork = {-1, -1, -1};

std::unique_ptr<sparsek_attention> create(const sparsek_context& context, const sparsek_attention_options& options) {
  auto attention = std::make_unique<sparsek_attention>();
  attention->backend = context.backend;
  attention->shape = resolve_attention_shape(options);
  const std::string kernel = options.kernel == nullptr ? "" : options.kernel;
  if (options.layout != nullptr) {
    const sparsek_bsr index = resolve_attention_index(options.layout, attention->shape, "options->layout");
    if (index.memory == SPARSEK_DEVICE) {
      attention->work = kUnknownWork;
      attention->state = context.backend->make_attention_on_device(attention->shape, index, kernel);
      return attention;
    }
  }
  AttentionLayout layout = resolve_attention_layout(options, attention->shape);
  attention->work = count_work(attention->shape, list_blocks(attention->shape, layout));
  attention->state = context.backend->make_attention(attention->shape, std::move(layout), kernel);
  return attention;
}

void update(sparsek_attention& attention, const sparsek_bsr* layout) {
  AttentionShape shape = attention.shape;
  const sparsek_bsr index = resolve_attention_index(layout, shape, "layout");
  if (shape.block_q != attention.shape.block_q || shape.block_k != attention.shape.block_k) {
    fail(SPARSEK_BAD_SIZE,
         "layout has blocks of %" PRId64 " x %" PRId64 ", and the attention was made for %" PRId64 " x %" PRId64,
         shape.block_q, shape.block_k, attention.shape.block_q, attention.shape.block_k);
  }
  if (index.memory == SPARSEK_DEVICE) return attention.state->update_on_device(index);
  AttentionLayout made = attention_layout(index);
  const AttentionWork work = count_work(shape, list_blocks(shape, made));
  attention.state->update(std::move(made));
  attention.work = work;
}

sparsek_attention_args resolve(const sparsek_attention& attention, const sparsek_attention_args* args,
                               AttentionCall call) {
  return resolve_attention_args(attention.shape, read_struct(args, "args"), call);
}

}  // namespace

sparsek_status attention_create(sparsek_context* context, const sparsek_attention_options* options,
                                sparsek_attention** out) noexcept {
  return guard([&] {
    require_not_null(out, "out");
    *out = nullptr;
    require_not_null(context, "context");
    *out = create(*context, read_struct(options, "options")).release();
  });
}

sparsek_status attention_info(const sparsek_attention* attention, sparsek_attention_info* out) noexcept {
  return guard([&] {
    require_not_null(attention, "attention");
    checked_abi_size(out, "out");
    sparsek_attention_info info{};
    attention->state->info(info);
    info.blocks = attention->work.blocks;
    info.partial = attention->work.partial;
    info.pairs = attention->work.pairs;
    write_struct(out, info, "out");
  });
}

sparsek_status attention_forward(sparsek_attention* attention, const sparsek_attention_args* args) noexcept {
  return guard_enqueue([&] {
    require_not_null(attention, "attention");
    attention->state->forward(resolve(*attention, args, AttentionCall::kForward));
  });
}

sparsek_status attention_backward(sparsek_attention* attention, const sparsek_attention_args* args) noexcept {
  return guard_enqueue([&] {
    require_not_null(attention, "attention");
    attention->state->backward(resolve(*attention, args, AttentionCall::kBackward));
  });
}

sparsek_status attention_time(sparsek_attention* attention, const sparsek_attention_args* args, int32_t arg_count,
                              int32_t backward, int32_t warmup, int32_t repeats, double* seconds) noexcept {
  return guard([&] {
    require_not_null(attention, "attention");
    const size_t stride = checked_abi_size(args, "args") > 0 ? args->abi_size : 0;
    require_not_null(seconds, "seconds");
    if (arg_count < 1) fail(SPARSEK_BAD_SIZE, "arg_count = %d is below 1", arg_count);
    if (backward != 0 && backward != 1) fail(SPARSEK_BAD_ARGUMENT, "backward = %d is neither 0 nor 1", backward);
    if (warmup < 0) fail(SPARSEK_BAD_SIZE, "warmup = %d is negative", warmup);
    if (repeats < 1) fail(SPARSEK_BAD_SIZE, "repeats = %d is below 1", repeats);
    const AttentionCall call = backward == 1 ? AttentionCall::kBackward : AttentionCall::kForward;
    std::vector<sparsek_attention_args> resolved;
    for (int32_t i = 0; i < arg_count; ++i) {
      // The stride of the caller's array is the size of the caller's struct.
      const auto* const at = reinterpret_cast<const sparsek_attention_args*>(reinterpret_cast<const char*>(args) +
                                                                             static_cast<size_t>(i) * stride);
      if (at->abi_size != stride) {
        fail(SPARSEK_BAD_ABI_SIZE, "args[%d].abi_size is %zu and args[0].abi_size is %zu", i, at->abi_size, stride);
      }
      resolved.push_back(resolve(*attention, at, call));
    }
    attention->state->time(resolved.data(), arg_count, backward == 1, warmup, repeats, seconds);
  });
}

sparsek_status attention_update(sparsek_attention* attention, const sparsek_bsr* layout) noexcept {
  return guard_enqueue([&] {
    require_not_null(attention, "attention");
    update(*attention, layout);
  });
}

sparsek_status attention_status(sparsek_attention* attention, int32_t wait) noexcept {
  return guard([&] {
    require_not_null(attention, "attention");
    if (wait != 0 && wait != 1) fail(SPARSEK_BAD_ARGUMENT, "wait = %d is neither 0 nor 1", wait);
    if (!attention->state->check_index(wait == 1)) {
      fail(SPARSEK_NOT_READY, "the layout has not been checked yet: what its stream holds before that still runs");
    }
  });
}

void attention_destroy(sparsek_attention* attention) noexcept { destroy(attention); }

void attention_release(sparsek_attention* attention, sparsek_stream stream) noexcept {
  if (attention != nullptr) end_in(backend_of(*attention), *attention->state, stream);
  destroy(attention);
}

}  // namespace sparsek::entry
