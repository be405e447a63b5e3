/* SPDX-License-Identifier: Apache-2.0
 *
 * A product whose tiles are split, and which therefore needs memory to work in, captured into CUDA graphs: several
 * graphs of one plan run at once, and are instantiated twice, cloned and outlived by their executable graphs and
 * copies.
 */
#include <dlfcn.h>
#include <string.h>

#include "driver.h"
#include "graph.h"
#include "sparsek.h"

enum { kBlock = 16, kRows = 2 * kBlock, kBlockCols = 512, kCols = kBlockCols * kBlock, kN = 64, kStreams = 2 };

typedef struct setting {
  const sparsek_api* api;
  driver cuda;
  sparsek_context* context;
  sparsek_plan* plan;
  void* b[kStreams]; /* of their own, so that what one product leaves is wrong for the other */
  void* c[kStreams];
  sparsek_stream stream[kStreams];
} setting;

static uint16_t values[2 * kBlockCols * kBlock * kBlock], b[kCols * kN], want[kStreams][kRows * kN], got[kRows * kN];

static char* capture(setting* s, int which, void** graph) {
  const sparsek_api* api = s->api;
  const sparsek_multiply_args args = {sizeof(args), 1, 0, s->b[which], 0, s->c[which], 0, s->stream[which]};
  TRY(s->cuda.begin_capture(s->stream[which], 0));
  TRY(api->multiply(s->plan, &args));
  TRY(s->cuda.end_capture(s->stream[which], graph));
  return NULL;
}

/* Runs exec[i] in stream i, both at once, and looks at what they made. */
static char* run_both(setting* s, void* const* exec) {
  const sparsek_api* api = s->api;
  for (int i = 0; i < kStreams; ++i) TRY(api->buffer_fill(s->context, s->c[i], 0xff, sizeof(got), s->stream[i]));
  for (int replay = 0; replay < 50; ++replay) {
    for (int i = 0; i < kStreams; ++i) TRY(s->cuda.launch(exec[i], s->stream[i]));
  }
  for (int i = 0; i < kStreams; ++i) {
    TRY(api->buffer_read(s->context, got, s->c[i], sizeof(got), s->stream[i]));
    TRY(api->stream_synchronize(s->context, s->stream[i]));
    if (memcmp(got, want[i], sizeof(got)) != 0) return text("graph %d gave another C", i);
  }
  return NULL;
}

static char* run(setting* s) {
  const sparsek_api* api = s->api;
  for (int round = 0; round < 3; ++round) { /* the later ones with the memory of graphs that are gone */
    void *graph[kStreams] = {NULL, NULL}, *clone = NULL, *exec[kStreams] = {NULL, NULL}, *again = NULL;
    char* failure = NULL;
    for (int i = 0; i < kStreams; ++i) {
      if ((failure = capture(s, i, &graph[i])) != NULL) return failure;
    }
    TRY(s->cuda.clone(&clone, graph[1]));
    TRY(s->cuda.instantiate(&exec[0], graph[0], 0));
    TRY(s->cuda.instantiate(&again, graph[0], 0));
    TRY(s->cuda.instantiate(&exec[1], clone, 0));
    for (int i = 0; i < kStreams; ++i) TRY(s->cuda.destroy_graph(graph[i]));
    TRY(s->cuda.destroy_graph(clone));
    if ((failure = run_both(s, exec)) != NULL) return failure;
    TRY(s->cuda.destroy_exec(exec[0]));
    exec[0] = again;
    if ((failure = run_both(s, exec)) != NULL) return failure;
    for (int i = 0; i < kStreams; ++i) TRY(s->cuda.destroy_exec(exec[i]));
  }
  return NULL;
}

char* graph_parts_run(const char* path, const char* kernel) {
  setting s = {0};
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) return text("%s", dlerror());
  const sparsek_api* (*get_api)(int32_t) = (const sparsek_api* (*)(int32_t))dlsym(library, "sparsek_get_api");
  const sparsek_api* api = s.api = get_api(SPARSEK_ABI_VERSION);
  sparsek_context_options options = {sizeof(options), SPARSEK_CUDA, 0, 0};
  if (api->context_create(&options, &s.context) == SPARSEK_NO_DEVICE) return text("skipped: no GPU");
  if (s.context == NULL) return text("%s", api->last_error());
  if (!driver_open(&s.cuda)) return text("libcuda.so.1 lacks what a capture needs");

  static int32_t row_ptr[3] = {0, kBlockCols, 2 * kBlockCols}, col_idx[2 * kBlockCols];
  for (int i = 0; i < 2 * kBlockCols; ++i) col_idx[i] = i % kBlockCols;
  fill_bf16(values, sizeof(values) / sizeof(*values), 1);
  sparsek_bsr bsr = {sizeof(bsr),   kRows,        kCols, kBlock,  kBlock,  2 * kBlockCols, SPARSEK_BF16,
                     SPARSEK_INT32, SPARSEK_HOST, 0,     row_ptr, col_idx, values};
  sparsek_plan_options plan_options = {sizeof(plan_options), kN, 0, 0, 0, 0, kernel};
  sparsek_matrix* matrix = NULL;
  TRY(api->matrix_create(s.context, &bsr, &matrix));
  TRY(api->plan_create(matrix, &plan_options, &s.plan));
  sparsek_plan_info info = {sizeof(info)};
  TRY(api->plan_info(s.plan, &info));
  if (info.tiles < 2) return text("the tile is not split");
  for (int i = 0; i < kStreams; ++i) {
    TRY(api->stream_create(s.context, &s.stream[i]));
    TRY(api->buffer_create(s.context, sizeof(b), &s.b[i]));
    TRY(api->buffer_create(s.context, sizeof(got), &s.c[i]));
    fill_bf16(b, sizeof(b) / sizeof(*b), 2 + i);
    TRY(api->buffer_write(s.context, s.b[i], b, sizeof(b), s.stream[i]));
    const sparsek_multiply_args args = {sizeof(args), 1, 0, s.b[i], 0, s.c[i], 0, s.stream[i]};
    TRY(api->multiply(s.plan, &args));
    TRY(api->buffer_read(s.context, want[i], s.c[i], sizeof(got), s.stream[i]));
    TRY(api->stream_synchronize(s.context, s.stream[i]));
  }
  if (memcmp(want[0], want[1], sizeof(got)) == 0) return text("the products are the same: nothing would be seen");

  char* failure = run(&s);
  if (failure != NULL) return failure;

  for (int i = 0; i < kStreams; ++i) {
    TRY(api->buffer_destroy(s.context, s.b[i]));
    TRY(api->buffer_destroy(s.context, s.c[i]));
    TRY(api->stream_destroy(s.context, s.stream[i]));
  }
  api->plan_destroy(s.plan);
  api->matrix_destroy(matrix);
  api->context_destroy(s.context);
  return NULL;
}
