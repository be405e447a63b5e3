/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans and matrices that are destroyed before their products have run: the stream is held up by a function of the
 * host, which waits at a gate.
 */
#include "release.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"
#include "gate.h"
#include "sparsek.h"

enum { kBlock = 64, kBlockRows = 16, kBlockCols = 32, kInRow = 8, kBlocks = kBlockRows * kInRow, kN = 256 };
enum { kRows = kBlockRows * kBlock, kCols = kBlockCols * kBlock };

/* Two patterns of the same sizes whose plans are as large, but not the same. */
static void pattern(int which, int32_t* row_ptr, int32_t* col_idx) {
  for (int row = 0; row <= kBlockRows; ++row) row_ptr[row] = row * kInRow;
  for (int i = 0; i < kBlocks; ++i) col_idx[i] = (i % kInRow) * 4 + (which ? 3 - i / kInRow % 4 : i / kInRow % 4);
}

static sparsek_bsr bsr_of(const int32_t* row_ptr, const int32_t* col_idx, const uint16_t* values) {
  sparsek_bsr bsr = {sizeof(bsr),   kRows,        kCols, kBlock,  kBlock,  kBlocks, SPARSEK_BF16,
                     SPARSEK_INT32, SPARSEK_HOST, 0,     row_ptr, col_idx, values};
  return bsr;
}

/* All of the device's memory that can be had. */
typedef struct hoard {
  unsigned long long* blocks;
  size_t count, room;
} hoard;

static void take_all(const driver* cuda, hoard* h) {
  for (size_t bytes = (size_t)1 << 36; bytes > 0; bytes /= 2) {
    unsigned long long block = 0;
    while (h->count < h->room && cuda->allocate(&block, bytes) == 0) h->blocks[h->count++] = block;
  }
}

static void give_back(const driver* cuda, hoard* h) {
  while (h->count > 0) cuda->release(h->blocks[--h->count]);
}

static uint16_t values[2][kBlocks * kBlock * kBlock], b[kCols * kN], want[kRows * kN], got[kRows * kN];

/* What the product of the first pattern is, by the CPU. */
static char* expected(const sparsek_api* api, const sparsek_bsr* bsr) {
  sparsek_context* context = NULL;
  sparsek_matrix* matrix = NULL;
  sparsek_plan* plan = NULL;
  sparsek_context_options options = {sizeof(options), SPARSEK_CPU, 0, 0};
  sparsek_plan_options plan_options = {.abi_size = sizeof(plan_options), .n = kN, .alignment = 2};
  sparsek_multiply_args args = {.abi_size = sizeof(args), .alpha = 1, .b = b, .c = want};
  TRY(api->context_create(&options, &context));
  TRY(api->matrix_create(context, bsr, &matrix));
  TRY(api->plan_create(matrix, &plan_options, &plan));
  TRY(api->multiply(plan, &args));
  api->plan_destroy(plan);
  api->matrix_destroy(matrix);
  api->context_destroy(context);
  return NULL;
}

