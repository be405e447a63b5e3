/* SPDX-License-Identifier: Apache-2.0
 *
 * What the checks share. Each EXPECT makes one call and says which status it must give, and what its message must
 * speak of.
 */
#ifndef SPARSEK_ABITEST_EXPECT_H_
#define SPARSEK_ABITEST_EXPECT_H_

#include <stdint.h>
#include <stdio.h>

#include "sparsek.h"

typedef struct edge {
  const sparsek_api* api;
  FILE* failures;
  int checks;
  sparsek_context* context;
  sparsek_matrix* matrix;
  sparsek_plan* plan;
} edge;

/* A matrix of 4 x 6 in blocks of 2 x 3: one block in the first block row, two in the second. */
extern const int32_t kRowPtr[3];
extern const int32_t kColIdx[3];
extern const float kValues[18];

sparsek_bsr good_bsr(void);
sparsek_plan_options good_plan(void);

void expect(edge* e, const char* place, sparsek_status want, const char* speaks_of, sparsek_status got);

#define EDGE_TEXT(x) #x
#define EDGE_LINE(x) EDGE_TEXT(x)
#define EDGE_PLACE __FILE__ ":" EDGE_LINE(__LINE__)
#define EXPECT(status, speaks_of, call) expect(e, EDGE_PLACE, SPARSEK_##status, speaks_of, e->api->call)

/* A product of e->plan by `args`, with one member changed. */
#define WITH_ARGS(status, speaks_of, member, value)       \
  do {                                                    \
    sparsek_multiply_args given = args;                   \
    given.member = value;                                 \
    EXPECT(status, speaks_of, multiply(e->plan, &given)); \
  } while (0)

/* A size of 0 (never set), one less than the first version's, and one that no struct has, are refused. */
#define EXPECT_ABI_SIZE_SINCE(first, object, call) \
  do {                                             \
    const size_t right = (object).abi_size;        \
    (object).abi_size = 0;                         \
    EXPECT(BAD_ABI_SIZE, "abi_size is 0", call);   \
    (object).abi_size = (first) - 1;               \
    EXPECT(BAD_ABI_SIZE, "abi_size", call);        \
    (object).abi_size = (size_t)1 << 40;           \
    EXPECT(BAD_ABI_SIZE, "abi_size", call);        \
    (object).abi_size = right;                     \
  } while (0)

/* The same for a struct that is what it was in the first version. */
#define EXPECT_ABI_SIZE(object, call) EXPECT_ABI_SIZE_SINCE(sizeof(object), object, call)

/* What structs that have grown measured in the first version, and before they grew last. */
enum {
  kFirstKernelInfo = 64,
  kFirstDeviceInfo = 304,
  kFirstBsr = 88,
  kFirstPlanOptions = 48,
  kFirstPlanInfo = 72,
  kFirstMultiplyArgs = 56,
  kFirstCheckArgs = 88,
  kFirstTuningEntry = 128,
  kFirstAttentionOptions = 144,
  kFirstAttentionArgs = 312,
  kSecondPlanOptions = 80,
  kSecondMultiplyArgs = 64
};

/* edge_handles.c: contexts, matrices, plans, products */
void test_context(edge* e);
void test_matrix(edge* e);
void test_plan(edge* e);
void test_multiply(edge* e);
void test_graph_time(edge* e);
void test_values_later(edge* e);

/* edge_epilogue.c: types of C, biases, activations, and callers that do not know of them */
void test_epilogue(edge* e);

/* edge_members.c: members at the ends of structs: what is not served yet, and callers that do not have them */
void test_members(edge* e);
void test_handle_services(edge* e);

/* edge_product.c: what each product of a plan may be given of its own, and batches */
void test_product_arguments(edge* e);
void test_batches(edge* e);

/* edge_changing.c: plans for an index that changes */
void test_changing_index(edge* e);

/* edge_pattern.c: patterns that are made, and work on values */
void test_patterns(edge* e);

/* edge_attention.c: attention, and its check */
void test_attention(edge* e);

/* edge_fp8.c: attention of E4M3 */
void test_fp8(edge* e);

/* edge_services.c: what the library says of itself, memory, streams, the check of a result */
void test_information(edge* e);
void test_struct_sizes(edge* e);
void test_memory(edge* e);
void test_check(edge* e);
void test_dense_time(edge* e);

/* edge_hold.c: SMs held for measurements */
void test_sms_hold(edge* e);

/* edge_tuning.c: tuning caches */
void test_tuning_cache(edge* e);

#endif
