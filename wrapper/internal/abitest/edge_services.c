/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "expect.h"

void test_information(edge* e) {
  sparsek_build_info build = {sizeof(build), 0, 0, 0, 0, 0};
  EXPECT(NULL_POINTER, "out", build_info(NULL));
  EXPECT_ABI_SIZE(build, build_info(&build));
  EXPECT(OK, "", build_info(&build));

  sparsek_kernel_info kernel = {.abi_size = sizeof(kernel)};
  EXPECT(NULL_POINTER, "out", kernel_info(0, NULL));
  EXPECT_ABI_SIZE_SINCE(kFirstKernelInfo, kernel, kernel_info(0, &kernel));
  EXPECT(BAD_ARGUMENT, "-1", kernel_info(-1, &kernel));
  EXPECT(BAD_ARGUMENT, "index", kernel_info(e->api->kernel_count(), &kernel));
  kernel.library = NULL;
  EXPECT(OK, "", kernel_info(e->api->kernel_count() - 1, &kernel));
  if (kernel.library == NULL) fprintf(e->failures, "%s: the library of a kernel is null\n", EDGE_PLACE);

  /* A caller that does not know of libraries. */
  sparsek_kernel_info older = {.abi_size = kFirstKernelInfo, .library = "untouched"};
  EXPECT(OK, "", kernel_info(0, &older));
  if (strcmp(older.library, "untouched") != 0) {
    fprintf(e->failures, "%s: a kernel_info was written to beyond its size\n", EDGE_PLACE);
  }

  sparsek_device_info device = {.abi_size = sizeof(device)};
  EXPECT(NULL_POINTER, "out", device_info(0, NULL));
  EXPECT_ABI_SIZE_SINCE(kFirstDeviceInfo, device, device_info(0, &device));
  EXPECT(NO_DEVICE, "device -1", device_info(-1, &device));
  EXPECT(NO_DEVICE, "device", device_info(e->api->device_count(), &device));
}

/* The library writes no more than the caller's struct holds, and takes a larger one of a newer caller. */
void test_struct_sizes(edge* e) {
  struct {
    sparsek_plan_info known;
    unsigned char newer[64];
  } out;
  memset(&out, 0xab, sizeof(out));
  out.known.abi_size = sizeof(out);
  EXPECT(OK, "", plan_info(e->plan, &out.known));
  ++e->checks;
  for (size_t i = 0; i < sizeof(out.newer); ++i) {
    if (out.newer[i] != 0xab) {
      fprintf(e->failures, "plan_info wrote behind the struct that it knows\n");
      break;
    }
  }
  ++e->checks;
  if (out.known.abi_size != sizeof(out)) fprintf(e->failures, "plan_info changed the caller's abi_size\n");
  ++e->checks;
  if (out.known.recomputed != 0) fprintf(e->failures, "the CPU computed something again\n");

  /* An older caller has no room for the newer members. */
  memset(&out, 0xab, sizeof(out));
  out.known.abi_size = kFirstPlanInfo;
  EXPECT(OK, "", plan_info(e->plan, &out.known));
  ++e->checks;
  for (size_t i = kFirstPlanInfo; i < sizeof(out.known); ++i) {
    if (((unsigned char*)&out.known)[i] != 0xab) {
      fprintf(e->failures, "plan_info wrote behind an older caller's struct\n");
      break;
    }
  }
}

