/* SPDX-License-Identifier: Apache-2.0
 *
 * What cgo calls: it cannot call through the table's function pointers itself. Each function builds its structs
 * here, from arguments, so that Go pointers travel as arguments (which cgo keeps alive and unmoved) and never inside
 * of Go memory. A failed call brings its message with it: the message belongs to the OS thread, which the goroutine
 * may leave as soon as the call is over.
 */
#ifndef SPARSEK_SHIM_H_
#define SPARSEK_SHIM_H_

#include <stdlib.h>
#include <string.h>

#include "sparsek.h"

typedef struct shim_result {
  int32_t status;
  char* message; /* allocated; null where status is SPARSEK_OK */
} shim_result;

static inline shim_result shim_end(const sparsek_api* api, sparsek_status status) {
  shim_result result = {status, status == SPARSEK_OK ? NULL : strdup(api->last_error())};
  return result;
}

static inline const char* shim_status_name(const sparsek_api* api, int32_t status) {
  return api->status_name((sparsek_status)status);
}

static inline shim_result shim_build_info(const sparsek_api* api, sparsek_build_info* out) {
  out->abi_size = sizeof(*out);
  return shim_end(api, api->build_info(out));
}

static inline int32_t shim_kernel_count(const sparsek_api* api) { return api->kernel_count(); }

static inline shim_result shim_kernel_info(const sparsek_api* api, int32_t index, sparsek_kernel_info* out) {
  out->abi_size = sizeof(*out);
  return shim_end(api, api->kernel_info(index, out));
}

static inline int32_t shim_device_count(const sparsek_api* api) { return api->device_count(); }

static inline shim_result shim_device_info(const sparsek_api* api, int32_t device, sparsek_device_info* out) {
  out->abi_size = sizeof(*out);
  return shim_end(api, api->device_info(device, out));
}

static inline shim_result shim_context_create(const sparsek_api* api, int32_t backend, int32_t device, int32_t threads,
                                              sparsek_context** out) {
  sparsek_context_options options = {sizeof(options), backend, device, threads};
  return shim_end(api, api->context_create(&options, out));
}

static inline shim_result shim_context_info(const sparsek_api* api, const sparsek_context* context,
                                            sparsek_context_info* out) {
  out->abi_size = sizeof(*out);
  return shim_end(api, api->context_info(context, out));
}

static inline void shim_context_destroy(const sparsek_api* api, sparsek_context* context) {
  api->context_destroy(context);
}

static inline shim_result shim_matrix_create(const sparsek_api* api, sparsek_context* context, int64_t rows,
                                             int64_t cols, int64_t block_m, int64_t block_k, int64_t nnzb,
                                             int32_t dtype, int32_t index_type, int32_t memory, int32_t validate_device,
                                             const void* row_ptr, const void* col_idx, const void* values,
                                             sparsek_matrix** out) {
  sparsek_bsr bsr = {sizeof(bsr),     rows,    cols,    block_m, block_k, nnzb, dtype, index_type, memory,
                     validate_device, row_ptr, col_idx, values};
  return shim_end(api, api->matrix_create(context, &bsr, out));
}

static inline shim_result shim_matrix_set_values(const sparsek_api* api, sparsek_matrix* matrix, const void* values,
                                                 int32_t memory, sparsek_stream stream) {
  return shim_end(api, api->matrix_set_values(matrix, values, memory, stream));
}

static inline void shim_matrix_destroy(const sparsek_api* api, sparsek_matrix* matrix) { api->matrix_destroy(matrix); }

/* options without the kernel: Go must not store C's pointer in memory of its own. */
static inline shim_result shim_plan_create(const sparsek_api* api, sparsek_matrix* matrix,
                                           const sparsek_plan_options* options, const char* kernel,
                                           sparsek_plan** out) {
  sparsek_plan_options named = *options;
  named.kernel = kernel;
  return shim_end(api, api->plan_create(matrix, &named, out));
}

static inline shim_result shim_tuner_create(const sparsek_api* api, sparsek_matrix* matrix,
                                            const sparsek_plan_options* options, const sparsek_tuner_options* tuning,
                                            sparsek_tuner** out) {
  return shim_end(api, api->tuner_create(matrix, options, tuning, out));
}

static inline shim_result shim_tuner_step(const sparsek_api* api, sparsek_tuner* tuner, int32_t* candidate) {
  return shim_end(api, api->tuner_step(tuner, candidate));
}

static inline int32_t shim_tuner_candidate_count(const sparsek_api* api, const sparsek_tuner* tuner) {
  return api->tuner_candidate_count(tuner);
}

