/* SPDX-License-Identifier: Apache-2.0
 *
 * Forks while other threads are within calls of the library, and uses the library in the children, which have one
 * thread and a copy of all memory: none may hang, and each product must be right.
 *
 *     fork_program LIBRARY CASE FORKS
 *
 * Prints what went wrong and exits with 1. Where there is no GPU for the case "gpu" it prints "skipped".
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sparsek.h"

enum { kBlockRows = 40, kBlockCols = 50, kBlock = 8, kInRow = 5, kBlocks = kBlockRows * kInRow };
enum { kRows = kBlockRows * kBlock, kCols = kBlockCols * kBlock, kN = 96, kThreads = 3 };
enum { kPatience = 30 }; /* seconds after which a child hangs */

static const sparsek_api* api;
static int32_t row_ptr[kBlockRows + 1], col_idx[kBlocks];
static float values[kBlocks * kBlock * kBlock], b[kCols * kN], want[kRows * kN];
static volatile int stopping = 0;

/* What one thread works with. */
typedef struct set {
  sparsek_context* context;
  sparsek_matrix* matrix;
  sparsek_plan* plan;
} set;
static set shared; /* by all threads */

/* Of the process, child or parent: a message comes through the pipe that both share. */
static void stop(const char* what, int status) {
  printf("%s: status %d, \"%s\"\n", what, status, api->last_error());
  fflush(stdout);
  _exit(1);
}

