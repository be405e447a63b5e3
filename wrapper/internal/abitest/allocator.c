/* SPDX-License-Identifier: Apache-2.0
 *
 * A context whose device memory is the application's: that of matrix, plan and workspace is of it, all of it is given
 * back, and an allocator that has none, or memory at an odd address, is an error and no product.
 */
#include "allocator.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"
#include "sparsek.h"

enum { kBlock = 16, kRows = 2 * kBlock, kBlockCols = 512, kCols = kBlockCols * kBlock, kN = 64 };
enum { kBytes = 64 << 20, kMost = 256 };

static uint16_t values[2 * kBlockCols * kBlock * kBlock], b[kCols * kN], want[kRows * kN], got[kRows * kN];
static int32_t row_ptr[3] = {0, kBlockCols, 2 * kBlockCols}, col_idx[2 * kBlockCols];

/* Hands out one piece of `memory` after the other. */
typedef struct heap {
  pthread_mutex_t lock;
  char* memory;
  size_t used, held; /* bytes */
  size_t odd;        /* added to each address */
  int empty;         /* nothing is given */
  int calls, faults; /* of allocate, and of both: releases of what was never given, wrong users or devices */
  void* given[kMost];
  size_t bytes[kMost];
} heap;

static void* heap_allocate(void* user, size_t bytes, int32_t device, sparsek_stream stream) {
  heap* h = user;
  (void)stream;
  pthread_mutex_lock(&h->lock);
  void* given = NULL;
  const size_t size = (bytes + 511) / 256 * 256;
  if (!h->empty && h->calls < kMost && h->used + size <= kBytes) {
    given = h->memory + h->used + h->odd;
    h->given[h->calls] = given;
    h->bytes[h->calls++] = bytes;
    h->used += size;
    h->held += bytes;
  }
  h->faults += device != 0;
  pthread_mutex_unlock(&h->lock);
  return given;
}

static void heap_release(void* user, void* memory, size_t bytes, int32_t device, sparsek_stream stream) {
  heap* h = user;
  (void)stream;
  pthread_mutex_lock(&h->lock);
  int at = 0;
  while (at < h->calls && (h->given[at] != memory || h->bytes[at] != bytes)) ++at;
  if (at == h->calls || device != 0) {
    ++h->faults;
  } else {
    h->given[at] = NULL;
    h->held -= bytes;
  }
  pthread_mutex_unlock(&h->lock);
}

/* A x B in a context, to `c`. What it makes is destroyed again. */
static char* multiply(const sparsek_api* api, sparsek_context* context, const char* kernel, uint16_t* c) {
  sparsek_bsr bsr = {sizeof(bsr),   kRows,        kCols, kBlock,  kBlock,  2 * kBlockCols, SPARSEK_BF16,
                     SPARSEK_INT32, SPARSEK_HOST, 0,     row_ptr, col_idx, values};
  sparsek_matrix* matrix = NULL;
  sparsek_plan* plan = NULL;
  void *device_b = NULL, *device_c = NULL;
  TRY(api->matrix_create(context, &bsr, &matrix));
  sparsek_plan_options options = {.abi_size = sizeof(options), .n = kN, .kernel = kernel};
  TRY(api->plan_create(matrix, &options, &plan));
  TRY(api->buffer_create(context, sizeof(b), &device_b));
  TRY(api->buffer_create(context, sizeof(got), &device_c));
  TRY(api->buffer_write(context, device_b, b, sizeof(b), NULL));
  sparsek_multiply_args args = {.abi_size = sizeof(args), .alpha = 1, .b = device_b, .c = device_c};
  TRY(api->multiply(plan, &args));
  TRY(api->buffer_read(context, c, device_c, sizeof(got), NULL));
  TRY(api->stream_synchronize(context, NULL));
  api->plan_destroy(plan);
  api->matrix_destroy(matrix);
  TRY(api->buffer_destroy(context, device_b));
  TRY(api->buffer_destroy(context, device_c));
  return NULL;
}

/* Two plans of a matrix whose kernel reads A in another layout have one layout together, which stays when the first
 * plan goes. */
