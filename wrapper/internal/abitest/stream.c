/* SPDX-License-Identifier: Apache-2.0
 *
 * Matrices and plans that are made, used and let go in the order of a stream.
 */
#include "stream.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"
#include "gate.h"
#include "sparsek.h"

enum { kBlock = 64, kBlockRows = 16, kBlockCols = 32, kInRow = 8, kBlocks = kBlockRows * kInRow, kN = 512 };
enum { kRows = kBlockRows * kBlock, kCols = kBlockCols * kBlock, kPatterns = 6, kCElements = kRows * kN, kSpare = 17 };

typedef struct setting {
  const sparsek_api* api;
  sparsek_context* context;
  driver cuda;
  void* stream;
  int64_t row_ptr[kPatterns][kBlockRows + 1], col_idx[kPatterns][kBlocks];
  void *device_row_ptr, *device_col_idx, *device_values, *device_b, *device_c[kPatterns];
} setting;

static uint16_t values[kBlocks * kBlock * kBlock], b[kCols * kN], want[kPatterns][kCElements], got[kCElements];

/* Patterns of as many blocks, in rows of different lengths. */
static void make_pattern(setting* s, int which) {
  unsigned seed = 7 + (unsigned)which;
  int at = 0;
  s->row_ptr[which][0] = 0;
  for (int row = 0; row < kBlockRows; ++row) {
    const int length = kInRow + (row % 2 == 0 ? which : -which);
    int taken = 0;
    for (int col = 0; col < kBlockCols && taken < length; ++col) {
      if ((int)(rand_r(&seed) % (unsigned)(kBlockCols - col)) >= length - taken) continue;
      s->col_idx[which][at++] = col;
      ++taken;
    }
    s->row_ptr[which][row + 1] = at;
  }
}

static sparsek_bsr host_bsr(const setting* s, int which) {
  sparsek_bsr bsr = {sizeof(bsr),
                     kRows,
                     kCols,
                     kBlock,
                     kBlock,
                     kBlocks,
                     SPARSEK_BF16,
                     SPARSEK_INT64,
                     SPARSEK_HOST,
                     0,
                     s->row_ptr[which],
                     s->col_idx[which],
                     values};
  return bsr;
}

static sparsek_bsr async_bsr(const setting* s) {
  sparsek_bsr bsr = {.abi_size = sizeof(bsr),
                     .rows = kRows,
                     .cols = kCols,
                     .block_m = kBlock,
                     .block_k = kBlock,
                     .nnzb = kBlocks,
                     .dtype = SPARSEK_BF16,
                     .index_type = SPARSEK_INT64,
                     .memory = SPARSEK_DEVICE,
                     .row_ptr = s->device_row_ptr,
                     .col_idx = s->device_col_idx,
                     .values = s->device_values,
                     .stream = s->stream,
                     .flags = SPARSEK_BSR_ASYNC};
  return bsr;
}

/* What the products are, by the CPU. */
static char* expected(setting* s) {
  const sparsek_api* api = s->api;
  sparsek_context* context = NULL;
  sparsek_context_options options = {sizeof(options), SPARSEK_CPU, 0, 0};
  TRY(api->context_create(&options, &context));
  fill_bf16(values, kBlocks * kBlock * kBlock, 1);
  fill_bf16(b, kCols * kN, 2);
  for (int i = 0; i < kPatterns; ++i) {
    make_pattern(s, i);
    sparsek_bsr bsr = host_bsr(s, i);
    sparsek_matrix* matrix = NULL;
    sparsek_plan* plan = NULL;
    sparsek_plan_options plan_options = {.abi_size = sizeof(plan_options), .n = kN, .alignment = 2};
    sparsek_multiply_args args = {.abi_size = sizeof(args), .alpha = 1, .b = b, .c = want[i]};
    TRY(api->matrix_create(context, &bsr, &matrix));
    TRY(api->plan_create(matrix, &plan_options, &plan));
    TRY(api->multiply(plan, &args));
    api->plan_destroy(plan);
    api->matrix_destroy(matrix);
  }
  api->context_destroy(context);
  return NULL;
}

