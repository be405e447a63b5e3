/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "expect.h"

/* The matrix of expect.h, 4 x 6, and its plan of 8 columns. */
enum { kRows = 4, kCols = 6, kBlockM = 2, kBlockK = 3, kN = 8, kBlocks = 3 };

/* Integers, so that sums are exact. */
static void fill(float* to, int count, int seed) {
  for (int i = 0; i < count; ++i) to[i] = (float)((i * 7 + seed * 5) % 11 - 5);
}

/* c = alpha A b + beta c_in, by a plain loop. */
static void plain(const float* values, float alpha, const float* b, int ldb, float beta, const float* c_in, int ldc_in,
                  float* c, int ldc, int n) {
  for (int row = 0; row < kRows; ++row) {
    for (int col = 0; col < n; ++col) {
      float sum = 0;
      for (int i = kRowPtr[row / kBlockM]; i < kRowPtr[row / kBlockM + 1]; ++i) {
        for (int k = 0; k < kBlockK; ++k) {
          sum += values[(i * kBlockM + row % kBlockM) * kBlockK + k] * b[(kColIdx[i] * kBlockK + k) * ldb + col];
        }
      }
      c[row * ldc + col] = alpha * sum + (beta == 0 ? 0 : beta * c_in[row * ldc_in + col]);
    }
  }
}

static void same(edge* e, const char* what, const float* got, const float* want, int count) {
  ++e->checks;
  if (memcmp(got, want, sizeof(float) * count) != 0) fprintf(e->failures, "%s: another C than by a plain loop\n", what);
}

/* Fewer columns than planned, other strides, values, an input and factors of the product's own. */
static void test_results(edge* e) {
  enum { kLdb = 11, kLdc = 9, kLdcIn = 7 };
  float values[18], b[kCols * kLdb], c[kRows * kLdc], want[kRows * kLdc], c_in[kRows * kLdcIn];
  const float two = 2, three = 3, zero = 0;
  fill(values, 18, 1);
  fill(b, kCols * kLdb, 2);
  fill(c_in, kRows * kLdcIn, 3);
  for (int n = 1; n <= 5; n += 2) {
    sparsek_multiply_args args = {
        .abi_size = sizeof(args), .alpha = 1, .b = b, .ldb = kLdb, .c = c, .ldc = kLdc, .n = n};
    fill(c, kRows * kLdc, 4);
    memcpy(want, c, sizeof(c));
    plain(kValues, 1, b, kLdb, 0, NULL, 0, want, kLdc, n);
    EXPECT(OK, "", multiply(e->plan, &args));
    same(e, "fewer columns", c, want, kRows * kLdc);

    args.values = values;
    plain(values, 1, b, kLdb, 0, NULL, 0, want, kLdc, n);
    EXPECT(OK, "", multiply(e->plan, &args));
    same(e, "values", c, want, kRows * kLdc);

    args.c_in = c_in;
    args.ldc_in = kLdcIn;
    args.beta = -1;
    plain(values, 1, b, kLdb, -1, c_in, kLdcIn, want, kLdc, n);
    EXPECT(OK, "", multiply(e->plan, &args));
    same(e, "input", c, want, kRows * kLdc);

    args.alpha_device = &two;
    args.beta_device = &three;
    plain(values, 2, b, kLdb, -3, c_in, kLdcIn, want, kLdc, n);
    EXPECT(OK, "", multiply(e->plan, &args));
    same(e, "factors", c, want, kRows * kLdc);

    /* One row for all. */
    args.ldc_in = -1;
    plain(values, 2, b, kLdb, -3, c_in, 0, want, kLdc, n);
    EXPECT(OK, "", multiply(e->plan, &args));
    same(e, "one row as input", c, want, kRows * kLdc);
    args.ldc_in = kLdcIn;

    /* A factor of 0 reads the input as little as beta = 0 does. */
    args.beta_device = &zero;
    float none[kRows * kLdcIn];
    for (int i = 0; i < kRows * kLdcIn; ++i) none[i] = NAN;
    args.c_in = none;
    plain(values, 2, b, kLdb, 0, NULL, 0, want, kLdc, n);
    EXPECT(OK, "", multiply(e->plan, &args));
    same(e, "a factor of 0", c, want, kRows * kLdc);
    args.beta = 0;
    args.beta_device = NULL;
    EXPECT(OK, "", multiply(e->plan, &args));
    same(e, "an input that is not read", c, want, kRows * kLdc);
  }
}

