/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "expect.h"

/* One new member of something good is set at a time. */
#define WITH_BSR(status, speaks_of, member, value)                         \
  do {                                                                     \
    sparsek_bsr given = good_bsr();                                        \
    given.member = value;                                                  \
    EXPECT(status, speaks_of, matrix_create(e->context, &given, &matrix)); \
  } while (0)
#define WITH_PLAN(status, speaks_of, member, value)                   \
  do {                                                                \
    sparsek_plan_options given = good_plan();                         \
    given.member = value;                                             \
    EXPECT(status, speaks_of, plan_create(e->matrix, &given, &plan)); \
  } while (0)

static void test_bsr_members(edge* e) {
  sparsek_matrix* matrix = NULL;
  WITH_BSR(UNSUPPORTED_DTYPE, "dtype = 5 is none of", dtype, 5);
  WITH_BSR(MISALIGNED, "bsr->block_idx", block_idx, (const char*)kColIdx + 2);
  WITH_BSR(BAD_ARGUMENT, "bsr->flags = 16", flags, 16);
  WITH_BSR(BAD_ARGUMENT, "bsr->flags = -1", flags, -1);
  WITH_BSR(BAD_ARGUMENT, "bsr->reserved = -1", reserved, -1);
  WITH_BSR(BAD_ARGUMENT, "bsr->reserved2 = 1", reserved2, 1);
  sparsek_bsr device = good_bsr();
  device.memory = SPARSEK_DEVICE;
  device.flags = SPARSEK_BSR_ASYNC;
  EXPECT(WRONG_MEMORY, "", matrix_create(e->context, &device, &matrix));
  device.flags |= SPARSEK_BSR_FROZEN;
  EXPECT(BAD_ARGUMENT, "bsr->flags has SPARSEK_BSR_FROZEN and SPARSEK_BSR_ASYNC",
         matrix_create(e->context, &device, &matrix));
  ++e->checks;
  if (matrix != NULL) fprintf(e->failures, "a matrix was made with members that are not served\n");

  /* Of host arrays the stream and the flag have no meaning, and 1 was a value of the member that is reserved now. */
  sparsek_bsr host = good_bsr();
  host.stream = &host;
  host.flags = SPARSEK_BSR_ASYNC | SPARSEK_BSR_FROZEN;
  host.reserved = 1;
  EXPECT(OK, "", matrix_create(e->context, &host, &matrix));
  e->api->matrix_destroy(matrix);
}

static void test_plan_members(edge* e) {
  sparsek_plan* plan = NULL;
  WITH_PLAN(UNSUPPORTED_DTYPE, "C is of SPARSEK_FP64 (4) where B is, and only then", dtype_c, SPARSEK_FP64);
  WITH_PLAN(BAD_ARGUMENT, "options->op = 5 is none of SPARSEK_DSD", op, 5);
  WITH_PLAN(BAD_ARGUMENT, "options->op = -1 is none of", op, -1);
  WITH_PLAN(BAD_ARGUMENT, "options->order_b = 2 is none of", order_b, 2);
  WITH_PLAN(BAD_ARGUMENT, "options->order_c = -1 is none of", order_c, -1);
  WITH_PLAN(BAD_ARGUMENT, "options->order_x = 1: X is SPARSEK_SDD's", order_x, 1);
  WITH_PLAN(BAD_ARGUMENT, "options->ldx = 8: X is SPARSEK_SDD's", ldx, 8);
  WITH_PLAN(BAD_ARGUMENT, "options->reserved5 = 1", reserved5, 1);
  WITH_PLAN(BAD_ARGUMENT, "options->compute = 2 is none of", compute, 2);
  WITH_PLAN(BAD_ARGUMENT, "options->flags = 8", flags, 8);
  WITH_PLAN(BAD_ARGUMENT, "workers = -1 is negative", workers, -1);
  WITH_PLAN(BAD_ARGUMENT, "values_static = 2 is neither 0 nor 1", values_static, 2);
  WITH_PLAN(BAD_ARGUMENT, "options->alignment_c = 24", alignment_c, 24);
  WITH_PLAN(BAD_ARGUMENT, "options->alignment_c = 2", alignment_c, 2);
  ++e->checks;
  if (plan != NULL) fprintf(e->failures, "a plan was made with members that are not served\n");
  WITH_PLAN(OK, "", compute, SPARSEK_COMPUTE_TF32);
  e->api->plan_destroy(plan);
}