void test_memory(edge* e) {
  void* buffer = NULL;
  char host[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  EXPECT(NULL_POINTER, "context", buffer_create(NULL, 8, &buffer));
  EXPECT(NULL_POINTER, "out", buffer_create(e->context, 8, NULL));
  EXPECT(BAD_SIZE, "bytes", buffer_create(e->context, SIZE_MAX, &buffer));
  EXPECT(OUT_OF_MEMORY, "", buffer_create(e->context, (size_t)PTRDIFF_MAX, &buffer));
  EXPECT(OK, "", buffer_create(e->context, 0, &buffer));
  EXPECT(OK, "", buffer_destroy(e->context, buffer));
  EXPECT(OK, "", buffer_destroy(e->context, NULL));
  EXPECT(NULL_POINTER, "context", buffer_destroy(NULL, NULL));
  EXPECT(OK, "", buffer_create(e->context, 8, &buffer));
  EXPECT(NULL_POINTER, "context", buffer_write(NULL, buffer, host, 8, NULL));
  EXPECT(NULL_POINTER, "buffer", buffer_write(e->context, NULL, host, 8, NULL));
  EXPECT(NULL_POINTER, "host", buffer_write(e->context, buffer, NULL, 8, NULL));
  EXPECT(OK, "", buffer_write(e->context, NULL, NULL, 0, NULL));
  EXPECT(NULL_POINTER, "host", buffer_read(e->context, NULL, buffer, 8, NULL));
  EXPECT(NULL_POINTER, "buffer", buffer_read(e->context, host, NULL, 8, NULL));
  EXPECT(NULL_POINTER, "context", buffer_read(NULL, host, buffer, 8, NULL));
  EXPECT(BAD_ARGUMENT, "byte = 256", buffer_fill(e->context, buffer, 256, 8, NULL));
  EXPECT(NULL_POINTER, "buffer", buffer_fill(e->context, NULL, 0, 8, NULL));
  EXPECT(OK, "", buffer_destroy(e->context, buffer));

  sparsek_stream stream = NULL;
  int32_t done = 0;
  EXPECT(NULL_POINTER, "context", stream_create(NULL, &stream));
  EXPECT(NULL_POINTER, "out", stream_create(e->context, NULL));
  EXPECT(OK, "", stream_create(e->context, &stream));
  EXPECT(NULL_POINTER, "context", stream_synchronize(NULL, stream));
  EXPECT(OK, "", stream_synchronize(e->context, stream));
  EXPECT(NULL_POINTER, "done", stream_query(e->context, stream, NULL));
  EXPECT(NULL_POINTER, "context", stream_query(NULL, stream, &done));
  EXPECT(OK, "", stream_query(e->context, stream, &done));
  EXPECT(NULL_POINTER, "context", stream_destroy(NULL, stream));
  EXPECT(OK, "", stream_destroy(e->context, stream));
}

void test_check(edge* e) {
  float b[48] = {0}, c[32] = {0};
  const sparsek_bsr bsr = good_bsr();
  const sparsek_check_args good = {sizeof(good), &bsr, 8, b, 8, NULL, c, 8, 1, 0, 0x1p-24, 1, 0};
  sparsek_check_args args = good;
  sparsek_check_report report = {.abi_size = sizeof(report)};
  EXPECT(OK, "", check(&args, &report));
  EXPECT(NULL_POINTER, "args", check(NULL, &report));
  EXPECT(NULL_POINTER, "out", check(&args, NULL));
  EXPECT_ABI_SIZE_SINCE(kFirstCheckArgs, args, check(&args, &report));
  EXPECT_ABI_SIZE(report, check(&args, &report));
#define BAD_CHECK(status, speaks_of, member, value)   \
  do {                                                \
    args = good;                                      \
    args.member = value;                              \
    EXPECT(status, speaks_of, check(&args, &report)); \
  } while (0)
  BAD_CHECK(NULL_POINTER, "args->a", a, NULL);
  BAD_CHECK(NULL_POINTER, "args->b", b, NULL);
  BAD_CHECK(NULL_POINTER, "args->c", c, NULL);
  BAD_CHECK(NULL_POINTER, "args->c0", beta, 1);
  BAD_CHECK(BAD_SIZE, "n = -1", n, -1);
  BAD_CHECK(BAD_LEADING_DIMENSION, "ldb = 7", ldb, 7);
  BAD_CHECK(BAD_LEADING_DIMENSION, "ldc = 7", ldc, 7);
  BAD_CHECK(BAD_ARGUMENT, "unit_roundoff", unit_roundoff, -1);
  BAD_CHECK(BAD_ARGUMENT, "product_roundoff = -1", product_roundoff, -1);
  BAD_CHECK(BAD_ARGUMENT, "product_roundoff = 1", product_roundoff, 1);
  BAD_CHECK(BAD_ARGUMENT, "threads", threads, -1);
  BAD_CHECK(BAD_ARGUMENT, "args->alpha", alpha, NAN);
  BAD_CHECK(BAD_ARGUMENT, "args->beta", beta, -HUGE_VALF);
  BAD_CHECK(UNSUPPORTED_DTYPE, "args->dtype_c = 5", dtype_c, 5);
  BAD_CHECK(UNSUPPORTED_DTYPE, "args->dtype_b = 5 is none of", dtype_b, 5);
  BAD_CHECK(UNSUPPORTED_DTYPE, "args->dtype_b = 1 with A of dtype 3", dtype_b, SPARSEK_BF16);
  BAD_CHECK(BAD_ARGUMENT, "args->reserved3 = 1", reserved3, 1);
  BAD_CHECK(BAD_ARGUMENT, "args->bias_kind = 3", bias_kind, 3);
  BAD_CHECK(BAD_ARGUMENT, "args->activation = -1", activation, -1);
  BAD_CHECK(NULL_POINTER, "args->bias", bias_kind, SPARSEK_BIAS_ROW);
  BAD_CHECK(MISALIGNED, "args->bias", bias, (const char*)b + 2);
  sparsek_bsr bad = bsr;
  bad.memory = SPARSEK_DEVICE;
  BAD_CHECK(WRONG_MEMORY, "args->a", a, &bad);
  bad = bsr;
  bad.values = NULL;
  BAD_CHECK(NULL_POINTER, "values", a, &bad);
  bad = bsr;
  const int32_t beyond[3] = {1, 0, 2};
  bad.col_idx = beyond;
  BAD_CHECK(COL_IDX_RANGE, "col_idx[2] = 2", a, &bad);
  args = good;
  c[9] = 1;
  EXPECT(CHECK_FAILED, "C[1, 1]", check(&args, &report));
  ++e->checks;
  if (report.failures != 1 || report.first_row != 1 || report.first_col != 1) {
    fprintf(e->failures, "a failed check did not fill in the report\n");
  }
}
