/* SPDX-License-Identifier: Apache-2.0
 *
 * What cgo calls: it cannot call through the table's function pointers itself. A failed call brings its message with
 * it: the message belongs to the OS thread, which the goroutine may leave as soon as the call is over. Structs from Go
 * hold no pointers to Go's memory but pinned ones. Streams come as integers: see package native.
 */
#ifndef SPARSEK_SHIM_H_
#define SPARSEK_SHIM_H_

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

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

static inline shim_result shim_context_create(const sparsek_api* api, const sparsek_context_options* options,
                                              sparsek_context** out) {
  return shim_end(api, api->context_create(options, out));
}

static inline shim_result shim_context_info(const sparsek_api* api, const sparsek_context* context,
                                            sparsek_context_info* out) {
  out->abi_size = sizeof(*out);
  return shim_end(api, api->context_info(context, out));
}

static inline void shim_context_destroy(const sparsek_api* api, sparsek_context* context) {
  api->context_destroy(context);
}

static inline shim_result shim_matrix_create(const sparsek_api* api, sparsek_context* context, sparsek_bsr* bsr,
                                             uintptr_t stream, sparsek_matrix** out) {
  bsr->stream = (sparsek_stream)stream;
  return shim_end(api, api->matrix_create(context, bsr, out));
}

static inline shim_result shim_matrix_status(const sparsek_api* api, sparsek_matrix* matrix, int32_t wait) {
  return shim_end(api, api->matrix_status(matrix, wait));
}

static inline void shim_matrix_release(const sparsek_api* api, sparsek_matrix* matrix, uintptr_t stream) {
  api->matrix_release(matrix, (sparsek_stream)stream);
}

static inline shim_result shim_matrix_set_values(const sparsek_api* api, sparsek_matrix* matrix, const void* values,
                                                 int32_t memory, uintptr_t stream) {
  return shim_end(api, api->matrix_set_values(matrix, values, memory, (sparsek_stream)stream));
}

static inline void shim_matrix_destroy(const sparsek_api* api, sparsek_matrix* matrix) { api->matrix_destroy(matrix); }

static inline shim_result shim_plan_describe(const sparsek_api* api, const sparsek_plan* plan, sparsek_plan_info* out) {
  out->abi_size = sizeof(*out);
  return shim_end(api, api->plan_describe(plan, out));
}

static inline shim_result shim_plan_update(const sparsek_api* api, sparsek_plan* plan, sparsek_bsr* index,
                                           uintptr_t stream) {
  index->stream = (sparsek_stream)stream;
  return shim_end(api, api->plan_update(plan, index));
}

static inline void shim_plan_release(const sparsek_api* api, sparsek_plan* plan, uintptr_t stream) {
  api->plan_release(plan, (sparsek_stream)stream);
}

