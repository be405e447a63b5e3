/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SPARSEK_ABITEST_EDGE_H_
#define SPARSEK_ABITEST_EDGE_H_

typedef struct edge_result {
  int checks;
  char* failures; /* lines; allocated */
} edge_result;

edge_result edge_run(const char* path);

#endif
