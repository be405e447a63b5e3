/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "expect.h"

/* Two batches of two query heads on one of keys, 4 queries, 6 keys, heads of 2 and values of 3, in blocks of 2 x 3. */
enum { kBatch = 2, kHeads = 2, kQueries = 4, kKeys = 6, kSize = 2, kSizeV = 3 };

typedef struct operands {
  float q[kBatch * kHeads * kQueries * kSize], k[kBatch * kKeys * kSize], v[kBatch * kKeys * kSizeV];
  float o[kBatch * kHeads * kQueries * kSizeV], lse[kBatch * kHeads * kQueries];
  float grad_o[kBatch * kHeads * kQueries * kSizeV], grad_q[kBatch * kHeads * kQueries * kSize];
  float grad_k[kBatch * kKeys * kSize], grad_v[kBatch * kKeys * kSizeV];
} operands;

static sparsek_attention_args args_of(operands* x) {
  sparsek_attention_args args = {.abi_size = sizeof(args),
                                 .q = x->q,
                                 .k = x->k,
                                 .v = x->v,
                                 .o = x->o,
                                 .lse = x->lse,
                                 .grad_o = x->grad_o,
                                 .grad_q = x->grad_q,
                                 .grad_k = x->grad_k,
                                 .grad_v = x->grad_v};
  return args;
}

/* With the layout of good_bsr, which both heads of both batches share. */
static sparsek_attention_options options_of(const sparsek_bsr* layout) {
  sparsek_attention_options options = {.abi_size = sizeof(options),
                                       .batch = kBatch,
                                       .heads_q = kHeads,
                                       .heads_k = 1,
                                       .seq_q = kQueries,
                                       .seq_k = kKeys,
                                       .head_size = kSize,
                                       .head_size_v = kSizeV,
                                       .layout = layout,
                                       .dtype = SPARSEK_FP32};
  return options;
}

/* Attention of the options with one member changed; what is made is destroyed. */
#define WITH_OPTIONS(status, speaks_of, member, value)                      \
  do {                                                                      \
    sparsek_attention_options given = good;                                 \
    sparsek_attention* made = NULL;                                         \
    given.member = value;                                                   \
    EXPECT(status, speaks_of, attention_create(e->context, &given, &made)); \
    e->api->attention_destroy(made);                                        \
  } while (0)

