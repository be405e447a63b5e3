/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "expect.h"

/* An index of 4 x 6 in blocks of 2 x 3: two block rows of two. */
typedef struct made {
  int32_t row_ptr[3], col_idx[4], block_idx[4];
  float values[4 * 6], norms[4];
  int64_t blocks, fault;
} made;

static sparsek_pattern_args args_of(made* to) {
  sparsek_pattern_args args = {.abi_size = sizeof(args),
                               .rows = 4,
                               .cols = 6,
                               .block_m = 2,
                               .block_k = 3,
                               .capacity = 4,
                               .index_type = SPARSEK_INT32,
                               .memory = SPARSEK_HOST,
                               .row_ptr = to->row_ptr,
                               .col_idx = to->col_idx,
                               .blocks = &to->blocks,
                               .fault = &to->fault};
  return args;
}

/* The call with one member of args changed. */
#define WITH(status, speaks_of, call, member, value) \
  do {                                               \
    sparsek_pattern_args args = good;                \
    args.member = value;                             \
    EXPECT(status, speaks_of, call);                 \
  } while (0)

static void test_making(edge* e) {
  static const unsigned char mask[4] = {1, 0, 0, 7};
  static const float numbers[4 * 6] = {1, 2, 3};
  made to;
  sparsek_pattern_args good = args_of(&to);
  good.source = mask;
  EXPECT(OK, "", pattern_from_mask(e->context, &good));
  ++e->checks;
  if (to.row_ptr[2] != 2 || to.col_idx[0] != 0 || to.col_idx[1] != 1 || to.fault != 0 || to.blocks != 2) {
    fprintf(e->failures, EDGE_PLACE ": another index\n");
  }
  EXPECT(NULL_POINTER, "context", pattern_from_mask(NULL, &good));
  EXPECT(NULL_POINTER, "args", pattern_from_mask(e->context, NULL));
  EXPECT_ABI_SIZE(good, pattern_from_mask(e->context, &good));
  WITH(NULL_POINTER, "row_ptr", pattern_from_mask(e->context, &args), row_ptr, NULL);
  WITH(NULL_POINTER, "col_idx", pattern_from_mask(e->context, &args), col_idx, NULL);
  WITH(NULL_POINTER, "fault", pattern_from_mask(e->context, &args), fault, NULL);
  WITH(OK, "", pattern_from_mask(e->context, &args), blocks, NULL);
  WITH(NULL_POINTER, "source", pattern_from_mask(e->context, &args), source, NULL);
  WITH(MISALIGNED, "row_ptr", pattern_from_mask(e->context, &args), row_ptr, (char*)to.row_ptr + 1);
  WITH(BAD_SIZE, "nnzb", pattern_from_mask(e->context, &args), capacity, -1);
  WITH(BAD_SIZE, "rows", pattern_from_mask(e->context, &args), rows, -1);
  WITH(BAD_SIZE, "block_m", pattern_from_mask(e->context, &args), block_m, 0);
  WITH(BAD_ARGUMENT, "index_type", pattern_from_mask(e->context, &args), index_type, 0);
  WITH(BAD_ARGUMENT, "memory", pattern_from_mask(e->context, &args), memory, 0);
  WITH(WRONG_MEMORY, "host arrays", pattern_from_mask(e->context, &args), memory, SPARSEK_DEVICE);
  WITH(BAD_ARGUMENT, "flags", pattern_from_mask(e->context, &args), flags, 2);
  WITH(BAD_ARGUMENT, "norm", pattern_from_mask(e->context, &args), norm, 1);
  WITH(BAD_ARGUMENT, "values", pattern_from_mask(e->context, &args), values, to.values);
  WITH(BAD_ARGUMENT, "bins", pattern_from_mask(e->context, &args), bins, to.row_ptr);
  WITH(BAD_ARGUMENT, "threshold", pattern_from_mask(e->context, &args), threshold, 1);
  WITH(UNSUPPORTED_DTYPE, "source_dtype", pattern_from_mask(e->context, &args), source_dtype, 9);

  good.source_dtype = SPARSEK_FP32;
  good.source = numbers;
  good.count = 1;
  EXPECT(OK, "", pattern_from_topk(e->context, &good));
  WITH(BAD_ARGUMENT, "source_index_type", pattern_from_topk(e->context, &args), source_index_type, SPARSEK_INT32);
  WITH(BAD_SIZE, "count", pattern_from_topk(e->context, &args), count, -1);
  WITH(MISALIGNED, "source", pattern_from_topk(e->context, &args), source, (const char*)numbers + 2);

  good.count = 0;
  good.norms = to.norms;
  EXPECT(OK, "", pattern_from_dense(e->context, &good));
  WITH(NULL_POINTER, "norms", pattern_from_dense(e->context, &args), norms, NULL);
  WITH(BAD_ARGUMENT, "norm", pattern_from_dense(e->context, &args), norm, 3);
  WITH(BAD_ARGUMENT, "order", pattern_from_dense(e->context, &args), order, 2);
  WITH(BAD_ARGUMENT, "NaN", pattern_from_dense(e->context, &args), threshold, NAN);
  WITH(BAD_LEADING_DIMENSION, "ld", pattern_from_dense(e->context, &args), ld, 5);
}

