// SPDX-License-Identifier: Apache-2.0
#include "abi/attention_args.h"

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <string>
#include <utility>

#include "abi/abi_size.h"
#include "abi/dtype.h"
#include "abi/error.h"
#include "abi/require.h"
#include "abi/served.h"
#include "plan/bsr_index.h"

namespace sparsek {
namespace {

constexpr int64_t kLargestExtent = INT32_MAX;
constexpr int64_t kLargestHeadSize = 4096;
constexpr int64_t kDefaultBlock = 128;  // where there is no layout

int64_t require_extent(int64_t value, int64_t least, int64_t most, const char* member) {
  if (value < least || value > most) {
    fail(SPARSEK_BAD_SIZE, "options->%s = %" PRId64 " is not from %" PRId64 " to %" PRId64, member, value, least, most);
  }
  return value;
}

// So large that no sums of it with positions overflow, and no window of that size hides a key.
int64_t window_of(int64_t value, bool has_flag, const char* member, const char* flag) {
  constexpr int64_t kEndless = int64_t{1} << 40;
  if (!has_flag && value != 0) {
    fail(SPARSEK_BAD_ARGUMENT, "options->%s = %" PRId64 " without %s in options->flags", member, value, flag);
  }
  return std::clamp(value, -kEndless, kEndless);
}

void require_rules(const sparsek_attention_options& options, AttentionShape& shape) {
  constexpr int32_t kKnown =
      SPARSEK_ATTENTION_RIGHT | SPARSEK_ATTENTION_LEFT | SPARSEK_ATTENTION_ALIGN_ENDS | SPARSEK_ATTENTION_ANY_ORDER;
  if ((options.flags & ~kKnown) != 0) {
    fail(SPARSEK_BAD_ARGUMENT,
         "options->flags = %d has bits other than SPARSEK_ATTENTION_RIGHT (1), SPARSEK_ATTENTION_LEFT (2), "
         "SPARSEK_ATTENTION_ALIGN_ENDS (4) and SPARSEK_ATTENTION_ANY_ORDER (8)",
         options.flags);
  }
  shape.right = (options.flags & SPARSEK_ATTENTION_RIGHT) != 0;
  shape.left = (options.flags & SPARSEK_ATTENTION_LEFT) != 0;
  shape.align_ends = (options.flags & SPARSEK_ATTENTION_ALIGN_ENDS) != 0;
  shape.any_order = (options.flags & SPARSEK_ATTENTION_ANY_ORDER) != 0;
  shape.window_right = window_of(options.window_right, shape.right, "window_right", "SPARSEK_ATTENTION_RIGHT");
  shape.window_left = window_of(options.window_left, shape.left, "window_left", "SPARSEK_ATTENTION_LEFT");
  if (!std::isfinite(options.scale)) {
    fail(SPARSEK_BAD_ARGUMENT, "options->scale = %g is not finite", options.scale);
  }
  if (!(options.soft_cap >= 0) || std::isinf(options.soft_cap)) {
    fail(SPARSEK_BAD_ARGUMENT, "options->soft_cap = %g is not finite and 0 or above", options.soft_cap);
  }
  shape.scale = options.scale == 0 ? 1 / std::sqrt(static_cast<double>(shape.head_size)) : options.scale;
  shape.soft_cap = options.soft_cap;
}

// An operand of one size: what it is called, where it lies, and how many batches (or pages), heads and rows it has.
struct Operand {
  const char* name;
  const void* data;
  int64_t* stride;
  int64_t batch, heads, rows, size;
  bool written;
  int64_t element;  // bytes
};

void resolve_strides(const Operand& x) {
  int64_t* const stride = x.stride;
  if (stride[0] == 0 && stride[1] == 0 && stride[2] == 0) {
    stride[2] = x.size;
    if (__builtin_mul_overflow(x.rows, stride[2], &stride[1]) ||
        __builtin_mul_overflow(x.heads, stride[1], &stride[0])) {
      fail(SPARSEK_BAD_SIZE, "args->%s does not fit in an address space", x.name);
    }
  }
  const int64_t extent[3] = {x.batch, x.heads, x.rows};
  int64_t last = x.size;
  for (int i = 0; i < 3; ++i) {
    const int64_t steps = std::max<int64_t>(0, extent[i] - 1);
    int64_t way = 0;
    if (stride[i] < 0 || __builtin_mul_overflow(steps, stride[i], &way) || __builtin_add_overflow(last, way, &last)) {
      fail(SPARSEK_BAD_LEADING_DIMENSION, "args->stride_%s[%d] = %" PRId64 " is negative, or too large", x.name, i,
           stride[i]);
    }
    // Rows that overlap may be read, but not written.
    if (x.written && x.rows > 0 && steps > 0 && stride[i] < x.size) {
      fail(SPARSEK_BAD_LEADING_DIMENSION,
           "args->stride_%s[%d] = %" PRId64 " is below the %" PRId64 " elements of a row, which is written", x.name, i,
           stride[i], x.size);
    }
  }
  int64_t bytes = 0;
  if (__builtin_mul_overflow(last, x.element, &bytes)) {
    fail(SPARSEK_BAD_SIZE, "args->%s does not fit in an address space", x.name);
  }
}

void require_apart(const Operand& written, const char* name, const void* read) {
  if (written.data != read) return;
  fail(SPARSEK_BAD_ARGUMENT, "args->%s is args->%s: what is written must not overlap what is read", written.name, name);
}

void require_lse(const AttentionShape& shape, const void* lse, bool needed) {
  if (needed) require_not_null(lse, "args->lse");
  require_aligned(lse, shape.dtype == SPARSEK_FP64 ? 8 : 4, "args->lse");
}

void resolve_bias(const AttentionShape& shape, sparsek_attention_args& args) {
  if (args.bias == nullptr) return;
  require_dtype(args.bias_dtype, "args->bias_dtype");
  if (args.bias_dtype != shape.dtype_o && (args.bias_dtype != SPARSEK_FP32 || shape.dtype_o == SPARSEK_FP64)) {
    fail(SPARSEK_UNSUPPORTED_DTYPE, "args->bias_dtype = %d is neither the type of O, %d, nor fp32 for one of less",
         args.bias_dtype, shape.dtype_o);
  }
  const int64_t element = dtype_bytes(args.bias_dtype);
  require_aligned(args.bias, element, "args->bias");
  const int64_t extent[4] = {shape.batch, shape.heads_q, shape.seq_q, shape.seq_k};
  int64_t* const stride = args.stride_bias;
  if (std::all_of(stride, stride + 4, [](int64_t x) { return x == 0; })) {
    stride[3] = 1;
    for (int i = 3; i > 0; --i) {
      if (__builtin_mul_overflow(extent[i], stride[i], &stride[i - 1])) {
        fail(SPARSEK_BAD_SIZE, "args->bias does not fit in an address space");
      }
    }
  }
  int64_t bytes = element;
  for (int i = 0; i < 4; ++i) {
    int64_t way = 0;
    if (stride[i] < 0 || __builtin_mul_overflow(std::max<int64_t>(0, extent[i] - 1), stride[i], &way) ||
        __builtin_mul_overflow(way, element, &way) || __builtin_add_overflow(bytes, way, &bytes)) {
      fail(SPARSEK_BAD_LEADING_DIMENSION, "args->stride_bias[%d] = %" PRId64 " is negative, or too large", i,
           stride[i]);
    }
  }
}

void require_mask(const sparsek_attention_args& args) {
  if (args.mask_blocks < 0) fail(SPARSEK_BAD_SIZE, "args->mask_blocks = %" PRId64 " is negative", args.mask_blocks);
  if (args.mask_blocks > 0) require_not_null(args.mask, "args->mask");
  if (args.mask != nullptr) require_not_null(args.mask_index, "args->mask_index");
  require_aligned(args.mask, 4, "args->mask");
  require_aligned(args.mask_index, 4, "args->mask_index");
}

bool has_keys(const AttentionShape& shape) { return shape.batch > 0 && shape.seq_k > 0; }

// Fills in the stride of the table.
void resolve_pages(const AttentionShape& shape, AttentionCall call, sparsek_attention_args& args) {
  if (args.page_rows < 0 || args.page_rows > kLargestExtent) {
    fail(SPARSEK_BAD_SIZE, "args->page_rows = %" PRId64 " is not from 0 to %" PRId64, args.page_rows, kLargestExtent);
  }
  if (args.page_rows == 0) {
    if (args.page_table != nullptr || args.page_table_stride != 0 || args.pages != 0) {
      fail(SPARSEK_BAD_SIZE, "args->page_rows is 0, and a page table, its stride or a number of pages is given");
    }
    return;
  }
  if (call == AttentionCall::kBackward) {
    fail(SPARSEK_NO_SUCH_KERNEL, "no kernel has the backward pass of keys and values in pages: give them in one piece");
  }
  if (args.mass != nullptr) {
    fail(SPARSEK_NO_SUCH_KERNEL, "no kernel has the mass of blocks of keys in pages: leave args->mass null");
  }
  if (args.pages < 1 || args.pages > kLargestExtent) {
    fail(SPARSEK_BAD_SIZE, "args->pages = %" PRId64 " is not from 1 to %" PRId64, args.pages, kLargestExtent);
  }
  if (has_keys(shape)) require_not_null(args.page_table, "args->page_table");
  require_aligned(args.page_table, 4, "args->page_table");
  const int64_t own = (shape.seq_k + args.page_rows - 1) / args.page_rows;
  if (args.page_table_stride == 0) args.page_table_stride = own;
  int64_t last = 0;
  if (args.page_table_stride < 0 ||
      __builtin_mul_overflow(std::max<int64_t>(0, shape.batch - 1), args.page_table_stride, &last) ||
      last > INT64_MAX / 4 - own) {
    fail(SPARSEK_BAD_LEADING_DIMENSION, "args->page_table_stride = %" PRId64 " is negative, or too large",
         args.page_table_stride);
  }
}

void resolve_dtypes(const sparsek_attention_options& options, AttentionShape& shape) {
  const int32_t own = options.dtype, of_o = options.dtype_o;
  if (own == SPARSEK_E4M3) {
    if (of_o != 0 && of_o != SPARSEK_BF16 && of_o != SPARSEK_FP16) {
      fail(SPARSEK_UNSUPPORTED_DTYPE,
           "options->dtype_o = %d with options->dtype = SPARSEK_E4M3 (5): O is of SPARSEK_BF16 (1) or SPARSEK_FP16 (2)",
           of_o);
    }
    shape.dtype = SPARSEK_E4M3;
    shape.dtype_o = of_o == 0 ? SPARSEK_BF16 : static_cast<sparsek_dtype>(of_o);
    return;
  }
  if (dtype_bytes(own) == 0) {
    fail(SPARSEK_UNSUPPORTED_DTYPE,
         "options->dtype = %d is none of SPARSEK_BF16 (1), SPARSEK_FP16 (2), SPARSEK_FP32 (3), SPARSEK_FP64 (4), "
         "SPARSEK_E4M3 (5)",
         own);
  }
  if (of_o != 0 && of_o != own) {
    fail(SPARSEK_UNSUPPORTED_DTYPE,
         "options->dtype_o = %d is not options->dtype = %d: set it to 0, since O has another type than Q where Q is of "
         "SPARSEK_E4M3 (5) alone",
         of_o, own);
  }
  shape.dtype = shape.dtype_o = static_cast<sparsek_dtype>(own);
}

void require_scales(const AttentionShape& shape, const sparsek_attention_args& args) {
  const std::pair<const char*, const float*> scales[] = {
      {"args->scale_q", args.scale_q}, {"args->scale_k", args.scale_k}, {"args->scale_v", args.scale_v}};
  for (const auto& [name, scale] : scales) {
    if (scale != nullptr && shape.dtype != SPARSEK_E4M3) {
      fail(SPARSEK_BAD_ARGUMENT, "%s is given with Q of dtype %d: it is of SPARSEK_E4M3 (5) alone, set it to null",
           name, shape.dtype);
    }
    require_aligned(scale, 4, name);
  }
}

// What no kernel has of SPARSEK_E4M3.
void require_served_call(const AttentionShape& shape, AttentionCall call, const sparsek_attention_args& args) {
  if (shape.dtype != SPARSEK_E4M3) return;
  if (call == AttentionCall::kBackward) {
    fail(SPARSEK_NO_SUCH_KERNEL,
         "no kernel has the backward pass of SPARSEK_E4M3 (5): make attention of SPARSEK_BF16 or SPARSEK_FP16 for it");
  }
  if (args.mass != nullptr) {
    fail(SPARSEK_NO_SUCH_KERNEL, "no kernel has the mass of blocks of SPARSEK_E4M3 (5): leave args->mass null");
  }
}

}  // namespace

AttentionShape resolve_attention_shape(const sparsek_attention_options& options) {
  AttentionShape shape;
  resolve_dtypes(options, shape);
  shape.batch = require_extent(options.batch, 0, kLargestExtent, "batch");
  shape.heads_q = require_extent(options.heads_q, 1, kLargestExtent, "heads_q");
  shape.heads_k = require_extent(options.heads_k, 1, kLargestExtent, "heads_k");
  shape.seq_q = require_extent(options.seq_q, 0, kLargestExtent, "seq_q");
  shape.seq_k = require_extent(options.seq_k, 0, kLargestExtent, "seq_k");
  shape.head_size = require_extent(options.head_size, 1, kLargestHeadSize, "head_size");
  shape.head_size_v = require_extent(options.head_size_v == 0 ? options.head_size : options.head_size_v, 1,
                                     kLargestHeadSize, "head_size_v");
  if (shape.heads_q % shape.heads_k != 0) {
    fail(SPARSEK_BAD_SIZE, "options->heads_q = %" PRId64 " is no multiple of options->heads_k = %" PRId64,
         shape.heads_q, shape.heads_k);
  }
  int64_t lines = 0;
  if (__builtin_mul_overflow(shape.batch * shape.heads_q, shape.seq_q, &lines) || lines > (int64_t{1} << 48)) {
    fail(SPARSEK_BAD_SIZE, "options: batch * heads_q * seq_q rows do not fit in an address space");
  }
  shape.layout_batch = options.layout_batch == 0 ? 1 : options.layout_batch;
  if (shape.layout_batch != 1 && shape.layout_batch != shape.batch) {
    fail(SPARSEK_BAD_SIZE, "options->layout_batch = %" PRId64 " is neither 1 nor options->batch = %" PRId64,
         shape.layout_batch, shape.batch);
  }
  shape.layout_heads = options.layout_heads == 0 ? 1 : options.layout_heads;
  if (shape.layout_heads < 1 || shape.heads_q % shape.layout_heads != 0) {
    fail(SPARSEK_BAD_SIZE, "options->layout_heads = %" PRId64 " is no divisor of options->heads_q = %" PRId64,
         shape.layout_heads, shape.heads_q);
  }
  if (options.workers < 0) {
    fail(SPARSEK_BAD_ARGUMENT, "options->workers = %d is negative: 0 stands for all", options.workers);
  }
  shape.workers = options.workers;
  require_rules(options, shape);
  return shape;
}

sparsek_bsr resolve_attention_index(const sparsek_bsr* layout, AttentionShape& shape, const char* name) {
  sparsek_bsr bsr = read_struct(layout, name);
  bsr.dtype = SPARSEK_BF16;  // there are no values: any type that matrices may have
  bsr.values = nullptr;
  require_served(bsr);
  require_bsr(bsr);
  shape.block_q = bsr.block_m;
  shape.block_k = bsr.block_k;
  const int64_t rows = shape.layout_rows() * shape.block_q;
  if (bsr.rows != rows) {
    fail(SPARSEK_BAD_SIZE,
         "%s->rows = %" PRId64 " is not the %" PRId64
         " of layout_batch * layout_heads * ceil(seq_q / block_m) block rows of %" PRId64,
         name, bsr.rows, rows, shape.block_q);
  }
  if (bsr.cols != shape.seq_k) {
    fail(SPARSEK_BAD_SIZE, "%s->cols = %" PRId64 " is not options->seq_k = %" PRId64, name, bsr.cols, shape.seq_k);
  }
  return bsr;
}

AttentionLayout attention_layout(const sparsek_bsr& index) {
  BsrIndex made = make_bsr_index(with_its_blocks(index));
  return {std::move(made.row_ptr), std::move(made.col_idx)};
}

AttentionLayout resolve_attention_layout(const sparsek_attention_options& options, AttentionShape& shape) {
  if (options.layout == nullptr) {
    shape.block_q = shape.block_k = kDefaultBlock;
    shape.layout_batch = shape.layout_heads = 1;
    const int64_t blocks = shape.query_blocks() * shape.key_blocks();
    if (blocks > INT32_MAX) {
      fail(SPARSEK_BAD_SIZE,
           "options: seq_q by seq_k has %" PRId64 " blocks of %" PRId64 " x %" PRId64
           ", beyond int32: give a layout of larger blocks",
           blocks, kDefaultBlock, kDefaultBlock);
    }
    return whole_layout(shape);
  }
  const sparsek_bsr index = resolve_attention_index(options.layout, shape, "options->layout");
  if (index.memory != SPARSEK_HOST) {
    fail(SPARSEK_WRONG_MEMORY, "options->layout->memory is not SPARSEK_HOST");
  }
  return attention_layout(index);
}

sparsek_attention_args resolve_attention_args(const AttentionShape& shape, const sparsek_attention_args& given,
                                              AttentionCall call) {
  sparsek_attention_args args = given;
  require_served_call(shape, call, args);
  require_scales(shape, args);
  resolve_bias(shape, args);
  require_mask(args);
  const bool backward = call == AttentionCall::kBackward;
  resolve_pages(shape, call, args);
  const bool in_pages = has_pages(args) && has_keys(shape);
  const int64_t element = dtype_bytes(shape.dtype);
  const auto query = [&](const char* name, const void* data, int64_t* stride, int64_t size, bool written) {
    return Operand{name, data, stride, shape.batch, shape.heads_q, shape.seq_q, size, written, element};
  };
  const auto key = [&](const char* name, const void* data, int64_t* stride, int64_t size, bool written) {
    Operand own{name, data, stride, shape.batch, shape.heads_k, shape.seq_k, size, written, element};
    if (in_pages) own.batch = args.pages, own.rows = args.page_rows;
    return own;
  };
  const int64_t d = shape.head_size, d_v = shape.head_size_v;
  Operand o = query("o", args.o, args.stride_o, d_v, !backward);
  o.element = dtype_bytes(shape.dtype_o);
  const Operand read[] = {query("q", args.q, args.stride_q, d, false), key("k", args.k, args.stride_k, d, false),
                          key("v", args.v, args.stride_v, d_v, false), o,
                          query("grad_o", args.grad_o, args.stride_grad_o, d_v, false)};
  const Operand gradients[] = {query("grad_q", args.grad_q, args.stride_grad_q, d, true),
                               key("grad_k", args.grad_k, args.stride_grad_k, d, true),
                               key("grad_v", args.grad_v, args.stride_grad_v, d_v, true)};
  const auto resolve = [&](const Operand& x) {
    const std::string name = std::string("args->") + x.name;
    if (shape.batch > 0 && x.rows > 0) require_not_null(x.data, name.c_str());
    require_aligned(x.data, x.element, name.c_str());
    resolve_strides(x);
  };
  for (int i = 0; i < (backward ? 5 : 4); ++i) resolve(read[i]);
  if (!backward) {
    require_lse(shape, args.lse, args.mass != nullptr && shape.batch > 0 && shape.seq_q > 0);
    require_aligned(args.mass, shape.dtype == SPARSEK_FP64 ? 8 : 4, "args->mass");
    if (args.o != nullptr) {
      for (int i = 0; i < 3; ++i) require_apart(read[3], read[i].name, read[i].data);
    }
    return args;
  }
  require_lse(shape, args.lse, shape.batch > 0 && shape.seq_q > 0);
  if (args.grad_bias != nullptr && args.bias == nullptr) {
    fail(SPARSEK_BAD_ARGUMENT, "args->grad_bias is given without args->bias");
  }
  require_aligned(args.grad_bias, shape.dtype == SPARSEK_FP64 ? 8 : 4, "args->grad_bias");
  if (args.grad_bias != nullptr && args.grad_bias == args.bias) {
    fail(SPARSEK_BAD_ARGUMENT, "args->grad_bias is args->bias: what is written must not overlap what is read");
  }
  for (const Operand& x : gradients) {
    if (x.data == nullptr) continue;
    resolve(x);
    for (const Operand& other : read) require_apart(x, other.name, other.data);
  }
  return args;
}

}  // namespace sparsek
