/* SPDX-License-Identifier: Apache-2.0
 *
 * Every call of the library while a stream is captured in global mode, in which CUDA lets an unsafe call of any thread
 * spoil the capture.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"
#include "graph.h"
#include "sparsek.h"

enum { kBlock = 64, kRows = 4 * kBlock, kCols = 3 * kBlock, kN = 256, kBlocks = 5, kGlobal = 0 };
static const int32_t kRowPtr[5] = {0, 2, 2, 3, 5};
static const int32_t kColIdx[kBlocks] = {0, 2, 1, 0, 1};

static uint16_t values[kBlocks * kBlock * kBlock], b[kCols * kN], direct[kRows * kN], replayed[kRows * kN];

static sparsek_bsr host_bsr(void) {
  sparsek_bsr bsr = {sizeof(bsr),   kRows,        kCols, kBlock,  kBlock,  kBlocks, SPARSEK_BF16,
                     SPARSEK_INT32, SPARSEK_HOST, 0,     kRowPtr, kColIdx, values};
  return bsr;
}

/* What the calls use that was there before the capture, and what was used then and is destroyed within. */
typedef struct setting {
  const sparsek_api* api;
  driver cuda;
  int blocking;
  void* captured;
  sparsek_context *context, *old_context;
  sparsek_matrix *matrix, *old_matrix;
  sparsek_plan *plan, *old_plan;
  sparsek_tuner* old_tuner;
  sparsek_stream stream, old_stream;
  void *device_b, *device_c, *old_buffer, *row_ptr, *col_idx, *device_values;
  char* failure;
} setting;

/* Names the first call after which the capture is spoilt. */
static char* whole(const setting* s, const char* call) {
  int status = 0;
  const int result = s->cuda.is_capturing(s->captured, &status);
  const int is_capture_error = result >= 900 && result <= 908; /* others: this thread has no context yet */
  if (!is_capture_error && status != kInvalidated) return NULL;
  return text("the capture is spoilt after %s (%d, %d)", call, result, status);
}

