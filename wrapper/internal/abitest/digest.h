/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SPARSEK_ABITEST_DIGEST_H_
#define SPARSEK_ABITEST_DIGEST_H_

#include <stdint.h>

/* The digest of a sparsek_plan* of the library at `path`, which is loaded; 0 where it has none. */
uint64_t plan_digest(const char* path, const void* plan);

#endif
