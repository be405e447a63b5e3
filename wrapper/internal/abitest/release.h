/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SPARSEK_ABITEST_RELEASE_H_
#define SPARSEK_ABITEST_RELEASE_H_

/* How a plan is used before it is destroyed with its products still to run. */
typedef enum release_case {
  kReleaseOwnStream,     /* in a stream of the library */
  kReleaseForeignStream, /* in one of the application */
  kReleaseClosedStream,  /* in one of the library, which is destroyed before the plan */
  kReleaseLostStream,    /* in one of the application, which is destroyed before the plan */
  kReleaseDefaultStream,
  kReleaseGraph /* captured: destroying the plan may wait for the graph, but must not free what it reads */
} release_case;

/* Destroys a plan, and its matrix, whose product is still to run on the first GPU, makes others where they were, and
 * looks at what the product gave. With no_memory there is no device memory left when they are destroyed. Null where all
 * went well, else what went wrong, or "skipped: " and why; the caller frees it. */
char* release_run(const char* path, release_case how, int no_memory);

#endif