static char* prepare(setting* s) {
  const sparsek_api* api = s->api;
  TRY(s->cuda.create_stream(&s->stream, kNonBlocking));
  TRY(api->buffer_create(s->context, sizeof(s->row_ptr[0]), &s->device_row_ptr));
  TRY(api->buffer_create(s->context, sizeof(s->col_idx[0]), &s->device_col_idx));
  TRY(api->buffer_create(s->context, sizeof(values) + sizeof(uint16_t) * kSpare * kBlock * kBlock, &s->device_values));
  TRY(api->buffer_create(s->context, sizeof(b), &s->device_b));
  TRY(api->buffer_write(s->context, s->device_values, values, sizeof(values), s->stream));
  TRY(api->buffer_write(s->context, s->device_b, b, sizeof(b), s->stream));
  for (int i = 0; i < kPatterns; ++i) {
    TRY(api->buffer_create(s->context, sizeof(got), &s->device_c[i]));
    TRY(api->buffer_fill(s->context, s->device_c[i], 0xff, sizeof(got), s->stream));
  }
  TRY(s->cuda.wait_stream(s->stream));
  return NULL;
}

static char* write_index(setting* s, int which) {
  const sparsek_api* api = s->api;
  TRY(api->buffer_write(s->context, s->device_row_ptr, s->row_ptr[which], sizeof(s->row_ptr[which]), s->stream));
  TRY(api->buffer_write(s->context, s->device_col_idx, s->col_idx[which], sizeof(s->col_idx[which]), s->stream));
  return NULL;
}

static char* compare(setting* s, int c, int which) {
  const sparsek_api* api = s->api;
  TRY(s->cuda.wait_context());
  TRY(api->buffer_read(s->context, got, s->device_c[c], sizeof(got), s->stream));
  TRY(s->cuda.wait_stream(s->stream));
  if (memcmp(got, want[which], sizeof(got)) != 0) return text("the product of pattern %d is wrong", which);
  return NULL;
}

/* A step: a new pattern in the same arrays, its matrix, a plan, a product, and all of it given back or destroyed. */
static char* step(setting* s, int which, int release, sparsek_stream product_stream) {
  const sparsek_api* api = s->api;
  sparsek_matrix* matrix = NULL;
  sparsek_plan* plan = NULL;
  char* const failure = write_index(s, which);
  if (failure != NULL) return failure;
  sparsek_bsr bsr = async_bsr(s);
  sparsek_plan_options options = {.abi_size = sizeof(options), .n = kN};
  sparsek_multiply_args args = {
      .abi_size = sizeof(args), .alpha = 1, .b = s->device_b, .c = s->device_c[which], .stream = product_stream};
  TRY(api->matrix_create(s->context, &bsr, &matrix));
  TRY(api->plan_create(matrix, &options, &plan));
  TRY(api->multiply(plan, &args));
  if (release) {
    api->plan_release(plan, product_stream);
    api->matrix_release(matrix, product_stream);
  } else {
    api->plan_destroy(plan);
    api->matrix_destroy(matrix);
  }
  return NULL;
}

/* Steps once before, so that kernels are loaded: that waits. */
static char* steps(setting* s, int release, int other_stream) {
  const sparsek_api* api = s->api;
  void* product_stream = s->stream;
  if (other_stream) TRY(s->cuda.create_stream(&product_stream, kNonBlocking));
  char* failure = step(s, 0, release, product_stream);
  if (failure == NULL) failure = compare(s, 0, 0);
  if (failure != NULL) return failure;
  TRY(gate_close(5));
  TRY(gate_hold(&s->cuda, s->stream));
  for (int i = 0; i < kPatterns && failure == NULL; ++i) failure = step(s, i, release, product_stream);
  const int waited = gate_timed_out();
  TRY(gate_open());
  for (int i = 0; i < kPatterns && failure == NULL; ++i) failure = compare(s, i, i);
  if (failure == NULL && waited) failure = text("a step waited for the stream");
  if (other_stream) TRY(s->cuda.destroy_stream(product_stream));
  return failure;
}

