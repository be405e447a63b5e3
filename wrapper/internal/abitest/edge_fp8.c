/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "expect.h"

/* A query and two keys, heads of 2, of which there are two of queries and one of keys: 1 is 0x38, 2 is 0x40. */
typedef struct operands {
  uint8_t q[2 * 2], k[2 * 2], v[2 * 2];
  uint16_t o[2 * 2];
  float lse[2], scale_q[2], scale_k[1], scale_v[1];
} operands;

static sparsek_attention_args args_of(operands* x) {
  sparsek_attention_args args = {.abi_size = sizeof(args),
                                 .q = x->q,
                                 .k = x->k,
                                 .v = x->v,
                                 .o = x->o,
                                 .lse = x->lse,
                                 .scale_q = x->scale_q,
                                 .scale_k = x->scale_k,
                                 .scale_v = x->scale_v};
  return args;
}

static sparsek_attention_options options_of(int32_t dtype) {
  sparsek_attention_options options = {.abi_size = sizeof(options),
                                       .batch = 1,
                                       .heads_q = 2,
                                       .heads_k = 1,
                                       .seq_q = 1,
                                       .seq_k = 2,
                                       .head_size = 2,
                                       .scale = 1,
                                       .dtype = dtype};
  return options;
}

/* Attention of a type with an O of a type. */
static void expect_types(edge* e, sparsek_status want, const char* speaks_of, int32_t dtype, int32_t dtype_o) {
  sparsek_attention_options options = options_of(dtype);
  sparsek_attention* made = NULL;
  options.dtype_o = dtype_o;
  if (want == SPARSEK_OK) {
    EXPECT(OK, "", attention_create(e->context, &options, &made));
  } else {
    EXPECT(UNSUPPORTED_DTYPE, speaks_of, attention_create(e->context, &options, &made));
  }
  e->api->attention_destroy(made);
}

static void test_types(edge* e) {
  expect_types(e, SPARSEK_OK, "", SPARSEK_E4M3, 0);
  expect_types(e, SPARSEK_OK, "", SPARSEK_E4M3, SPARSEK_BF16);
  expect_types(e, SPARSEK_OK, "", SPARSEK_E4M3, SPARSEK_FP16);
  expect_types(e, SPARSEK_OK, "", SPARSEK_FP64, SPARSEK_FP64);
  expect_types(e, SPARSEK_UNSUPPORTED_DTYPE, "options->dtype_o = 3", SPARSEK_E4M3, SPARSEK_FP32);
  expect_types(e, SPARSEK_UNSUPPORTED_DTYPE, "options->dtype_o = 5", SPARSEK_E4M3, SPARSEK_E4M3);
  expect_types(e, SPARSEK_UNSUPPORTED_DTYPE, "options->dtype_o = 1 is not options->dtype = 2", SPARSEK_FP16,
               SPARSEK_BF16);
  expect_types(e, SPARSEK_UNSUPPORTED_DTYPE, "options->dtype = 6 is none of", 6, 0);
  sparsek_attention_options options = options_of(SPARSEK_E4M3);
  sparsek_attention* made = NULL;
  options.reserved2 = 1;
  EXPECT(BAD_ARGUMENT, "reserved2 = 1", attention_create(e->context, &options, &made));
}

/* A caller who knows neither dtype_o nor scales: what lies behind its structs is not read. */
static void test_older_callers(edge* e, operands* x) {
  sparsek_attention_options options = options_of(SPARSEK_E4M3);
  options.abi_size = kFirstAttentionOptions;
  options.dtype_o = 99;
  sparsek_attention* attention = NULL;
  EXPECT(OK, "", attention_create(e->context, &options, &attention));
  sparsek_attention_args args = args_of(x);
  args.abi_size = offsetof(sparsek_attention_args, scale_q);
  EXPECT(OK, "", attention_forward(attention, &args));
  ++e->checks;
  /* Scores of 2 and 4: without scales. */
  const double want = 4 + log1p(exp(-2));
  if (fabs(x->lse[0] - want) > 1e-5) fprintf(e->failures, EDGE_PLACE ": LSE is %g, not %g\n", (double)x->lse[0], want);
  e->api->attention_destroy(attention);
}

