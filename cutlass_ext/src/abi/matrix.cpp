// SPDX-License-Identifier: Apache-2.0
#include "abi/abi_size.h"
#include "abi/dtype.h"
#include "abi/entry.h"
#include "abi/guard.h"
#include "abi/handles.h"
#include "abi/require.h"
#include "abi/served.h"

namespace sparsek::entry {
sparsek_status matrix_create(sparsek_context* context, const sparsek_bsr* bsr, sparsek_matrix** out) noexcept {
  return guard([&] {
    require_not_null(out, "out");
    *out = nullptr;
    require_not_null(context, "context");
    const sparsek_bsr known = read_struct(bsr, "bsr");
    require_served(known);
    require_bsr(known);
    auto handle = std::make_unique<sparsek_matrix>();
    handle->shared = std::make_shared<Matrix>();
    handle->shared->backend = context->backend;
    handle->shared->choices = context->choices;
    handle->shared->state = context->backend->make_matrix(with_its_blocks(known));
    handle->shared->has_values = known.values != nullptr || known.nnzb == 0;
    *out = handle.release();
  });
}

sparsek_status matrix_set_values(sparsek_matrix* matrix, const void* values, int32_t memory,
                                 sparsek_stream stream) noexcept {
  return guard([&] {
    require_not_null(matrix, "matrix");
    const sparsek_memory where = require_memory(memory, "memory");
    MatrixState& state = *matrix->shared->state;
    if (state.shape().nnzb > 0) require_not_null(values, "values");
    require_aligned(values, dtype_bytes(state.dtype), "values");
    state.set_values(values, where, stream);
    matrix->shared->has_values = true;
  });
}

void matrix_destroy(sparsek_matrix* matrix) noexcept { destroy(matrix); }

sparsek_status matrix_status(sparsek_matrix* matrix, int32_t wait) noexcept {
  return guard([&] {
    require_not_null(matrix, "matrix");
    if (wait != 0 && wait != 1) fail(SPARSEK_BAD_ARGUMENT, "wait = %d is neither 0 nor 1", wait);
    if (!matrix->shared->state->check_index(wait == 1)) {
      fail(SPARSEK_NOT_READY, "the index has not been checked yet: what its stream holds before that still runs");
    }
  });
}

void matrix_release(sparsek_matrix* matrix, sparsek_stream stream) noexcept {
  // Plans that are still there may have other streams to come.
  const bool last = matrix != nullptr && matrix->shared.use_count() == 1;
  if (last) end_in(backend_of(*matrix), *matrix->shared->state, stream);
  destroy(matrix);
}

}  // namespace sparsek::entry
