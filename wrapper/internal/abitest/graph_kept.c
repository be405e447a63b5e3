/* SPDX-License-Identifier: Apache-2.0
 *
 * Values that a plan keeps as its kernel reads them, where a CUDA graph gives the matrix others.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <string.h>

#include "driver.h"
#include "graph.h"
#include "sparsek.h"

enum {
  kBlock = 4,
  kRows = 4 * kBlock,
  kCols = 3 * kBlock,
  kN = 64,
  kBlocks = 5,
  kElements = kBlocks * kBlock * kBlock
};
static const int32_t kRowPtr[5] = {0, 2, 2, 3, 5};
static const int32_t kColIdx[kBlocks] = {0, 2, 1, 0, 1};

typedef struct kept {
  const sparsek_api* api;
  sparsek_context* context;
  sparsek_stream stream;
  const char* kernel;
  void *device_b, *device_c;
} kept;

/* The matrix of these values, and a plan of it by the kernel. */
static char* make(const kept* k, const uint16_t* values, sparsek_matrix** matrix, sparsek_plan** plan) {
  const sparsek_api* api = k->api;
  sparsek_bsr bsr = {sizeof(bsr),   kRows,        kCols, kBlock,  kBlock,  kBlocks, SPARSEK_BF16,
                     SPARSEK_INT32, SPARSEK_HOST, 0,     kRowPtr, kColIdx, values};
  sparsek_plan_options options = {.abi_size = sizeof(options), .n = kN, .kernel = k->kernel};
  TRY(api->matrix_create(k->context, &bsr, matrix));
  TRY(api->plan_create(*matrix, &options, plan));
  return NULL;
}

/* Whether the plan keeps values, and has the product `want`. */
static char* compare(const kept* k, sparsek_plan* plan, int keeps, const uint16_t* want, const char* when) {
  static uint16_t c[kRows * kN];
  const sparsek_api* api = k->api;
  sparsek_plan_info info = {sizeof(info)};
  sparsek_multiply_args args = {sizeof(args), 1, 0, k->device_b, 0, k->device_c, 0, k->stream};
  TRY(api->plan_info(plan, &info));
  if ((info.kept_bytes > 0) != keeps) return text("%s: the plan keeps %lld bytes", when, (long long)info.kept_bytes);
  TRY(api->buffer_fill(k->context, k->device_c, 0xff, sizeof(c), k->stream));
  TRY(api->multiply(plan, &args));
  TRY(api->buffer_read(k->context, c, k->device_c, sizeof(c), k->stream));
  TRY(api->stream_synchronize(k->context, k->stream));
  return want == NULL || memcmp(c, want, sizeof(c)) == 0 ? NULL : text("%s: another product", when);
}

/* What compare reads is the product of the values. */
static char* product_of(const kept* k, const uint16_t* values, uint16_t* c) {
  const sparsek_api* api = k->api;
  sparsek_matrix* matrix = NULL;
  sparsek_plan* plan = NULL;
  char* failure = make(k, values, &matrix, &plan);
  if (failure == NULL) failure = compare(k, plan, 1, NULL, "the first product");
  if (failure != NULL) return failure;
  TRY(api->buffer_read(k->context, c, k->device_c, sizeof(uint16_t) * kRows * kN, k->stream));
  TRY(api->stream_synchronize(k->context, k->stream));
  api->plan_destroy(plan);
  api->matrix_destroy(matrix);
  return NULL;
}

#define CHECK(call)                      \
  do {                                   \
    char* const failure = call;          \
    if (failure != NULL) return failure; \
  } while (0)

char* graph_kept_run(const char* path, const char* kernel) {
  static uint16_t first[kElements], second[kElements], set[kElements], b[kCols * kN], c[2][kRows * kN];
  driver cuda;
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) return text("%s", dlerror());
  const sparsek_api* (*get_api)(int32_t) = (const sparsek_api* (*)(int32_t))dlsym(library, "sparsek_get_api");
  const sparsek_api* api = get_api(SPARSEK_ABI_VERSION);
  kept k = {.api = api, .kernel = kernel};
  sparsek_context_options options = {sizeof(options), SPARSEK_CUDA, 0, 0};
  if (api->context_create(&options, &k.context) == SPARSEK_NO_DEVICE) return text("skipped: no GPU");
  if (k.context == NULL) return text("%s", api->last_error());
  if (!driver_open(&cuda)) return text("libcuda.so.1 lacks what a capture needs");
  fill_bf16(first, kElements, 1);
  fill_bf16(second, kElements, 2);
  fill_bf16(b, kCols * kN, 3);
  TRY(api->stream_create(k.context, &k.stream));
  TRY(api->buffer_create(k.context, sizeof(b), &k.device_b));
  TRY(api->buffer_create(k.context, sizeof(c[0]), &k.device_c));
  TRY(api->buffer_write(k.context, k.device_b, b, sizeof(b), k.stream));
  CHECK(product_of(&k, first, c[0]));
  CHECK(product_of(&k, second, c[1]));

  sparsek_matrix* matrix = NULL;
  sparsek_plan *plan = NULL, *later = NULL;
  void *graph = NULL, *exec = NULL;
  CHECK(make(&k, first, &matrix, &plan));

  /* A plan for no columns has nothing to keep. */
  sparsek_plan_options of_none = {.abi_size = sizeof(of_none), .n = 0, .kernel = kernel};
  sparsek_plan_info none = {sizeof(none)};
  TRY(api->plan_create(matrix, &of_none, &later));
  TRY(api->plan_info(later, &none));
  if (none.kept_bytes != 0) return text("a plan for no columns keeps %lld bytes", (long long)none.kept_bytes);
  api->plan_destroy(later);
  later = NULL;

  CHECK(compare(&k, plan, 1, c[0], "before the graph"));
  memcpy(set, second, sizeof(set));
  TRY(cuda.begin_capture(k.stream, 0));
  TRY(api->matrix_set_values(matrix, set, SPARSEK_HOST, k.stream));
  TRY(cuda.end_capture(k.stream, &graph));
  TRY(cuda.instantiate(&exec, graph, 0));
  CHECK(compare(&k, plan, 1, c[0], "before the graph runs"));
  TRY(cuda.launch(exec, k.stream));
  CHECK(compare(&k, plan, 1, c[1], "after the graph ran"));

  /* A plan that the graph does not know of must not keep what the graph will change. */
  sparsek_plan_options of_later = {.abi_size = sizeof(of_later), .n = kN, .kernel = kernel};
  TRY(api->plan_create(matrix, &of_later, &later));
  CHECK(compare(&k, later, 0, c[1], "a later plan"));
  memcpy(set, first, sizeof(set));
  TRY(cuda.launch(exec, k.stream));
  CHECK(compare(&k, later, 0, c[0], "a later plan after the graph ran"));
  CHECK(compare(&k, plan, 1, c[0], "after the graph ran again"));

  TRY(cuda.destroy_exec(exec));
  TRY(cuda.destroy_graph(graph));
  api->plan_destroy(later);
  api->plan_destroy(plan);
  api->matrix_destroy(matrix);
  TRY(api->buffer_destroy(k.context, k.device_b));
  TRY(api->buffer_destroy(k.context, k.device_c));
  TRY(api->stream_destroy(k.context, k.stream));
  api->context_destroy(k.context);
  return NULL;
}
