/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include "expect.h"

static void* no_memory(void* user, size_t bytes, int32_t device, sparsek_stream stream) {
  (void)user, (void)bytes, (void)device, (void)stream;
  return NULL;
}
static void keep_memory(void* user, void* memory, size_t bytes, int32_t device, sparsek_stream stream) {
  (void)user, (void)memory, (void)bytes, (void)device, (void)stream;
}

void test_context(edge* e) {
  sparsek_context* context = NULL;
  sparsek_context_options options = {sizeof(options), SPARSEK_CPU, 0, 1};
  EXPECT(NULL_POINTER, "options", context_create(NULL, &context));
  EXPECT(NULL_POINTER, "out", context_create(&options, NULL));
  EXPECT_ABI_SIZE_SINCE(24, options, context_create(&options, &context));
  options.backend = 3;
  EXPECT(BAD_ARGUMENT, "options->backend = 3", context_create(&options, &context));
  options.backend = -1;
  EXPECT(BAD_ARGUMENT, "options->backend = -1", context_create(&options, &context));
  options.backend = SPARSEK_CPU;
  options.threads = -1;
  EXPECT(BAD_ARGUMENT, "options->threads = -1", context_create(&options, &context));
  options.threads = 1;
  options.device = -1;
  EXPECT(BAD_ARGUMENT, "options->device = -1", context_create(&options, &context));
  options.device = 0;
  options.allocate = no_memory;
  EXPECT(NULL_POINTER, "options->release is null and options->allocate is not", context_create(&options, &context));
  options.allocate = NULL;
  options.release = keep_memory;
  EXPECT(NULL_POINTER, "options->allocate is null", context_create(&options, &context));
  options.release = NULL;
  options.device = 1 << 20;
  options.backend = SPARSEK_CUDA;
  EXPECT(NO_DEVICE, "", context_create(&options, &context));
  ++e->checks;
  if (context != NULL) fprintf(e->failures, "a failed context_create left a context\n");

  sparsek_context_info info = {.abi_size = sizeof(info)};
  EXPECT(NULL_POINTER, "context", context_info(NULL, &info));
  EXPECT(NULL_POINTER, "out", context_info(e->context, NULL));
  EXPECT_ABI_SIZE(info, context_info(e->context, &info));
  e->api->context_destroy(NULL);
}

/* One member of a good matrix is made bad at a time. */
#define BAD_BSR(status, speaks_of, member, value)                        \
  do {                                                                   \
    sparsek_bsr bad = good_bsr();                                        \
    bad.member = value;                                                  \
    EXPECT(status, speaks_of, matrix_create(e->context, &bad, &matrix)); \
  } while (0)