static inline shim_result shim_tuner_candidate(const sparsek_api* api, const sparsek_tuner* tuner, int32_t index,
                                               sparsek_candidate_info* out) {
  out->abi_size = sizeof(*out);
  return shim_end(api, api->tuner_candidate(tuner, index, out));
}

static inline shim_result shim_tuner_finish(const sparsek_api* api, sparsek_tuner* tuner, sparsek_plan** out) {
  return shim_end(api, api->tuner_finish(tuner, out));
}

static inline void shim_tuner_destroy(const sparsek_api* api, sparsek_tuner* tuner) { api->tuner_destroy(tuner); }

static inline shim_result shim_plan_info(const sparsek_api* api, const sparsek_plan* plan, sparsek_plan_info* out) {
  out->abi_size = sizeof(*out);
  return shim_end(api, api->plan_info(plan, out));
}

static inline void shim_plan_destroy(const sparsek_api* api, sparsek_plan* plan) { api->plan_destroy(plan); }

static inline shim_result shim_multiply(const sparsek_api* api, sparsek_plan* plan, float alpha, float beta,
                                        const void* b, int64_t ldb, void* c, int64_t ldc, const void* bias,
                                        sparsek_stream stream) {
  sparsek_multiply_args args = {sizeof(args), alpha, beta, b, ldb, c, ldc, stream, bias};
  return shim_end(api, api->multiply(plan, &args));
}

/* b and c: `count` addresses each, pinned by the caller. */
static inline shim_result shim_multiply_time(const sparsek_api* api, sparsek_plan* plan, float alpha, float beta,
                                             const uintptr_t* b, int64_t ldb, const uintptr_t* c, int64_t ldc,
                                             int32_t count, const void* bias, sparsek_stream stream, int32_t warmup,
                                             int32_t repeats, double* seconds) {
  sparsek_multiply_args* args = (sparsek_multiply_args*)calloc((size_t)count, sizeof(*args));
  if (args == NULL) {
    shim_result result = {SPARSEK_OUT_OF_MEMORY, strdup("host memory is exhausted")};
    return result;
  }
  for (int32_t i = 0; i < count; ++i) {
    sparsek_multiply_args one = {sizeof(one), alpha, beta, (const void*)b[i], ldb, (void*)c[i], ldc, stream, bias};
    args[i] = one;
  }
  shim_result result = shim_end(api, api->multiply_time(plan, args, count, warmup, repeats, seconds));
  free(args);
  return result;
}

/* plans, b, c and bias: `count` addresses each. The strides are the planned ones. */
static inline shim_result shim_graph_time(const sparsek_api* api, const uintptr_t* plans, float alpha, float beta,
                                          const uintptr_t* b, const uintptr_t* c, const uintptr_t* bias, int32_t count,
                                          int32_t warmup, int32_t repeats, double* seconds) {
  sparsek_multiply_args* args = (sparsek_multiply_args*)calloc((size_t)count, sizeof(*args));
  if (args == NULL) {
    shim_result result = {SPARSEK_OUT_OF_MEMORY, strdup("host memory is exhausted")};
    return result;
  }
  for (int32_t i = 0; i < count; ++i) {
    sparsek_multiply_args one = {sizeof(one), alpha, beta, (const void*)b[i],   0,
                                 (void*)c[i], 0,     NULL, (const void*)bias[i]};
    args[i] = one;
  }
  shim_result result =
      shim_end(api, api->graph_time((sparsek_plan* const*)plans, args, count, warmup, repeats, seconds));
  free(args);
  return result;
}

static inline shim_result shim_buffer_create(const sparsek_api* api, sparsek_context* context, size_t bytes,
                                             void** out) {
  return shim_end(api, api->buffer_create(context, bytes, out));
}

static inline shim_result shim_buffer_destroy(const sparsek_api* api, sparsek_context* context, void* buffer) {
  return shim_end(api, api->buffer_destroy(context, buffer));
}

static inline shim_result shim_buffer_write(const sparsek_api* api, sparsek_context* context, void* buffer,
                                            const void* host, size_t bytes, sparsek_stream stream) {
  return shim_end(api, api->buffer_write(context, buffer, host, bytes, stream));
}

static inline shim_result shim_buffer_read(const sparsek_api* api, sparsek_context* context, void* host,
                                           const void* buffer, size_t bytes, sparsek_stream stream) {
  return shim_end(api, api->buffer_read(context, host, buffer, bytes, stream));
}

static inline shim_result shim_buffer_fill(const sparsek_api* api, sparsek_context* context, void* buffer, int32_t byte,
                                           size_t bytes, sparsek_stream stream) {
  return shim_end(api, api->buffer_fill(context, buffer, byte, bytes, stream));
}

