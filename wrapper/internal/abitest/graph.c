/* SPDX-License-Identifier: Apache-2.0
 *
 * Products on a GPU as an application with its own CUDA code makes them: captured into a graph, and with values of A
 * anywhere in device memory.
 */
#include "graph.h"

#include <dlfcn.h>
#include <stdint.h>
#include <string.h>

#include "driver.h"
#include "sparsek.h"

enum { kBlock = 64, kRows = 4 * kBlock, kCols = 3 * kBlock, kN = 256, kBlocks = 5 };
static const int32_t kRowPtr[5] = {0, 2, 2, 3, 5};
static const int32_t kColIdx[kBlocks] = {0, 2, 1, 0, 1};

char* graph_run(const char* path) {
  static uint16_t values[kBlocks * kBlock * kBlock + 1], b[kCols * kN], direct[kRows * kN], replayed[kRows * kN];
  driver cuda;
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) return text("%s", dlerror());
  const sparsek_api* (*get_api)(int32_t) = (const sparsek_api* (*)(int32_t))dlsym(library, "sparsek_get_api");
  const sparsek_api* api = get_api(SPARSEK_ABI_VERSION);

  sparsek_context* context = NULL;
  sparsek_context_options options = {sizeof(options), SPARSEK_CUDA, 0, 0};
  if (api->context_create(&options, &context) == SPARSEK_NO_DEVICE) return text("skipped: no GPU");
  if (context == NULL) return text("%s", api->last_error());
  if (!driver_open(&cuda)) return text("libcuda.so.1 lacks what a capture needs");

  fill_bf16(values, kBlocks * kBlock * kBlock, 1);
  fill_bf16(b, kCols * kN, 2);
  sparsek_bsr bsr = {sizeof(bsr),   kRows,        kCols, kBlock,  kBlock,  kBlocks, SPARSEK_BF16,
                     SPARSEK_INT32, SPARSEK_HOST, 0,     kRowPtr, kColIdx, values};
  sparsek_plan_options plan_options = {sizeof(plan_options), kN, 0, 0, 0, 0, NULL};
  sparsek_matrix* matrix = NULL;
  sparsek_plan* plan = NULL;
  void *device_values = NULL, *device_b = NULL, *device_c = NULL, *graph = NULL, *exec = NULL;
  sparsek_stream stream = NULL;
  TRY(api->matrix_create(context, &bsr, &matrix));
  TRY(api->plan_create(matrix, &plan_options, &plan));
  TRY(api->stream_create(context, &stream));
  TRY(api->buffer_create(context, sizeof(values), &device_values));
  TRY(api->buffer_create(context, sizeof(b), &device_b));
  TRY(api->buffer_create(context, sizeof(direct), &device_c));
  TRY(api->buffer_write(context, device_b, b, sizeof(b), stream));

  sparsek_multiply_args args = {sizeof(args), 1, 0, device_b, 0, device_c, 0, stream};
  TRY(api->multiply(plan, &args));
  TRY(api->buffer_read(context, direct, device_c, sizeof(direct), stream));
  TRY(api->stream_synchronize(context, stream));

  TRY(cuda.begin_capture(stream, 0));
  TRY(api->multiply(plan, &args));
  TRY(cuda.end_capture(stream, &graph));
  TRY(cuda.instantiate(&exec, graph, 0));
  for (int replay = 0; replay < 3; ++replay) {
    TRY(api->buffer_fill(context, device_c, 0xff, sizeof(replayed), stream));
    TRY(cuda.launch(exec, stream));
    TRY(api->buffer_read(context, replayed, device_c, sizeof(replayed), stream));
    TRY(api->stream_synchronize(context, stream));
    if (memcmp(direct, replayed, sizeof(direct)) != 0) return text("replay %d gave another C", replay);
  }
  TRY(cuda.destroy_exec(exec));
  TRY(cuda.destroy_graph(graph));

  /* Values that bulk copies cannot read are refused, not read wrongly. */
  TRY(api->matrix_set_values(matrix, (char*)device_values + 2, SPARSEK_DEVICE, stream));
  if (api->multiply(plan, &args) != SPARSEK_MISALIGNED) return text("misaligned values: \"%s\"", api->last_error());

  /* So is a graph of them, and that leaves nothing behind which the next one would fall over. */
  double seconds = -1;
  if (api->graph_time(&plan, &args, 1, 0, 1, &seconds) != SPARSEK_MISALIGNED) {
    return text("a graph of misaligned values: \"%s\"", api->last_error());
  }
  TRY(api->matrix_set_values(matrix, values, SPARSEK_HOST, stream));
  TRY(api->buffer_fill(context, device_c, 0xff, sizeof(replayed), stream));
  TRY(api->stream_synchronize(context, stream));
  TRY(api->graph_time(&plan, &args, 1, 0, 1, &seconds));
  TRY(api->buffer_read(context, replayed, device_c, sizeof(replayed), stream));
  TRY(api->stream_synchronize(context, stream));
  if (memcmp(direct, replayed, sizeof(direct)) != 0 || seconds < 0) return text("graph_time gave another C");

  TRY(api->buffer_destroy(context, device_values));
  TRY(api->buffer_destroy(context, device_b));
  TRY(api->buffer_destroy(context, device_c));
  TRY(api->stream_destroy(context, stream));
  api->plan_destroy(plan);
  api->matrix_destroy(matrix);
  api->context_destroy(context);
  return NULL;
}
