/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SPARSEK_ABITEST_ALLOCATOR_H_
#define SPARSEK_ABITEST_ALLOCATOR_H_

/* What went wrong, or "skipped: ..."; null where nothing did. The caller frees it. */
char* allocator_run(const char* path, const char* kernel);

#endif
