/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SPARSEK_ABITEST_ALLOCATOR_H_
#define SPARSEK_ABITEST_ALLOCATOR_H_

/* kernel: one whose tiles are split. keeping: one that reads A in a layout which does not depend on the plan. Returns
 * what went wrong, or "skipped: ..."; null where nothing did. The caller frees it. */
char* allocator_run(const char* path, const char* kernel, const char* keeping);

#endif