static char* run(const sparsek_api* api, const driver* cuda, sparsek_context* context, release_case how, int no_memory,
                 hoard* h) {
  int32_t row_ptr[2][kBlockRows + 1], col_idx[2][kBlocks];
  for (int i = 0; i < 2; ++i) {
    pattern(i, row_ptr[i], col_idx[i]);
    fill_bf16(values[i], kBlocks * kBlock * kBlock, 1 + i);
  }
  fill_bf16(b, kCols * kN, 3);
  sparsek_bsr first = bsr_of(row_ptr[0], col_idx[0], values[0]), second = bsr_of(row_ptr[1], col_idx[1], values[1]);
  char* failure = expected(api, &first);
  if (failure != NULL) return failure;

  sparsek_plan_options plan_options = {.abi_size = sizeof(plan_options), .n = kN};
  sparsek_matrix *matrix = NULL, *other_matrix = NULL;
  sparsek_plan *plan = NULL, *other_plan = NULL;
  sparsek_stream stream = NULL, other_stream = NULL;
  void *device_b = NULL, *device_c = NULL, *other_c = NULL, *graph = NULL, *exec = NULL;
  const int foreign = how == kReleaseForeignStream || how == kReleaseLostStream;
  TRY(api->matrix_create(context, &first, &matrix));
  TRY(api->plan_create(matrix, &plan_options, &plan));
  if (no_memory) TRY(api->matrix_create(context, &second, &other_matrix));
  if (foreign) TRY(cuda->create_stream(&stream, kNonBlocking));
  if (!foreign && how != kReleaseDefaultStream) TRY(api->stream_create(context, &stream));
  TRY(api->stream_create(context, &other_stream));
  TRY(api->buffer_create(context, sizeof(b), &device_b));
  TRY(api->buffer_create(context, sizeof(got), &device_c));
  TRY(api->buffer_create(context, sizeof(got), &other_c));
  TRY(api->buffer_write(context, device_b, b, sizeof(b), other_stream));
  TRY(api->buffer_fill(context, device_c, 0xff, sizeof(got), other_stream));
  TRY(api->stream_synchronize(context, other_stream));

  sparsek_multiply_args args = {.abi_size = sizeof(args), .alpha = 1, .b = device_b, .c = device_c, .stream = stream};
  TRY(api->multiply(plan, &args)); /* also loads the kernel */
  TRY(api->stream_synchronize(context, stream));
  TRY(api->buffer_fill(context, device_c, 0xff, sizeof(got), stream));
  if (how == kReleaseGraph) {
    TRY(cuda->begin_capture(stream, 0));
    TRY(api->multiply(plan, &args));
    TRY(cuda->end_capture(stream, &graph));
    TRY(cuda->instantiate(&exec, graph, 0));
    TRY(cuda->launch(exec, stream));
    TRY(cuda->wait_stream(stream));
    TRY(api->buffer_fill(context, device_c, 0xff, sizeof(got), stream));
    TRY(cuda->wait_stream(stream));
  }

  /* Before the product is held up: CUDA may wait for it where it is asked for the last of the memory. */
  if (no_memory) take_all(cuda, h);

  /* The product is held up, and its plan and its matrix are destroyed. */
  const int patience = how == kReleaseGraph ? 1 : 5;
  TRY(gate_close(patience));
  TRY(gate_hold(cuda, stream));
  if (how == kReleaseGraph) {
    TRY(cuda->launch(exec, stream));
  } else {
    TRY(api->multiply(plan, &args));
  }
  sparsek_plan_info info = {.abi_size = sizeof(info)};
  TRY(api->plan_describe(plan, &info));
  if (info.recomputed != -1) return text("plan_describe tells what it has not fetched");
  if (gate_timed_out()) return text("plan_describe waited for a product");
  if (how == kReleaseClosedStream) TRY(api->stream_destroy(context, stream));
  if (how == kReleaseLostStream) TRY(cuda->destroy_stream(stream));
  api->plan_destroy(plan);
  api->matrix_destroy(matrix);
  const int waited = gate_timed_out();

  /* Others take their place; without memory, only plans. */
  for (int i = 0; i < 3; ++i) {
    if (!no_memory) TRY(api->matrix_create(context, &second, &other_matrix));
    TRY(api->plan_create(other_matrix, &plan_options, &other_plan));
    sparsek_multiply_args other = {
        .abi_size = sizeof(args), .alpha = 1, .b = device_b, .c = other_c, .stream = other_stream};
    TRY(api->multiply(other_plan, &other));
    TRY(api->stream_synchronize(context, other_stream));
    api->plan_destroy(other_plan);
    if (!no_memory) api->matrix_destroy(other_matrix);
  }
  if (how != kReleaseGraph && (waited || gate_timed_out())) {
    return text("%s waited for a product", waited ? "plan_destroy or matrix_destroy" : "making another plan");
  }
  TRY(gate_open());
  if (how == kReleaseForeignStream) { /* named again, it gives back what it held */
    TRY(api->stream_synchronize(context, stream));
  }
  TRY(cuda->wait_context());
  if (no_memory) give_back(cuda, h);
  TRY(api->buffer_read(context, got, device_c, sizeof(got), other_stream));
  TRY(api->stream_synchronize(context, other_stream));
  if (memcmp(got, want, sizeof(got)) != 0) return text("the product of the plan that was destroyed is wrong");

  if (how == kReleaseGraph) {
    TRY(cuda->destroy_exec(exec));
    TRY(cuda->destroy_graph(graph));
  }
  if (how == kReleaseForeignStream) TRY(cuda->destroy_stream(stream));
  if (how == kReleaseOwnStream || how == kReleaseGraph) TRY(api->stream_destroy(context, stream));
  TRY(api->stream_destroy(context, other_stream));
  if (no_memory) api->matrix_destroy(other_matrix);
  TRY(api->buffer_destroy(context, device_b));
  TRY(api->buffer_destroy(context, device_c));
  TRY(api->buffer_destroy(context, other_c));
  return NULL;
}

char* release_run(const char* path, release_case how, int no_memory) {
  driver cuda;
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) return text("%s", dlerror());
  const sparsek_api* (*get_api)(int32_t) = (const sparsek_api* (*)(int32_t))dlsym(library, "sparsek_get_api");
  const sparsek_api* api = get_api(SPARSEK_ABI_VERSION);
  sparsek_context* context = NULL;
  sparsek_context_options options = {sizeof(options), SPARSEK_CUDA, 0, 0};
  if (api->context_create(&options, &context) == SPARSEK_NO_DEVICE) return text("skipped: no GPU");
  if (context == NULL) return text("%s", api->last_error());
  if (!driver_open(&cuda)) return text("libcuda.so.1 lacks what this test needs");
  hoard h = {NULL, 0, 1 << 20};
  h.blocks = malloc(h.room * sizeof(*h.blocks));
  char* failure = run(api, &cuda, context, how, no_memory, &h);
  gate_open(); /* for whatever waits there */
  give_back(&cuda, &h);
  free(h.blocks);
  if (failure == NULL) api->context_destroy(context);
  return failure;
}
