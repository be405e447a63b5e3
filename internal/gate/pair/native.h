/* SPDX-License-Identifier: Apache-2.0
 *
 * Two libraries in one process, and products of both that take turns in one stream. Memory, streams, graphs and events
 * are the driver's own, opened at run time, so that neither library has a part in the timing. Without a driver all is
 * on the CPU: host memory, and a clock in place of events.
 *
 * Functions return null, or a message that the caller frees.
 */
#ifndef SPARSEK_PAIR_NATIVE_H_
#define SPARSEK_PAIR_NATIVE_H_

#include <stdint.h>

#include "sparsek.h"

typedef struct pair_library {
  const sparsek_api* api;
  sparsek_context* context;
} pair_library;

/* Opens a library that has all functions up to multiply, however old the rest of its table is. */
char* pair_open(const char* path, pair_library* out);
char* pair_context(pair_library* library, int32_t backend, int32_t threads);

/* What both libraries work in. */
typedef struct pair_device pair_device;
char* pair_device_open(int32_t ordinal, int on_gpu, pair_device** out);
/* The current thread's calls are for the device from now on. */
char* pair_device_use(pair_device* device);
void pair_device_close(pair_device* device);
char* pair_allocate(pair_device* device, size_t bytes, uintptr_t* out);
void pair_release(pair_device* device, uintptr_t memory);
char* pair_write(pair_device* device, uintptr_t to, const void* host, size_t bytes);
char* pair_copy(pair_device* device, uintptr_t to, uintptr_t from, size_t bytes);

/* A matrix of (rows, cols) in BSR with host index, values at an address of the device, and a plan for a product with
 * it. *unknown becomes 1 where the library refuses the product, as one does that is older than it. */
typedef struct pair_product {
  int64_t rows, cols, block_m, block_k, nnzb, n;
  int32_t dtype, op, order_x, order_b, order_c;
} pair_product;
char* pair_plan(pair_library* library, const pair_device* device, const pair_product* product, const int32_t* row_ptr,
                const int32_t* col_idx, uintptr_t values, sparsek_matrix** matrix, sparsek_plan** plan,
                int32_t* unknown);
void pair_unplan(pair_library* library, sparsek_matrix* matrix, sparsek_plan* plan);
char* pair_plan_info(pair_library* library, sparsek_plan* plan, sparsek_plan_info* out);

/* Products of one library that follow each other: one turn. */
typedef struct pair_turn pair_turn;
/* plans, x, b and c: count of each; x are 0 but for SDD. */
char* pair_turn_make(pair_device* device, pair_library* library, const uintptr_t* plans, const uintptr_t* x,
                     const uintptr_t* b, const uintptr_t* c, int32_t count, pair_turn** out);
void pair_turn_free(pair_device* device, pair_turn* turn);
/* Runs `before` turns, of those in the list in their order, and then all of the list; seconds[count] gets the time of
 * each one of the list, from the end of the one before it to its own end. Waits for them. */
char* pair_run(pair_device* device, const uintptr_t* turns, int32_t count, int32_t before, double* seconds);

#endif /* SPARSEK_PAIR_NATIVE_H_ */
