/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "expect.h"

/* Another pattern of the same sizes, and one with fewer blocks. */
static const int32_t kOtherRowPtr[3] = {0, 2, 3}, kOtherColIdx[3] = {0, 1, 0};
static const int32_t kFewerRowPtr[3] = {0, 0, 1}, kFewerColIdx[3] = {1, -7, -7};
static const int32_t kFaultyColIdx[3] = {0, 9, 0};

static float b[6 * 8];

static sparsek_bsr with_index(const int32_t* row_ptr, const int32_t* col_idx) {
  sparsek_bsr bsr = good_bsr();
  bsr.row_ptr = row_ptr;
  bsr.col_idx = col_idx;
  return bsr;
}

/* The product with one more call's plan, to compare with. */
static void multiply_anew(edge* e, const sparsek_bsr* bsr, float* c) {
  sparsek_matrix* matrix = NULL;
  sparsek_plan* plan = NULL;
  sparsek_plan_options options = good_plan();
  sparsek_multiply_args args = {.abi_size = sizeof(args), .alpha = 1, .b = b, .c = c};
  EXPECT(OK, "", matrix_create(e->context, bsr, &matrix));
  EXPECT(OK, "", plan_create(matrix, &options, &plan));
  EXPECT(OK, "", multiply(plan, &args));
  e->api->plan_destroy(plan);
  e->api->matrix_destroy(matrix);
}

static void expect_same(edge* e, const char* place, const float* want, const float* got) {
  ++e->checks;
  if (memcmp(want, got, 4 * 8 * sizeof(float)) != 0) fprintf(e->failures, "%s: another C\n", place);
}

static void test_bound(edge* e) {
  sparsek_matrix* matrix = NULL;
  sparsek_bsr exact = with_index(kFewerRowPtr, kFewerColIdx), bound = exact;
  exact.nnzb = 1;
  EXPECT(ROW_PTR_END, "nnzb = 3", matrix_create(e->context, &bound, &matrix));
  bound.flags = SPARSEK_BSR_BOUND;
  float want[4 * 8], got[4 * 8];
  multiply_anew(e, &exact, want);
  multiply_anew(e, &bound, got);
  expect_same(e, EDGE_PLACE, want, got);
  /* The same in int16: wider elements there would be other numbers. */
  static const int16_t kRowPtr16[3] = {0, 0, 1}, kColIdx16[3] = {1, -7, -7};
  bound.index_type = SPARSEK_INT16;
  bound.row_ptr = kRowPtr16;
  bound.col_idx = kColIdx16;
  multiply_anew(e, &bound, got);
  expect_same(e, EDGE_PLACE, want, got);
  bound = good_bsr();
  bound.flags = SPARSEK_BSR_BOUND;
  bound.nnzb = 2;
  EXPECT(ROW_PTR_END, "nnzb = 2", matrix_create(e->context, &bound, &matrix));
}

static void test_update(edge* e) {
  sparsek_matrix* matrix = NULL;
  sparsek_plan* plan = NULL;
  sparsek_bsr first = good_bsr(), other = with_index(kOtherRowPtr, kOtherColIdx), faulty = other, taller = other;
  sparsek_plan_options options = good_plan();
  float want[4 * 8], got[4 * 8];
  sparsek_multiply_args args = {.abi_size = sizeof(args), .alpha = 1, .b = b, .c = got};
  EXPECT(OK, "", matrix_create(e->context, &first, &matrix));
  EXPECT(OK, "", plan_create(matrix, &options, &plan));
  EXPECT(NULL_POINTER, "plan", plan_update(NULL, &other));
  EXPECT(NULL_POINTER, "index", plan_update(plan, NULL));
  EXPECT_ABI_SIZE_SINCE(kFirstBsr, other, plan_update(plan, &other));
  faulty.col_idx = kFaultyColIdx;
  EXPECT(COL_IDX_RANGE, "col_idx[1] = 9", plan_update(plan, &faulty));
  taller.rows = 5;
  EXPECT(BAD_SIZE, "4 x 6 in blocks of 2 x 3", plan_update(plan, &taller));
  other.values = NULL; /* those that it has */
  EXPECT(OK, "", plan_update(plan, &other));
  EXPECT(OK, "", multiply(plan, &args));
  other.values = kValues;
  multiply_anew(e, &other, want);
  expect_same(e, EDGE_PLACE, want, got);
  e->api->plan_destroy(plan);
  e->api->matrix_destroy(matrix);
}

