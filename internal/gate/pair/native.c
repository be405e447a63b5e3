/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "native.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static char* say(const char* format, ...) {
  va_list list;
  va_start(list, format);
  char* message = NULL;
  if (vasprintf(&message, format, list) < 0) abort();
  va_end(list);
  return message;
}

static char* status_message(const pair_library* library, const char* what, sparsek_status status) {
  if (status == SPARSEK_OK) return NULL;
  return say("%s: %s: %s", what, library->api->status_name(status), library->api->last_error());
}

char* pair_open(const char* path, pair_library* out) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) return strdup(dlerror());
  const sparsek_api* (*get_api)(int32_t) = (const sparsek_api* (*)(int32_t))dlsym(library, "sparsek_get_api");
  if (get_api == NULL) return say("%s exports no sparsek_get_api", path);
  out->api = get_api(SPARSEK_ABI_VERSION);
  if (out->api == NULL || out->api->abi_size < offsetof(sparsek_api, multiply) + sizeof(out->api->multiply)) {
    return say("%s has an ABI of another version than %d", path, SPARSEK_ABI_VERSION);
  }
  return NULL;
}

char* pair_context(pair_library* library, int32_t backend, int32_t threads) {
  const sparsek_context_options options = {sizeof(options), backend, 0, threads};
  return status_message(library, "create context", library->api->context_create(&options, &library->context));
}

/* The driver's functions, by the names in libcuda.so.1. */
typedef unsigned long long address;
#define DRIVER_FUNCTIONS(F)                                \
  F(cuInit, (unsigned))                                    \
  F(cuDeviceGet, (int*, int))                              \
  F(cuDevicePrimaryCtxRetain, (void**, int))               \
  F(cuDevicePrimaryCtxRelease_v2, (int))                   \
  F(cuCtxSetCurrent, (void*))                              \
  F(cuMemAlloc_v2, (address*, size_t))                     \
  F(cuMemFree_v2, (address))                               \
  F(cuMemcpyHtoD_v2, (address, const void*, size_t))       \
  F(cuMemcpyDtoD_v2, (address, address, size_t))           \
  F(cuStreamCreate, (void**, unsigned))                    \
  F(cuStreamDestroy_v2, (void*))                           \
  F(cuStreamSynchronize, (void*))                          \
  F(cuStreamBeginCapture_v2, (void*, int))                 \
  F(cuStreamEndCapture, (void*, void**))                   \
  F(cuGraphInstantiateWithFlags, (void**, void*, address)) \
  F(cuGraphUpload, (void*, void*))                         \
  F(cuGraphLaunch, (void*, void*))                         \
  F(cuGraphDestroy, (void*))                               \
  F(cuGraphExecDestroy, (void*))                           \
  F(cuEventCreate, (void**, unsigned))                     \
  F(cuEventRecord, (void*, void*))                         \
  F(cuEventElapsedTime, (float*, void*, void*))            \
  F(cuEventDestroy_v2, (void*))                            \
  F(cuGetErrorName, (int, const char**))

#define DRIVER_MEMBER(name, arguments) int(*name) arguments;

enum { kNonBlocking = 1, kRelaxed = 2 };

struct pair_device {
  int on_gpu;
  int number;
  void* context;
  void* stream;
  void** events;
  int event_count;
  DRIVER_FUNCTIONS(DRIVER_MEMBER)
};

struct pair_turn {
  const pair_library* library;
  int32_t count;
  sparsek_plan** plans;
  sparsek_multiply_args* args;
  void* graph; /* executable; null on the CPU */
};

static char* driver_message(const pair_device* device, const char* what, int result) {
  if (result == 0) return NULL;
  const char* name = NULL;
  if (device->cuGetErrorName(result, &name) != 0 || name == NULL) name = "unknown";
  return say("%s: %s (%d)", what, name, result);
}