static char* faults(setting* s) {
  const sparsek_api* api = s->api;
  static const struct {
    int in_col_idx, at;
    int64_t value;
    sparsek_status status;
    const char* message;
  } kFaults[] = {
      {0, 0, 1, SPARSEK_ROW_PTR_START, "row_ptr[0] = 1 is not 0"},
      {0, 5, 1000000, SPARSEK_ROW_PTR_NOT_MONOTONE, "is below row_ptr[5] = 1000000"},
      {0, kBlockRows, kBlocks + 1, SPARSEK_ROW_PTR_END, "row_ptr[16] = 129 is not nnzb = 128"},
      {1, 20, -3, SPARSEK_COL_IDX_RANGE, "col_idx[20] = -3 is not within 0 and 32 block columns"},
      {1, 127, (int64_t)1 << 40, SPARSEK_COL_IDX_RANGE, "col_idx[127] = 1099511627776 is not within"},
      {1, 1, 0, SPARSEK_COL_IDX_UNSORTED, NULL},
  };
  char* const failed = step(s, 0, 1, s->stream); /* loads the kernels, which may wait for the device */
  if (failed != NULL) return failed;
  for (size_t i = 0; i < sizeof(kFaults) / sizeof(*kFaults); ++i) {
    sparsek_matrix* matrix = NULL;
    sparsek_plan* plan = NULL;
    make_pattern(s, 0);
    (kFaults[i].in_col_idx ? s->col_idx[0] : s->row_ptr[0])[kFaults[i].at] = kFaults[i].value;
    if (kFaults[i].message == NULL) s->col_idx[0][0] = 1;
    TRY(gate_close(5));
    TRY(gate_hold(&s->cuda, s->stream));
    char* const failure = write_index(s, 0);
    if (failure != NULL) return failure;
    sparsek_bsr bsr = async_bsr(s);
    sparsek_plan_options options = {.abi_size = sizeof(options), .n = kN};
    sparsek_plan_info info = {.abi_size = sizeof(info)};
    sparsek_multiply_args args = {
        .abi_size = sizeof(args), .alpha = 1, .beta = 1, .b = s->device_b, .c = s->device_c[0], .stream = s->stream};
    TRY(api->matrix_create(s->context, &bsr, &matrix));
    TRY(api->plan_create(matrix, &options, &plan));
    TRY(api->buffer_write(s->context, s->device_c[0], want[1], sizeof(want[1]), s->stream));
    TRY(api->multiply(plan, &args));
    const sparsek_status early = api->matrix_status(matrix, 0);
    const sparsek_status described = api->plan_describe(plan, &info);
    const int waited = gate_timed_out();
    TRY(gate_open());
    if (waited) return text("fault %zu: a call waited for the stream", i);
    if (early != SPARSEK_NOT_READY) return text("fault %zu: before the check: %d", i, (int)early);
    if (described != SPARSEK_OK || info.entries != -1) return text("fault %zu: entries %d", i, (int)info.entries);
    for (int again = 0; again < 2; ++again) {
      const sparsek_status status = api->matrix_status(matrix, 1 - again);
      if (status != kFaults[i].status) return text("fault %zu: status %d: %s", i, (int)status, api->last_error());
      if (kFaults[i].message != NULL && strstr(api->last_error(), kFaults[i].message) == NULL) {
        return text("fault %zu: %s", i, api->last_error());
      }
    }
    TRY(api->plan_info(plan, &info));
    if (info.entries != 0) return text("fault %zu: a plan of %d entries", i, (int)info.entries);
    char* const wrong = compare(s, 0, 1); /* C = 0 + C */
    if (wrong != NULL) return wrong;
    api->plan_release(plan, s->stream);
    api->matrix_release(matrix, s->stream);
  }
  make_pattern(s, 0);
  return steps(s, 1, 0);
}