void test_matrix(edge* e) {
  sparsek_matrix* matrix = NULL;
  sparsek_bsr bsr = good_bsr();
  EXPECT(NULL_POINTER, "context", matrix_create(NULL, &bsr, &matrix));
  EXPECT(NULL_POINTER, "bsr", matrix_create(e->context, NULL, &matrix));
  EXPECT(NULL_POINTER, "out", matrix_create(e->context, &bsr, NULL));
  EXPECT_ABI_SIZE_SINCE(kFirstBsr, bsr, matrix_create(e->context, &bsr, &matrix));
  BAD_BSR(BAD_SIZE, "-1", rows, -1);
  BAD_BSR(BAD_SIZE, "-6", cols, -6);
  BAD_BSR(BAD_SIZE, "block", block_m, 0);
  BAD_BSR(BAD_SIZE, "block", block_k, -3);
  BAD_BSR(BAD_SIZE, "nnzb", nnzb, -1);
  BAD_BSR(BAD_SIZE, "", nnzb, INT64_MAX);
  BAD_BSR(BAD_SIZE, "", rows, INT64_MAX);
  BAD_BSR(BAD_SIZE, "", block_m, INT64_MAX);
  BAD_BSR(UNSUPPORTED_DTYPE, "dtype", dtype, 0);
  BAD_BSR(UNSUPPORTED_DTYPE, "dtype", dtype, 5);
  BAD_BSR(BAD_ARGUMENT, "index_type", index_type, 0);
  BAD_BSR(BAD_ARGUMENT, "memory = 3", memory, 3);
  BAD_BSR(BAD_ARGUMENT, "bsr->reserved = 2", reserved, 2);
  BAD_BSR(WRONG_MEMORY, "", memory, SPARSEK_DEVICE);
  BAD_BSR(NULL_POINTER, "row_ptr", row_ptr, NULL);
  BAD_BSR(NULL_POINTER, "col_idx", col_idx, NULL);
  BAD_BSR(MISALIGNED, "row_ptr", row_ptr, (const char*)kRowPtr + 1);
  BAD_BSR(MISALIGNED, "col_idx", col_idx, (const char*)kColIdx + 2);
  BAD_BSR(MISALIGNED, "values", values, (const char*)kValues + 2);
  ++e->checks;
  if (matrix != NULL) fprintf(e->failures, "a failed matrix_create left a matrix\n");

  EXPECT(NULL_POINTER, "matrix", matrix_set_values(NULL, kValues, SPARSEK_HOST, NULL));
  EXPECT(NULL_POINTER, "values", matrix_set_values(e->matrix, NULL, SPARSEK_HOST, NULL));
  EXPECT(BAD_ARGUMENT, "memory = 0", matrix_set_values(e->matrix, kValues, 0, NULL));
  EXPECT(WRONG_MEMORY, "", matrix_set_values(e->matrix, kValues, SPARSEK_DEVICE, NULL));
  EXPECT(MISALIGNED, "values", matrix_set_values(e->matrix, (const char*)kValues + 1, SPARSEK_HOST, NULL));
  e->api->matrix_destroy(NULL);
}

#define BAD_PLAN(status, speaks_of, member, value)                  \
  do {                                                              \
    sparsek_plan_options bad = good_plan();                         \
    bad.member = value;                                             \
    EXPECT(status, speaks_of, plan_create(e->matrix, &bad, &plan)); \
  } while (0)

