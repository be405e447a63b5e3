/* SPDX-License-Identifier: Apache-2.0 */
#include "expect.h"

/* The arguments are checked before the library is looked for, so that all but the last call say what is wrong. */
void test_dense_time(edge* e) {
  _Alignas(4) char operand[8] = {0};
  const void* in[2] = {operand, operand + 4};
  void* out[2] = {operand, operand + 4};
  double seconds[1];
  const sparsek_dense_time_args good = {sizeof(good), 1, 2, 1, SPARSEK_BF16, 2, in, in, out, 0, 1, NULL};
  sparsek_dense_time_args args = good;
  EXPECT(NULL_POINTER, "context", dense_time(NULL, &args, seconds));
  EXPECT(NULL_POINTER, "args", dense_time(e->context, NULL, seconds));
  EXPECT(NULL_POINTER, "seconds", dense_time(e->context, &args, NULL));
  EXPECT_ABI_SIZE(args, dense_time(e->context, &args, seconds));
#define BAD_DENSE(status, speaks_of, member, value)                    \
  do {                                                                 \
    args = good;                                                       \
    args.member = value;                                               \
    EXPECT(status, speaks_of, dense_time(e->context, &args, seconds)); \
  } while (0)
  BAD_DENSE(BAD_SIZE, "m = 0", m, 0);
  BAD_DENSE(BAD_SIZE, "n = -1", n, -1);
  BAD_DENSE(BAD_SIZE, "k = 2147483648", k, (int64_t)1 << 31);
  BAD_DENSE(UNSUPPORTED_DTYPE, "dtype", dtype, SPARSEK_FP32);
  BAD_DENSE(UNSUPPORTED_DTYPE, "dtype", dtype, 0);
  BAD_DENSE(BAD_SIZE, "set_count = 0", set_count, 0);
  BAD_DENSE(BAD_SIZE, "warmup = -1", warmup, -1);
  BAD_DENSE(BAD_SIZE, "repeats = 0", repeats, 0);
  BAD_DENSE(NULL_POINTER, "args->a", a, NULL);
  BAD_DENSE(NULL_POINTER, "args->b", b, NULL);
  BAD_DENSE(NULL_POINTER, "args->c", c, NULL);
  const void* missing[2] = {operand, NULL};
  BAD_DENSE(NULL_POINTER, "args->b[1]", b, missing);
  const void* odd[2] = {operand, operand + 1};
  BAD_DENSE(MISALIGNED, "args->a[1]", a, odd);
  args = good;
  EXPECT(NO_LIBRARY, "no GPU", dense_time(e->context, &args, seconds));
}