#define STEP(call)                        \
  do {                                    \
    TRY(call);                            \
    char* const spoilt = whole(s, #call); \
    if (spoilt != NULL) return spoilt;    \
  } while (0)
/* For calls that give nothing. */
#define STEP_VOID(call) STEP((call, 0))

static char* use_plan(setting* s, sparsek_matrix* matrix, const char* kernel, int n) {
  const sparsek_api* api = s->api;
  sparsek_plan_options options = {.abi_size = sizeof(options), .n = n, .kernel = kernel, .allow_dense = 1};
  sparsek_plan* plan = NULL;
  const sparsek_status status = api->plan_create(matrix, &options, &plan);
  if (status == SPARSEK_NO_LIBRARY) return NULL;
  if (status != SPARSEK_OK) return text("a plan of kernel %s: %s", kernel ? kernel : "any", api->last_error());
  sparsek_multiply_args args = {
      .abi_size = sizeof(args), .alpha = 1, .b = s->device_b, .c = s->device_c, .stream = s->stream};
  double seconds[3];
  sparsek_plan_info info = {sizeof(info)};
  STEP(api->multiply(plan, &args));
  STEP(api->plan_info(plan, &info));
  STEP(api->multiply_time(plan, &args, 1, 1, 3, seconds));
  STEP(api->graph_time(&plan, &args, 1, 1, 3, seconds));
  STEP_VOID(api->plan_destroy(plan));
  STEP(api->stream_synchronize(s->context, s->stream));
  return NULL;
}

/* A call that is given the default stream: refused while a stream that waits for it is captured, else as ever. */
#define DEFAULT_STREAM(call)                                                                                      \
  do {                                                                                                            \
    const sparsek_status status = call;                                                                           \
    const sparsek_status want = s->blocking ? SPARSEK_CUDA_ERROR : SPARSEK_OK;                                    \
    if (status != want) return text("%s gave %d: %s", #call, (int)status, api->last_error());                     \
    if (s->blocking && strstr(api->last_error(), "default stream") == NULL) return text("%s", api->last_error()); \
    char* const spoilt = whole(s, #call);                                                                         \
    if (spoilt != NULL) return spoilt;                                                                            \
  } while (0)

static char* default_stream(setting* s) {
  const sparsek_api* api = s->api;
  sparsek_multiply_args args = {.abi_size = sizeof(args), .alpha = 1, .b = s->device_b, .c = s->device_c};
  int32_t done = 0;
  DEFAULT_STREAM(api->multiply(s->plan, &args));
  DEFAULT_STREAM(api->buffer_write(s->context, s->device_b, b, sizeof(b), NULL));
  DEFAULT_STREAM(api->buffer_fill(s->context, s->device_c, 0, sizeof(direct), NULL));
  DEFAULT_STREAM(api->buffer_read(s->context, replayed, s->device_c, sizeof(replayed), NULL));
  DEFAULT_STREAM(api->matrix_set_values(s->matrix, values, SPARSEK_HOST, NULL));
  DEFAULT_STREAM(api->stream_synchronize(s->context, NULL));
  DEFAULT_STREAM(api->stream_query(s->context, NULL, &done));
  return NULL;
}

static char* calls(setting* s) {
  const sparsek_api* api = s->api;
  char* failure = NULL;
  sparsek_context_options context_options = {sizeof(context_options), SPARSEK_CUDA, 0, 0};
  sparsek_context* context = NULL;
  sparsek_device_info device = {sizeof(device)};
  if (api->device_count() < 1) return text("no device");
  STEP(api->device_info(0, &device));
  STEP(api->context_create(&context_options, &context));

  sparsek_bsr host = host_bsr(), on_device = host_bsr(), faulty = host_bsr();
  on_device.memory = faulty.memory = SPARSEK_DEVICE;
  on_device.row_ptr = s->row_ptr;
  on_device.col_idx = s->col_idx;
  on_device.values = s->device_values;
  faulty.row_ptr = faulty.col_idx = s->row_ptr;
  faulty.values = s->device_values;
  sparsek_matrix *matrix = NULL, *device_matrix = NULL, *none = NULL;
  STEP(api->matrix_create(context, &host, &matrix));
  STEP(api->matrix_create(context, &on_device, &device_matrix));
  if (api->matrix_create(context, &faulty, &none) == SPARSEK_OK) return text("a faulty index was taken");

  STEP(api->matrix_set_values(s->matrix, values, SPARSEK_HOST, s->stream));
  STEP(api->stream_synchronize(s->context, s->stream));
  static const char* const kernels[] = {NULL,           "skinny_bf16_64_16", "gather_bf16_128_256", "simt_bf16",
                                        "cublas_dense", "cusparse_bsr",      "cusparse_bell"};
  for (size_t i = 0; i < sizeof(kernels) / sizeof(*kernels); ++i) {
    if ((failure = use_plan(s, s->matrix, kernels[i], kN)) != NULL) return failure;
    if ((failure = use_plan(s, device_matrix, kernels[i], 8)) != NULL) return failure;
  }

  sparsek_plan_options tuned = {.abi_size = sizeof(tuned), .n = kN, .tuning_seconds = 0.01};
  sparsek_plan* plan = NULL;
  STEP(api->plan_create(matrix, &tuned, &plan));
  STEP_VOID(api->plan_destroy(plan));
  sparsek_plan_options options = {.abi_size = sizeof(options), .n = kN};
  sparsek_tuner_options tuning = {sizeof(tuning), 0.01, 0, 0};
  sparsek_tuner* tuner = NULL;
  int32_t candidate = 0;
  STEP(api->tuner_create(matrix, &options, &tuning, &tuner));
  while (candidate >= 0) STEP(api->tuner_step(tuner, &candidate));
  STEP(api->tuner_finish(tuner, &plan));
  STEP_VOID(api->tuner_destroy(tuner));
  STEP_VOID(api->plan_destroy(plan));

  void* buffer = NULL;
  sparsek_stream stream = NULL;
  int32_t done = 0;
  STEP(api->buffer_create(context, sizeof(b), &buffer));
  STEP(api->stream_create(context, &stream));
  STEP(api->buffer_write(context, buffer, b, sizeof(b), stream));
  STEP(api->buffer_fill(context, buffer, 0, sizeof(b), stream));
  STEP(api->buffer_read(context, replayed, buffer, sizeof(b), stream));
  STEP(api->stream_query(context, stream, &done));
  STEP(api->stream_synchronize(context, stream));
  const void* set[] = {buffer};
  sparsek_dense_time_args dense = {sizeof(dense), 64, 64, 64, SPARSEK_BF16, 1, set, set, &buffer, 1, 2, stream};
  double seconds[2];
  const sparsek_status dense_status = api->dense_time(context, &dense, seconds);
  if (dense_status != SPARSEK_NO_LIBRARY) STEP(dense_status);
  if ((failure = default_stream(s)) != NULL) return failure;
  STEP(api->buffer_destroy(context, buffer));
  STEP(api->stream_destroy(context, stream));
  STEP_VOID(api->matrix_destroy(device_matrix));
  STEP_VOID(api->matrix_destroy(matrix));
  STEP_VOID(api->context_destroy(context));

  STEP_VOID(api->plan_destroy(s->old_plan));
  STEP_VOID(api->tuner_destroy(s->old_tuner));
  STEP_VOID(api->matrix_destroy(s->old_matrix));
  STEP(api->stream_destroy(s->old_context, s->old_stream));
  STEP(api->buffer_destroy(s->old_context, s->old_buffer));
  STEP_VOID(api->context_destroy(s->old_context));
  return NULL;
}

static void* calls_of_thread(void* argument) {
  setting* const s = argument;
  s->failure = calls(s);
  return NULL;
}

/* What is there before the capture, all of it used. */
static char* prepare(setting* s) {
  const sparsek_api* api = s->api;
  sparsek_context_options options = {sizeof(options), SPARSEK_CUDA, 0, 0};
  sparsek_plan_options plan_options = {.abi_size = sizeof(plan_options), .n = kN};
  sparsek_tuner_options tuning = {sizeof(tuning), 0.001, 0, 0};
  sparsek_bsr bsr = host_bsr();
  int32_t candidate = 0;
  fill_bf16(values, kBlocks * kBlock * kBlock, 1);
  fill_bf16(b, kCols * kN, 2);
  TRY(api->matrix_create(s->context, &bsr, &s->matrix));
  TRY(api->plan_create(s->matrix, &plan_options, &s->plan));
  TRY(api->stream_create(s->context, &s->stream));
  TRY(api->buffer_create(s->context, sizeof(b), &s->device_b));
  TRY(api->buffer_create(s->context, sizeof(direct), &s->device_c));
  TRY(api->buffer_create(s->context, sizeof(kRowPtr), &s->row_ptr));
  TRY(api->buffer_create(s->context, sizeof(kColIdx), &s->col_idx));
  TRY(api->buffer_create(s->context, sizeof(values), &s->device_values));
  TRY(api->buffer_write(s->context, s->device_b, b, sizeof(b), s->stream));
  TRY(api->buffer_write(s->context, s->row_ptr, kRowPtr, sizeof(kRowPtr), s->stream));
  TRY(api->buffer_write(s->context, s->col_idx, kColIdx, sizeof(kColIdx), s->stream));
  TRY(api->buffer_write(s->context, s->device_values, values, sizeof(values), s->stream));
  sparsek_multiply_args args = {
      .abi_size = sizeof(args), .alpha = 1, .b = s->device_b, .c = s->device_c, .stream = s->stream};
  TRY(api->multiply(s->plan, &args));
  TRY(api->buffer_read(s->context, direct, s->device_c, sizeof(direct), s->stream));
  TRY(api->stream_synchronize(s->context, s->stream));

  TRY(api->context_create(&options, &s->old_context));
  TRY(api->matrix_create(s->old_context, &bsr, &s->old_matrix));
  TRY(api->plan_create(s->old_matrix, &plan_options, &s->old_plan));
  TRY(api->tuner_create(s->old_matrix, &plan_options, &tuning, &s->old_tuner));
  TRY(api->tuner_step(s->old_tuner, &candidate));
  TRY(api->stream_create(s->old_context, &s->old_stream));
  TRY(api->buffer_create(s->old_context, sizeof(b), &s->old_buffer));
  args.stream = s->old_stream;
  TRY(api->multiply(s->old_plan, &args));
  return NULL;
}

static char* capture_and_replay(setting* s, int same_thread) {
  const sparsek_api* api = s->api;
  void *captured = NULL, *graph = NULL, *exec = NULL, *c = NULL;
  TRY(api->buffer_create(s->context, sizeof(direct), &c));
  TRY(s->cuda.create_stream(&captured, s->blocking ? kBlocking : kNonBlocking));
  TRY(api->buffer_fill(s->context, c, 0xff, sizeof(direct), s->stream));
  TRY(api->stream_synchronize(s->context, s->stream));
  sparsek_multiply_args args = {.abi_size = sizeof(args), .alpha = 1, .b = s->device_b, .c = c, .stream = captured};
  s->captured = captured;
  TRY(s->cuda.begin_capture(captured, kGlobal));
  TRY(api->multiply(s->plan, &args));
  if (same_thread) {
    s->failure = calls(s);
  } else {
    pthread_t thread;
    TRY(pthread_create(&thread, NULL, calls_of_thread, s));
    TRY(pthread_join(thread, NULL));
  }
  int32_t done = 0;
  char* failure = s->failure;
  if (failure == NULL && api->stream_synchronize(s->context, captured) != SPARSEK_BAD_ARGUMENT) {
    failure = text("waiting for the captured stream: \"%s\"", api->last_error());
  }
  if (failure == NULL && api->stream_query(s->context, captured, &done) != SPARSEK_BAD_ARGUMENT) {
    failure = text("asking the captured stream: \"%s\"", api->last_error());
  }
  args.c = s->device_c;
  if (failure == NULL && s->api->multiply(s->plan, &args) != SPARSEK_OK) failure = text("%s", api->last_error());
  const int ended = s->cuda.end_capture(captured, &graph);
  if (failure != NULL) return ended == 0 ? failure : text("the capture was spoilt (%d), and %s", ended, failure);
  if (ended != 0) return text("the capture was spoilt: %d", ended);
  TRY(s->cuda.instantiate(&exec, graph, 0));
  TRY(s->cuda.launch(exec, captured));
  TRY(s->cuda.wait_stream(captured));
  for (int i = 0; i < 2; ++i) {
    TRY(api->buffer_read(s->context, replayed, i == 0 ? c : s->device_c, sizeof(replayed), s->stream));
    TRY(api->stream_synchronize(s->context, s->stream));
    if (memcmp(direct, replayed, sizeof(direct)) != 0) return text("the graph gave another C in product %d", i);
  }
  TRY(s->cuda.destroy_exec(exec));
  TRY(s->cuda.destroy_graph(graph));
  TRY(s->cuda.destroy_stream(captured));
  TRY(api->buffer_destroy(s->context, c));
  return NULL;
}

char* capture_run(const char* path, int blocking, int same_thread) {
  setting s = {.blocking = blocking};
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) return text("%s", dlerror());
  const sparsek_api* (*get_api)(int32_t) = (const sparsek_api* (*)(int32_t))dlsym(library, "sparsek_get_api");
  const sparsek_api* api = s.api = get_api(SPARSEK_ABI_VERSION);
  sparsek_context_options options = {sizeof(options), SPARSEK_CUDA, 0, 0};
  if (api->context_create(&options, &s.context) == SPARSEK_NO_DEVICE) return text("skipped: no GPU");
  if (s.context == NULL) return text("%s", api->last_error());
  if (!driver_open(&s.cuda)) return text("libcuda.so.1 lacks what a capture needs");
  char* failure = prepare(&s);
  if (failure == NULL) failure = capture_and_replay(&s, same_thread);
  if (failure != NULL) return failure;
  TRY(api->buffer_destroy(s.context, s.device_b));
  TRY(api->buffer_destroy(s.context, s.device_c));
  TRY(api->buffer_destroy(s.context, s.row_ptr));
  TRY(api->buffer_destroy(s.context, s.col_idx));
  TRY(api->buffer_destroy(s.context, s.device_values));
  TRY(api->stream_destroy(s.context, s.stream));
  api->plan_destroy(s.plan);
  api->matrix_destroy(s.matrix);
  api->context_destroy(s.context);
  return NULL;
}
