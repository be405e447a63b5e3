/* SPDX-License-Identifier: Apache-2.0
 *
 * A block-sparse product in plain C, on a GPU where there is one. Once sparsek is installed:
 *
 *     cc multiply.c $(pkg-config --cflags --libs sparsek) -o multiply && ./multiply
 *
 * Where it was installed under a prefix of your own, pkg-config and the loader have to be told, here for /opt/sparsek:
 *
 *     export PKG_CONFIG_PATH=/opt/sparsek/lib/pkgconfig LD_LIBRARY_PATH=/opt/sparsek/lib
 *
 * and under /usr/local, `ldconfig` has to be run once, as root.
 *
 * It prints C and ends with 0 where C is right.
 */
#include <sparsek.h>
#include <stdio.h>
#include <stdlib.h>

enum { M = 4, K = 4, N = 3 };

static const sparsek_api* api;

/* Every call but the destroy functions returns a status, and leaves a message for the thread that made it. */
static void require(sparsek_status status, const char* what) {
  if (status == SPARSEK_OK) return;
  fprintf(stderr, "%s: %s (%s)\n", what, api->last_error(), api->status_name(status));
  exit(1);
}

int main(void) {
  /* A: two blocks of 2 x 2 on the diagonal. */
  static const int32_t row_ptr[] = {0, 1, 2};
  static const int32_t col_idx[] = {0, 1};
  static const float values[] = {1, 2, 3, 4, 5, 6, 7, 8};
  static const float b[K * N] = {1, 0, 1, 0, 1, 1, 1, 0, 2, 0, 1, 2};
  static const float expected[M * N] = {1, 2, 3, 3, 4, 7, 5, 6, 22, 7, 8, 30};
  float c[M * N];

  api = sparsek_get_api(SPARSEK_ABI_VERSION);
  if (api == NULL) {
    fprintf(stderr, "the library is of another ABI version than %d\n", SPARSEK_ABI_VERSION);
    return 1;
  }

  sparsek_context* context = NULL;
  sparsek_context_options context_options = {.abi_size = sizeof context_options, .backend = SPARSEK_AUTO};
  require(api->context_create(&context_options, &context), "create context");
  sparsek_context_info info = {.abi_size = sizeof info};
  require(api->context_info(context, &info), "describe context");
  printf("%s: %s\n", info.backend == SPARSEK_CUDA ? "GPU" : "CPU", info.reason);

  sparsek_matrix* matrix = NULL;
  sparsek_bsr bsr = {
      .abi_size = sizeof bsr,
      .rows = M,
      .cols = K,
      .block_m = 2,
      .block_k = 2,
      .nnzb = 2,
      .dtype = SPARSEK_FP32,
      .index_type = SPARSEK_INT32,
      .memory = SPARSEK_HOST,
      .row_ptr = row_ptr,
      .col_idx = col_idx,
      .values = values,
  };
  require(api->matrix_create(context, &bsr, &matrix), "create matrix");

  sparsek_plan* plan = NULL;
  sparsek_plan_options plan_options = {.abi_size = sizeof plan_options, .n = N};
  require(api->plan_create(matrix, &plan_options, &plan), "create plan");

  /* B and C in the back-end's memory, be it the GPU's or the host's. */
  void *device_b = NULL, *device_c = NULL;
  require(api->buffer_create(context, sizeof b, &device_b), "allocate B");
  require(api->buffer_create(context, sizeof c, &device_c), "allocate C");
  require(api->buffer_write(context, device_b, b, sizeof b, NULL), "copy B");

  sparsek_multiply_args args = {.abi_size = sizeof args, .alpha = 1, .beta = 0, .b = device_b, .c = device_c};
  require(api->multiply(plan, &args), "multiply");

  /* All of this is in the default stream, one behind the other; the host waits once. */
  require(api->buffer_read(context, c, device_c, sizeof c, NULL), "copy C");
  require(api->stream_synchronize(context, NULL), "wait");

  int wrong = 0;
  for (int row = 0; row < M; ++row) {
    for (int col = 0; col < N; ++col) {
      printf("%6g", c[row * N + col]);
      wrong += c[row * N + col] != expected[row * N + col];
    }
    printf("\n");
  }

  require(api->buffer_destroy(context, device_c), "free C");
  require(api->buffer_destroy(context, device_b), "free B");
  api->plan_destroy(plan);
  api->matrix_destroy(matrix);
  api->context_destroy(context);
  if (wrong != 0) fprintf(stderr, "%d elements of C are wrong\n", wrong);
  return wrong == 0 ? 0 : 1;
}