#define WITH_CALL(status, speaks_of, call, member, value)           \
  do {                                                              \
    sparsek_attention_args given = good;                            \
    given.member = value;                                           \
    EXPECT(status, speaks_of, attention_##call(attention, &given)); \
  } while (0)

static void test_calls(edge* e, operands* x, sparsek_attention* attention) {
  sparsek_attention_args good = args_of(x);
  float mass[2];
  EXPECT(OK, "", attention_forward(attention, &good));
  ++e->checks;
  const double want[2] = {8 + log1p(exp(-4)), 16 + log1p(exp(-8))}; /* scores of 4 and 8, 8 and 16 */
  for (int head = 0; head < 2; ++head) {
    if (fabs(x->lse[head] - want[head]) > 1e-5) {
      fprintf(e->failures, EDGE_PLACE ": LSE of head %d is %g, not %g\n", head, (double)x->lse[head], want[head]);
    }
  }
  WITH_CALL(OK, "", forward, scale_q, NULL);
  WITH_CALL(MISALIGNED, "args->scale_q", forward, scale_q, (const float*)((const char*)x->scale_q + 2));
  WITH_CALL(MISALIGNED, "args->scale_v", forward, scale_v, (const float*)((const char*)x->scale_v + 1));
  WITH_CALL(MISALIGNED, "args->o", forward, o, (char*)x->o + 1);
  WITH_CALL(OK, "", forward, q, x->q + 1); /* elements are bytes */
  WITH_CALL(NO_SUCH_KERNEL, "mass of blocks of SPARSEK_E4M3", forward, mass, mass);
  good.grad_o = good.o;
  EXPECT(NO_SUCH_KERNEL, "backward pass of SPARSEK_E4M3", attention_backward(attention, &good));
  double seconds = 0;
  EXPECT(NO_SUCH_KERNEL, "backward pass of SPARSEK_E4M3", attention_time(attention, &good, 1, 1, 0, 1, &seconds));
  good.bias = mass;
  WITH_CALL(UNSUPPORTED_DTYPE, "args->bias_dtype = 5", forward, bias_dtype, SPARSEK_E4M3);
  WITH_CALL(UNSUPPORTED_DTYPE, "args->bias_dtype = 2 is neither the type of O, 1", forward, bias_dtype, SPARSEK_FP16);
}

/* Scales of other types, and elements of E4M3 elsewhere. */
static void test_elsewhere(edge* e, operands* x) {
  float numbers[8] = {0};
  const float scale = 1;
  sparsek_attention_options options = options_of(SPARSEK_FP32);
  sparsek_attention* attention = NULL;
  EXPECT(OK, "", attention_create(e->context, &options, &attention));
  sparsek_attention_args args = {
      .abi_size = sizeof(args), .q = numbers, .k = numbers, .v = numbers, .o = numbers + 4, .scale_k = &scale};
  EXPECT(BAD_ARGUMENT, "args->scale_k is given with Q of dtype 3", attention_forward(attention, &args));
  e->api->attention_destroy(attention);
  const sparsek_pool_args pool = {.abi_size = sizeof(pool),
                                  .batch = 1,
                                  .heads = 2,
                                  .seq = 1,
                                  .head_size = 2,
                                  .block = 1,
                                  .x = x->q,
                                  .out = numbers,
                                  .dtype = SPARSEK_E4M3,
                                  .memory = SPARSEK_HOST};
  EXPECT(UNSUPPORTED_DTYPE, "SPARSEK_E4M3 (5) is for Q, K and V of attention's forward pass alone",
         attention_pool(e->context, &pool));
  sparsek_bsr bsr = good_bsr();
  sparsek_matrix* matrix = NULL;
  bsr.dtype = SPARSEK_E4M3;
  EXPECT(UNSUPPORTED_DTYPE, "SPARSEK_E4M3 (5) is for Q, K and V of attention's forward pass alone",
         matrix_create(e->context, &bsr, &matrix));
}

void test_fp8(edge* e) {
  operands x = {.q = {0x38, 0x38, 0x38, 0x38},
                .k = {0x38, 0x38, 0x40, 0x40},
                .v = {0x38, 0x38, 0x38, 0x38},
                .scale_q = {1, 2},
                .scale_k = {2},
                .scale_v = {1}};
  sparsek_attention_options options = options_of(SPARSEK_E4M3);
  sparsek_attention* attention = NULL;
  sparsek_attention_info info = {.abi_size = sizeof(info)};
  EXPECT(OK, "", attention_create(e->context, &options, &attention));
  if (attention == NULL) return;
  EXPECT(OK, "", attention_info(attention, &info));
  ++e->checks;
  if (strcmp(info.backward, "") != 0) fprintf(e->failures, EDGE_PLACE ": the backward pass is %s\n", info.backward);
  test_types(e);
  test_older_callers(e, &x);
  test_calls(e, &x, attention);
  test_elsewhere(e, &x);
  e->api->attention_destroy(attention);
}
