/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "edge.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "expect.h"

const int32_t kRowPtr[3] = {0, 1, 3};
const int32_t kColIdx[3] = {1, 0, 1};
const float kValues[18] = {1, 2, 3, 4, 5, 6, 1, 0, 0, 0, 1, 0, 0, 0, 1, 2, 0, 0};

sparsek_bsr good_bsr(void) {
  sparsek_bsr bsr = {sizeof(bsr), 4,       6,    2,    3, 3, SPARSEK_FP32, SPARSEK_INT32, SPARSEK_HOST, 0, kRowPtr,
                     kColIdx,     kValues, NULL, NULL, 0, 0};
  return bsr;
}

sparsek_plan_options good_plan(void) {
  sparsek_plan_options options = {.abi_size = sizeof(options), .n = 8, .alignment = 4};
  return options;
}

void expect(edge* e, const char* place, sparsek_status want, const char* speaks_of, sparsek_status got) {
  const char* message = e->api->last_error();
  ++e->checks;
  if (got != want || strstr(message, speaks_of) == NULL || (got == SPARSEK_OK) != (message[0] == '\0')) {
    fprintf(e->failures, "%s: %s \"%s\", want %s and a message with \"%s\"\n", place, e->api->status_name(got), message,
            e->api->status_name(want), speaks_of);
  }
}

static void run(edge* e) {
  sparsek_context_options options = {sizeof(options), SPARSEK_CPU, 0, 2};
  sparsek_bsr bsr = good_bsr();
  sparsek_plan_options plan = good_plan();
  EXPECT(OK, "", context_create(&options, &e->context));
  if (e->context != NULL) EXPECT(OK, "", matrix_create(e->context, &bsr, &e->matrix));
  if (e->matrix != NULL) EXPECT(OK, "", plan_create(e->matrix, &plan, &e->plan));
  if (e->plan == NULL) return;
  test_information(e);
  test_struct_sizes(e);
  test_context(e);
  test_matrix(e);
  test_plan(e);
  test_multiply(e);
  test_graph_time(e);
  test_values_later(e);
  test_epilogue(e);
  test_members(e);
  test_product_arguments(e);
  test_batches(e);
  test_handle_services(e);
  test_changing_index(e);
  test_patterns(e);
  test_attention(e);
  test_fp8(e);
  test_memory(e);
  test_check(e);
  test_dense_time(e);
  test_sms_hold(e);
  test_tuning_cache(e);
}

edge_result edge_run(const char* path) {
  edge_result result = {0, NULL};
  size_t size = 0;
  edge e = {NULL, open_memstream(&result.failures, &size), 0, NULL, NULL, NULL};
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  const sparsek_api* (*get_api)(int32_t) =
      library == NULL ? NULL : (const sparsek_api* (*)(int32_t))dlsym(library, "sparsek_get_api");
  if (get_api == NULL) {
    fprintf(e.failures, "%s\n", dlerror());
  } else if (get_api(SPARSEK_ABI_VERSION + 1) != NULL || get_api(0) != NULL) {
    fprintf(e.failures, "the library knows ABI versions that do not exist\n");
  } else {
    e.api = get_api(SPARSEK_ABI_VERSION);
    run(&e);
    e.api->plan_destroy(e.plan);
    e.api->matrix_destroy(e.matrix);
    e.api->context_destroy(e.context);
  }
  fclose(e.failures);
  result.checks = e.checks;
  return result;
}