/* A matrix that never had values. */
static void test_pattern_alone(edge* e) {
  float b[kCols * kN], c[kRows * kN], want[kRows * kN];
  fill(b, kCols * kN, 6);
  sparsek_bsr bsr = good_bsr();
  bsr.values = NULL;
  sparsek_plan_options options = good_plan();
  sparsek_matrix* matrix = NULL;
  sparsek_plan* plan = NULL;
  EXPECT(OK, "", matrix_create(e->context, &bsr, &matrix));
  EXPECT(OK, "", plan_create(matrix, &options, &plan));
  sparsek_multiply_args args = {.abi_size = sizeof(args), .alpha = 1, .b = b, .c = c};
  EXPECT(NULL_POINTER, "the matrix has no values yet", multiply(plan, &args));
  args.values = kValues;
  EXPECT(OK, "", multiply(plan, &args));
  plain(kValues, 1, b, kN, 0, NULL, 0, want, kN, kN);
  same(e, "a pattern alone", c, want, kRows * kN);
  args.values = NULL; /* the matrix did not keep them */
  EXPECT(NULL_POINTER, "the matrix has no values yet", multiply(plan, &args));
  e->api->plan_destroy(plan);
  e->api->matrix_destroy(matrix);
}

static void test_faults(edge* e) {
  float b[kCols * kN] = {0}, c[kRows * kN] = {0};
  _Alignas(256) char workspace[256];
  sparsek_multiply_args args = {.abi_size = sizeof(args), .alpha = 1, .b = b, .c = c};
  WITH_ARGS(BAD_SIZE, "args->n = 9 is not in [0, 8]", n, 9);
  WITH_ARGS(BAD_SIZE, "args->n = -1", n, -1);
  WITH_ARGS(OK, "", n, 8);
  WITH_ARGS(MISALIGNED, "args->values", values, (const char*)kValues + 2);
  WITH_ARGS(BAD_ARGUMENT, "args->values and args->c overlap", values, c);
  WITH_ARGS(BAD_ARGUMENT, "args->c_in and args->c overlap", c_in, c + 1);
  WITH_ARGS(OK, "", c_in, c);
  WITH_ARGS(MISALIGNED, "args->c_in", c_in, (char*)b + 1);
  WITH_ARGS(BAD_ARGUMENT, "args->ldc_in = 8 without args->c_in", ldc_in, 8);
  WITH_ARGS(BAD_ARGUMENT, "args->ldc_in = -1 without args->c_in", ldc_in, -1);
  WITH_ARGS(MISALIGNED, "args->alpha_device", alpha_device, (const float*)((const char*)b + 2));
  WITH_ARGS(MISALIGNED, "args->beta_device", beta_device, (const float*)((const char*)b + 1));
  WITH_ARGS(UNSUPPORTED_DTYPE, "args->dtype_b = 2 is not 3", dtype_b, SPARSEK_FP16);
  WITH_ARGS(OK, "", dtype_b, SPARSEK_FP32);
  WITH_ARGS(BAD_SIZE, "args->bytes_b = 191 is below the 192 bytes", bytes_b, sizeof(b) - 1);
  WITH_ARGS(BAD_SIZE, "args->bytes_b = -1", bytes_b, -1);
  WITH_ARGS(OK, "", bytes_b, sizeof(b));
  WITH_ARGS(BAD_SIZE, "args->bytes_c = 127 is below the 128 bytes", bytes_c, sizeof(c) - 1);
  WITH_ARGS(OK, "", bytes_c, sizeof(c));
  WITH_ARGS(NULL_POINTER, "args->workspace is null", workspace_bytes, 1);
  WITH_ARGS(MISALIGNED, "args->workspace", workspace, workspace + 16);
  WITH_ARGS(OK, "", workspace, workspace);

  sparsek_multiply_args given = args;
  given.c_in = b;
  given.ldc_in = kN - 1;
  EXPECT(BAD_LEADING_DIMENSION, "args->ldc_in = 7", multiply(e->plan, &given));
  given.ldc_in = -2;
  EXPECT(BAD_LEADING_DIMENSION, "args->ldc_in = -2", multiply(e->plan, &given));
  given.c_in = c;
  given.ldc_in = -1;
  EXPECT(BAD_ARGUMENT, "args->c_in and args->c overlap", multiply(e->plan, &given));

  /* One row that a view repeats, with a stride of 0, has too few bytes; and where the planned stride has gaps, a
   * stride of 0 is no stride. */
  given = args;
  given.bytes_b = kN * sizeof(float);
  EXPECT(BAD_SIZE, "args->bytes_b = 32", multiply(e->plan, &given));
  sparsek_plan* pitched = NULL;
  sparsek_plan_options options = good_plan();
  options.ldb = options.ldc = kN + 2;
  float wide[kCols * (kN + 2)] = {0}, wide_c[kRows * (kN + 2)];
  EXPECT(OK, "", plan_create(e->matrix, &options, &pitched));
  given.b = wide;
  given.c = wide_c;
  given.bytes_b = 0;
  EXPECT(OK, "", multiply(pitched, &given));
  given.bytes_b = sizeof(wide);
  EXPECT(BAD_LEADING_DIMENSION, "args->ldb = 0 where the plan has gaps", multiply(pitched, &given));
  given.ldb = kN + 2;
  EXPECT(OK, "", multiply(pitched, &given));
  given.bytes_c = sizeof(wide_c);
  EXPECT(BAD_LEADING_DIMENSION, "args->ldc = 0 where the plan has gaps", multiply(pitched, &given));
  e->api->plan_destroy(pitched);
}

