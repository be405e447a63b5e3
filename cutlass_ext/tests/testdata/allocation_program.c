/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls the library while memory runs out: the k-th allocation that a call makes fails, alone or with all that follow,
 * for every k until the call makes fewer. Each such call must succeed or return SPARSEK_OUT_OF_MEMORY, and whatever it
 * was given must be as good as before.
 *
 *     allocation_program LIBRARY CALL STRIDE      every STRIDE-th k
 *     allocation_program LIBRARY limits           plan_create under 27 limits of the address space, in children
 *
 * Prints what went wrong and exits with 1; else prints the number of calls with a failure.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sparsek.h"

/* The allocations of this thread, in place of libc's. The library has its C++ runtime within, which calls these. */
extern void* __libc_malloc(size_t);
extern void* __libc_calloc(size_t, size_t);
extern void* __libc_realloc(void*, size_t);
extern void* __libc_memalign(size_t, size_t);

static __thread long to_fail = 0; /* which one fails: 1 is the next, 0 none */
static __thread int fail_all = 0; /* and those that follow */
static __thread long failed = 0;

static int fails(void) {
  if (to_fail == 0) return 0;
  if (to_fail > 1) {
    --to_fail;
    return 0;
  }
  if (!fail_all) to_fail = 0;
  ++failed;
  errno = ENOMEM;
  return 1;
}

void* malloc(size_t bytes) { return fails() ? NULL : __libc_malloc(bytes); }
void* calloc(size_t count, size_t bytes) { return fails() ? NULL : __libc_calloc(count, bytes); }
void* realloc(void* old, size_t bytes) { return fails() ? NULL : __libc_realloc(old, bytes); }
void* aligned_alloc(size_t alignment, size_t bytes) { return fails() ? NULL : __libc_memalign(alignment, bytes); }
void* memalign(size_t alignment, size_t bytes) { return fails() ? NULL : __libc_memalign(alignment, bytes); }
int posix_memalign(void** out, size_t alignment, size_t bytes) {
  if (fails()) return ENOMEM;
  *out = __libc_memalign(alignment, bytes);
  return *out == NULL ? ENOMEM : 0;
}

enum { kBlockRows = 40, kBlockCols = 50, kBlock = 8, kInRow = 5, kBlocks = kBlockRows * kInRow };
enum { kRows = kBlockRows * kBlock, kCols = kBlockCols * kBlock, kN = 24 };

static const sparsek_api* api;
static sparsek_context* context;
static sparsek_matrix* matrix;
static sparsek_plan* plan;
static sparsek_tuner* tuner;
static int32_t row_ptr[kBlockRows + 1], col_idx[kBlocks];
static float values[kBlocks * kBlock * kBlock], b[kCols * kN], c[kRows * kN], want[kRows * kN];
static const char* call_name;

static void stop(const char* what, long k, int status) {
  printf("%s, allocation %ld, %s: status %d, \"%s\"\n", call_name, k, what, status, api->last_error());
  exit(1);
}

