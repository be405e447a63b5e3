// SPDX-License-Identifier: Apache-2.0
// The functions behind the table of sparsek.h, where each one is described. None throws.
#pragma once

#include "sparsek.h"

namespace sparsek::entry {

// api.cpp
const char* status_name(sparsek_status status) noexcept;

// build_info.cpp
sparsek_status build_info(sparsek_build_info* out) noexcept;

// hardware.cpp
int32_t kernel_count() noexcept;
sparsek_status kernel_info(int32_t index, sparsek_kernel_info* out) noexcept;
int32_t device_count() noexcept;
sparsek_status device_info(int32_t device, sparsek_device_info* out) noexcept;

// context.cpp
sparsek_status context_create(const sparsek_context_options* options, sparsek_context** out) noexcept;
sparsek_status context_info(const sparsek_context* context, sparsek_context_info* out) noexcept;
void context_destroy(sparsek_context* context) noexcept;

// matrix.cpp
sparsek_status matrix_create(sparsek_context* context, const sparsek_bsr* bsr, sparsek_matrix** out) noexcept;
sparsek_status matrix_set_values(sparsek_matrix* matrix, const void* values, int32_t memory,
                                 sparsek_stream stream) noexcept;
sparsek_status matrix_status(sparsek_matrix* matrix, int32_t wait) noexcept;
void matrix_destroy(sparsek_matrix* matrix) noexcept;
void matrix_release(sparsek_matrix* matrix, sparsek_stream stream) noexcept;

// plan.cpp
sparsek_status plan_create(sparsek_matrix* matrix, const sparsek_plan_options* options, sparsek_plan** out) noexcept;
sparsek_status plan_info(const sparsek_plan* plan, sparsek_plan_info* out) noexcept;
sparsek_status plan_describe(const sparsek_plan* plan, sparsek_plan_info* out) noexcept;
void plan_destroy(sparsek_plan* plan) noexcept;
void plan_release(sparsek_plan* plan, sparsek_stream stream) noexcept;
sparsek_status plan_update(sparsek_plan* plan, const sparsek_bsr* index) noexcept;

// plan_data.cpp; plan_run is in multiply.cpp
sparsek_status plan_measure(sparsek_context* context, const sparsek_bsr* shape, const sparsek_plan_options* options,
                            sparsek_plan_layout* out) noexcept;
sparsek_status plan_write(sparsek_context* context, const sparsek_bsr* index, const sparsek_plan_layout* layout,
                          void* memory, int64_t* fault) noexcept;
sparsek_status plan_run(sparsek_context* context, const sparsek_plan_layout* layout, const void* memory,
                        const sparsek_multiply_args* args) noexcept;

// tuner.cpp
sparsek_status tuner_create(sparsek_matrix* matrix, const sparsek_plan_options* options,
                            const sparsek_tuner_options* tuning, sparsek_tuner** out) noexcept;
sparsek_status tuner_step(sparsek_tuner* tuner, int32_t* candidate) noexcept;
int32_t tuner_candidate_count(const sparsek_tuner* tuner) noexcept;
sparsek_status tuner_candidate(const sparsek_tuner* tuner, int32_t index, sparsek_candidate_info* out) noexcept;
sparsek_status tuner_finish(sparsek_tuner* tuner, sparsek_plan** out) noexcept;
void tuner_destroy(sparsek_tuner* tuner) noexcept;

// multiply.cpp
sparsek_status multiply(sparsek_plan* plan, const sparsek_multiply_args* args) noexcept;
sparsek_status multiply_time(sparsek_plan* plan, const sparsek_multiply_args* args, int32_t arg_count, int32_t warmup,
                             int32_t repeats, double* seconds) noexcept;
sparsek_status graph_time(sparsek_plan* const* plans, const sparsek_multiply_args* args, int32_t count, int32_t warmup,
                          int32_t repeats, double* seconds) noexcept;

// memory.cpp
sparsek_status buffer_create(sparsek_context* context, size_t bytes, void** out) noexcept;
sparsek_status buffer_destroy(sparsek_context* context, void* buffer) noexcept;
sparsek_status buffer_write(sparsek_context* context, void* buffer, const void* host, size_t bytes,
                            sparsek_stream stream) noexcept;
sparsek_status buffer_read(sparsek_context* context, void* host, const void* buffer, size_t bytes,
                           sparsek_stream stream) noexcept;
sparsek_status buffer_fill(sparsek_context* context, void* buffer, int32_t byte, size_t bytes,
                           sparsek_stream stream) noexcept;

// stream.cpp
sparsek_status stream_create(sparsek_context* context, sparsek_stream* out) noexcept;
sparsek_status stream_destroy(sparsek_context* context, sparsek_stream stream) noexcept;
sparsek_status stream_synchronize(sparsek_context* context, sparsek_stream stream) noexcept;
sparsek_status stream_query(sparsek_context* context, sparsek_stream stream, int32_t* done) noexcept;

// check.cpp
sparsek_status check(const sparsek_check_args* args, sparsek_check_report* out) noexcept;

// dense_time.cpp
sparsek_status dense_time(sparsek_context* context, const sparsek_dense_time_args* args, double* seconds) noexcept;

// pattern.cpp
sparsek_status pattern_from_mask(sparsek_context* context, const sparsek_pattern_args* args) noexcept;
sparsek_status pattern_from_topk(sparsek_context* context, const sparsek_pattern_args* args) noexcept;
sparsek_status pattern_from_dense(sparsek_context* context, const sparsek_pattern_args* args) noexcept;
sparsek_status pattern_from_csr(sparsek_context* context, const sparsek_bsr* csr,
                                const sparsek_pattern_args* args) noexcept;
sparsek_status pattern_from_blocks(sparsek_context* context, const sparsek_bsr* a,
                                   const sparsek_pattern_args* args) noexcept;
sparsek_status pattern_from_counts(sparsek_context* context, const sparsek_pattern_args* args) noexcept;
sparsek_status pattern_block_diagonal(sparsek_context* context, const sparsek_bsr* const* matrices, int32_t count,
                                      const sparsek_pattern_args* args) noexcept;
sparsek_status transpose_index(sparsek_context* context, const sparsek_bsr* a,
                               const sparsek_pattern_args* args) noexcept;
sparsek_status to_csr(sparsek_context* context, const sparsek_bsr* a, const sparsek_pattern_args* args) noexcept;
sparsek_status pattern_check(sparsek_context* context, const sparsek_bsr* a, int64_t* fault) noexcept;

// values.cpp
sparsek_status to_dense(sparsek_context* context, const sparsek_values_args* args) noexcept;
sparsek_status gather_values(sparsek_context* context, const sparsek_values_args* args) noexcept;
sparsek_status block_norms(sparsek_context* context, const sparsek_values_args* args) noexcept;
sparsek_status sum(sparsek_context* context, const sparsek_values_args* args) noexcept;
sparsek_status scale(sparsek_context* context, const sparsek_values_args* args) noexcept;
sparsek_status multiply_values(sparsek_context* context, const sparsek_values_args* args) noexcept;
sparsek_status add_values(sparsek_context* context, const sparsek_values_args* args) noexcept;

// attention.cpp
sparsek_status attention_create(sparsek_context* context, const sparsek_attention_options* options,
                                sparsek_attention** out) noexcept;
sparsek_status attention_info(const sparsek_attention* attention, sparsek_attention_info* out) noexcept;
sparsek_status attention_forward(sparsek_attention* attention, const sparsek_attention_args* args) noexcept;
sparsek_status attention_backward(sparsek_attention* attention, const sparsek_attention_args* args) noexcept;
sparsek_status attention_time(sparsek_attention* attention, const sparsek_attention_args* args, int32_t arg_count,
                              int32_t backward, int32_t warmup, int32_t repeats, double* seconds) noexcept;
sparsek_status attention_update(sparsek_attention* attention, const sparsek_bsr* layout) noexcept;
sparsek_status attention_status(sparsek_attention* attention, int32_t wait) noexcept;
void attention_destroy(sparsek_attention* attention) noexcept;
void attention_release(sparsek_attention* attention, sparsek_stream stream) noexcept;

// attention_check.cpp
sparsek_status attention_check(const sparsek_attention_check_args* args, sparsek_check_report* out) noexcept;

// attention_pool.cpp
sparsek_status attention_pool(sparsek_context* context, const sparsek_pool_args* args) noexcept;

// sm_hold.cpp
sparsek_status sms_hold(sparsek_context* context, int32_t count, double seconds, sparsek_sm_hold** out) noexcept;
sparsek_status sms_release(sparsek_sm_hold* hold, int32_t* expired) noexcept;

// tuning_cache.cpp
sparsek_status tuning_cache_open(const char* path, int32_t source, sparsek_tuning_cache** out) noexcept;
sparsek_status tuning_cache_info(const sparsek_tuning_cache* cache, sparsek_tuning_cache_info* out) noexcept;
sparsek_status tuning_cache_entry(const sparsek_tuning_cache* cache, int64_t index, sparsek_tuning_entry* out) noexcept;
sparsek_status tuning_cache_candidate(const sparsek_tuning_cache* cache, int64_t index, int32_t candidate,
                                      sparsek_tuning_candidate* out) noexcept;
void tuning_cache_close(sparsek_tuning_cache* cache) noexcept;
sparsek_status tuning_cache_merge(const char* into, const sparsek_tuning_cache* from,
                                  sparsek_tuning_change* out) noexcept;
sparsek_status tuning_cache_clear(const char* path, sparsek_tuning_change* out) noexcept;

}  // namespace sparsek::entry
