/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SPARSEK_ABITEST_WORKSPACE_H_
#define SPARSEK_ABITEST_WORKSPACE_H_

/* What went wrong, or "skipped: ..."; null where nothing did. The caller frees it. */
char* workspace_run(const char* path, const char* kernel);

#endif