/* Calls a function of the driver, and returns its message from the function around it where it fails. */
#define TRY(device, name, ...)                                                  \
  do {                                                                          \
    char* failed_ = driver_message(device, #name, (device)->name(__VA_ARGS__)); \
    if (failed_ != NULL) return failed_;                                        \
  } while (0)

static char* open_driver(pair_device* device) {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (driver == NULL) return strdup(dlerror());
#define DRIVER_FIND(name, arguments)             \
  *(void**)&device->name = dlsym(driver, #name); \
  if (device->name == NULL) return say("NVIDIA's driver has no %s: it is too old", #name);
  DRIVER_FUNCTIONS(DRIVER_FIND)
  return NULL;
}

char* pair_device_open(int32_t ordinal, int on_gpu, pair_device** out) {
  pair_device* device = (pair_device*)calloc(1, sizeof(*device));
  *out = device;
  if (!on_gpu) return NULL;
  char* failed = open_driver(device);
  if (failed != NULL) return failed;
  TRY(device, cuInit, 0);
  TRY(device, cuDeviceGet, &device->number, ordinal);
  TRY(device, cuDevicePrimaryCtxRetain, &device->context, device->number);
  device->on_gpu = 1;
  TRY(device, cuCtxSetCurrent, device->context);
  TRY(device, cuStreamCreate, &device->stream, kNonBlocking);
  return NULL;
}

char* pair_device_use(pair_device* device) {
  if (device->on_gpu) TRY(device, cuCtxSetCurrent, device->context);
  return NULL;
}

void pair_device_close(pair_device* device) {
  if (device == NULL) return;
  if (device->on_gpu) {
    for (int i = 0; i < device->event_count; ++i) device->cuEventDestroy_v2(device->events[i]);
    if (device->stream != NULL) device->cuStreamDestroy_v2(device->stream);
    device->cuDevicePrimaryCtxRelease_v2(device->number);
  }
  free(device->events);
  free(device);
}

char* pair_allocate(pair_device* device, size_t bytes, uintptr_t* out) {
  if (!device->on_gpu) {
    *out = (uintptr_t)aligned_alloc(64, (bytes + 63) / 64 * 64);
    return *out == 0 ? say("no memory for %zu bytes", bytes) : NULL;
  }
  address at = 0;
  TRY(device, cuMemAlloc_v2, &at, bytes);
  *out = (uintptr_t)at;
  return NULL;
}

void pair_release(pair_device* device, uintptr_t memory) {
  if (device->on_gpu) {
    device->cuMemFree_v2(memory);
  } else {
    free((void*)memory);
  }
}

char* pair_write(pair_device* device, uintptr_t to, const void* host, size_t bytes) {
  if (!device->on_gpu) {
    memcpy((void*)to, host, bytes);
  } else {
    TRY(device, cuMemcpyHtoD_v2, to, host, bytes);
  }
  return NULL;
}

char* pair_copy(pair_device* device, uintptr_t to, uintptr_t from, size_t bytes) {
  if (!device->on_gpu) {
    memcpy((void*)to, (const void*)from, bytes);
  } else {
    TRY(device, cuMemcpyDtoD_v2, to, from, bytes);
  }
  return NULL;
}

char* pair_plan(pair_library* library, const pair_device* device, const pair_product* product, const int32_t* row_ptr,
                const int32_t* col_idx, uintptr_t values, sparsek_matrix** matrix, sparsek_plan** plan,
                int32_t* unknown) {
  const sparsek_api* api = library->api;
  sparsek_bsr bsr = {0};
  bsr.abi_size = sizeof(bsr);
  bsr.rows = product->rows;
  bsr.cols = product->cols;
  bsr.block_m = product->block_m;
  bsr.block_k = product->block_k;
  bsr.nnzb = product->nnzb;
  bsr.dtype = product->dtype;
  bsr.index_type = SPARSEK_INT32;
  bsr.memory = SPARSEK_HOST;
  bsr.row_ptr = row_ptr;
  bsr.col_idx = col_idx;
  char* failed = status_message(library, "create matrix", api->matrix_create(library->context, &bsr, matrix));
  if (failed != NULL) return failed;
  const int32_t memory = device->on_gpu ? SPARSEK_DEVICE : SPARSEK_HOST;
  failed = status_message(library, "set values",
                          api->matrix_set_values(*matrix, (const void*)values, memory, device->stream));
  if (failed != NULL) return failed;
  sparsek_plan_options options = {0};
  options.abi_size = sizeof(options);
  options.n = product->n;
  options.op = product->op;
  options.order_x = product->order_x;
  options.order_b = product->order_b;
  options.order_c = product->order_c;
  const sparsek_status status = api->plan_create(*matrix, &options, plan);
  *unknown = product->op != SPARSEK_DSD && (status == SPARSEK_BAD_ARGUMENT || status == SPARSEK_NO_SUCH_KERNEL);
  return status_message(library, "create plan", status);
}

void pair_unplan(pair_library* library, sparsek_matrix* matrix, sparsek_plan* plan) {
  if (plan != NULL) library->api->plan_destroy(plan);
  if (matrix != NULL) library->api->matrix_destroy(matrix);
}

char* pair_plan_info(pair_library* library, sparsek_plan* plan, sparsek_plan_info* out) {
  memset(out, 0, sizeof(*out));
  out->abi_size = sizeof(*out);
  return status_message(library, "describe plan", library->api->plan_info(plan, out));
}

static char* multiply_all(const pair_turn* turn) {
  for (int32_t i = 0; i < turn->count; ++i) {
    char* failed =
        status_message(turn->library, "multiply", turn->library->api->multiply(turn->plans[i], &turn->args[i]));
    if (failed != NULL) return failed;
  }
  return NULL;
}

/* Once by itself, which loads the kernels, and then into a graph. */
static char* capture(pair_device* device, pair_turn* turn) {
  char* failed = multiply_all(turn);
  if (failed != NULL) return failed;
  TRY(device, cuStreamSynchronize, device->stream);
  TRY(device, cuStreamBeginCapture_v2, device->stream, kRelaxed);
  failed = multiply_all(turn);
  void* graph = NULL;
  const int ended = device->cuStreamEndCapture(device->stream, &graph);
  if (failed == NULL) failed = driver_message(device, "cuStreamEndCapture", ended);
  if (failed == NULL) {
    failed = driver_message(device, "cuGraphInstantiateWithFlags",
                            device->cuGraphInstantiateWithFlags(&turn->graph, graph, 0));
  }
  if (graph != NULL) device->cuGraphDestroy(graph);
  if (failed != NULL) return failed;
  TRY(device, cuGraphUpload, turn->graph, device->stream);
  return NULL;
}

char* pair_turn_make(pair_device* device, pair_library* library, const uintptr_t* plans, const uintptr_t* x,
                     const uintptr_t* b, const uintptr_t* c, int32_t count, pair_turn** out) {
  pair_turn* turn = (pair_turn*)calloc(1, sizeof(*turn));
  *out = turn;
  turn->library = library;
  turn->count = count;
  turn->plans = (sparsek_plan**)calloc((size_t)count, sizeof(*turn->plans));
  turn->args = (sparsek_multiply_args*)calloc((size_t)count, sizeof(*turn->args));
  for (int32_t i = 0; i < count; ++i) {
    turn->plans[i] = (sparsek_plan*)plans[i];
    sparsek_multiply_args* args = &turn->args[i];
    args->abi_size = sizeof(*args);
    args->alpha = 1;
    args->x = (const void*)x[i];
    args->b = (const void*)b[i];
    args->c = (void*)c[i];
    args->stream = device->stream;
  }
  return device->on_gpu ? capture(device, turn) : NULL;
}

void pair_turn_free(pair_device* device, pair_turn* turn) {
  if (turn == NULL) return;
  if (turn->graph != NULL) device->cuGraphExecDestroy(turn->graph);
  free(turn->plans);
  free(turn->args);
  free(turn);
}

static char* run_on_cpu(const uintptr_t* turns, int32_t count, int32_t before, double* seconds) {
  for (int32_t i = -before; i < count; ++i) {
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    char* failed = multiply_all((const pair_turn*)turns[i < 0 ? (i + before) % count : i]);
    if (failed != NULL) return failed;
    clock_gettime(CLOCK_MONOTONIC, &end);
    if (i >= 0) seconds[i] = (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec);
  }
  return NULL;
}

static char* need_events(pair_device* device, int32_t count) {
  if (device->event_count >= count) return NULL;
  device->events = (void**)realloc(device->events, (size_t)count * sizeof(void*));
  while (device->event_count < count) {
    TRY(device, cuEventCreate, &device->events[device->event_count], 0);
    ++device->event_count;
  }
  return NULL;
}

char* pair_run(pair_device* device, const uintptr_t* turns, int32_t count, int32_t before, double* seconds) {
  if (!device->on_gpu) return run_on_cpu(turns, count, before, seconds);
  char* failed = need_events(device, count + 1);
  if (failed != NULL) return failed;
  for (int32_t i = 0; i < before; ++i) {
    TRY(device, cuGraphLaunch, ((const pair_turn*)turns[i % count])->graph, device->stream);
  }
  TRY(device, cuEventRecord, device->events[0], device->stream);
  for (int32_t i = 0; i < count; ++i) {
    TRY(device, cuGraphLaunch, ((const pair_turn*)turns[i])->graph, device->stream);
    TRY(device, cuEventRecord, device->events[i + 1], device->stream);
  }
  TRY(device, cuStreamSynchronize, device->stream);
  for (int32_t i = 0; i < count; ++i) {
    float milliseconds = 0;
    TRY(device, cuEventElapsedTime, &milliseconds, device->events[i], device->events[i + 1]);
    seconds[i] = 1e-3 * (double)milliseconds;
  }
  return NULL;
}