void test_plan(edge* e) {
  sparsek_plan* plan = NULL;
  sparsek_plan_options options = good_plan();
  EXPECT(NULL_POINTER, "matrix", plan_create(NULL, &options, &plan));
  EXPECT(NULL_POINTER, "options", plan_create(e->matrix, NULL, &plan));
  EXPECT(NULL_POINTER, "out", plan_create(e->matrix, &options, NULL));
  EXPECT_ABI_SIZE_SINCE(kFirstPlanOptions, options, plan_create(e->matrix, &options, &plan));
  BAD_PLAN(BAD_SIZE, "n = -1", n, -1);
  BAD_PLAN(BAD_SIZE, "ldb", ldb, INT64_MAX);
  BAD_PLAN(BAD_LEADING_DIMENSION, "ldb = 7", ldb, 7);
  BAD_PLAN(BAD_LEADING_DIMENSION, "ldc = -8", ldc, -8);
  BAD_PLAN(BAD_ARGUMENT, "alignment = 2", alignment, 2);
  BAD_PLAN(BAD_ARGUMENT, "alignment = 24", alignment, 24);
  BAD_PLAN(BAD_ARGUMENT, "alignment = -16", alignment, -16);
  BAD_PLAN(BAD_ARGUMENT, "options->reserved = 7", reserved, 7);
  BAD_PLAN(BAD_ARGUMENT, "options->reserved2 = -1", reserved2, -1);
  BAD_PLAN(BAD_ARGUMENT, "options->reserved3 = 1", reserved3, 1);
  BAD_PLAN(BAD_ARGUMENT, "options->reserved4 = 1", reserved4, 1);
  struct {
    sparsek_plan_options known;
    char unknown[24];
  } newer = {good_plan(), {0}};
  newer.known.abi_size = sizeof(newer);
  EXPECT(OK, "", plan_create(e->matrix, &newer.known, &plan));
  e->api->plan_destroy(plan);
  newer.unknown[17] = 1;
  EXPECT(BAD_ABI_SIZE, "options has a member at byte", plan_create(e->matrix, &newer.known, &plan));
  BAD_PLAN(BAD_ARGUMENT, "allow_dense = 2", allow_dense, 2);
  BAD_PLAN(BAD_ARGUMENT, "allow_dense = -1", allow_dense, -1);
  BAD_PLAN(NO_SUCH_KERNEL, "no such thing", kernel, "no such thing");
  BAD_PLAN(UNSUPPORTED_DTYPE, "options->dtype_c = 5", dtype_c, 5);
  BAD_PLAN(UNSUPPORTED_DTYPE, "options->dtype_c = -1", dtype_c, -1);
  BAD_PLAN(UNSUPPORTED_DTYPE, "options->dtype_b = 5 is none of", dtype_b, 5);
  BAD_PLAN(UNSUPPORTED_DTYPE, "options->dtype_b = 2 with A of dtype 3", dtype_b, SPARSEK_FP16);
  BAD_PLAN(BAD_ARGUMENT, "options->bias = 3", bias, 3);
  BAD_PLAN(BAD_ARGUMENT, "options->bias = -1", bias, -1);
  BAD_PLAN(BAD_ARGUMENT, "options->activation = 4", activation, 4);
  BAD_PLAN(BAD_ARGUMENT, "options->activation = -1", activation, -1);
  ++e->checks;
  if (plan != NULL) fprintf(e->failures, "a failed plan_create left a plan\n");

  sparsek_plan_info info = {.abi_size = sizeof(info)};
  EXPECT(NULL_POINTER, "plan", plan_info(NULL, &info));
  EXPECT(NULL_POINTER, "out", plan_info(e->plan, NULL));
  EXPECT_ABI_SIZE_SINCE(kFirstPlanInfo, info, plan_info(e->plan, &info));
  e->api->plan_destroy(NULL);
}