static char* captured(setting* s) {
  const sparsek_api* api = s->api;
  sparsek_matrix *matrix = NULL, *none = NULL;
  sparsek_plan *plan = NULL, *other = NULL;
  sparsek_bsr bsr = async_bsr(s);
  sparsek_plan_options options = {.abi_size = sizeof(options), .n = kN};
  void *graph = NULL, *exec = NULL;
  char* const failure = write_index(s, 1);
  if (failure != NULL) return failure;
  TRY(gate_close(5));
  TRY(gate_hold(&s->cuda, s->stream));
  TRY(api->matrix_create(s->context, &bsr, &matrix));
  TRY(api->plan_create(matrix, &options, &plan));
  void* captured = NULL;
  TRY(s->cuda.create_stream(&captured, kNonBlocking));
  TRY(gate_open()); /* a product in a graph is not ordered behind anything else: multiply waits for the plan */
  TRY(s->cuda.begin_capture(captured, 0));
  sparsek_multiply_args args = {
      .abi_size = sizeof(args), .alpha = 1, .b = s->device_b, .c = s->device_c[1], .stream = captured};
  TRY(api->multiply(plan, &args));
  bsr.stream = captured;
  if (api->matrix_create(s->context, &bsr, &none) != SPARSEK_BAD_ARGUMENT) return text("a captured stream was taken");
  if (strstr(api->last_error(), "captured") == NULL) return text("%s", api->last_error());
  bsr.flags = 0;
  if (api->matrix_create(s->context, &bsr, &none) != SPARSEK_BAD_ARGUMENT) return text("a captured stream was taken");
  TRY(api->plan_create(matrix, &options, &other));
  api->plan_release(other, s->stream);
  TRY(s->cuda.end_capture(captured, &graph));
  TRY(s->cuda.instantiate(&exec, graph, 0));
  TRY(s->cuda.launch(exec, captured));
  char* const wrong = compare(s, 1, 1);
  if (wrong != NULL) return wrong;
  TRY(s->cuda.destroy_exec(exec));
  TRY(s->cuda.destroy_graph(graph));
  api->plan_release(plan, s->stream);
  api->matrix_release(matrix, s->stream);
  TRY(s->cuda.destroy_stream(captured));
  return NULL;
}

static char* named(setting* s) {
  const sparsek_api* api = s->api;
  sparsek_matrix* matrix = NULL;
  sparsek_plan* plan = NULL;
  char* const failure = write_index(s, 1);
  if (failure != NULL) return failure;
  TRY(s->cuda.wait_stream(s->stream));
  TRY(gate_close(1));
  TRY(gate_hold(&s->cuda, s->stream));
  char* const again = write_index(s, 2);
  if (again != NULL) return again;
  sparsek_bsr bsr = async_bsr(s);
  bsr.flags = 0;
  TRY(api->matrix_create(s->context, &bsr, &matrix)); /* until the gate opens by itself */
  TRY(gate_open());
  sparsek_plan_options options = {.abi_size = sizeof(options), .n = kN};
  sparsek_multiply_args args = {.abi_size = sizeof(args), .alpha = 1, .b = s->device_b, .c = s->device_c[2]};
  TRY(api->plan_create(matrix, &options, &plan));
  TRY(api->multiply(plan, &args));
  char* const wrong = compare(s, 2, 2);
  if (wrong != NULL) return wrong;
  api->plan_destroy(plan);
  api->matrix_destroy(matrix);
  return NULL;
}

/* What a step does that changes the index of one plan, in the stream of `bsr`. */
typedef char* (*changing_step)(setting* s, const sparsek_bsr* bsr, void* c, void* what);

/* Each pattern in turn in a stream that is held up; then a graph of one step, replayed with the index that its arrays
 * hold by then. fault_of: tells the status of the last step's index when it has ended. */
