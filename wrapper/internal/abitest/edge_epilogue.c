/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "expect.h"

/* Callers that were compiled before structs grew: what lies behind theirs is not read. */
static void test_first_version(edge* e) {
  float b[48] = {0}, c[32] = {0};
  sparsek_plan* plan = NULL;
  sparsek_plan_options options = good_plan();
  options.dtype_c = options.bias = options.activation = 99;
  EXPECT(UNSUPPORTED_DTYPE, "dtype_c", plan_create(e->matrix, &options, &plan));
  options.abi_size = kFirstPlanOptions;
  EXPECT(OK, "", plan_create(e->matrix, &options, &plan));

  sparsek_multiply_args args = {sizeof(args), 1, 0, b, 0, c, 0, NULL, b};
  EXPECT(BAD_ARGUMENT, "args->bias is given to a plan without one", multiply(plan, &args));
  args.abi_size = kFirstMultiplyArgs;
  EXPECT(OK, "", multiply(plan, &args));
  e->api->plan_destroy(plan);

  sparsek_bsr bsr = good_bsr();
  sparsek_check_args check = {sizeof(check), &bsr, 8, b, 8, NULL, c, 8, 1, 0, 0x1p-24, 1, 0, 99, 99, 99, 0, b};
  sparsek_check_report report = {.abi_size = sizeof(report)};
  EXPECT(UNSUPPORTED_DTYPE, "dtype_c", check(&check, &report));
  check.abi_size = kFirstCheckArgs;
  EXPECT(OK, "", check(&check, &report));

  /* An array of them too: each is as long as the first says. */
  _Alignas(sparsek_multiply_args) char array[2 * kFirstMultiplyArgs];
  double seconds[2];
  memcpy(array, &args, kFirstMultiplyArgs);
  memcpy(array + kFirstMultiplyArgs, &args, kFirstMultiplyArgs);
  EXPECT(OK, "", multiply_time(e->plan, (const sparsek_multiply_args*)(const void*)array, 2, 0, 2, seconds));
}

/* C is bf16, its bias is by row, and negative elements become 0. */
static void test_product(edge* e) {
  enum { kOne = 0x3f80, kTwo = 0x4000, kSixteen = 0x4180, kMinusFour = 0xc080 }; /* in bf16 */
  float b[48];
  uint16_t c[32], bias[5] = {0, kMinusFour, kOne, kMinusFour, kMinusFour};
  for (int i = 0; i < 48; ++i) b[i] = 1;
  sparsek_plan* plan = NULL;
  sparsek_plan_options options = good_plan();
  options.dtype_c = SPARSEK_BF16;
  options.bias = SPARSEK_BIAS_ROW;
  options.activation = SPARSEK_ACTIVATION_RELU;
  options.alignment = 1;
  EXPECT(BAD_ARGUMENT, "alignment = 1", plan_create(e->matrix, &options, &plan));
  options.alignment = 2;
  EXPECT(OK, "", plan_create(e->matrix, &options, &plan));
  sparsek_multiply_args args = {sizeof(args), 1, 0, b, 0, c, 0, NULL, NULL};
  EXPECT(NULL_POINTER, "args->bias", multiply(plan, &args));
  args.bias = (const char*)bias + 1;
  EXPECT(MISALIGNED, "args->bias", multiply(plan, &args));
  args.bias = bias + 1;
  args.c = (char*)c + 1;
  EXPECT(MISALIGNED, "args->c", multiply(plan, &args));
  args.c = c;
  args.b = (const char*)b + 2; /* its elements take 4 bytes */
  EXPECT(MISALIGNED, "args->b", multiply(plan, &args));
  args.b = b;
  EXPECT(OK, "", multiply(plan, &args));
  ++e->checks;
  /* The sums of the rows are 6, 15, 2 and 3. */
  if (c[0] != kTwo || c[8] != kSixteen || c[16] != 0 || c[31] != 0) {
    fprintf(e->failures, "C is %#x %#x %#x %#x, want 2, 16, 0 and 0 in bf16\n", c[0], c[8], c[16], c[31]);
  }
  e->api->plan_destroy(plan);
}

void test_epilogue(edge* e) {
  test_first_version(e);
  test_product(e);
}