void test_multiply(edge* e) {
  float b[48] = {0}, c[32] = {0};
  double seconds[2];
  sparsek_multiply_args args[2];
  for (int i = 0; i < 2; ++i) {
    sparsek_multiply_args one = {sizeof(one), 1, 0, b, 8, c, 0, NULL};
    args[i] = one;
  }
  EXPECT(OK, "", multiply(e->plan, args));
  EXPECT(NULL_POINTER, "plan", multiply(NULL, args));
  EXPECT(NULL_POINTER, "args", multiply(e->plan, NULL));
  EXPECT_ABI_SIZE_SINCE(kFirstMultiplyArgs, args[0], multiply(e->plan, args));
  args[0].ldb = 7;
  EXPECT(BAD_LEADING_DIMENSION, "ldb = 7", multiply(e->plan, args));
  args[0].ldb = -8;
  EXPECT(BAD_LEADING_DIMENSION, "ldb = -8", multiply(e->plan, args));
  args[0].ldb = INT64_MAX / 2;
  EXPECT(BAD_SIZE, "args->ldb", multiply(e->plan, args));
  args[0].ldb = 0;
  args[0].ldc = 7;
  EXPECT(BAD_LEADING_DIMENSION, "ldc = 7", multiply(e->plan, args));
  args[0].ldc = 0;
  args[0].alpha = HUGE_VALF;
  EXPECT(BAD_ARGUMENT, "args->alpha", multiply(e->plan, args));
  args[0].alpha = 1;
  args[0].beta = NAN;
  EXPECT(BAD_ARGUMENT, "args->beta", multiply(e->plan, args));
  args[0].beta = 0;
  args[0].b = NULL;
  EXPECT(NULL_POINTER, "args->b", multiply(e->plan, args));
  args[0].b = (const char*)b + 2;
  EXPECT(MISALIGNED, "args->b", multiply(e->plan, args));
  args[0].b = b;
  args[0].c = NULL;
  EXPECT(NULL_POINTER, "args->c", multiply(e->plan, args));
  args[0].c = (char*)c + 1;
  EXPECT(MISALIGNED, "args->c", multiply(e->plan, args));

  /* C is none of what the product reads, unless their rows lie in each other's gaps. */
  args[0].c = b;
  EXPECT(BAD_ARGUMENT, "args->b and args->c overlap", multiply(e->plan, args));
  args[0].c = b + 47;
  EXPECT(BAD_ARGUMENT, "args->b and args->c overlap", multiply(e->plan, args));
  float both[6 * 16 + 8] = {0};
  sparsek_plan* side_by_side = NULL;
  sparsek_plan_options pitched = good_plan();
  pitched.ldb = pitched.ldc = 16;
  EXPECT(OK, "", plan_create(e->matrix, &pitched, &side_by_side));
  args[0].b = both;
  args[0].ldb = args[0].ldc = 16;
  for (int shift = -7; shift <= 7; ++shift) {
    args[0].c = both + 8 + shift;
    if (shift == 0) {
      EXPECT(OK, "", multiply(side_by_side, args));
    } else {
      EXPECT(BAD_ARGUMENT, "overlap", multiply(side_by_side, args));
    }
  }
  args[0].b = both + 8;
  args[0].c = both;
  EXPECT(OK, "", multiply(side_by_side, args));
  e->api->plan_destroy(side_by_side);
  args[0].b = b;
  args[0].ldb = args[0].ldc = 0;
  args[0].c = c;

  /* The alignment that a plan was promised is asked for, not only that of an element. */
  sparsek_plan* aligned = NULL;
  sparsek_plan_options options = good_plan();
  options.alignment = 64;
  float wide[64 + 16];
  float* start = (float*)(((uintptr_t)wide + 63) / 64 * 64);
  EXPECT(OK, "", plan_create(e->matrix, &options, &aligned));
  args[0].b = start;
  args[0].c = start + 8;
  EXPECT(MISALIGNED, "or set options->alignment", multiply(aligned, args));
  args[0].b = start + 8;
  args[0].c = start;
  EXPECT(MISALIGNED, "args->b", multiply(aligned, args));
  args[0].b = b;
  args[0].c = c;
  e->api->plan_destroy(aligned);

  EXPECT(OK, "", multiply_time(e->plan, args, 2, 1, 2, seconds));
  EXPECT(NULL_POINTER, "plan", multiply_time(NULL, args, 2, 1, 2, seconds));
  EXPECT(NULL_POINTER, "args", multiply_time(e->plan, NULL, 2, 1, 2, seconds));
  EXPECT(NULL_POINTER, "seconds", multiply_time(e->plan, args, 2, 1, 2, NULL));
  EXPECT(BAD_SIZE, "arg_count", multiply_time(e->plan, args, 0, 1, 2, seconds));
  EXPECT(BAD_SIZE, "warmup", multiply_time(e->plan, args, 2, -1, 2, seconds));
  EXPECT(BAD_SIZE, "repeats", multiply_time(e->plan, args, 2, 1, 0, seconds));
  args[1].abi_size = 0;
  EXPECT(BAD_ABI_SIZE, "args[1]", multiply_time(e->plan, args, 2, 1, 2, seconds));
}