static char* share(const sparsek_api* api, sparsek_context* context, const char* kernel, const heap* h) {
  sparsek_bsr bsr = {sizeof(bsr),   kRows,        kCols, kBlock,  kBlock,  2 * kBlockCols, SPARSEK_BF16,
                     SPARSEK_INT32, SPARSEK_HOST, 0,     row_ptr, col_idx, values};
  sparsek_matrix* matrix = NULL;
  sparsek_plan *first = NULL, *second = NULL;
  void *device_b = NULL, *device_c = NULL;
  TRY(api->matrix_create(context, &bsr, &matrix));
  TRY(api->buffer_create(context, sizeof(b), &device_b));
  TRY(api->buffer_create(context, sizeof(got), &device_c));
  TRY(api->buffer_write(context, device_b, b, sizeof(b), NULL));
  sparsek_plan_options options = {.abi_size = sizeof(options), .n = kN / 2, .kernel = kernel};
  TRY(api->plan_create(matrix, &options, &first));
  const size_t before = h->held;
  options.n = kN;
  TRY(api->plan_create(matrix, &options, &second));
  const int64_t taken = (int64_t)(h->held - before);
  sparsek_plan_info info = {.abi_size = sizeof(info)};
  TRY(api->plan_info(second, &info));
  if (info.kept_bytes == 0) return text("%s keeps no values", kernel);
  if (taken > info.workspace_bytes - info.kept_bytes / 2) {
    return text("a second plan took %lld bytes, where %lld of %lld are those that the first plan keeps",
                (long long)taken, (long long)info.kept_bytes, (long long)info.workspace_bytes);
  }
  api->plan_destroy(first);
  for (int round = 0; round < 2; ++round) {
    sparsek_multiply_args args = {.abi_size = sizeof(args), .alpha = 1, .b = device_b, .c = device_c};
    TRY(api->multiply(second, &args));
    TRY(api->buffer_read(context, round == 0 ? want : got, device_c, sizeof(got), NULL));
    TRY(api->stream_synchronize(context, NULL));
    TRY(api->matrix_set_values(matrix, values, SPARSEK_HOST, NULL));
  }
  if (memcmp(got, want, sizeof(got)) != 0) return text("another C after the same values were set again");
  api->plan_destroy(second);
  api->matrix_destroy(matrix);
  TRY(api->buffer_destroy(context, device_b));
  TRY(api->buffer_destroy(context, device_c));
  return NULL;
}

static char* refused(const sparsek_api* api, sparsek_context* context, sparsek_status status) {
  sparsek_bsr bsr = {sizeof(bsr),   kRows,        kCols, kBlock,  kBlock,  2 * kBlockCols, SPARSEK_BF16,
                     SPARSEK_INT32, SPARSEK_HOST, 0,     row_ptr, col_idx, values};
  sparsek_matrix* matrix = NULL;
  const sparsek_status got_status = api->matrix_create(context, &bsr, &matrix);
  if (got_status == status && strstr(api->last_error(), "the application's allocator") != NULL) return NULL;
  return text("matrix_create gave %d, not %d: %s", got_status, status, api->last_error());
}

char* allocator_run(const char* path, const char* kernel, const char* keeping) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) return text("%s", dlerror());
  const sparsek_api* (*get_api)(int32_t) = (const sparsek_api* (*)(int32_t))dlsym(library, "sparsek_get_api");
  const sparsek_api* api = get_api(SPARSEK_ABI_VERSION);
  sparsek_context *other = NULL, *context = NULL;
  sparsek_context_options options = {.abi_size = sizeof(options), .backend = SPARSEK_CUDA};
  if (api->context_create(&options, &other) == SPARSEK_NO_DEVICE) return text("skipped: no GPU");
  if (other == NULL) return text("%s", api->last_error());
  for (int i = 0; i < 2 * kBlockCols; ++i) col_idx[i] = i % kBlockCols;
  fill_bf16(values, sizeof(values) / sizeof(*values), 1);
  fill_bf16(b, sizeof(b) / sizeof(*b), 2);
  char* failure = multiply(api, other, kernel, want);
  if (failure != NULL) return failure;

  heap h = {.lock = PTHREAD_MUTEX_INITIALIZER};
  TRY(api->buffer_create(other, kBytes, (void**)&h.memory));
  options.allocate = heap_allocate;
  options.release = heap_release;
  options.user = &h;
  TRY(api->context_create(&options, &context));
  if ((failure = multiply(api, context, kernel, got)) != NULL) return failure;
  if (memcmp(got, want, sizeof(got)) != 0) return text("another C in memory of the application");
  if (h.calls < 3) return text("%d pieces were taken for matrix, plan and workspace", h.calls);
  h.empty = 1;
  if ((failure = refused(api, context, SPARSEK_OUT_OF_MEMORY)) != NULL) return failure;
  h.empty = 0;
  h.odd = 64;
  if ((failure = refused(api, context, SPARSEK_MISALIGNED)) != NULL) return failure;
  h.odd = 0;
  if ((failure = multiply(api, context, kernel, got)) != NULL) return failure;
  if (memcmp(got, want, sizeof(got)) != 0) return text("another C after calls that failed");
  if ((failure = share(api, context, keeping, &h)) != NULL) return failure;
  api->context_destroy(context);
  if (h.held != 0 || h.faults != 0) return text("%zu bytes were kept, and there were %d faults", h.held, h.faults);
  TRY(api->buffer_destroy(other, h.memory));
  api->context_destroy(other);
  return NULL;
}
