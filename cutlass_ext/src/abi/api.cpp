// SPDX-License-Identifier: Apache-2.0
// The table and the one exported symbol.
#include "abi/entry.h"
#include "abi/guard.h"

namespace sparsek::entry {

const char* status_name(sparsek_status status) noexcept {
  switch (status) {
#define SPARSEK_NAME(name) \
  case name:               \
    return #name
    SPARSEK_NAME(SPARSEK_OK);
    SPARSEK_NAME(SPARSEK_NULL_POINTER);
    SPARSEK_NAME(SPARSEK_BAD_ABI_SIZE);
    SPARSEK_NAME(SPARSEK_BAD_SIZE);
    SPARSEK_NAME(SPARSEK_BAD_ARGUMENT);
    SPARSEK_NAME(SPARSEK_BAD_LEADING_DIMENSION);
    SPARSEK_NAME(SPARSEK_MISALIGNED);
    SPARSEK_NAME(SPARSEK_WRONG_MEMORY);
    SPARSEK_NAME(SPARSEK_ROW_PTR_START);
    SPARSEK_NAME(SPARSEK_ROW_PTR_NOT_MONOTONE);
    SPARSEK_NAME(SPARSEK_ROW_PTR_END);
    SPARSEK_NAME(SPARSEK_COL_IDX_RANGE);
    SPARSEK_NAME(SPARSEK_COL_IDX_UNSORTED);
    SPARSEK_NAME(SPARSEK_COL_IDX_REPEATED);
    SPARSEK_NAME(SPARSEK_BLOCK_IDX_RANGE);
    SPARSEK_NAME(SPARSEK_OVER_CAPACITY);
    SPARSEK_NAME(SPARSEK_UNSUPPORTED_DTYPE);
    SPARSEK_NAME(SPARSEK_UNSUPPORTED_BLOCK);
    SPARSEK_NAME(SPARSEK_NO_SUCH_KERNEL);
    SPARSEK_NAME(SPARSEK_NO_DEVICE);
    SPARSEK_NAME(SPARSEK_NO_LIBRARY);
    SPARSEK_NAME(SPARSEK_OUT_OF_MEMORY);
    SPARSEK_NAME(SPARSEK_CUDA_ERROR);
    SPARSEK_NAME(SPARSEK_INTERNAL);
    SPARSEK_NAME(SPARSEK_IO_ERROR);
    SPARSEK_NAME(SPARSEK_CHECK_FAILED);
    SPARSEK_NAME(SPARSEK_NOT_READY);
#undef SPARSEK_NAME
  }
  return "SPARSEK_UNKNOWN_STATUS";
}

namespace {

constexpr sparsek_api kApi = {
    sizeof(sparsek_api),
    SPARSEK_ABI_VERSION,
    status_name,
    last_error,
    build_info,
    kernel_count,
    kernel_info,
    device_count,
    device_info,
    context_create,
    context_info,
    context_destroy,
    matrix_create,
    matrix_set_values,
    matrix_destroy,
    plan_create,
    plan_info,
    plan_destroy,
    multiply,
    multiply_time,
    buffer_create,
    buffer_destroy,
    buffer_write,
    buffer_read,
    buffer_fill,
    stream_create,
    stream_destroy,
    stream_synchronize,
    stream_query,
    check,
    dense_time,
    graph_time,
    tuner_create,
    tuner_step,
    tuner_candidate_count,
    tuner_candidate,
    tuner_finish,
    tuner_destroy,
    tuning_cache_open,
    tuning_cache_info,
    tuning_cache_entry,
    tuning_cache_candidate,
    tuning_cache_close,
    tuning_cache_merge,
    tuning_cache_clear,
    sms_hold,
    sms_release,
    plan_describe,
    matrix_status,
    plan_release,
    matrix_release,
    plan_update,
    plan_measure,
    plan_write,
    plan_run,
    pattern_from_mask,
    pattern_from_topk,
    pattern_from_dense,
    pattern_from_csr,
    pattern_from_blocks,
    pattern_from_counts,
    pattern_block_diagonal,
    transpose_index,
    to_csr,
    pattern_check,
    to_dense,
    gather_values,
    block_norms,
    sum,
    scale,
    multiply_values,
    add_values,
    attention_create,
    attention_info,
    attention_forward,
    attention_backward,
    attention_time,
    attention_destroy,
    attention_release,
    attention_check,
    attention_update,
    attention_status,
    attention_pool,
};

}  // namespace
}  // namespace sparsek::entry

extern "C" const sparsek_api* sparsek_get_api(int32_t abi_version) {
  return abi_version == SPARSEK_ABI_VERSION ? &sparsek::entry::kApi : nullptr;
}
