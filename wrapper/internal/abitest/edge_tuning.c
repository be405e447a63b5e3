/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "expect.h"

static const char kText[] =
    "sparsek tuning cache, version 1\n"
    "device=a%20GPU sm_count=132 build=shipped op=dsd m=1 n=2 k=3 bm=4 bk=5 dtype=fp16 dtype_b=fp32 dtype_c=fp32 "
    "bias=row activation=gelu density_class=6 spread_class=7 union_class=8 date=1970-01-01T00:01:40Z | one 1 0.5 2 | "
    "two 3 0 4\n"
    "not an entry\n";

static void test_arguments(edge* e) {
  sparsek_tuning_cache* cache = NULL;
  EXPECT(NULL_POINTER, "out", tuning_cache_open(NULL, SPARSEK_TUNING_FILE, NULL));
  EXPECT(BAD_ARGUMENT, "source = 2", tuning_cache_open(NULL, 2, &cache));
  EXPECT(BAD_ARGUMENT, "source = -1", tuning_cache_open(NULL, -1, &cache));
  EXPECT(BAD_ARGUMENT, "path is empty", tuning_cache_open("", SPARSEK_TUNING_FILE, &cache));
  EXPECT(BAD_ARGUMENT, "path = \"x\"", tuning_cache_open("x", SPARSEK_TUNING_SHIPPED, &cache));
  ++e->checks;
  if (cache != NULL) fprintf(e->failures, "a failed tuning_cache_open left a cache\n");
  sparsek_tuning_change change = {.abi_size = sizeof(change)};
  EXPECT(NULL_POINTER, "from", tuning_cache_merge("/nowhere/file", NULL, &change));
  EXPECT(BAD_ARGUMENT, "path is empty", tuning_cache_clear("", &change));
  EXPECT(NULL_POINTER, "out", tuning_cache_clear("/nowhere/file", NULL));
  EXPECT(OK, "", tuning_cache_clear("/nowhere/file", &change));
  e->api->tuning_cache_close(NULL);
}

static void test_entries(edge* e, const sparsek_tuning_cache* cache) {
  sparsek_tuning_cache_info info = {.abi_size = sizeof(info)};
  EXPECT(NULL_POINTER, "cache", tuning_cache_info(NULL, &info));
  EXPECT(NULL_POINTER, "out", tuning_cache_info(cache, NULL));
  EXPECT_ABI_SIZE(info, tuning_cache_info(cache, &info));
  EXPECT(OK, "", tuning_cache_info(cache, &info));
  ++e->checks;
  if (info.entries != 1 || info.state != SPARSEK_TUNING_DAMAGED || strstr(info.fault, "line 3") == NULL ||
      strlen(info.build) != 16) {
    fprintf(e->failures, "tuning_cache_info: %d entries, state %d, fault \"%s\", build \"%s\"\n", (int)info.entries,
            info.state, info.fault, info.build);
  }

  sparsek_tuning_entry entry = {.abi_size = sizeof(entry)};
  EXPECT(NULL_POINTER, "cache", tuning_cache_entry(NULL, 0, &entry));
  EXPECT(NULL_POINTER, "out", tuning_cache_entry(cache, 0, NULL));
  EXPECT_ABI_SIZE_SINCE(kFirstTuningEntry, entry, tuning_cache_entry(cache, 0, &entry));
  EXPECT(BAD_ARGUMENT, "index = -1", tuning_cache_entry(cache, -1, &entry));
  EXPECT(BAD_ARGUMENT, "index = 1 ", tuning_cache_entry(cache, 1, &entry));
  EXPECT(OK, "", tuning_cache_entry(cache, 0, &entry));
  ++e->checks;
  if (strcmp(entry.device, "a GPU") != 0 || strcmp(entry.build, "shipped") != 0 || strcmp(entry.op, "dsd") != 0 ||
      strlen(entry.id) != 16 || entry.m != 1 || entry.n != 2 || entry.k != 3 || entry.block_m != 4 ||
      entry.block_k != 5 || entry.measured != 100 || entry.sm_count != 132 || entry.dtype != SPARSEK_FP16 ||
      entry.dtype_b != SPARSEK_FP32 || entry.dtype_c != SPARSEK_FP32 || entry.bias != SPARSEK_BIAS_ROW ||
      entry.activation != SPARSEK_ACTIVATION_GELU || entry.density_class != 6 || entry.spread_class != 7 ||
      entry.union_class != 8 || entry.candidates != 2) {
    fprintf(e->failures, "tuning_cache_entry gives another entry than the file\n");
  }

  sparsek_tuning_candidate candidate = {.abi_size = sizeof(candidate)};
  EXPECT(NULL_POINTER, "cache", tuning_cache_candidate(NULL, 0, 0, &candidate));
  EXPECT(NULL_POINTER, "out", tuning_cache_candidate(cache, 0, 0, NULL));
  EXPECT_ABI_SIZE(candidate, tuning_cache_candidate(cache, 0, 0, &candidate));
  EXPECT(BAD_ARGUMENT, "index = 1 ", tuning_cache_candidate(cache, 1, 0, &candidate));
  EXPECT(BAD_ARGUMENT, "candidate = -1", tuning_cache_candidate(cache, 0, -1, &candidate));
  EXPECT(BAD_ARGUMENT, "candidate = 2", tuning_cache_candidate(cache, 0, 2, &candidate));
  EXPECT(OK, "", tuning_cache_candidate(cache, 0, 1, &candidate));
  ++e->checks;
  if (strcmp(candidate.kernel, "two") != 0 || candidate.seconds != 3 || candidate.spread != 0 ||
      candidate.setup_seconds != 4) {
    fprintf(e->failures, "tuning_cache_candidate gives another candidate than the file\n");
  }
}