#define NEED(call)                        \
  do {                                    \
    const int needed = (int)(call);       \
    if (needed != 0) stop(#call, needed); \
  } while (0)
#define EXPECT(condition)                  \
  do {                                     \
    if (!(condition)) stop(#condition, 0); \
  } while (0)

static sparsek_context* new_context(int backend) {
  const sparsek_context_options o = {.abi_size = sizeof(o), .backend = backend, .threads = 4};
  sparsek_context* context = NULL;
  NEED(api->context_create(&o, &context));
  return context;
}

static sparsek_matrix* new_matrix(sparsek_context* context) {
  const sparsek_bsr a = {.abi_size = sizeof(a),
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
  sparsek_matrix* matrix = NULL;
  NEED(api->matrix_create(context, &a, &matrix));
  return matrix;
}

static sparsek_plan* new_plan(sparsek_matrix* matrix) {
  const sparsek_plan_options o = {.abi_size = sizeof(o), .n = kN, .alignment = 4};
  sparsek_plan* plan = NULL;
  NEED(api->plan_create(matrix, &o, &plan));
  return plan;
}

static set new_set(void) {
  set s;
  s.context = new_context(SPARSEK_CPU);
  s.matrix = new_matrix(s.context);
  s.plan = new_plan(s.matrix);
  return s;
}

static void destroy(set s) {
  api->plan_destroy(s.plan);
  api->matrix_destroy(s.matrix);
  api->context_destroy(s.context);
}

static void multiply(sparsek_plan* plan, float* c) {
  const sparsek_multiply_args a = {.abi_size = sizeof(a), .alpha = 1, .b = b, .c = c};
  memset(c, 0xff, sizeof(want));
  NEED(api->multiply(plan, &a));
  EXPECT(memcmp(c, want, sizeof(want)) == 0);
}

static void tune(sparsek_matrix* matrix) {
  static int turn = 0; /* another product each time: one that is known is not measured again */
  const int mine = __atomic_fetch_add(&turn, 1, __ATOMIC_RELAXED);
  const sparsek_plan_options o = {
      .abi_size = sizeof(o), .n = 1 + (mine * 7 + getpid()) % kN, .alignment = 4, .tuning_seconds = 1e-9};
  sparsek_plan* plan = NULL;
  NEED(api->plan_create(matrix, &o, &plan));
  sparsek_plan_info info = {.abi_size = sizeof(info)};
  NEED(api->plan_describe(plan, &info));
  if (info.warning[0] != '\0') stop(info.warning, 0);
  api->plan_destroy(plan);
}

/* What the other threads do, and a child first. */
static void in_products(float* c) { multiply(shared.plan, c); }
static void in_plans(float* c) {
  sparsek_plan* const own = new_plan(shared.matrix);
  multiply(own, c);
  api->plan_destroy(own);
}
static void in_contexts(float* c) {
  const set own = new_set();
  multiply(own.plan, c);
  destroy(own);
}
static void in_tuning(float* c) {
  tune(shared.matrix);
  (void)c;
}

static const struct {
  const char* name;
  void (*work)(float* c); /* null: the other threads are idle */
} kCases[] = {
    {"idle", NULL}, {"products", in_products}, {"plans", in_plans}, {"contexts", in_contexts}, {"tuning", in_tuning}};

static void* work_on(void* work) {
  float* const c = malloc(sizeof(want));
  while (!stopping) ((void (*)(float*))work)(c);
  free(c);
  return NULL;
}

static void in_child(void (*work)(float*)) {
  alarm(kPatience);
  float* const c = malloc(sizeof(want));
  multiply(shared.plan, c);
  if (work != NULL) work(c);
  in_plans(c);
  in_contexts(c);
  destroy(shared);
  free(c);
}

/* Waits for a child, which must end well. */
static void await(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) != child) continue;
  if (WIFSIGNALED(status)) {
    printf("a child %s\n", WTERMSIG(status) == SIGALRM ? "hangs" : strsignal(WTERMSIG(status)));
    exit(1);
  }
  if (WEXITSTATUS(status) != 0) exit(1);
}

static void fork_beside(void (*work)(float*), int forks) {
  pthread_t threads[kThreads];
  for (int i = 0; work != NULL && i < kThreads; ++i) {
    if (pthread_create(&threads[i], NULL, work_on, (void*)work) != 0) exit(2);
  }
  for (int i = 0; i < forks; ++i) {
    const pid_t child = fork();
    if (child != 0) {
      await(child);
      continue;
    }
    in_child(work);
    if (i % 8 == 0) { /* and a child of the child */
      shared = new_set();
      const pid_t grandchild = fork();
      if (grandchild != 0) {
        await(grandchild);
      } else {
        in_child(work);
      }
    }
    _exit(0);
  }
  stopping = 1;
  for (int i = 0; work != NULL && i < kThreads; ++i) pthread_join(threads[i], NULL);
}

/* Writes the file of the tuning cache, under its lock. */
static void write_cache(void) {
  sparsek_tuning_cache* cache = NULL;
  sparsek_tuning_change change = {.abi_size = sizeof(change)};
  NEED(api->tuning_cache_open(NULL, SPARSEK_TUNING_SHIPPED, &cache));
  NEED(api->tuning_cache_merge(NULL, cache, &change));
  api->tuning_cache_close(cache);
}

static void* write_often(void* unused) {
  while (!stopping) write_cache();
  return unused;
}

/* A lock that a thread holds at a fork is not the child's too, which may live long: the others wait for it in vain. */
static void fork_beside_lock(int forks) {
  pthread_t threads[kThreads];
  pid_t children[64];
  if (forks > 64) exit(2);
  for (int i = 0; i < kThreads; ++i) {
    if (pthread_create(&threads[i], NULL, write_often, NULL) != 0) exit(2);
  }
  for (int i = 0; i < forks; ++i) {
    usleep(1000);
    children[i] = fork();
    if (children[i] == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL); /* where the parent fails */
      pause();
      _exit(0);
    }
  }
  stopping = 1;
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  for (int i = 0; i < forks; ++i) {
    kill(children[i], SIGKILL);
    waitpid(children[i], NULL, 0);
  }
}

/* CUDA does not survive a fork: calls say so, handles can be destroyed, the CPU can be used, and the parent is not
 * disturbed. */