static char* change(setting* s, changing_step step_of, sparsek_status (*fault_of)(setting* s, void* what), void* what) {
  const sparsek_api* api = s->api;
  sparsek_bsr bsr = async_bsr(s);
  char* failure = NULL;
  TRY(gate_close(5));
  TRY(gate_hold(&s->cuda, s->stream));
  for (int i = 0; i < kPatterns && failure == NULL; ++i) {
    failure = write_index(s, i);
    if (failure == NULL) failure = step_of(s, &bsr, s->device_c[i], what);
  }
  const int waited = gate_timed_out();
  TRY(gate_open());
  for (int i = 0; i < kPatterns && failure == NULL; ++i) failure = compare(s, i, i);
  if (failure == NULL && waited) failure = text("a step waited for the stream");
  if (failure == NULL && fault_of(s, what) != SPARSEK_OK) failure = text("a fault in a good index");
  if (failure != NULL) return failure;

  void *graph = NULL, *exec = NULL;
  TRY(s->cuda.begin_capture(s->stream, 0));
  failure = step_of(s, &bsr, s->device_c[0], what);
  TRY(s->cuda.end_capture(s->stream, &graph));
  if (failure != NULL) return failure;
  TRY(s->cuda.instantiate(&exec, graph, 0));
  for (int round = 0; round < 2 * kPatterns && failure == NULL; ++round) {
    failure = write_index(s, round % kPatterns);
    TRY(s->cuda.launch(exec, s->stream));
    if (failure == NULL) failure = compare(s, 0, round % kPatterns);
    if (failure == NULL && fault_of(s, what) != SPARSEK_OK) failure = text("a fault in a good index");
  }
  if (failure != NULL) return failure;
  s->col_idx[1][3] = kBlockCols;
  failure = write_index(s, 1);
  TRY(s->cuda.launch(exec, s->stream));
  TRY(s->cuda.wait_context());
  if (failure == NULL && fault_of(s, what) != SPARSEK_COL_IDX_RANGE) failure = text("a fault was not found");
  memset(want[0], 0, sizeof(want[0]));
  if (failure == NULL) failure = compare(s, 0, 0);
  TRY(s->cuda.destroy_exec(exec));
  TRY(s->cuda.destroy_graph(graph));
  return failure;
}

typedef struct handles {
  sparsek_matrix* matrix;
  sparsek_plan* plan;
} handles;

static char* update_step(setting* s, const sparsek_bsr* bsr, void* c, void* what) {
  const sparsek_api* api = s->api;
  const handles* const h = what;
  sparsek_multiply_args args = {.abi_size = sizeof(args), .alpha = 1, .b = s->device_b, .c = c, .stream = s->stream};
  TRY(api->plan_update(h->plan, bsr));
  TRY(api->multiply(h->plan, &args));
  return NULL;
}

static sparsek_status status_of_matrix(setting* s, void* what) {
  return s->api->matrix_status(((const handles*)what)->matrix, 1);
}

static char* updated(setting* s, const char* kernel, int32_t workers) {
  const sparsek_api* api = s->api;
  handles h = {NULL, NULL};
  sparsek_bsr bsr = async_bsr(s), larger = bsr;
  sparsek_plan_options options = {.abi_size = sizeof(options), .n = kN, .kernel = kernel, .workers = workers};
  char* failure = write_index(s, kPatterns - 1);
  if (failure != NULL) return failure;
  TRY(api->matrix_create(s->context, &bsr, &h.matrix));
  TRY(api->plan_create(h.matrix, &options, &h.plan));
  failure = update_step(s, &bsr, s->device_c[0], &h); /* loads the kernels */
  if (failure == NULL) failure = compare(s, 0, kPatterns - 1);
  if (failure != NULL) return failure;
  larger.nnzb += 1;
  if (api->plan_update(h.plan, &larger) != SPARSEK_BAD_SIZE) return text("too many blocks: %s", api->last_error());
  failure = change(s, update_step, status_of_matrix, &h);
  api->plan_destroy(h.plan);
  api->matrix_destroy(h.matrix);
  return failure;
}

typedef struct data {
  sparsek_plan_layout layout;
  void *memory, *fault;
} data;

static char* data_step(setting* s, const sparsek_bsr* bsr, void* c, void* what) {
  const sparsek_api* api = s->api;
  const data* const d = what;
  sparsek_multiply_args args = {
      .abi_size = sizeof(args), .alpha = 1, .b = s->device_b, .c = c, .stream = s->stream, .values = s->device_values};
  TRY(api->plan_write(s->context, bsr, &d->layout, d->memory, d->fault));
  TRY(api->plan_run(s->context, &d->layout, d->memory, &args));
  return NULL;
}

static sparsek_status status_of_data(setting* s, void* what) {
  int64_t fault = -1;
  s->api->buffer_read(s->context, &fault, ((const data*)what)->fault, sizeof(fault), s->stream);
  s->cuda.wait_stream(s->stream);
  return (sparsek_status)(fault & 0xff);
}