static void test_options(edge* e, sparsek_attention_options good) {
  sparsek_attention* made = NULL;
  EXPECT(NULL_POINTER, "out", attention_create(e->context, &good, NULL));
  EXPECT(NULL_POINTER, "context", attention_create(NULL, &good, &made));
  EXPECT(NULL_POINTER, "options", attention_create(e->context, NULL, &made));
  EXPECT_ABI_SIZE_SINCE(kFirstAttentionOptions, good, attention_create(e->context, &good, &made));
  WITH_OPTIONS(BAD_SIZE, "batch = -1", batch, -1);
  WITH_OPTIONS(BAD_SIZE, "batch", batch, (int64_t)INT32_MAX + 1);
  WITH_OPTIONS(OK, "", batch, 0);
  WITH_OPTIONS(BAD_SIZE, "heads_q = 0", heads_q, 0);
  WITH_OPTIONS(BAD_SIZE, "heads_k = 0", heads_k, 0);
  WITH_OPTIONS(BAD_SIZE, "no multiple of options->heads_k = 3", heads_k, 3);
  WITH_OPTIONS(BAD_SIZE, "seq_q = -1", seq_q, -1);
  WITH_OPTIONS(BAD_SIZE, "seq_k = -1", seq_k, -1);
  WITH_OPTIONS(BAD_SIZE, "head_size = 0", head_size, 0);
  WITH_OPTIONS(BAD_SIZE, "head_size = 4097", head_size, 4097);
  WITH_OPTIONS(BAD_SIZE, "head_size_v = -1", head_size_v, -1);
  WITH_OPTIONS(BAD_SIZE, "head_size_v = 4097", head_size_v, 4097);
  WITH_OPTIONS(OK, "", head_size_v, 0);
  WITH_OPTIONS(BAD_SIZE, "layout_batch = 3", layout_batch, 3);
  WITH_OPTIONS(BAD_SIZE, "layout_batch = -1", layout_batch, -1);
  WITH_OPTIONS(BAD_SIZE, "layout_heads = -1", layout_heads, -1);
  WITH_OPTIONS(BAD_SIZE, "layout_heads = 3", layout_heads, 3);
  WITH_OPTIONS(BAD_SIZE, "layout->rows = 4 is not the 8", layout_heads, 2);
  WITH_OPTIONS(BAD_SIZE, "layout->rows = 4 is not the 8", layout_batch, 2);
  WITH_OPTIONS(BAD_SIZE, "layout->rows = 4 is not the 6", seq_q, 5);
  WITH_OPTIONS(OK, "", seq_q, 3); /* the last block is cut */
  WITH_OPTIONS(BAD_SIZE, "layout->cols = 6 is not options->seq_k = 5", seq_k, 5);
  WITH_OPTIONS(BAD_ARGUMENT, "window_left = 1 without SPARSEK_ATTENTION_LEFT", window_left, 1);
  WITH_OPTIONS(BAD_ARGUMENT, "window_right = -1 without SPARSEK_ATTENTION_RIGHT", window_right, -1);
  WITH_OPTIONS(BAD_ARGUMENT, "flags = 16", flags, 16);
  WITH_OPTIONS(BAD_ARGUMENT, "flags = 24", flags, 24);
  WITH_OPTIONS(OK, "", flags, 7);
  WITH_OPTIONS(OK, "", flags, SPARSEK_ATTENTION_ANY_ORDER);
  WITH_OPTIONS(OK, "", flags, 15);
  WITH_OPTIONS(BAD_ARGUMENT, "scale", scale, NAN);
  WITH_OPTIONS(BAD_ARGUMENT, "scale", scale, INFINITY);
  WITH_OPTIONS(OK, "", scale, -2);
  WITH_OPTIONS(BAD_ARGUMENT, "soft_cap", soft_cap, -1);
  WITH_OPTIONS(BAD_ARGUMENT, "soft_cap", soft_cap, NAN);
  WITH_OPTIONS(BAD_ARGUMENT, "soft_cap", soft_cap, INFINITY);
  WITH_OPTIONS(BAD_ARGUMENT, "workers = -1", workers, -1);
  WITH_OPTIONS(UNSUPPORTED_DTYPE, "options->dtype = 9", dtype, 9);
  WITH_OPTIONS(NO_SUCH_KERNEL, "none", kernel, "none");
  WITH_OPTIONS(OK, "", kernel, "cpu_generic");
}

/* Attention by a layout with one member changed. */
#define WITH_LAYOUT(status, speaks_of, member, value)                       \
  do {                                                                      \
    sparsek_bsr layout = good_bsr();                                        \
    sparsek_attention_options given = options_of(&layout);                  \
    sparsek_attention* made = NULL;                                         \
    layout.member = value;                                                  \
    EXPECT(status, speaks_of, attention_create(e->context, &given, &made)); \
    e->api->attention_destroy(made);                                        \
  } while (0)

static void test_layouts(edge* e) {
  static const int32_t beyond[3] = {1, 0, 2}, unsorted[3] = {1, 1, 0};
  WITH_LAYOUT(OK, "", values, NULL);
  WITH_LAYOUT(BAD_ABI_SIZE, "abi_size", abi_size, 8);
  WITH_LAYOUT(WRONG_MEMORY, "layout->memory", memory, SPARSEK_DEVICE);
  WITH_LAYOUT(NULL_POINTER, "row_ptr", row_ptr, NULL);
  WITH_LAYOUT(NULL_POINTER, "col_idx", col_idx, NULL);
  WITH_LAYOUT(COL_IDX_RANGE, "col_idx", col_idx, beyond);
  WITH_LAYOUT(COL_IDX_UNSORTED, "col_idx", col_idx, unsorted);
  WITH_LAYOUT(BAD_SIZE, "block_m", block_m, 0);

  sparsek_attention* made = NULL;
  sparsek_attention_options large = options_of(NULL);
  large.seq_q = large.seq_k = INT32_MAX;
  EXPECT(BAD_SIZE, "give a layout of larger blocks", attention_create(e->context, &large, &made));
  large.heads_q = INT32_MAX;
  EXPECT(BAD_SIZE, "do not fit in an address space", attention_create(e->context, &large, &made));
}

