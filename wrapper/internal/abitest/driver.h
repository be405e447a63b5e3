/* SPDX-License-Identifier: Apache-2.0
 *
 * What the programs on a GPU share.
 */
#ifndef SPARSEK_ABITEST_DRIVER_H_
#define SPARSEK_ABITEST_DRIVER_H_

#include <stddef.h>
#include <stdint.h>

/* What is needed of the CUDA driver's API. */
typedef struct driver {
  int (*begin_capture)(void* stream, int mode);
  int (*end_capture)(void* stream, void** graph);
  int (*is_capturing)(void* stream, int* status); /* kInvalidated: the capture is spoilt */
  int (*instantiate)(void** exec, void* graph, unsigned long long flags);
  int (*launch)(void* exec, void* stream);
  int (*clone)(void** to, void* graph);
  int (*destroy_exec)(void* exec);
  int (*destroy_graph)(void* graph);
  int (*create_stream)(void** stream, unsigned flags); /* kBlocking or kNonBlocking */
  int (*destroy_stream)(void* stream);
  int (*wait_stream)(void* stream);
  int (*wait_context)(void);
  int (*launch_host)(void* stream, void (*function)(void*), void* argument);
  int (*allocate)(unsigned long long* address, size_t bytes);
  int (*release)(unsigned long long address);
} driver;

enum { kBlocking = 0, kNonBlocking = 1, kInvalidated = 2 };

/* 0 where there is none, or none that has all of it. */
int driver_open(driver* d);

/* As printf; the caller frees it. */
char* text(const char* format, ...);

/* Small integers, which bf16 holds and sums exactly, so that results can be compared bit by bit. */
void fill_bf16(uint16_t* to, size_t count, unsigned seed);

/* Returns what went wrong, if anything. Needs `api`. */
#define TRY(call)                                                                                            \
  do {                                                                                                       \
    const int code = (int)(call);                                                                            \
    if (code != 0) return text("%s:%d: %s gave %d: %s", __FILE__, __LINE__, #call, code, api->last_error()); \
  } while (0)

#endif