/* Two plans of SPARSEK_SDD of one matrix: a new index of one leaves the blocks that the other writes. */
static void test_update_sampled(edge* e) {
  static const int32_t kTwice[3] = {0, 0, 1};
  sparsek_matrix* matrix = NULL;
  sparsek_plan *kept = NULL, *changed = NULL;
  sparsek_bsr first = good_bsr(), fewer = with_index(kFewerRowPtr, kFewerColIdx), twice = first, more = first;
  sparsek_plan_options options = good_plan();
  options.op = SPARSEK_SDD;
  static float x[4 * 8], blocks[2 * 3 * 6];
  sparsek_multiply_args args = {.abi_size = sizeof(args), .alpha = 1, .b = b, .x = x, .c = blocks};
  EXPECT(OK, "", matrix_create(e->context, &first, &matrix));
  EXPECT(OK, "", plan_create(matrix, &options, &kept));
  EXPECT(OK, "", plan_create(matrix, &options, &changed));
  more.nnzb = 4;
  EXPECT(BAD_SIZE, "at most 3 blocks", plan_update(changed, &more));
  twice.block_idx = kTwice;
  EXPECT(BAD_ARGUMENT, "names block 0 twice", plan_update(changed, &twice));
  args.bytes_c = 3 * 6 * sizeof(float) - 1;
  EXPECT(BAD_SIZE, "args->bytes_c", multiply(changed, &args));
  fewer.nnzb = 1;
  EXPECT(OK, "", plan_update(changed, &fewer));
  EXPECT(BAD_SIZE, "args->bytes_c", multiply(kept, &args));
  args.bytes_c = 6 * sizeof(float);
  EXPECT(OK, "", multiply(changed, &args));
  args.bytes_c = 3 * 6 * sizeof(float);
  EXPECT(OK, "", multiply(kept, &args));
  args.batch = 2;
  args.bytes_c = sizeof(blocks);
  args.stride_c = 2 * 6;
  EXPECT(BAD_ARGUMENT, "overlap", multiply(kept, &args));
  args.stride_c = 3 * 6;
  EXPECT(OK, "", multiply(kept, &args));
  e->api->plan_destroy(kept);
  e->api->plan_destroy(changed);
  e->api->matrix_destroy(matrix);
}

