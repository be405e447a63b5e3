/* SPDX-License-Identifier: Apache-2.0
 *
 * Products that work in memory of the caller, and batches of them: with split tiles, and with a B that is copied
 * because its rows are not aligned.
 */
#include <dlfcn.h>
#include <string.h>

#include "driver.h"
#include "sparsek.h"
#include "workspace.h"

enum { kBlock = 16, kRows = 2 * kBlock, kBlockCols = 512, kCols = kBlockCols * kBlock, kN = 64, kBatch = 2 };
enum { kElementsB = kCols * kN, kElementsC = kRows * kN };

static uint16_t values[2 * kBlockCols * kBlock * kBlock], b[kBatch * kElementsB + 1];
static uint16_t want[kBatch][kElementsC], got[kBatch][kElementsC], memory[64 << 20 >> 1];

typedef struct setting {
  const sparsek_api* api;
  sparsek_context* context;
  sparsek_plan* plan;
  size_t bytes; /* of a product's workspace */
  char *b, *c, *workspace;
} setting;

/* Runs the products and compares C, `count` of them, with what single products gave. */
static char* run(setting* s, const sparsek_multiply_args* args, int count, const char* what) {
  const sparsek_api* api = s->api;
  TRY(api->buffer_fill(s->context, s->c, 0xff, sizeof(got), NULL));
  TRY(api->multiply(s->plan, args));
  TRY(api->buffer_read(s->context, got, s->c, sizeof(got), NULL));
  TRY(api->stream_synchronize(s->context, NULL));
  if (memcmp(got, want, count * sizeof(got[0])) != 0) return text("%s: another C", what);
  return NULL;
}

static char* run_all(setting* s) {
  const sparsek_api* api = s->api;
  sparsek_multiply_args args = {.abi_size = sizeof(args), .alpha = 1, .b = s->b, .c = s->c};
  for (int i = 0; i < kBatch; ++i) {
    args.b = s->b + i * kElementsB * 2;
    TRY(api->multiply(s->plan, &args));
    TRY(api->buffer_read(s->context, want[i], s->c, sizeof(want[i]), NULL));
    TRY(api->stream_synchronize(s->context, NULL));
  }
  if (memcmp(want[0], want[1], sizeof(want[0])) == 0) return text("the products are the same: nothing would be seen");
  args.b = s->b;
  args.workspace = s->workspace;
  args.workspace_bytes = s->bytes - 1;
  if (api->multiply(s->plan, &args) != SPARSEK_BAD_SIZE) return text("too small a workspace was taken");
  args.workspace_bytes = s->bytes;
  args.workspace = (void*)((uintptr_t)memory / 256 * 256 + 256);
  if (api->multiply(s->plan, &args) != SPARSEK_WRONG_MEMORY) return text("a workspace in host memory was taken");
  args.workspace = s->workspace;

  char* failure = NULL;
  TRY(api->buffer_fill(s->context, s->workspace, 0xff, s->bytes, NULL));
  if ((failure = run(s, &args, 1, "workspace of the caller")) != NULL) return failure;
  TRY(api->buffer_read(s->context, memory, s->workspace, s->bytes, NULL));
  TRY(api->stream_synchronize(s->context, NULL));
  size_t used = 0;
  for (size_t i = 0; i < s->bytes / 2; ++i) used += memory[i] != 0xffff;
  if (used == 0) return text("the caller's workspace was not used");

  args.batch = kBatch;
  args.stride_b = kElementsB;
  args.stride_c = kElementsC;
  if ((failure = run(s, &args, kBatch, "batch in the caller's workspace")) != NULL) return failure;
  args.workspace = NULL;
  args.workspace_bytes = 0;
  return run(s, &args, kBatch, "batch");
}

char* workspace_run(const char* path, const char* kernel) {
  setting s = {0};
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) return text("%s", dlerror());
  const sparsek_api* (*get_api)(int32_t) = (const sparsek_api* (*)(int32_t))dlsym(library, "sparsek_get_api");
  const sparsek_api* api = s.api = get_api(SPARSEK_ABI_VERSION);
  sparsek_context_options options = {sizeof(options), SPARSEK_CUDA, 0, 0};
  if (api->context_create(&options, &s.context) == SPARSEK_NO_DEVICE) return text("skipped: no GPU");
  if (s.context == NULL) return text("%s", api->last_error());

  static int32_t row_ptr[3] = {0, kBlockCols, 2 * kBlockCols}, col_idx[2 * kBlockCols];
  for (int i = 0; i < 2 * kBlockCols; ++i) col_idx[i] = i % kBlockCols;
  fill_bf16(values, sizeof(values) / sizeof(*values), 1);
  fill_bf16(b, sizeof(b) / sizeof(*b), 2);
  sparsek_bsr bsr = {sizeof(bsr),   kRows,        kCols, kBlock,  kBlock,  2 * kBlockCols, SPARSEK_BF16,
                     SPARSEK_INT32, SPARSEK_HOST, 0,     row_ptr, col_idx, values};
  sparsek_matrix* matrix = NULL;
  void* buffer = NULL;
  TRY(api->matrix_create(s.context, &bsr, &matrix));
  TRY(api->buffer_create(s.context, sizeof(b), &buffer));
  TRY(api->buffer_write(s.context, buffer, b, sizeof(b), NULL));
  TRY(api->buffer_create(s.context, sizeof(got), (void**)&s.c));
  for (int shift = 0; shift < 2; ++shift) { /* 1: B is misaligned, and copied */
    sparsek_plan_options plan_options = {.abi_size = sizeof(plan_options), .n = kN, .kernel = kernel};
    plan_options.alignment = shift == 0 ? 16 : 2;
    TRY(api->plan_create(matrix, &plan_options, &s.plan));
    sparsek_plan_info info = {.abi_size = sizeof(info)};
    TRY(api->plan_describe(s.plan, &info));
    s.bytes = (size_t)info.product_bytes;
    if (s.bytes == 0 || s.bytes > sizeof(memory) - 256) return text("a product needs %zu bytes of workspace", s.bytes);
    TRY(api->buffer_create(s.context, s.bytes, (void**)&s.workspace));
    s.b = (char*)buffer + 2 * shift;
    char* failure = run_all(&s);
    if (failure != NULL) return failure;
    TRY(api->buffer_destroy(s.context, s.workspace));
    api->plan_destroy(s.plan);
  }
  TRY(api->buffer_destroy(s.context, buffer));
  TRY(api->buffer_destroy(s.context, s.c));
  api->matrix_destroy(matrix);
  api->context_destroy(s.context);
  return NULL;
}