/* The arguments are checked before a GPU is asked for, so that all but the last call say what is wrong. */
void test_graph_time(edge* e) {
  float b[48] = {0}, c[32] = {0};
  double seconds[2];
  sparsek_multiply_args args[2];
  for (int i = 0; i < 2; ++i) {
    sparsek_multiply_args one = {sizeof(one), 1, 0, b, 8, c, 0, NULL};
    args[i] = one;
  }
  sparsek_plan* plans[2] = {e->plan, e->plan};
  EXPECT(NULL_POINTER, "plans", graph_time(NULL, args, 2, 1, 2, seconds));
  EXPECT(NULL_POINTER, "args", graph_time(plans, NULL, 2, 1, 2, seconds));
  EXPECT(NULL_POINTER, "seconds", graph_time(plans, args, 2, 1, 2, NULL));
  EXPECT(BAD_SIZE, "count = 0", graph_time(plans, args, 0, 1, 2, seconds));
  EXPECT(BAD_SIZE, "warmup = -1", graph_time(plans, args, 2, -1, 2, seconds));
  EXPECT(BAD_SIZE, "repeats = 0", graph_time(plans, args, 2, 1, 0, seconds));
  EXPECT_ABI_SIZE_SINCE(kFirstMultiplyArgs, args[0], graph_time(plans, args, 2, 1, 2, seconds));
  args[1].abi_size = 0;
  EXPECT(BAD_ABI_SIZE, "args[1]", graph_time(plans, args, 2, 1, 2, seconds));
  args[1].abi_size = sizeof(args[1]);
  args[1].c = NULL;
  EXPECT(NULL_POINTER, "args->c", graph_time(plans, args, 2, 1, 2, seconds));
  args[1].c = c;
  args[1].bias = b;
  EXPECT(BAD_ARGUMENT, "args->bias", graph_time(plans, args, 2, 1, 2, seconds));
  args[1].bias = NULL;
  plans[1] = NULL;
  EXPECT(NULL_POINTER, "plans[1]", graph_time(plans, args, 2, 1, 2, seconds));

  sparsek_context* context = NULL;
  sparsek_matrix* matrix = NULL;
  sparsek_context_options options = {sizeof(options), SPARSEK_CPU, 0, 1};
  sparsek_bsr bsr = good_bsr();
  sparsek_plan_options plan_options = good_plan();
  EXPECT(OK, "", context_create(&options, &context));
  EXPECT(OK, "", matrix_create(context, &bsr, &matrix));
  EXPECT(OK, "", plan_create(matrix, &plan_options, &plans[1]));
  EXPECT(BAD_ARGUMENT, "plans[1] is of another context", graph_time(plans, args, 2, 1, 2, seconds));
  e->api->plan_destroy(plans[1]);
  e->api->matrix_destroy(matrix);
  e->api->context_destroy(context);

  plans[1] = e->plan;
  EXPECT(NO_DEVICE, "no GPU", graph_time(plans, args, 2, 1, 2, seconds));
}

/* A pattern may come before its values; a product may not. Handles may be destroyed in any order. */
void test_values_later(edge* e) {
  sparsek_matrix* matrix = NULL;
  sparsek_plan* plan = NULL;
  float b[48], c[32];
  for (int i = 0; i < 48; ++i) b[i] = 1;
  sparsek_bsr bsr = good_bsr();
  bsr.values = NULL;
  sparsek_plan_options options = good_plan();
  sparsek_multiply_args args = {sizeof(args), 1, 0, b, 0, c, 0, NULL};
  sparsek_context* context = NULL;
  sparsek_context_options context_options = {sizeof(context_options), SPARSEK_CPU, 0, 1};
  EXPECT(OK, "", context_create(&context_options, &context));
  EXPECT(OK, "", matrix_create(context, &bsr, &matrix));
  EXPECT(OK, "", plan_create(matrix, &options, &plan));
  EXPECT(NULL_POINTER, "values", multiply(plan, &args));
  EXPECT(OK, "", matrix_set_values(matrix, kValues, SPARSEK_HOST, NULL));
  e->api->context_destroy(context);
  EXPECT(OK, "", multiply(plan, &args));
  ++e->checks;
  if (c[0] != 6 || c[8] != 15 || c[16] != 2 || c[24] != 3) {
    fprintf(e->failures, "C is %g %g %g %g, want 6 15 2 3\n", c[0], c[8], c[16], c[24]);
  }
  e->api->matrix_destroy(matrix);
  e->api->plan_destroy(plan);
}