static void test_plan_data(edge* e) {
  sparsek_bsr shape = good_bsr(), other = with_index(kOtherRowPtr, kOtherColIdx), faulty = other, taller = other;
  sparsek_plan_options options = good_plan();
  sparsek_plan_layout layout = {.abi_size = sizeof(layout)};
  shape.row_ptr = shape.col_idx = NULL;
  shape.values = NULL;
  EXPECT(NULL_POINTER, "context", plan_measure(NULL, &shape, &options, &layout));
  EXPECT(NULL_POINTER, "shape", plan_measure(e->context, NULL, &options, &layout));
  EXPECT(NULL_POINTER, "options", plan_measure(e->context, &shape, NULL, &layout));
  EXPECT(NULL_POINTER, "out", plan_measure(e->context, &shape, &options, NULL));
  EXPECT_ABI_SIZE(layout, plan_measure(e->context, &shape, &options, &layout));
  options.tuning_seconds = 1;
  EXPECT(BAD_ARGUMENT, "tuning_seconds", plan_measure(e->context, &shape, &options, &layout));
  options.tuning_seconds = 0;
  options.kernel = "no_such_kernel";
  EXPECT(NO_SUCH_KERNEL, "no_such_kernel", plan_measure(e->context, &shape, &options, &layout));
  options.kernel = NULL;
  EXPECT(OK, "", plan_measure(e->context, &shape, &options, &layout));

  char* const memory = aligned_alloc((size_t)layout.alignment, (size_t)(layout.bytes + 4095) / 4096 * 4096 + 4096);
  int64_t fault = -1;
  float want[4 * 8], got[4 * 8];
  sparsek_multiply_args args = {.abi_size = sizeof(args), .alpha = 1, .b = b, .c = got, .values = kValues};
  EXPECT(NULL_POINTER, "context", plan_write(NULL, &other, &layout, memory, &fault));
  EXPECT(NULL_POINTER, "index", plan_write(e->context, NULL, &layout, memory, &fault));
  EXPECT(NULL_POINTER, "layout", plan_write(e->context, &other, NULL, memory, &fault));
  EXPECT(NULL_POINTER, "memory", plan_write(e->context, &other, &layout, NULL, &fault));
  EXPECT(MISALIGNED, "memory", plan_write(e->context, &other, &layout, memory + 4, &fault));
  EXPECT(MISALIGNED, "fault", plan_write(e->context, &other, &layout, memory, (int64_t*)((char*)&fault + 1)));
  taller.rows = 5;
  EXPECT(BAD_SIZE, "measured for 4 x 6", plan_write(e->context, &taller, &layout, memory, &fault));
  sparsek_plan_layout damaged = layout;
  damaged.header[20] ^= 1;
  EXPECT(BAD_ARGUMENT, "not one that plan_measure wrote", plan_write(e->context, &other, &damaged, memory, &fault));
  EXPECT(BAD_ARGUMENT, "not one that plan_measure wrote", plan_run(e->context, &damaged, memory, &args));

  for (int i = 0; i < 2; ++i) {
    const sparsek_bsr index = i == 0 ? other : good_bsr();
    EXPECT(OK, "", plan_write(e->context, &index, &layout, memory, i == 0 ? &fault : NULL));
    multiply_anew(e, &index, want);
    EXPECT(OK, "", plan_run(e->context, &layout, memory, &args));
    expect_same(e, EDGE_PLACE, want, got);
  }
  EXPECT(NULL_POINTER, "context", plan_run(NULL, &layout, memory, &args));
  EXPECT(NULL_POINTER, "layout", plan_run(e->context, NULL, memory, &args));
  EXPECT(NULL_POINTER, "memory", plan_run(e->context, &layout, NULL, &args));
  EXPECT(NULL_POINTER, "args", plan_run(e->context, &layout, memory, NULL));
  args.values = NULL;
  EXPECT(NULL_POINTER, "args->values", plan_run(e->context, &layout, memory, &args));
  args.values = kValues;

  faulty.col_idx = kFaultyColIdx;
  ++e->checks;
  if (fault != 0) fprintf(e->failures, "a fault of a good index: %lld\n", (long long)fault);
  EXPECT(COL_IDX_RANGE, "col_idx[1] = 9", plan_write(e->context, &faulty, &layout, memory, &fault));
  ++e->checks;
  if (fault != SPARSEK_COL_IDX_RANGE) fprintf(e->failures, "the fault is %lld\n", (long long)fault);
  memset(want, 0, sizeof(want));
  EXPECT(OK, "", plan_run(e->context, &layout, memory, &args));
  expect_same(e, EDGE_PLACE, want, got);
  free(memory);
}

void test_changing_index(edge* e) {
  for (int i = 0; i < 6 * 8; ++i) b[i] = (float)(i % 7 - 3);
  test_bound(e);
  test_update(e);
  test_update_sampled(e);
  test_plan_data(e);
}
