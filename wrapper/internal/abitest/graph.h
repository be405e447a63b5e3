/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SPARSEK_ABITEST_GRAPH_H_
#define SPARSEK_ABITEST_GRAPH_H_

/* Captures a product into a CUDA graph and replays it, with the library at path. Null where all went well, else what
 * went wrong, or "skipped: " and why; the caller frees it. */
char* graph_run(const char* path);

/* The same for a product whose tiles the kernel of that name splits. */
char* graph_parts_run(const char* path, const char* kernel);

/* The same for a plan by the kernel of that name, which keeps values: a graph gives the matrix others. */
char* graph_kept_run(const char* path, const char* kernel);

/* While a stream is captured in global mode, makes each call of the library that there is: by another thread or, with
 * `same_thread`, by the one that captures. With `blocking` the captured stream is one that waits for the default
 * stream. The capture must be whole afterwards, and its graph must give the right product. */
char* capture_run(const char* path, int blocking, int same_thread);
#endif