#define WITH_CALL(status, speaks_of, call, member, value)           \
  do {                                                              \
    sparsek_attention_args given = good;                            \
    given.member = value;                                           \
    EXPECT(status, speaks_of, attention_##call(attention, &given)); \
  } while (0)

static void test_forward(edge* e, sparsek_attention* attention, sparsek_attention_args good) {
  EXPECT(OK, "", attention_forward(attention, &good));
  EXPECT(NULL_POINTER, "attention", attention_forward(NULL, &good));
  EXPECT(NULL_POINTER, "args", attention_forward(attention, NULL));
  EXPECT_ABI_SIZE_SINCE(kFirstAttentionArgs, good, attention_forward(attention, &good));
  WITH_CALL(NULL_POINTER, "args->q", forward, q, NULL);
  WITH_CALL(NULL_POINTER, "args->k", forward, k, NULL);
  WITH_CALL(NULL_POINTER, "args->v", forward, v, NULL);
  WITH_CALL(NULL_POINTER, "args->o", forward, o, NULL);
  WITH_CALL(OK, "", forward, lse, NULL);
  WITH_CALL(OK, "", forward, grad_o, NULL);
  WITH_CALL(MISALIGNED, "args->q", forward, q, (const char*)good.q + 1);
  WITH_CALL(MISALIGNED, "args->lse", forward, lse, (char*)good.lse + 2);
  WITH_CALL(BAD_ARGUMENT, "args->o is args->q", forward, o, (void*)good.q);
  WITH_CALL(BAD_ARGUMENT, "args->o is args->k", forward, o, (void*)good.k);
  WITH_CALL(BAD_ARGUMENT, "args->o is args->v", forward, o, (void*)good.v);
  WITH_CALL(BAD_LEADING_DIMENSION, "stride_q[0] = -1 is negative", forward, stride_q[0], -1);
  WITH_CALL(BAD_LEADING_DIMENSION, "too large", forward, stride_k[0], INT64_MAX);
  WITH_CALL(BAD_SIZE, "args->v does not fit in an address space", forward, stride_v[0], INT64_MAX / 2);

  sparsek_attention_args strides = good;
  for (int i = 0; i < 3; ++i) { /* rows that overlap */
    strides.stride_q[i] = strides.stride_k[i] = 1;
  }
  EXPECT(OK, "", attention_forward(attention, &strides));
  strides.stride_o[0] = kHeads * kQueries * kSizeV;
  strides.stride_o[1] = kQueries * kSizeV;
  strides.stride_o[2] = kSizeV - 1;
  EXPECT(BAD_LEADING_DIMENSION, "stride_o[2] = 2 is below the 3 elements", attention_forward(attention, &strides));
}

static void test_backward(edge* e, sparsek_attention* attention, sparsek_attention_args good) {
  EXPECT(OK, "", attention_backward(attention, &good));
  EXPECT(NULL_POINTER, "attention", attention_backward(NULL, &good));
  EXPECT_ABI_SIZE_SINCE(kFirstAttentionArgs, good, attention_backward(attention, &good));
  WITH_CALL(NULL_POINTER, "args->lse", backward, lse, NULL);
  WITH_CALL(NULL_POINTER, "args->o", backward, o, NULL);
  WITH_CALL(NULL_POINTER, "args->grad_o", backward, grad_o, NULL);
  WITH_CALL(OK, "", backward, grad_q, NULL);
  WITH_CALL(OK, "", backward, grad_k, NULL);
  WITH_CALL(OK, "", backward, grad_v, NULL);
  WITH_CALL(MISALIGNED, "args->grad_v", backward, grad_v, (char*)good.grad_v + 1);
  WITH_CALL(BAD_ARGUMENT, "args->grad_q is args->q", backward, grad_q, (void*)good.q);
  WITH_CALL(BAD_ARGUMENT, "args->grad_k is args->v", backward, grad_k, (void*)good.v);
  WITH_CALL(BAD_ARGUMENT, "args->grad_v is args->o", backward, grad_v, good.o);
  WITH_CALL(BAD_ARGUMENT, "args->grad_v is args->grad_o", backward, grad_v, (void*)good.grad_o);
  WITH_CALL(BAD_LEADING_DIMENSION, "stride_grad_o[1] = -1 is negative", backward, stride_grad_o[1], -1);
  WITH_CALL(BAD_LEADING_DIMENSION, "stride_grad_k[0] = 1 is below the 2 elements", backward, stride_grad_k[0], 1);
}

/* A bias of one value for each key, and bits for one of the two by two blocks. */
static void test_terms(edge* e, sparsek_attention* attention, sparsek_attention_args good) {
  static const float bias[kKeys] = {0, 1, -INFINITY, 0, 0, 0};
  static const int32_t index[4] = {-1, 7, 0, -1};
  static const uint32_t mask[2] = {5, 0};
  float grad_bias[kBatch * kHeads * kQueries * kKeys];
  good.bias = bias;
  good.bias_dtype = SPARSEK_FP32;
  good.stride_bias[3] = 1;
  good.mask = mask;
  good.mask_index = index;
  good.mask_blocks = 1;
  EXPECT(OK, "", attention_forward(attention, &good));
  ++e->checks;
  if (isinf(((const float*)good.lse)[0])) fprintf(e->failures, EDGE_PLACE ": the first query sees no key\n");
  good.grad_bias = grad_bias;
  EXPECT(OK, "", attention_backward(attention, &good));
  EXPECT_ABI_SIZE_SINCE(kFirstAttentionArgs, good, attention_backward(attention, &good));
  WITH_CALL(UNSUPPORTED_DTYPE, "args->bias_dtype", forward, bias_dtype, 0);
  WITH_CALL(UNSUPPORTED_DTYPE, "args->bias_dtype = 1 is neither the type of O, 3", forward, bias_dtype, SPARSEK_BF16);
  WITH_CALL(UNSUPPORTED_DTYPE, "args->bias_dtype = 4 is neither", forward, bias_dtype, SPARSEK_FP64);
  WITH_CALL(MISALIGNED, "args->bias", forward, bias, (const char*)good.bias + 2);
  WITH_CALL(BAD_LEADING_DIMENSION, "stride_bias[3] = -1 is negative", forward, stride_bias[3], -1);
  WITH_CALL(BAD_LEADING_DIMENSION, "stride_bias[0]", backward, stride_bias[0], INT64_MAX);
  WITH_CALL(NULL_POINTER, "args->mask", forward, mask, NULL);
  WITH_CALL(NULL_POINTER, "args->mask_index", forward, mask_index, NULL);
  WITH_CALL(BAD_SIZE, "mask_blocks = -1", forward, mask_blocks, -1);
  WITH_CALL(OK, "", forward, mask_blocks, 0);
  WITH_CALL(MISALIGNED, "args->mask", forward, mask, (const uint32_t*)((const char*)good.mask + 2));
  WITH_CALL(MISALIGNED, "args->mask_index", forward, mask_index, (const int32_t*)((const char*)good.mask_index + 2));
  WITH_CALL(BAD_ARGUMENT, "reserved = 1", forward, reserved, 1);
  WITH_CALL(MISALIGNED, "args->grad_bias", backward, grad_bias, (char*)grad_bias + 2);
  WITH_CALL(BAD_ARGUMENT, "args->grad_bias is given without args->bias", backward, bias, NULL);
  WITH_CALL(BAD_ARGUMENT, "args->grad_bias is args->bias", backward, grad_bias, (void*)good.bias);
}

/* Keys and values in pages of two rows: the rows as they are, then a page that is none of the cache, then what is
 * refused. */
static void test_pages(edge* e, sparsek_attention* attention, sparsek_attention_args good) {
  static const int32_t in_order[kBatch * 3] = {0, 1, 2, 3, 4, 5}, apart[8] = {0, 6, 2, 99, 3, -1, 5, 99};
  float lse[2][kBatch * kHeads * kQueries], mass[kBatch * kHeads * 4];
  good.lse = lse[0];
  EXPECT(OK, "", attention_forward(attention, &good));
  good.lse = lse[1];
  good.page_table = in_order;
  good.pages = 6;
  good.page_rows = 2;
  EXPECT(OK, "", attention_forward(attention, &good));
  ++e->checks;
  if (memcmp(lse[0], lse[1], sizeof(lse[0])) != 0) fprintf(e->failures, EDGE_PLACE ": pages changed the result\n");
  sparsek_attention_args holes = good;
  holes.page_table = apart;
  holes.page_table_stride = 4;
  EXPECT(OK, "", attention_forward(attention, &holes));
  ++e->checks;
  for (int i = 0; i < kBatch * kHeads * kQueries; ++i) {
    if (!(lse[1][i] < lse[0][i])) fprintf(e->failures, EDGE_PLACE ": query %d sees a key that is not there\n", i);
  }
  EXPECT_ABI_SIZE_SINCE(kFirstAttentionArgs, good, attention_forward(attention, &good));
  WITH_CALL(NULL_POINTER, "args->page_table", forward, page_table, NULL);
  WITH_CALL(MISALIGNED, "args->page_table", forward, page_table, (const int32_t*)((const char*)in_order + 2));
  WITH_CALL(BAD_LEADING_DIMENSION, "page_table_stride = -1 is negative", forward, page_table_stride, -1);
  WITH_CALL(BAD_LEADING_DIMENSION, "page_table_stride", forward, page_table_stride, INT64_MAX);
  WITH_CALL(BAD_SIZE, "pages = 0 is not from 1", forward, pages, 0);
  WITH_CALL(BAD_SIZE, "pages", forward, pages, (int64_t)INT32_MAX + 1);
  WITH_CALL(BAD_SIZE, "page_rows = -1", forward, page_rows, -1);
  WITH_CALL(BAD_SIZE, "page_rows is 0, and a page table", forward, page_rows, 0);
  WITH_CALL(BAD_LEADING_DIMENSION, "stride_k[0]", forward, stride_k[0], INT64_MAX);
  WITH_CALL(NO_SUCH_KERNEL, "mass of blocks", forward, mass, mass);
  WITH_CALL(NO_SUCH_KERNEL, "backward pass of keys and values in pages", backward, page_rows, 2);
}

static void test_time(edge* e, sparsek_attention* attention, sparsek_attention_args good) {
  double seconds[2] = {-1, -1};
  sparsek_attention_args sets[2] = {good, good};
  EXPECT(OK, "", attention_time(attention, sets, 2, 0, 1, 2, seconds));
  ++e->checks;
  if (!(seconds[0] > 0 && seconds[1] > 0)) fprintf(e->failures, EDGE_PLACE ": a call took no time\n");
  EXPECT(OK, "", attention_time(attention, &good, 1, 1, 0, 1, seconds));
  EXPECT(NULL_POINTER, "attention", attention_time(NULL, &good, 1, 0, 0, 1, seconds));
  EXPECT(NULL_POINTER, "args", attention_time(attention, NULL, 1, 0, 0, 1, seconds));
  EXPECT(NULL_POINTER, "seconds", attention_time(attention, &good, 1, 0, 0, 1, NULL));
  EXPECT(BAD_SIZE, "arg_count = 0", attention_time(attention, &good, 0, 0, 0, 1, seconds));
  EXPECT(BAD_ARGUMENT, "backward = 2", attention_time(attention, &good, 1, 2, 0, 1, seconds));
  EXPECT(BAD_SIZE, "warmup = -1", attention_time(attention, &good, 1, 0, -1, 1, seconds));
  EXPECT(BAD_SIZE, "repeats = 0", attention_time(attention, &good, 1, 0, 0, 0, seconds));
  sets[1].abi_size += 8;
  EXPECT(BAD_ABI_SIZE, "args[1].abi_size", attention_time(attention, sets, 2, 0, 0, 1, seconds));
  sets[1].abi_size -= 8;
  sets[1].q = NULL;
  EXPECT(NULL_POINTER, "args->q", attention_time(attention, sets, 2, 0, 0, 1, seconds));
}

#define WITH_CHECK(status, speaks_of, member, value)             \
  do {                                                           \
    sparsek_attention_check_args given = good;                   \
    given.member = value;                                        \
    EXPECT(status, speaks_of, attention_check(&given, &report)); \
  } while (0)

static void test_attention_check(edge* e, const sparsek_attention_options* options, operands* x,
                                 const sparsek_attention_info* info) {
  sparsek_attention_args args = args_of(x), lacking = args;
  sparsek_check_report report = {.abi_size = sizeof(report)};
  sparsek_attention_check_args good = {.abi_size = sizeof(good),
                                       .options = options,
                                       .args = &args,
                                       .unit_roundoff = info->unit_roundoff,
                                       .product_roundoff = info->product_roundoff};
  EXPECT(OK, "", attention_check(&good, &report));
  EXPECT(NULL_POINTER, "args", attention_check(NULL, &report));
  EXPECT(NULL_POINTER, "out", attention_check(&good, NULL));
  EXPECT_ABI_SIZE(good, attention_check(&good, &report));
  WITH_CHECK(NULL_POINTER, "args->options", options, NULL);
  WITH_CHECK(NULL_POINTER, "args->args", args, NULL);
  WITH_CHECK(BAD_ARGUMENT, "output = 7", output, 7);
  WITH_CHECK(NULL_POINTER, "args->args->grad_bias", output, SPARSEK_ATTENTION_GRAD_BIAS);
  WITH_CHECK(NULL_POINTER, "args->args->mass", output, SPARSEK_ATTENTION_MASS);
  WITH_CHECK(BAD_ARGUMENT, "output = -1", output, -1);
  WITH_CHECK(BAD_ARGUMENT, "unit_roundoff", unit_roundoff, 1);
  WITH_CHECK(BAD_ARGUMENT, "unit_roundoff", unit_roundoff, NAN);
  WITH_CHECK(BAD_ARGUMENT, "product_roundoff", product_roundoff, -1);
  WITH_CHECK(BAD_ARGUMENT, "threads = -1", threads, -1);
  for (int32_t output = 0; output <= SPARSEK_ATTENTION_GRAD_V; ++output) WITH_CHECK(OK, "", output, output);
  lacking.grad_k = NULL;
  good.args = &lacking;
  WITH_CHECK(NULL_POINTER, "args->args->grad_k", output, SPARSEK_ATTENTION_GRAD_K);
  good.args = &args;
  x->o[5] += 1;
  WITH_CHECK(CHECK_FAILED, "1 of 48 elements are beyond their bound, first O[1, 2]", output, SPARSEK_ATTENTION_O);
}

/* The call with one member changed. */
#define WITH_POOL(status, speaks_of, member, value)                \
  do {                                                             \
    sparsek_pool_args given = good;                                \
    given.member = value;                                          \
    EXPECT(status, speaks_of, attention_pool(e->context, &given)); \
  } while (0)

/* Two heads of three rows of two columns, in blocks of two rows. */
static void test_pool(edge* e) {
  static const float x[2 * 3 * 2] = {1, -2, 3, 4, 5, 6, 0, 0, NAN, -8, -1, 7};
  static const float expected[2 * 2 * 3 * 2] = {2, 1,  3, 4, 1, -2, 5,  6, 5,  6, 5,  6,
                                                0, -4, 0, 0, 0, -8, -1, 7, -1, 7, -1, 7};
  float out[2 * 2 * 3 * 2] = {0};
  const sparsek_pool_args good = {.abi_size = sizeof(good),
                                  .batch = 1,
                                  .heads = 2,
                                  .seq = 3,
                                  .head_size = 2,
                                  .block = 2,
                                  .x = x,
                                  .out = out,
                                  .dtype = SPARSEK_FP32,
                                  .memory = SPARSEK_HOST};
  sparsek_pool_args sized = good;
  EXPECT(OK, "", attention_pool(e->context, &good));
  ++e->checks;
  for (int i = 0; i < 24; ++i) {
    const int has_nan = i == 12 || i == 14 || i == 16; /* the first column of the first block of the second head */
    if (has_nan ? !isnan(out[i]) : out[i] != expected[i]) {
      fprintf(e->failures, EDGE_PLACE ": number %d is %g, not %g\n", i, (double)out[i], (double)expected[i]);
    }
  }
  EXPECT(NULL_POINTER, "context", attention_pool(NULL, &good));
  EXPECT(NULL_POINTER, "args", attention_pool(e->context, NULL));
  EXPECT_ABI_SIZE(sized, attention_pool(e->context, &sized));
  WITH_POOL(BAD_SIZE, "batch = -1", batch, -1);
  WITH_POOL(BAD_SIZE, "heads = 0", heads, 0);
  WITH_POOL(BAD_SIZE, "seq = -1", seq, -1);
  WITH_POOL(BAD_SIZE, "head_size = 0", head_size, 0);
  WITH_POOL(BAD_SIZE, "head_size = 4097", head_size, 4097);
  WITH_POOL(BAD_SIZE, "block = 0", block, 0);
  WITH_POOL(NULL_POINTER, "args->x", x, NULL);
  WITH_POOL(NULL_POINTER, "args->out", out, NULL);
  WITH_POOL(BAD_ARGUMENT, "args->out is args->x", x, out);
  WITH_POOL(MISALIGNED, "args->out", out, (char*)out + 2);
  WITH_POOL(MISALIGNED, "args->x", x, (const char*)x + 1);
  WITH_POOL(BAD_LEADING_DIMENSION, "stride_x[2] = -2", stride_x[2], -2);
  WITH_POOL(BAD_LEADING_DIMENSION, "stride_x[1]", stride_x[1], INT64_MAX);
  WITH_POOL(UNSUPPORTED_DTYPE, "args->dtype", dtype, 5);
  WITH_POOL(BAD_ARGUMENT, "args->memory", memory, 7);
  WITH_POOL(WRONG_MEMORY, "host arrays", memory, SPARSEK_DEVICE);
  WITH_POOL(OK, "", seq, 0);
  WITH_POOL(OK, "", batch, 0);
  sized.batch = sized.heads = INT32_MAX;
  EXPECT(BAD_SIZE, "rows do not fit", attention_pool(e->context, &sized));
}

void test_attention(edge* e) {
  operands x;
  for (size_t i = 0; i < sizeof(x) / sizeof(float); ++i) ((float*)&x)[i] = (float)(i % 7) / 4 - 1;
  const sparsek_bsr layout = good_bsr();
  const sparsek_attention_options options = options_of(&layout);
  sparsek_attention* attention = NULL;
  sparsek_attention_info info = {.abi_size = sizeof(info)};
  EXPECT(OK, "", attention_create(e->context, &options, &attention));
  if (attention == NULL) return;
  EXPECT(OK, "", attention_info(attention, &info));
  EXPECT(NULL_POINTER, "attention", attention_info(NULL, &info));
  EXPECT(NULL_POINTER, "out", attention_info(attention, NULL));
  EXPECT_ABI_SIZE(info, attention_info(attention, &info));
  ++e->checks;
  if (info.blocks != 3 * kBatch * kHeads || info.partial != 0 || info.pairs != 18 * kBatch * kHeads) {
    fprintf(e->failures, EDGE_PLACE ": %lld blocks with %lld pairs\n", (long long)info.blocks, (long long)info.pairs);
  }
  test_pool(e);
  test_options(e, options);
  test_layouts(e);
  test_forward(e, attention, args_of(&x));
  test_backward(e, attention, args_of(&x));
  test_terms(e, attention, args_of(&x));
  test_pages(e, attention, args_of(&x));
  test_time(e, attention, args_of(&x));
  test_attention_check(e, &options, &x, &info);
  e->api->attention_destroy(attention);
  e->api->attention_destroy(NULL);
  e->api->attention_release(NULL, NULL);
}