#define NEED(call)                           \
  do {                                       \
    const int needed = (int)(call);          \
    if (needed != 0) stop(#call, 0, needed); \
  } while (0)

static sparsek_bsr bsr(void) {
  sparsek_bsr a = {.abi_size = sizeof(a),
                   .rows = kRows,
                   .cols = kCols,
                   .block_m = kBlock,
                   .block_k = kBlock,
                   .nnzb = kBlocks,
                   .dtype = SPARSEK_FP32,
                   .index_type = SPARSEK_INT32,
                   .memory = SPARSEK_HOST,
                   .row_ptr = row_ptr,
                   .col_idx = col_idx,
                   .values = values};
  return a;
}

static sparsek_plan_options options(double tuning) {
  sparsek_plan_options o = {.abi_size = sizeof(o), .n = kN, .alignment = 4, .tuning_seconds = tuning};
  return o;
}

static sparsek_multiply_args arguments(void) {
  sparsek_multiply_args a = {.abi_size = sizeof(a), .alpha = 1, .b = b, .c = c};
  return a;
}

static int create_context(void) {
  sparsek_context_options o = {.abi_size = sizeof(o), .backend = SPARSEK_CPU, .threads = 2};
  return api->context_create(&o, &context);
}
static int create_matrix(void) {
  const sparsek_bsr a = bsr();
  return api->matrix_create(context, &a, &matrix);
}
static int create_plan(void) {
  const sparsek_plan_options o = options(0);
  return api->plan_create(matrix, &o, &plan);
}
/* Another product each time: one that was measured before is not measured again. */
static int create_tuned(void) {
  static int turn = 0;
  sparsek_plan_options o = options(1e-9);
  o.n = 1 + turn % kN;
  o.activation = turn / kN % 4;
  o.bias = turn / kN / 4 % 3;
  o.dtype_c = 1 + turn / kN / 12 % 3;
  ++turn;
  return api->plan_create(matrix, &o, &plan);
}
static int create_tuner(void) {
  const sparsek_plan_options o = options(0);
  const sparsek_tuner_options t = {sizeof(t), 0, 0, 0};
  return api->tuner_create(matrix, &o, &t, &tuner);
}
static int step(void) {
  int32_t candidate;
  return api->tuner_step(tuner, &candidate);
}
static int finish(void) { return api->tuner_finish(tuner, &plan); }
static int multiply(void) {
  const sparsek_multiply_args a = arguments();
  return api->multiply(plan, &a);
}
static int multiply_time(void) {
  const sparsek_multiply_args a = arguments();
  double seconds[2];
  return api->multiply_time(plan, &a, 1, 1, 2, seconds);
}
static int set_values(void) { return api->matrix_set_values(matrix, values, SPARSEK_HOST, NULL); }
static int info(void) {
  sparsek_plan_info i = {.abi_size = sizeof(i)};
  return api->plan_info(plan, &i);
}
static int check(void) {
  const sparsek_bsr a = bsr();
  sparsek_plan_info i = {.abi_size = sizeof(i)};
  const int status = api->plan_info(plan, &i);
  if (status != 0) return status;
  sparsek_check_args args = {
      .abi_size = sizeof(args), .a = &a, .n = kN, .b = b, .c = want, .alpha = 1, .unit_roundoff = i.unit_roundoff};
  sparsek_check_report report = {.abi_size = sizeof(report)};
  return api->check(&args, &report);
}
static int open_cache(void) {
  sparsek_tuning_cache* cache = NULL;
  const int status = api->tuning_cache_open(NULL, SPARSEK_TUNING_SHIPPED, &cache);
  api->tuning_cache_close(cache);
  return status;
}

/* What there is before the call under test, and whether the call makes it anew each time. */
enum { kNothing, kContext, kMatrix, kPlan, kTuner, kMeasured };
static const struct {
  const char* name;
  int (*run)(void);
  int before;
} kCalls[] = {
    {"context_create", create_context, kNothing},
    {"matrix_create", create_matrix, kContext},
    {"plan_create", create_plan, kMatrix},
    {"plan_create_tuned", create_tuned, kMatrix},
    {"tuner_create", create_tuner, kMatrix},
    {"tuner_step", step, kTuner},
    {"tuner_finish", finish, kMeasured},
    {"multiply", multiply, kPlan},
    {"multiply_time", multiply_time, kPlan},
    {"matrix_set_values", set_values, kPlan},
    {"plan_info", info, kPlan},
    {"check", check, kPlan},
    {"tuning_cache_open", open_cache, kContext},
};

static void set_up(int before) {
  if (before >= kContext) NEED(create_context());
  if (before >= kMatrix) NEED(create_matrix());
  if (before == kPlan) NEED(create_plan());
  if (before >= kTuner) NEED(create_tuner());
  if (before >= kMeasured) NEED(step());
}

static void tear_down(void) {
  api->tuner_destroy(tuner);
  api->plan_destroy(plan);
  api->matrix_destroy(matrix);
  api->context_destroy(context);
  tuner = NULL;
  plan = NULL;
  matrix = NULL;
  context = NULL;
}

/* After a call that failed all is as it was: the call succeeds, and a plan gives the right product. */
static void use_again(int (*run)(void), int before, long k) {
  if (before >= kTuner) {
    const int32_t count = api->tuner_candidate_count(tuner);
    for (int32_t i = 0; i < count; ++i) {
      sparsek_candidate_info candidate = {.abi_size = sizeof(candidate)};
      NEED(api->tuner_candidate(tuner, i, &candidate));
    }
    int32_t next;
    const int status = api->tuner_step(tuner, &next);
    if (status != SPARSEK_OK && status != SPARSEK_BAD_ARGUMENT) stop("a step afterwards", k, status);
    if (before == kMeasured && plan == NULL) {
      const int again = run();
      if (again != SPARSEK_OK) stop("again", k, again);
    }
  } else {
    const int status = run();
    if (status != SPARSEK_OK) stop("again", k, status);
  }
  if (run == create_tuned) {
    api->plan_destroy(plan);
    plan = NULL;
  }
  if (context == NULL) NEED(create_context());
  if (matrix == NULL) NEED(create_matrix());
  if (plan == NULL) NEED(create_plan());
  memset(c, 0xff, sizeof(c));
  NEED(multiply());
  for (int i = 0; i < kRows * kN; ++i) {
    if (fabsf(c[i] - want[i]) > 1e-3f) stop("another product", k, 0);
  }
}

static long fail_each(int (*run)(void), int before, long stride) {
  long calls = 0;
  for (fail_all = 0; fail_all < 2; ++fail_all) {
    for (long k = 1;; k += stride) {
      set_up(before);
      failed = 0;
      to_fail = k;
      const int status = run();
      to_fail = 0;
      const long hits = failed;
      if (status != SPARSEK_OK && (status != SPARSEK_OUT_OF_MEMORY || hits == 0)) stop("the call", k, status);
      if (status != SPARSEK_OK || before >= kPlan) {
        use_again(run, before, k);
      }
      tear_down();
      if (hits == 0) break;
      ++calls;
    }
  }
  return calls;
}

static size_t mapped_bytes(void) {
  unsigned long pages = 0;
  FILE* const file = fopen("/proc/self/statm", "r");
  if (file == NULL || fscanf(file, "%lu", &pages) != 1) exit(2);
  fclose(file);
  return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* A matrix of 50 million columns and 2000 blocks: a plan of it takes little memory, and too little is no abort. */
static void plan_within_limits(void) {
  static int32_t rows[1001], columns[2000];
  static float ones[2000];
  for (int i = 0; i <= 1000; ++i) rows[i] = 2 * i;
  for (int i = 0; i < 1000; ++i) {
    columns[2 * i] = i;
    columns[2 * i + 1] = 49999000 + i % 7;
  }
  sparsek_bsr wide = {.abi_size = sizeof(wide),
                      .rows = 1000,
                      .cols = 50000000,
                      .block_m = 1,
                      .block_k = 1,
                      .nnzb = 2000,
                      .dtype = SPARSEK_FP32,
                      .index_type = SPARSEK_INT32,
                      .memory = SPARSEK_HOST,
                      .row_ptr = rows,
                      .col_idx = columns,
                      .values = ones};
  int planned = 0;
  for (int megabytes = 0; megabytes <= 208; megabytes += 8) {
    const pid_t child = fork();
    if (child == 0) {
      NEED(create_context());
      NEED(api->matrix_create(context, &wide, &matrix));
      const size_t bytes = mapped_bytes() + ((size_t)megabytes << 20);
      const struct rlimit limit = {bytes, bytes};
      const sparsek_plan_options o = {.abi_size = sizeof(o), .n = 1, .alignment = 4};
      if (setrlimit(RLIMIT_AS, &limit) != 0) _exit(2);
      _exit(api->plan_create(matrix, &o, &plan));
    }
    int status = 0;
    waitpid(child, &status, 0);
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    if (code != SPARSEK_OK && code != SPARSEK_OUT_OF_MEMORY) {
      printf("with %d MB: %s %d\n", megabytes, code < 0 ? "signal" : "status", code < 0 ? WTERMSIG(status) : code);
      exit(1);
    }
    if (code != SPARSEK_OK && megabytes >= 32) {
      printf("a plan of 2000 elements needs more than %d MB\n", megabytes);
      exit(1);
    }
    planned += code == SPARSEK_OK;
  }
  printf("%d\n", planned);
}

int main(int argc, char** argv) {
  void* const library = argc < 3 ? NULL : dlopen(argv[1], RTLD_NOW);
  if (library == NULL) {
    printf("%s\n", argc < 3 ? "too few arguments" : dlerror());
    return 1;
  }
  api = ((const sparsek_api* (*)(int32_t))dlsym(library, "sparsek_get_api"))(SPARSEK_ABI_VERSION);
  for (int i = 0; i <= kBlockRows; ++i) row_ptr[i] = i * kInRow;
  for (int i = 0; i < kBlocks; ++i) col_idx[i] = i % kInRow * 10 + i / kInRow % 10;
  for (int i = 0; i < kBlocks * kBlock * kBlock; ++i) values[i] = (float)(i % 7 - 3);
  for (int i = 0; i < kCols * kN; ++i) b[i] = (float)(i % 5 - 2);
  call_name = argv[2];
  if (strcmp(call_name, "limits") == 0) {
    plan_within_limits();
    return 0;
  }
  NEED(create_context());
  NEED(create_matrix());
  NEED(create_plan());
  NEED(multiply());
  memcpy(want, c, sizeof(c));
  tear_down();
  for (size_t i = 0; i < sizeof(kCalls) / sizeof(*kCalls); ++i) {
    if (strcmp(call_name, kCalls[i].name) != 0) continue;
    printf("%ld\n", fail_each(kCalls[i].run, kCalls[i].before, atol(argv[3])));
    return 0;
  }
  printf("there is no call %s\n", call_name);
  return 1;
}