static inline shim_result shim_stream_create(const sparsek_api* api, sparsek_context* context, sparsek_stream* out) {
  return shim_end(api, api->stream_create(context, out));
}

static inline shim_result shim_stream_destroy(const sparsek_api* api, sparsek_context* context, sparsek_stream stream) {
  return shim_end(api, api->stream_destroy(context, stream));
}

static inline shim_result shim_stream_synchronize(const sparsek_api* api, sparsek_context* context,
                                                  sparsek_stream stream) {
  return shim_end(api, api->stream_synchronize(context, stream));
}

static inline shim_result shim_stream_query(const sparsek_api* api, sparsek_context* context, sparsek_stream stream,
                                            int32_t* done) {
  return shim_end(api, api->stream_query(context, stream, done));
}

static inline shim_result shim_check(const sparsek_api* api, int64_t rows, int64_t cols, int64_t block_m,
                                     int64_t block_k, int64_t nnzb, int32_t dtype, int32_t index_type,
                                     const void* row_ptr, const void* col_idx, const void* values, int64_t n,
                                     const void* b, int64_t ldb, const void* c0, const void* c, int64_t ldc,
                                     float alpha, float beta, double unit_roundoff, int32_t threads, int32_t dtype_c,
                                     int32_t bias_kind, int32_t activation, const void* bias,
                                     sparsek_check_report* out) {
  sparsek_bsr bsr = {sizeof(bsr), rows,         cols, block_m, block_k, nnzb,  dtype,
                     index_type,  SPARSEK_HOST, 0,    row_ptr, col_idx, values};
  sparsek_check_args args = {sizeof(args), &bsr,          n,       b, ldb,     c0,        c,          ldc, alpha,
                             beta,         unit_roundoff, threads, 0, dtype_c, bias_kind, activation, 0,   bias};
  out->abi_size = sizeof(*out);
  return shim_end(api, api->check(&args, out));
}

/* a, b and c: `count` addresses each, in device memory. */
static inline shim_result shim_dense_time(const sparsek_api* api, sparsek_context* context, int64_t m, int64_t n,
                                          int64_t k, int32_t dtype, const uintptr_t* a, const uintptr_t* b,
                                          const uintptr_t* c, int32_t count, sparsek_stream stream, int32_t warmup,
                                          int32_t repeats, double* seconds) {
  sparsek_dense_time_args args = {
      sizeof(args),    m,      n,       k,     dtype, count, (const void* const*)a, (const void* const*)b,
      (void* const*)c, warmup, repeats, stream};
  return shim_end(api, api->dense_time(context, &args, seconds));
}

static inline shim_result shim_tuning_cache_open(const sparsek_api* api, const char* path, int32_t source,
                                                 sparsek_tuning_cache** out) {
  return shim_end(api, api->tuning_cache_open(path, source, out));
}

static inline shim_result shim_tuning_cache_info(const sparsek_api* api, const sparsek_tuning_cache* cache,
                                                 sparsek_tuning_cache_info* out) {
  out->abi_size = sizeof(*out);
  return shim_end(api, api->tuning_cache_info(cache, out));
}

static inline shim_result shim_tuning_cache_entry(const sparsek_api* api, const sparsek_tuning_cache* cache,
                                                  int64_t index, sparsek_tuning_entry* out) {
  out->abi_size = sizeof(*out);
  return shim_end(api, api->tuning_cache_entry(cache, index, out));
}

static inline shim_result shim_tuning_cache_candidate(const sparsek_api* api, const sparsek_tuning_cache* cache,
                                                      int64_t index, int32_t candidate, sparsek_tuning_candidate* out) {
  out->abi_size = sizeof(*out);
  return shim_end(api, api->tuning_cache_candidate(cache, index, candidate, out));
}

static inline void shim_tuning_cache_close(const sparsek_api* api, sparsek_tuning_cache* cache) {
  api->tuning_cache_close(cache);
}

static inline shim_result shim_tuning_cache_merge(const sparsek_api* api, const char* into,
                                                  const sparsek_tuning_cache* from, sparsek_tuning_change* out) {
  out->abi_size = sizeof(*out);
  return shim_end(api, api->tuning_cache_merge(into, from, out));
}

static inline shim_result shim_tuning_cache_clear(const sparsek_api* api, const char* path,
                                                  sparsek_tuning_change* out) {
  out->abi_size = sizeof(*out);
  return shim_end(api, api->tuning_cache_clear(path, out));
}

#endif /* SPARSEK_SHIM_H_ */