static void test_multiply_members(edge* e) {
  float b[48] = {0}, c[32] = {0};
  sparsek_multiply_args args = {.abi_size = sizeof(args), .alpha = 1, .b = b, .c = c};
  EXPECT(OK, "", multiply(e->plan, &args));
  WITH_ARGS(OK, "", flags, SPARSEK_TRUSTED);
  WITH_ARGS(BAD_ARGUMENT, "args->flags = 2", flags, 2);
  WITH_ARGS(BAD_ARGUMENT, "args->reserved = 1", reserved, 1);
}

/* Callers that were compiled before the members existed: what lies behind their structs is not read. */
static void test_older_callers(edge* e) {
  float b[48] = {0}, c[32] = {0};
  sparsek_matrix* matrix = NULL;
  sparsek_plan* plan = NULL;
  sparsek_bsr bsr;
  memset(&bsr, 0xff, sizeof(bsr));
  const sparsek_bsr good = good_bsr();
  memcpy(&bsr, &good, kFirstBsr);
  EXPECT(BAD_ARGUMENT, "", matrix_create(e->context, &bsr, &matrix));
  bsr.abi_size = kFirstBsr;
  EXPECT(OK, "", matrix_create(e->context, &bsr, &matrix));

  sparsek_plan_options options;
  memset(&options, 0xff, sizeof(options));
  const sparsek_plan_options good_options = good_plan();
  memcpy(&options, &good_options, kSecondPlanOptions);
  EXPECT(BAD_ARGUMENT, "", plan_create(matrix, &options, &plan));
  options.abi_size = kSecondPlanOptions;
  EXPECT(OK, "", plan_create(matrix, &options, &plan));

  sparsek_multiply_args args;
  memset(&args, 0xff, sizeof(args));
  const sparsek_multiply_args good_args = {.abi_size = sizeof(args), .alpha = 1, .b = b, .c = c};
  memcpy(&args, &good_args, kSecondMultiplyArgs);
  EXPECT(BAD_ARGUMENT, "", multiply(plan, &args));
  args.abi_size = kSecondMultiplyArgs;
  EXPECT(OK, "", multiply(plan, &args));
  e->api->plan_destroy(plan);
  e->api->matrix_destroy(matrix);
}

void test_members(edge* e) {
  test_bsr_members(e);
  test_plan_members(e);
  test_multiply_members(e);
  test_older_callers(e);
}

/* Describing a plan without a wait, the state of a matrix, and letting handles go in the order of a stream. */
void test_handle_services(edge* e) {
  sparsek_plan_info info = {.abi_size = sizeof(info)}, described = {.abi_size = sizeof(described)};
  EXPECT(NULL_POINTER, "plan", plan_describe(NULL, &described));
  EXPECT(NULL_POINTER, "out", plan_describe(e->plan, NULL));
  EXPECT_ABI_SIZE_SINCE(kFirstPlanInfo, described, plan_describe(e->plan, &described));
  EXPECT(OK, "", plan_info(e->plan, &info));
  EXPECT(OK, "", plan_describe(e->plan, &described));
  ++e->checks;
  if (described.recomputed != -1 || described.digest != 0 || strcmp(described.kernel, info.kernel) != 0 ||
      described.tiles != info.tiles || described.chosen_by != info.chosen_by || described.product_bytes != 0) {
    fprintf(e->failures, "plan_describe differs from plan_info in more than what it leaves out\n");
  }

  EXPECT(NULL_POINTER, "matrix", matrix_status(NULL, 0));
  EXPECT(BAD_ARGUMENT, "wait = 2", matrix_status(e->matrix, 2));
  EXPECT(OK, "", matrix_status(e->matrix, 0));
  EXPECT(OK, "", matrix_status(e->matrix, 1));

  sparsek_matrix* matrix = NULL;
  sparsek_plan* plan = NULL;
  sparsek_bsr bsr = good_bsr();
  sparsek_plan_options options = good_plan();
  EXPECT(OK, "", matrix_create(e->context, &bsr, &matrix));
  EXPECT(OK, "", plan_create(matrix, &options, &plan));
  e->api->matrix_release(matrix, NULL);
  e->api->plan_release(plan, NULL);
  e->api->plan_release(NULL, NULL);
  e->api->matrix_release(NULL, NULL);
}