void test_tuning_cache(edge* e) {
  test_arguments(e);
  char folder[] = "/tmp/sparsek-edge-XXXXXX", path[64], copy[64];
  if (mkdtemp(folder) == NULL) {
    fprintf(e->failures, "no folder for a tuning cache\n");
    return;
  }
  snprintf(path, sizeof(path), "%s/tuning.txt", folder);
  snprintf(copy, sizeof(copy), "%s/copy.txt", folder);
  FILE* file = fopen(path, "w");
  if (file == NULL || fputs(kText, file) < 0 || fclose(file) != 0) fprintf(e->failures, "%s cannot be written\n", path);

  sparsek_tuning_cache* cache = NULL;
  sparsek_tuning_change change = {.abi_size = sizeof(change)};
  EXPECT(OK, "", tuning_cache_open(path, SPARSEK_TUNING_FILE, &cache));
  if (cache != NULL) {
    test_entries(e, cache);
    EXPECT(BAD_ARGUMENT, "into is empty", tuning_cache_merge("", cache, &change));
    EXPECT(NULL_POINTER, "out", tuning_cache_merge(copy, cache, NULL));
    EXPECT_ABI_SIZE(change, tuning_cache_merge(copy, cache, &change));
    EXPECT(IO_ERROR, "is left as it is", tuning_cache_merge(path, cache, &change));
    EXPECT(OK, "", tuning_cache_merge(copy, cache, &change));
    ++e->checks;
    if (change.entries != 1 || change.warning[0] != '\0') fprintf(e->failures, "nothing was merged\n");
    e->api->tuning_cache_close(cache);
  }
  EXPECT_ABI_SIZE(change, tuning_cache_clear(copy, &change));
  EXPECT(IO_ERROR, "is left as it is", tuning_cache_clear(path, &change));
  EXPECT(OK, "", tuning_cache_clear(copy, &change));
  ++e->checks;
  if (change.entries != 1 || access(copy, F_OK) == 0) fprintf(e->failures, "nothing was cleared\n");
  EXPECT(OK, "", tuning_cache_open(NULL, SPARSEK_TUNING_SHIPPED, &cache));
  e->api->tuning_cache_close(cache);
  remove(path);
  if (remove(folder) != 0) fprintf(e->failures, "something is left in %s\n", folder);
}