static char* as_data(setting* s, const char* kernel, int32_t workers) {
  const sparsek_api* api = s->api;
  data d = {.layout = {.abi_size = sizeof(d.layout)}};
  sparsek_bsr bsr = async_bsr(s);
  bsr.nnzb += kSpare; /* a bound */
  sparsek_plan_options options = {.abi_size = sizeof(options), .n = kN, .kernel = kernel, .workers = workers};
  TRY(api->plan_measure(s->context, &bsr, &options, &d.layout));
  TRY(api->buffer_create(s->context, (size_t)d.layout.bytes, &d.memory));
  TRY(api->buffer_create(s->context, sizeof(int64_t), &d.fault));
  TRY(api->buffer_fill(s->context, d.memory, 0xff, (size_t)d.layout.bytes, s->stream));
  bsr = async_bsr(s);
  char* failure = write_index(s, kPatterns - 1);
  if (failure == NULL) failure = data_step(s, &bsr, s->device_c[0], &d); /* loads the kernels */
  if (failure == NULL) failure = compare(s, 0, kPatterns - 1);
  if (failure == NULL) failure = change(s, data_step, status_of_data, &d);
  if (failure != NULL) return failure;
  TRY(api->buffer_destroy(s->context, d.memory));
  TRY(api->buffer_destroy(s->context, d.fault));
  return NULL;
}

/* With kernels of each family, and so few workers that a product takes long enough for similar rows to be put together;
 * what a fault destroys is made again. */
static char* each_kernel(setting* s, char* (*test)(setting* s, const char* kernel, int32_t workers)) {
  static const char* const kKernels[] = {NULL, "skinny_bf16_64_16", "gather_bf16_128_256", "simt_bf16"};
  for (size_t i = 0; i < sizeof(kKernels) / sizeof(*kKernels); ++i) {
    for (int32_t workers = 0; workers < 2; ++workers) {
      char* failure = expected(s);
      if (failure == NULL) failure = test(s, kKernels[i], workers);
      if (failure != NULL) {
        return text("%s, %d workers: %s", kKernels[i] == NULL ? "chosen" : kKernels[i], workers, failure);
      }
    }
  }
  return NULL;
}

static char* run(setting* s, stream_case what) {
  char* failure = expected(s);
  if (failure == NULL) failure = prepare(s);
  if (failure != NULL) return failure;
  switch (what) {
    case kStreamHeldUp:
      return steps(s, 1, 0);
    case kStreamOthers:
      return steps(s, 1, 1);
    case kStreamFaults:
      return faults(s);
    case kStreamCaptured:
      return captured(s);
    case kStreamDestroyed:
      return steps(s, 0, 0);
    case kStreamNamed:
      return named(s);
    case kStreamUpdated:
      return each_kernel(s, updated);
    case kStreamData:
      return each_kernel(s, as_data);
  }
  return NULL;
}

char* stream_run(const char* path, stream_case what) {
  setting s = {0};
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) return text("%s", dlerror());
  const sparsek_api* (*get_api)(int32_t) = (const sparsek_api* (*)(int32_t))dlsym(library, "sparsek_get_api");
  const sparsek_api* api = s.api = get_api(SPARSEK_ABI_VERSION);
  sparsek_context_options options = {sizeof(options), SPARSEK_CUDA, 0, 0};
  if (api->context_create(&options, &s.context) == SPARSEK_NO_DEVICE) return text("skipped: no GPU");
  if (s.context == NULL) return text("%s", api->last_error());
  if (!driver_open(&s.cuda)) return text("libcuda.so.1 lacks what this test needs");
  char* const failure = run(&s, what);
  gate_open();
  if (failure != NULL) return failure;
  TRY(api->buffer_destroy(s.context, s.device_row_ptr));
  TRY(api->buffer_destroy(s.context, s.device_col_idx));
  TRY(api->buffer_destroy(s.context, s.device_values));
  TRY(api->buffer_destroy(s.context, s.device_b));
  for (int i = 0; i < kPatterns; ++i) TRY(api->buffer_destroy(s.context, s.device_c[i]));
  api->context_destroy(s.context);
  TRY(s.cuda.destroy_stream(s.stream));
  return NULL;
}