static void fork_beside_gpu(int forks) {
  set gpu;
  if (api->device_count() == 0) {
    printf("skipped\n");
    exit(0);
  }
  gpu.context = new_context(SPARSEK_CUDA);
  gpu.matrix = new_matrix(gpu.context);
  gpu.plan = new_plan(gpu.matrix);
  void *device_b, *device_c;
  sparsek_stream stream;
  NEED(api->buffer_create(gpu.context, sizeof(b), &device_b));
  NEED(api->buffer_create(gpu.context, sizeof(want), &device_c));
  NEED(api->stream_create(gpu.context, &stream));
  NEED(api->buffer_write(gpu.context, device_b, b, sizeof(b), stream));
  const sparsek_multiply_args product = {
      .abi_size = sizeof(product), .alpha = 1, .b = device_b, .c = device_c, .stream = stream};
  float* const c = malloc(sizeof(want));
  for (int i = 0; i < forks; ++i) {
    NEED(api->multiply(gpu.plan, &product));
    const pid_t child = fork();
    if (child == 0) {
      alarm(kPatience);
      EXPECT(api->multiply(gpu.plan, &product) == SPARSEK_CUDA_ERROR && strstr(api->last_error(), "forked") != NULL);
      EXPECT(api->buffer_read(gpu.context, c, device_c, sizeof(want), stream) == SPARSEK_CUDA_ERROR);
      EXPECT(api->stream_synchronize(gpu.context, stream) == SPARSEK_CUDA_ERROR);
      EXPECT(api->matrix_set_values(gpu.matrix, values, SPARSEK_HOST, stream) == SPARSEK_CUDA_ERROR);
      sparsek_plan_info info = {.abi_size = sizeof(info)};
      EXPECT(api->plan_info(gpu.plan, &info) == SPARSEK_CUDA_ERROR);
      const sparsek_context_options cuda = {.abi_size = sizeof(cuda), .backend = SPARSEK_CUDA};
      sparsek_context* another = NULL;
      EXPECT(api->context_create(&cuda, &another) == SPARSEK_CUDA_ERROR && strstr(api->last_error(), "forked") != NULL);
      EXPECT(api->device_count() == 0);
      another = new_context(SPARSEK_AUTO);
      sparsek_context_info chosen = {.abi_size = sizeof(chosen)};
      NEED(api->context_info(another, &chosen));
      EXPECT(chosen.backend == SPARSEK_CPU && strstr(chosen.reason, "forked") != NULL);
      api->context_destroy(another);
      in_contexts(c);
      NEED(api->stream_destroy(gpu.context, stream));
      NEED(api->buffer_destroy(gpu.context, device_c));
      destroy(gpu);
      exit(0); /* with the destructors of all libraries */
    }
    await(child);
    NEED(api->buffer_read(gpu.context, c, device_c, sizeof(want), stream));
    NEED(api->stream_synchronize(gpu.context, stream));
    EXPECT(memcmp(c, want, sizeof(want)) == 0);
  }
  NEED(api->stream_destroy(gpu.context, stream));
  NEED(api->buffer_destroy(gpu.context, device_b));
  NEED(api->buffer_destroy(gpu.context, device_c));
  destroy(gpu);
  free(c);
}

int main(int argc, char** argv) {
  void* const library = argc < 4 ? NULL : dlopen(argv[1], RTLD_NOW);
  if (library == NULL) {
    printf("%s\n", argc < 4 ? "too few arguments" : dlerror());
    return 1;
  }
  api = ((const sparsek_api* (*)(int32_t))dlsym(library, "sparsek_get_api"))(SPARSEK_ABI_VERSION);
  for (int i = 0; i <= kBlockRows; ++i) row_ptr[i] = i * kInRow;
  for (int i = 0; i < kBlocks; ++i) col_idx[i] = i % kInRow * 10 + i / kInRow % 10;
  for (int i = 0; i < kBlocks * kBlock * kBlock; ++i) values[i] = (float)(i % 7 - 3);
  for (int i = 0; i < kCols * kN; ++i) b[i] = (float)(i % 5 - 2);
  /* All sums are small integers, so that every order of summation gives the same. */
  for (int i = 0; i < kRows; ++i) {
    for (int e = row_ptr[i / kBlock]; e < row_ptr[i / kBlock + 1]; ++e) {
      for (int k = 0; k < kBlock; ++k) {
        const float a = values[(e * kBlock + i % kBlock) * kBlock + k];
        for (int j = 0; j < kN; ++j) want[i * kN + j] += a * b[(col_idx[e] * kBlock + k) * kN + j];
      }
    }
  }
  const int forks = atoi(argv[3]);
  if (strcmp(argv[2], "gpu") == 0) {
    fork_beside_gpu(forks);
    return 0;
  }
  shared = new_set();
  float* const c = malloc(sizeof(want));
  multiply(shared.plan, c); /* so that helpers are there */
  free(c);
  if (strcmp(argv[2], "lock") == 0) {
    fork_beside_lock(forks);
    return 0;
  }
  for (size_t i = 0; i < sizeof(kCases) / sizeof(*kCases); ++i) {
    if (strcmp(argv[2], kCases[i].name) != 0) continue;
    fork_beside(kCases[i].work, forks);
    return 0;
  }
  printf("there is no case %s\n", argv[2]);
  return 1;
}