void test_product_arguments(edge* e) {
  test_results(e);
  test_pattern_alone(e);
  test_faults(e);
}

void test_batches(edge* e) {
  enum { kBatch = 3 };
  float b[kBatch][kCols * kN], c[kBatch][kRows * kN], want[kBatch][kRows * kN], values[kBatch][18];
  fill(b[0], kBatch * kCols * kN, 1);
  fill(values[0], kBatch * 18, 2);
  fill(c[0], kBatch * kRows * kN, 3);
  sparsek_multiply_args args = {.abi_size = sizeof(args),
                                .alpha = 1,
                                .beta = 2,
                                .b = b,
                                .c = c,
                                .values = values,
                                .batch = kBatch,
                                .stride_b = kCols * kN,
                                .stride_c = kRows * kN,
                                .stride_values = 18,
                                .bytes_b = sizeof(b),
                                .bytes_c = sizeof(c)};
  for (int i = 0; i < kBatch; ++i) plain(values[i], 1, b[i], kN, 2, c[i], kN, want[i], kN, kN);
  EXPECT(OK, "", multiply(e->plan, &args));
  same(e, "batch", c[0], want[0], kBatch * kRows * kN);

  /* One B and one set of values for all; a row of C comes from another place. */
  args.stride_b = args.stride_values = 0;
  args.c_in = want;
  args.beta = 1;
  float others[kBatch][kRows * kN];
  for (int i = 0; i < kBatch; ++i) plain(values[0], 1, b[0], kN, 1, want[i], kN, others[i], kN, kN);
  EXPECT(OK, "", multiply(e->plan, &args));
  same(e, "shared operands", c[0], others[0], kBatch * kRows * kN);

  double seconds = 0;
  EXPECT(BAD_ARGUMENT, "args->batch = 3: single products are timed", multiply_time(e->plan, &args, 1, 0, 1, &seconds));
  WITH_ARGS(BAD_SIZE, "args->batch = -1", batch, -1);
  WITH_ARGS(BAD_SIZE, "args->stride_b = -1", stride_b, -1);
  WITH_ARGS(BAD_SIZE, "args->stride_c", stride_c, INT64_MAX / 2);
  WITH_ARGS(BAD_ARGUMENT, "C of product 0 and of product 1 of the batch overlap", stride_c, 0);
  WITH_ARGS(BAD_ARGUMENT, "overlap", stride_c, kN);

  WITH_ARGS(BAD_SIZE, "args->bytes_c", bytes_c, sizeof(c) - 1);
  WITH_ARGS(BAD_SIZE, "args->bytes_c = 256 ends before product 2", bytes_c, 2 * sizeof(c[0]));
  WITH_ARGS(OK, "", batch, 1);
  args.values = NULL;
  EXPECT(OK, "", multiply(e->plan, &args));
  WITH_ARGS(BAD_ARGUMENT, "args->stride_values = 18 without args->values", stride_values, 18);
}