static void test_reading(edge* e) {
  made to;
  const sparsek_bsr a = good_bsr();
  sparsek_pattern_args good = args_of(&to);
  good.rows = 6;
  good.cols = 4;
  good.block_m = 3;
  good.block_k = 2;
  good.block_idx = to.block_idx;
  int32_t row_ptr[4];
  good.row_ptr = row_ptr;
  EXPECT(OK, "", transpose_index(e->context, &a, &good));
  EXPECT(NULL_POINTER, "a", transpose_index(e->context, NULL, &good));
  WITH(BAD_SIZE, "room", transpose_index(e->context, &a, &args), capacity, 2);
  WITH(BAD_ARGUMENT, "another memory", transpose_index(e->context, &a, &args), memory, SPARSEK_DEVICE);

  int64_t fault = -1;
  EXPECT(OK, "", pattern_check(e->context, &a, &fault));
  EXPECT(NULL_POINTER, "fault", pattern_check(e->context, &a, NULL));
  sparsek_bsr flagged = a;
  flagged.flags = SPARSEK_BSR_ASYNC;
  EXPECT(BAD_ARGUMENT, "flags", pattern_check(e->context, &flagged, &fault));

  good = args_of(&to);
  good.block_idx = to.block_idx;
  good.source = to.norms;
  good.source_dtype = SPARSEK_FP32;
  good.count = 1;
  memset(to.norms, 0, sizeof(to.norms));
  EXPECT(OK, "", pattern_from_blocks(e->context, &a, &good));
  WITH(BAD_ARGUMENT, "both", pattern_from_blocks(e->context, &a, &args), threshold, 1);
  WITH(NULL_POINTER, "block_idx", pattern_from_blocks(e->context, &a, &args), block_idx, NULL);
  WITH(BAD_SIZE, "sizes", pattern_from_blocks(e->context, &a, &args), rows, 5);

  const sparsek_bsr* const twice[2] = {&a, &a};
  int32_t joined_row_ptr[5], joined_col_idx[6];
  good = args_of(&to);
  good.rows = 8;
  good.cols = 12;
  good.capacity = 6;
  good.row_ptr = joined_row_ptr;
  good.col_idx = joined_col_idx;
  EXPECT(OK, "", pattern_block_diagonal(e->context, twice, 2, &good));
  EXPECT(NULL_POINTER, "matrices", pattern_block_diagonal(e->context, NULL, 2, &good));
  EXPECT(BAD_SIZE, "together", pattern_block_diagonal(e->context, twice, 1, &good));
  EXPECT(BAD_SIZE, "count", pattern_block_diagonal(e->context, twice, -1, &good));
  WITH(BAD_SIZE, "at most 6", pattern_block_diagonal(e->context, twice, 2, &args), capacity, 5);
}

/* The call with one member of args changed. */
#define WITH_VALUES(status, speaks_of, call, member, value) \
  do {                                                      \
    sparsek_values_args args = good;                        \
    args.member = value;                                    \
    EXPECT(status, speaks_of, call);                        \
  } while (0)

static void test_values(edge* e) {
  float out[24];
  const sparsek_bsr a = good_bsr();
  sparsek_bsr bare = a;
  bare.values = NULL;
  sparsek_values_args good = {.abi_size = sizeof(good), .a = &a, .out = out};
  EXPECT(OK, "", sum(e->context, &good));
  EXPECT(NULL_POINTER, "context", sum(NULL, &good));
  EXPECT(NULL_POINTER, "args", sum(e->context, NULL));
  EXPECT_ABI_SIZE(good, sum(e->context, &good));
  WITH_VALUES(NULL_POINTER, "a", sum(e->context, &args), a, NULL);
  WITH_VALUES(NULL_POINTER, "values", sum(e->context, &args), a, &bare);
  WITH_VALUES(NULL_POINTER, "out", sum(e->context, &args), out, NULL);
  WITH_VALUES(MISALIGNED, "out", sum(e->context, &args), out, (char*)out + 2);
  WITH_VALUES(BAD_ARGUMENT, "transposed", sum(e->context, &args), transposed, 2);
  WITH_VALUES(BAD_ARGUMENT, "reserved", sum(e->context, &args), reserved, 1);
  WITH_VALUES(BAD_ARGUMENT, "alpha", sum(e->context, &args), alpha, 1);
  EXPECT(OK, "", to_dense(e->context, &good));
  WITH_VALUES(BAD_LEADING_DIMENSION, "ld", to_dense(e->context, &args), ld, 5);
  WITH_VALUES(BAD_ARGUMENT, "order", to_dense(e->context, &args), order, 2);
  EXPECT(OK, "", block_norms(e->context, &good));
  WITH_VALUES(BAD_ARGUMENT, "norm", block_norms(e->context, &args), norm, -1);
  EXPECT(OK, "", scale(e->context, &good));
  WITH_VALUES(MISALIGNED, "row_factors", scale(e->context, &args), row_factors, (char*)out + 2);
  EXPECT(NULL_POINTER, "b", multiply_values(e->context, &good));
  EXPECT(NULL_POINTER, "b", add_values(e->context, &good));
  EXPECT(NULL_POINTER, "b", gather_values(e->context, &good));
}

void test_patterns(edge* e) {
  test_making(e);
  test_reading(e);
  test_values(e);
}