static inline shim_result shim_plan_create(const sparsek_api* api, sparsek_matrix* matrix,
                                           const sparsek_plan_options* options, sparsek_plan** out) {
  return shim_end(api, api->plan_create(matrix, options, out));
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

/* All but the digest, which is not wanted here and has to be computed. */
static inline shim_result shim_plan_info(const sparsek_api* api, const sparsek_plan* plan, sparsek_plan_info* out) {
  out->abi_size = offsetof(sparsek_plan_info, digest);
  return shim_end(api, api->plan_info(plan, out));
}

static inline void shim_plan_destroy(const sparsek_api* api, sparsek_plan* plan) { api->plan_destroy(plan); }

/* What a product is given beside addresses. */
typedef struct shim_product {
  float alpha, beta;
  int64_t n, ldx, ldb, ldc, ldc_in;
  uintptr_t stream;
  size_t workspace_bytes;
  int32_t batch;
  int64_t stride_x, stride_b, stride_c, stride_values, stride_bias;
} shim_product;

static inline sparsek_multiply_args shim_args(shim_product p, const void* x, const void* b, void* c, const void* c_in,
                                              const void* bias, const void* values, const void* alpha_device,
                                              const void* beta_device) {
  sparsek_multiply_args args = {.abi_size = sizeof(args),
                                .alpha = p.alpha,
                                .beta = p.beta,
                                .b = b,
                                .ldb = p.ldb,
                                .c = c,
                                .ldc = p.ldc,
                                .stream = (sparsek_stream)p.stream,
                                .bias = bias,
                                .values = values,
                                .n = p.n,
                                .c_in = c_in,
                                .ldc_in = p.ldc_in,
                                .alpha_device = (const float*)alpha_device,
                                .beta_device = (const float*)beta_device,
                                .batch = p.batch,
                                .stride_b = p.stride_b,
                                .stride_c = p.stride_c,
                                .stride_values = p.stride_values,
                                .stride_bias = p.stride_bias,
                                .x = x,
                                .ldx = p.ldx,
                                .stride_x = p.stride_x};
  return args;
}

static inline shim_result shim_multiply(const sparsek_api* api, sparsek_plan* plan, shim_product p, const void* x,
                                        const void* b, void* c, const void* c_in, const void* bias, const void* values,
                                        const void* alpha_device, const void* beta_device, void* workspace) {
  sparsek_multiply_args args = shim_args(p, x, b, c, c_in, bias, values, alpha_device, beta_device);
  args.workspace = workspace;
  args.workspace_bytes = p.workspace_bytes;
  return shim_end(api, api->multiply(plan, &args));
}

static inline shim_result shim_plan_measure(const sparsek_api* api, sparsek_context* context, const sparsek_bsr* shape,
                                            const sparsek_plan_options* options, sparsek_plan_layout* out) {
  return shim_end(api, api->plan_measure(context, shape, options, out));
}

static inline shim_result shim_plan_write(const sparsek_api* api, sparsek_context* context, sparsek_bsr* index,
                                          uintptr_t stream, const sparsek_plan_layout* layout, void* memory,
                                          int64_t* fault) {
  index->stream = (sparsek_stream)stream;
  return shim_end(api, api->plan_write(context, index, layout, memory, fault));
}

static inline shim_result shim_plan_run(const sparsek_api* api, sparsek_context* context,
                                        const sparsek_plan_layout* layout, const void* memory, void* workspace,
                                        shim_product p, const void* x, const void* b, void* c, const void* c_in,
                                        const void* bias, const void* values, const void* alpha_device,
                                        const void* beta_device) {
  sparsek_multiply_args args = shim_args(p, x, b, c, c_in, bias, values, alpha_device, beta_device);
  args.workspace = workspace;
  args.workspace_bytes = workspace == NULL ? 0 : (size_t)layout->workspace_bytes;
  return shim_end(api, api->plan_run(context, layout, memory, &args));
}

/* Which function makes a pattern. */
enum shim_make {
  SHIM_FROM_MASK,
  SHIM_FROM_TOPK,
  SHIM_FROM_DENSE,
  SHIM_FROM_CSR,
  SHIM_FROM_BLOCKS,
  SHIM_FROM_COUNTS,
  SHIM_BLOCK_DIAGONAL,
  SHIM_TRANSPOSE,
  SHIM_TO_CSR
};

/* from: `count` matrices, of which SHIM_BLOCK_DIAGONAL takes any number, and others one or none. */
static inline shim_result shim_make_pattern(const sparsek_api* api, sparsek_context* context, int32_t what,
                                            sparsek_bsr* from, int32_t count, sparsek_pattern_args* args,
                                            uintptr_t stream) {
  args->abi_size = sizeof(*args);
  args->stream = (sparsek_stream)stream;
  for (int32_t i = 0; i < count; ++i) from[i].stream = args->stream;
  switch (what) {
    case SHIM_FROM_MASK:
      return shim_end(api, api->pattern_from_mask(context, args));
    case SHIM_FROM_TOPK:
      return shim_end(api, api->pattern_from_topk(context, args));
    case SHIM_FROM_DENSE:
      return shim_end(api, api->pattern_from_dense(context, args));
    case SHIM_FROM_CSR:
      return shim_end(api, api->pattern_from_csr(context, from, args));
    case SHIM_FROM_BLOCKS:
      return shim_end(api, api->pattern_from_blocks(context, from, args));
    case SHIM_FROM_COUNTS:
      return shim_end(api, api->pattern_from_counts(context, args));
    case SHIM_TRANSPOSE:
      return shim_end(api, api->transpose_index(context, from, args));
    case SHIM_TO_CSR:
      return shim_end(api, api->to_csr(context, from, args));
  }
  const sparsek_bsr** each = (const sparsek_bsr**)malloc(((size_t)count + 1) * sizeof(*each));
  if (each == NULL) {
    shim_result result = {SPARSEK_OUT_OF_MEMORY, strdup("host memory is exhausted")};
    return result;
  }
  for (int32_t i = 0; i < count; ++i) each[i] = from + i;
  shim_result result = shim_end(api, api->pattern_block_diagonal(context, each, count, args));
  free(each);
  return result;
}

static inline shim_result shim_pattern_check(const sparsek_api* api, sparsek_context* context, sparsek_bsr* a,
                                             uintptr_t stream, int64_t* fault) {
  a->stream = (sparsek_stream)stream;
  return shim_end(api, api->pattern_check(context, a, fault));
}

/* Which function works on values. */
enum shim_work { SHIM_TO_DENSE, SHIM_GATHER, SHIM_NORMS, SHIM_SUM, SHIM_SCALE, SHIM_MULTIPLY_VALUES, SHIM_ADD_VALUES };

static inline shim_result shim_work_on_values(const sparsek_api* api, sparsek_context* context, int32_t what,
                                              sparsek_bsr* a, sparsek_values_args* args, uintptr_t stream) {
  args->abi_size = sizeof(*args);
  a->stream = (sparsek_stream)stream;
  args->a = a;
  switch (what) {
    case SHIM_TO_DENSE:
      return shim_end(api, api->to_dense(context, args));
    case SHIM_GATHER:
      return shim_end(api, api->gather_values(context, args));
    case SHIM_NORMS:
      return shim_end(api, api->block_norms(context, args));
    case SHIM_SUM:
      return shim_end(api, api->sum(context, args));
    case SHIM_SCALE:
      return shim_end(api, api->scale(context, args));
    case SHIM_MULTIPLY_VALUES:
      return shim_end(api, api->multiply_values(context, args));
    default:
      return shim_end(api, api->add_values(context, args));
  }
}

/* What products that are timed have in common. */
typedef struct shim_products {
  float alpha, beta;
  int64_t ldb, ldc; /* 0: the planned ones */
  int32_t count;    /* of addresses */
  int32_t warmup, repeats;
  uintptr_t stream;
} shim_products;

/* One multiply_args for each of the `count` addresses in x, b, c and bias; allocated. */
static inline sparsek_multiply_args* shim_products_args(const shim_products* products, const uintptr_t* x,
                                                        const uintptr_t* b, const uintptr_t* c, const uintptr_t* bias) {
  sparsek_multiply_args* args = (sparsek_multiply_args*)calloc((size_t)products->count, sizeof(*args));
  for (int32_t i = 0; args != NULL && i < products->count; ++i) {
    sparsek_multiply_args one = {sizeof(one),         products->alpha, products->beta, (const void*)b[i],
                                 products->ldb,       (void*)c[i],     products->ldc,  (sparsek_stream)products->stream,
                                 (const void*)bias[i]};
    one.x = (const void*)x[i];
    args[i] = one;
  }
  return args;
}

static inline shim_result shim_no_memory(void) {
  shim_result result = {SPARSEK_OUT_OF_MEMORY, strdup("host memory is exhausted")};
  return result;
}

static inline shim_result shim_multiply_at(const sparsek_api* api, sparsek_plan* plan, shim_products products,
                                           const uintptr_t* x, const uintptr_t* b, const uintptr_t* c,
                                           const uintptr_t* bias) {
  const shim_product p = {.alpha = products.alpha,
                          .beta = products.beta,
                          .ldb = products.ldb,
                          .ldc = products.ldc,
                          .stream = products.stream};
  return shim_multiply(api, plan, p, (const void*)x[0], (const void*)b[0], (void*)c[0], NULL, (const void*)bias[0],
                       NULL, NULL, NULL, NULL);
}

static inline shim_result shim_multiply_loop(const sparsek_api* api, sparsek_plan* plan, shim_products products,
                                             const uintptr_t* x, const uintptr_t* b, const uintptr_t* c,
                                             const uintptr_t* bias, int64_t* nanoseconds) {
  sparsek_multiply_args args = {sizeof(args),        products.alpha, products.beta, (const void*)b[0],
                                products.ldb,        (void*)c[0],    products.ldc,  (sparsek_stream)products.stream,
                                (const void*)bias[0]};
  args.x = (const void*)x[0];
  struct timespec begun, ended;
  sparsek_status status = SPARSEK_OK;
  clock_gettime(CLOCK_MONOTONIC, &begun);
  for (int32_t i = 0; i < products.repeats && status == SPARSEK_OK; ++i) status = api->multiply(plan, &args);
  clock_gettime(CLOCK_MONOTONIC, &ended);
  *nanoseconds = (int64_t)(ended.tv_sec - begun.tv_sec) * 1000000000 + (ended.tv_nsec - begun.tv_nsec);
  return shim_end(api, status);
}

static inline shim_result shim_multiply_time(const sparsek_api* api, sparsek_plan* plan, shim_products products,
                                             const uintptr_t* x, const uintptr_t* b, const uintptr_t* c,
                                             const uintptr_t* bias, double* seconds) {
  sparsek_multiply_args* args = shim_products_args(&products, x, b, c, bias);
  if (args == NULL) return shim_no_memory();
  shim_result result =
      shim_end(api, api->multiply_time(plan, args, products.count, products.warmup, products.repeats, seconds));
  free(args);
  return result;
}

static inline shim_result shim_graph_time(const sparsek_api* api, const uintptr_t* plans, shim_products products,
                                          const uintptr_t* x, const uintptr_t* b, const uintptr_t* c,
                                          const uintptr_t* bias, double* seconds) {
  sparsek_multiply_args* args = shim_products_args(&products, x, b, c, bias);
  if (args == NULL) return shim_no_memory();
  shim_result result = shim_end(api, api->graph_time((sparsek_plan* const*)plans, args, products.count, products.warmup,
                                                     products.repeats, seconds));
  free(args);
  return result;
}

static inline shim_result shim_sms_hold(const sparsek_api* api, sparsek_context* context, int32_t count, double seconds,
                                        sparsek_sm_hold** out) {
  return shim_end(api, api->sms_hold(context, count, seconds, out));
}

static inline shim_result shim_sms_release(const sparsek_api* api, sparsek_sm_hold* hold, int32_t* expired) {
  return shim_end(api, api->sms_release(hold, expired));
}

static inline shim_result shim_buffer_create(const sparsek_api* api, sparsek_context* context, size_t bytes,
                                             void** out) {
  return shim_end(api, api->buffer_create(context, bytes, out));
}

static inline shim_result shim_buffer_destroy(const sparsek_api* api, sparsek_context* context, void* buffer) {
  return shim_end(api, api->buffer_destroy(context, buffer));
}

static inline shim_result shim_buffer_write(const sparsek_api* api, sparsek_context* context, void* buffer,
                                            const void* host, size_t bytes, uintptr_t stream) {
  return shim_end(api, api->buffer_write(context, buffer, host, bytes, (sparsek_stream)stream));
}

static inline shim_result shim_buffer_read(const sparsek_api* api, sparsek_context* context, void* host,
                                           const void* buffer, size_t bytes, uintptr_t stream) {
  return shim_end(api, api->buffer_read(context, host, buffer, bytes, (sparsek_stream)stream));
}

static inline shim_result shim_buffer_fill(const sparsek_api* api, sparsek_context* context, void* buffer, int32_t byte,
                                           size_t bytes, uintptr_t stream) {
  return shim_end(api, api->buffer_fill(context, buffer, byte, bytes, (sparsek_stream)stream));
}

static inline shim_result shim_stream_create(const sparsek_api* api, sparsek_context* context, uintptr_t* out) {
  sparsek_stream stream = NULL;
  shim_result result = shim_end(api, api->stream_create(context, &stream));
  *out = (uintptr_t)stream;
  return result;
}

static inline shim_result shim_stream_destroy(const sparsek_api* api, sparsek_context* context, uintptr_t stream) {
  return shim_end(api, api->stream_destroy(context, (sparsek_stream)stream));
}

static inline shim_result shim_stream_synchronize(const sparsek_api* api, sparsek_context* context, uintptr_t stream) {
  return shim_end(api, api->stream_synchronize(context, (sparsek_stream)stream));
}

static inline shim_result shim_stream_query(const sparsek_api* api, sparsek_context* context, uintptr_t stream,
                                            int32_t* done) {
  return shim_end(api, api->stream_query(context, (sparsek_stream)stream, done));
}

static inline shim_result shim_check(const sparsek_api* api, const sparsek_check_args* args,
                                     sparsek_check_report* out) {
  out->abi_size = sizeof(*out);
  return shim_end(api, api->check(args, out));
}

/* a, b and c: addresses in device memory, args.set_count of each. */
static inline shim_result shim_dense_time(const sparsek_api* api, sparsek_context* context,
                                          sparsek_dense_time_args args, const uintptr_t* a, const uintptr_t* b,
                                          const uintptr_t* c, uintptr_t stream, double* seconds) {
  args.a = (const void* const*)a;
  args.b = (const void* const*)b;
  args.c = (void* const*)c;
  args.stream = (sparsek_stream)stream;
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

// stream: of the layout, if there is one.
static inline shim_result shim_attention_create(const sparsek_api* api, sparsek_context* context,
                                                sparsek_attention_options* options, uintptr_t stream,
                                                sparsek_attention** out) {
  options->abi_size = sizeof(*options);
  if (options->layout != NULL) ((sparsek_bsr*)options->layout)->stream = (sparsek_stream)stream;
  return shim_end(api, api->attention_create(context, options, out));
}

static inline shim_result shim_attention_update(const sparsek_api* api, sparsek_attention* attention,
                                                sparsek_bsr* layout, uintptr_t stream) {
  layout->stream = (sparsek_stream)stream;
  return shim_end(api, api->attention_update(attention, layout));
}

static inline shim_result shim_attention_status(const sparsek_api* api, sparsek_attention* attention, int32_t wait) {
  return shim_end(api, api->attention_status(attention, wait));
}

static inline shim_result shim_attention_info(const sparsek_api* api, const sparsek_attention* attention,
                                              sparsek_attention_info* out) {
  out->abi_size = sizeof(*out);
  return shim_end(api, api->attention_info(attention, out));
}

static inline void shim_attention_destroy(const sparsek_api* api, sparsek_attention* attention) {
  api->attention_destroy(attention);
}

static inline shim_result shim_attention_run(const sparsek_api* api, sparsek_attention* attention,
                                             sparsek_attention_args* args, int32_t backward, uintptr_t stream) {
  args->abi_size = sizeof(*args);
  args->stream = (sparsek_stream)stream;
  return shim_end(api, backward ? api->attention_backward(attention, args) : api->attention_forward(attention, args));
}

static inline shim_result shim_attention_time(const sparsek_api* api, sparsek_attention* attention,
                                              sparsek_attention_args* args, int32_t backward, uintptr_t stream,
                                              int32_t warmup, int32_t repeats, double* seconds) {
  args->abi_size = sizeof(*args);
  args->stream = (sparsek_stream)stream;
  return shim_end(api, api->attention_time(attention, args, 1, backward, warmup, repeats, seconds));
}

static inline shim_result shim_attention_check(const sparsek_api* api, sparsek_attention_options* options,
                                               sparsek_attention_args* args, int32_t output, double unit_roundoff,
                                               double product_roundoff, int32_t threads, sparsek_check_report* out) {
  options->abi_size = sizeof(*options);
  args->abi_size = sizeof(*args);
  const sparsek_attention_check_args check = {.abi_size = sizeof(check),
                                              .options = options,
                                              .args = args,
                                              .unit_roundoff = unit_roundoff,
                                              .product_roundoff = product_roundoff,
                                              .output = output,
                                              .threads = threads};
  out->abi_size = sizeof(*out);
  return shim_end(api, api->attention_check(&check, out));
}

static inline shim_result shim_attention_pool(const sparsek_api* api, sparsek_context* context, sparsek_pool_args* args,
                                              uintptr_t stream) {
  args->abi_size = sizeof(*args);
  args->stream = (sparsek_stream)stream;
  return shim_end(api, api->attention_pool(context, args));
}

#endif /* SPARSEK_SHIM_H_ */
