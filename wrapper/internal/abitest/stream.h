/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SPARSEK_ABITEST_STREAM_H_
#define SPARSEK_ABITEST_STREAM_H_

/* What is done with matrices whose index is written, checked and planned for in a stream. */
typedef enum stream_case {
  kStreamHeldUp,    /* steps of a new pattern each, in a stream that is held up: nothing may wait for it */
  kStreamOthers,    /* products in other streams than the one in which the plan is made */
  kStreamFaults,    /* indices with faults, which are told later */
  kStreamCaptured,  /* a captured stream is refused, and not spoilt */
  kStreamDestroyed, /* matrices and plans that are destroyed instead of released */
  kStreamNamed,     /* without SPARSEK_BSR_ASYNC: the index is read in the order of the stream that is named */
  kStreamUpdated,   /* one plan that gets a new index again and again, also within a graph */
  kStreamData       /* a plan as plain data, written and run, also within a graph */
} stream_case;

/* Null where all went well on the first GPU, else what went wrong, or "skipped: " and why; the caller frees it. */
char* stream_run(const char* path, stream_case what);

#endif
