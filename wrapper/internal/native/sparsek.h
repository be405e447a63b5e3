/* SPDX-License-Identifier: Apache-2.0
 *
 * sparsek: products of block-sparse and dense matrices on NVIDIA Hopper, with a CPU back-end.
 *
 *     C = act(alpha * A * B + beta * C + bias)        A: M x K in BSR,  B: K x N dense,  C: M x N dense
 *
 * and the other products that training needs, see sparsek_op; and attention over a block-sparse layout, see
 * sparsek_attention_options.
 *
 * Products are summed in fp32, and the epilogue is computed in fp32, in the order above. The result is rounded once, to
 * C's type, which may differ from the type of A and B. Where B is of fp64, all of that is in fp64. A may be of a
 * narrower type than B: of bf16 or fp16 with a B of fp32, and of any other type with a B of fp64. act is none, ReLU,
 * GELU or SiLU. With factors in device memory (alpha_device, beta_device), alpha and beta are first multiplied by them
 * in fp32.
 *
 * Layouts
 *   A   block compressed sparse row (BSR), blocks of bm x bk. row_ptr has ceil(M/bm) + 1 entries, col_idx has
 *       nnzb entries (block columns, strictly increasing within a block row, see SPARSEK_BSR_SORT), values holds nnzb
 *       dense blocks one after the other (see block_idx), each row-major (bm, bk):(bk, 1). Where M or K is not a
 *       multiple of the block, the last blocks extend beyond A. Their values beyond row M are never used, except that
 *       they must be zero where A is transposed; those beyond column K must be zero.
 *   B, C, X   dense, row-major (rows, columns):(ld, 1) or column-major (rows, columns):(1, ld), see sparsek_order
 *   bias of C's type: one value for each row of C, or for each column
 *   Leading dimensions count elements.
 *
 * An absent block takes no part in the product: NaN or Inf in elements of B that no block reads never reaches C. Every
 * activation, ReLU too, maps NaN to NaN, Inf to Inf, and -Inf to its limit there, 0 or -0.
 *
 * The library exports one symbol, sparsek_get_api. Everything else is reached through the table that it returns,
 * so that an application may open the library at run time and check its version once.
 *
 * Errors: each function that returns sparsek_status leaves a message for the calling thread, to be read with
 * last_error() before the next call of that thread. No C++ exception leaves the library.
 *
 * Threads: handles may be used from several threads at once, except that destroying a handle must not race with
 * its use. Each call sets the device it needs and restores the one it found.
 *
 * Device memory is that of the context's GPU, or any that this GPU may use as things are: managed memory, host memory
 * that is pinned for CUDA, and memory of another GPU to which the application has enabled peer access or for which it
 * has mapped it. The library enables no peer access itself, since that holds for the whole process. Memory that the GPU
 * may not use: SPARSEK_WRONG_MEMORY. Managed and pinned memory may be given as host memory too.
 *
 * Forks: the child of a fork may use the library and its handles on the CPU, also where other threads of the parent
 * were within calls; what they were to change or destroy may be either. CUDA works in the parent only: in the child of
 * a process that used a GPU, calls that need it return SPARSEK_CUDA_ERROR, SPARSEK_AUTO is the CPU, and destroying a
 * handle of the GPU does nothing.
 *
 * Versions: a struct's first member abi_size is set by the caller to sizeof(the struct) as compiled; the library
 * reads (and writes) no more than that, so that members can be added at the end. Members that the library does not
 * know, and those that are reserved, must be 0 in structs that it reads: SPARSEK_BAD_ABI_SIZE, SPARSEK_BAD_ARGUMENT.
 *
 * CUDA graphs: while a stream is being captured, in whatever mode, every function may be called, on the thread that
 * captures and on others, and none spoils the capture. Work that is put into the captured stream (multiply,
 * plan_update, plan_write, plan_run, matrix_set_values, buffer_write, buffer_read, buffer_fill, and all from
 * pattern_from_mask on) becomes part of the graph; all other work runs at once and is no part of it. Functions that
 * would wait for the captured stream (stream_synchronize, stream_query, multiply_time, dense_time), and a matrix whose
 * index is to be read in it, return SPARSEK_BAD_ARGUMENT. While a stream that waits for the default stream is being
 * captured, CUDA forbids the use of the default stream: what is given a null stream returns SPARSEK_CUDA_ERROR. Plans
 * of kernels of other libraries capture what those libraries can have captured.
 *
 * Lifetime on the GPU: plan_destroy and matrix_destroy wait for no product. What products that were enqueued before
 * still read is given back when they have ended; the streams that they are in may be destroyed before or afterwards. A
 * plan with a product or an update in a graph, or one that keeps values (plan_info.kept_bytes) which a graph sets, is
 * an exception: destroying it waits for the device, no execution of the graph may begin from then on, and the same
 * holds for its matrix. Memory that was used in streams of the application is kept, up to 64 MiB, until the application
 * names the stream again; beyond that the call that destroys waits for the device.
 */
#ifndef SPARSEK_H_
#define SPARSEK_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define SPARSEK_EXPORT __attribute__((visibility("default")))
#else
#define SPARSEK_EXPORT
#endif

/* Raised when the table or a struct changes in a way that abi_size cannot show. */
#define SPARSEK_ABI_VERSION 1

typedef enum sparsek_status {
  SPARSEK_OK = 0,
  /* faults of the call */
  SPARSEK_NULL_POINTER = 1,          /* a pointer that must not be null is */
  SPARSEK_BAD_ABI_SIZE = 2,          /* this library does not know this abi_size */
  SPARSEK_BAD_SIZE = 3,              /* a negative, zero or overflowing extent */
  SPARSEK_BAD_ARGUMENT = 4,          /* an enumeration value or combination that does not exist */
  SPARSEK_BAD_LEADING_DIMENSION = 5, /* ldb, ldc or ldc_in below n, or not what the plan's kernel takes */
  SPARSEK_MISALIGNED = 6,            /* a pointer below the alignment that the kernel or the type needs */
  SPARSEK_WRONG_MEMORY = 7,          /* a device pointer given as host memory, or the other way round */
  /* faults of the BSR index */
  SPARSEK_ROW_PTR_START = 10, /* row_ptr[0] is not 0 */
  SPARSEK_ROW_PTR_NOT_MONOTONE = 11,
  SPARSEK_ROW_PTR_END = 12, /* row_ptr[last] is not nnzb */
  SPARSEK_COL_IDX_RANGE = 13,
  SPARSEK_COL_IDX_UNSORTED = 14,
  SPARSEK_COL_IDX_REPEATED = 15,
  SPARSEK_BLOCK_IDX_RANGE = 16, /* block_idx names a block that values does not have */
  SPARSEK_OVER_CAPACITY = 17,   /* an index that is made has more blocks than there is room for */
  /* what this build or machine cannot do */
  SPARSEK_UNSUPPORTED_DTYPE = 20,
  SPARSEK_UNSUPPORTED_BLOCK = 21,
  SPARSEK_NO_SUCH_KERNEL = 22, /* a kernel asked for by name does not exist or does not serve the case */
  SPARSEK_NO_DEVICE = 23,      /* no CUDA driver, no GPU, or none of compute capability 9.0 */
  SPARSEK_NO_LIBRARY = 24,     /* a library that is opened at run time was not found; the message says where it was
                                  searched for */
  /* the machine */
  SPARSEK_OUT_OF_MEMORY = 30, /* host or device; the message says which */
  SPARSEK_CUDA_ERROR = 31,    /* a CUDA call failed; the message names it and its code */
  SPARSEK_INTERNAL = 32,
  SPARSEK_IO_ERROR = 33, /* a file cannot be read or written; the message names it */
  /* what a check found */
  SPARSEK_CHECK_FAILED = 40,
  /* no fault */
  SPARSEK_NOT_READY = 50 /* not known yet: ask again, or wait */
} sparsek_status;

typedef enum sparsek_dtype {
  SPARSEK_BF16 = 1,
  SPARSEK_FP16 = 2,
  SPARSEK_FP32 = 3,
  SPARSEK_FP64 = 4, /* of A; where B is of it, C and the bias are too, and only then */
  /* OCP FP8 E4M3: no Inf, NaN is 0x7f and 0xff, 448 is the largest. Of Q, K and V of attention's forward pass alone. */
  SPARSEK_E4M3 = 5
} sparsek_dtype;
typedef enum sparsek_index_type { SPARSEK_INT32 = 1, SPARSEK_INT64 = 2, SPARSEK_INT16 = 3 } sparsek_index_type;
typedef enum sparsek_memory { SPARSEK_HOST = 1, SPARSEK_DEVICE = 2 } sparsek_memory;
typedef enum sparsek_backend { SPARSEK_AUTO = 0, SPARSEK_CPU = 1, SPARSEK_CUDA = 2 } sparsek_backend;
typedef enum sparsek_bias {
  SPARSEK_BIAS_NONE = 0,
  SPARSEK_BIAS_ROW = 1,   /* (M): one value for each row of C */
  SPARSEK_BIAS_COLUMN = 2 /* (N): one value for each column of C */
} sparsek_bias;
typedef enum sparsek_activation {
  SPARSEK_ACTIVATION_NONE = 0,
  SPARSEK_ACTIVATION_RELU = 1, /* max(x, 0) */
  SPARSEK_ACTIVATION_GELU = 2, /* x Phi(x) = x / 2 (1 + erf(x / sqrt 2)), not its approximation by tanh */
  SPARSEK_ACTIVATION_SILU = 3  /* x / (1 + exp(-x)) */
} sparsek_activation;

/* The product of a plan. A is M x K, n is options->n. */
typedef enum sparsek_op {
  SPARSEK_DSD = 0,   /* C = act(alpha A B + beta C + bias): B is K x n, C is M x n */
  SPARSEK_DSD_T = 1, /* C = act(alpha A^T B + beta C + bias): B is M x n, C is K x n */
  /* The blocks of act(alpha X B + beta C), where A has blocks: X is M x n, B is n x K. C is the blocks, (nnzb, bm, bk),
   * in the places that A's values have (block_idx), of A's type or options->dtype_c. What a block has beyond row M or
   * column K becomes 0. A's values are not used, and no entries of block_idx may be equal. There is no bias. */
  SPARSEK_SDD = 2,
  SPARSEK_DDS = 3,  /* C = act(alpha B A + beta C + bias): B is n x M, C is n x K */
  SPARSEK_DDS_T = 4 /* C = act(alpha B A^T + beta C + bias): B is n x K, C is n x M */
} sparsek_op;
/* The order of a dense operand's elements. */
typedef enum sparsek_order {
  SPARSEK_ROW_MAJOR = 0,   /* (rows, columns):(ld, 1) */
  SPARSEK_COLUMN_MAJOR = 1 /* (rows, columns):(1, ld) */
} sparsek_order;
/* Operands that a plan's products copy: bits of sparsek_plan_info.copies. B is copied to another order first, C to or
 * from another one, and A's blocks are transposed. Of SPARSEK_SDD on a GPU, B is also one whose rows or columns are not
 * aligned; a copy of X has no bit. */
typedef enum sparsek_copies { SPARSEK_COPIES_B = 1, SPARSEK_COPIES_C = 2, SPARSEK_COPIES_A = 4 } sparsek_copies;
/* How products of elements of A and B are computed. */
typedef enum sparsek_compute {
  /* Each product exactly, sums in fp32. Products of fp32, which have 48 bits, may be off by a rounding to fp32. Of
   * fp64, products and sums are rounded to fp64. */
  SPARSEK_COMPUTE_EXACT = 0,
  /* For A and B of fp32: elements of A and B may be rounded to TF32, which has 10 bits of fraction, before they are
   * multiplied; plan_info.product_roundoff says what that costs. So do kernels of GPUs for blocks of 64 or a multiple
   * of 128 rows and a multiple of 32 columns; all others, and the CPU back-end, compute as for EXACT. */
  SPARSEK_COMPUTE_TF32 = 1
} sparsek_compute;
/* Bits of sparsek_bsr.flags. */
typedef enum sparsek_bsr_flag {
  /* Block rows may be unsorted: their columns are sorted while they are copied, and the blocks of values stay where
   * they are. */
  SPARSEK_BSR_SORT = 1,
  SPARSEK_BSR_ASYNC = 2, /* of device arrays: matrix_create and plan_create wait for nothing, see matrix_create */
  /* nnzb is an upper bound: the last element of row_ptr says how many blocks there are, and col_idx and values have
   * room for nnzb. Of device arrays, kernels of other libraries do not serve such a matrix. */
  SPARSEK_BSR_BOUND = 4,
  /* A promise: the matrix's values in device memory change by matrix_set_values alone, and not by writes to the array.
   * So plans keep them packed, as they do copies of host values, see plan_create. After a write to the array,
   * matrix_set_values with its address packs them again. Not with SPARSEK_BSR_ASYNC: SPARSEK_BAD_ARGUMENT. The CPU
   * back-end packs nothing, so the flag changes nothing there. */
  SPARSEK_BSR_FROZEN = 8
} sparsek_bsr_flag;
/* Bits of sparsek_plan_options.flags. */
typedef enum sparsek_plan_flag {
  SPARSEK_OWN_KERNELS = 1,   /* no kernel of another library */
  SPARSEK_NO_USER_CACHE = 2, /* the user's tuning cache is neither read nor written */
  /* Columns of C have the same bits however many there are: the plans of one matrix use the same kernel and the same
   * order of sums for every n, stride and alignment that this kernel serves; for others, as n above 65536 may be, they
   * use another one. The kernel is one of the library's own, which is chosen by the cost model for 1024 columns, or
   * named; no tiles are split or shared. tuning_seconds must be 0, and a tuner refuses it. Where B holds Inf or NaN,
   * sums near them may be computed in another order. */
  SPARSEK_BATCH_INVARIANT = 4
} sparsek_plan_flag;
/* Bits of sparsek_multiply_args.flags. */
typedef enum sparsek_multiply_flag {
  SPARSEK_TRUSTED = 1 /* the driver is not asked in which memory pointers lie: a wrong one is a fault of the GPU */
} sparsek_multiply_flag;

/* How a plan's kernel was chosen. */
typedef enum sparsek_chosen_by {
  SPARSEK_CHOSEN_BY_NAME = 1,  /* options->kernel */
  SPARSEK_CHOSEN_BY_MODEL = 2, /* predicted to be the fastest */
  SPARSEK_CHOSEN_BY_CACHE = 3, /* a similar product was measured before, on this machine or another */
  SPARSEK_CHOSEN_BY_TABLE = 4, /* a similar product was measured before the library was shipped */
  SPARSEK_CHOSEN_BY_TUNING = 5 /* measured for this plan */
} sparsek_chosen_by;
typedef enum sparsek_tuning_source {
  SPARSEK_TUNING_FILE = 0,   /* a file; without a path, the user's */
  SPARSEK_TUNING_SHIPPED = 1 /* the records that ship with the library */
} sparsek_tuning_source;
typedef enum sparsek_tuning_state {
  SPARSEK_TUNING_ABSENT = 0,    /* there is no file */
  SPARSEK_TUNING_WHOLE = 1,     /* no fault */
  SPARSEK_TUNING_DAMAGED = 2,   /* some lines are not entries; the others were read */
  SPARSEK_TUNING_FOREIGN = 3,   /* not a tuning cache, or one of another version: no entries */
  SPARSEK_TUNING_UNREADABLE = 4 /* not a regular file, or one that cannot be read: no entries */
} sparsek_tuning_state;

/* Bits of sparsek_pattern_args.flags. */
typedef enum sparsek_pattern_flag {
  SPARSEK_PATTERN_BITS = 1 /* a mask has a bit for each block: block 8 i + j of a row is bit j of byte i */
} sparsek_pattern_flag;
/* Of a block's elements x. */
typedef enum sparsek_norm {
  SPARSEK_NORM_MAX = 0, /* max |x| */
  SPARSEK_NORM_L1 = 1,  /* sum |x| */
  SPARSEK_NORM_L2 = 2   /* sqrt(sum x^2), Frobenius */
} sparsek_norm;

/* Bits of sparsek_attention_options.flags: which keys a query sees, see there, and what order sums have. */
typedef enum sparsek_attention_flag {
  SPARSEK_ATTENTION_RIGHT = 1,      /* none behind p + window_right; with window_right = 0: causal attention */
  SPARSEK_ATTENTION_LEFT = 2,       /* none before p - window_left */
  SPARSEK_ATTENTION_ALIGN_ENDS = 4, /* the last query is at the last key: p = i + length_k - length_q, else p = i */
  /* The backward pass may add the parts of the gradient of Q in any order: faster on a GPU, with more workspace; its
   * last bits then differ from call to call. */
  SPARSEK_ATTENTION_ANY_ORDER = 8
} sparsek_attention_flag;
/* What a check of attention compares: sparsek_attention_check_args.output. */
typedef enum sparsek_attention_output {
  SPARSEK_ATTENTION_O = 0,
  SPARSEK_ATTENTION_LSE = 1,
  SPARSEK_ATTENTION_GRAD_Q = 2,
  SPARSEK_ATTENTION_GRAD_K = 3,
  SPARSEK_ATTENTION_GRAD_V = 4,
  SPARSEK_ATTENTION_MASS = 5,
  SPARSEK_ATTENTION_GRAD_BIAS = 6
} sparsek_attention_output;

typedef struct sparsek_context sparsek_context;     /* a back-end and its device */
typedef struct sparsek_matrix sparsek_matrix;       /* a BSR matrix, index checked, values in the back-end's memory */
typedef struct sparsek_plan sparsek_plan;           /* how one pattern is multiplied: kernel and work list */
typedef struct sparsek_tuner sparsek_tuner;         /* candidates for a plan, under measurement */
typedef struct sparsek_attention sparsek_attention; /* how attention over one layout is computed */
typedef void* sparsek_stream;                       /* a cudaStream_t; null is the default stream; ignored on the CPU */
typedef struct sparsek_tuning_cache sparsek_tuning_cache; /* a tuning cache as it was when it was opened */
typedef struct sparsek_sm_hold sparsek_sm_hold;           /* SMs of a GPU that nothing else runs on */

/* What the library is made of. Strings live as long as the library. */
typedef struct sparsek_build_info {
  size_t abi_size;
  const char* version;  /* of sparsek, semantic */
  const char* cutlass;  /* version and commit */
  const char* cuda;     /* nvcc's version, empty in a build without CUDA */
  const char* compiler; /* of the host code */
  const char* commit;   /* of the source tree, with the suffix "-dirty" where it was changed; empty if unknown */
} sparsek_build_info;

/* One kernel of the list cutlass_ext/kernels.json, a CPU one, or one of another library. */
typedef struct sparsek_kernel_info {
  size_t abi_size;
  const char* name;
  const char* why;                /* the case for which it exists */
  int32_t backend;                /* sparsek_backend */
  int32_t dtype;                  /* sparsek_dtype of A and B; 0: every one, or with a library: those that it serves */
  int32_t tile_m, tile_n, tile_k; /* these and stages: 0 where another library chooses them */
  int32_t stages;
  int32_t block_m;          /* block heights served: this one, 0: every one */
  int32_t block_m_multiple; /* 1: every multiple of block_m too */
  int32_t block_k_multiple; /* block widths served: multiples of this */
  int32_t baseline;         /* 1: a baseline for comparisons; where library is not "", see allow_dense */
  const char* library;      /* "", or "cuBLAS" or "cuSPARSE": opened when it is first needed, see dense_time */
  int32_t reads_absent;     /* 1: multiplies absent blocks as zeros; runs only with options->allow_dense */
  int32_t reserved;
  int32_t dtype_b; /* sparsek_dtype of B, where it is wider than A's; dtype is then A's alone. 0: the same */
  int32_t reserved2;
} sparsek_kernel_info;

typedef struct sparsek_device_info {
  size_t abi_size;
  char name[256];
  int32_t compute_major, compute_minor;
  int32_t sm_count;
  int64_t memory_bytes, l2_bytes;
  int32_t driver_version; /* of the CUDA driver API, 13000 = 13.0 */
  int32_t usable;         /* 1 where the CUDA back-end runs on it */
  int64_t clock_hz;       /* of the SMs, the highest; 0 where the driver does not report it */
} sparsek_device_info;

typedef struct sparsek_context_options {
  size_t abi_size;
  int32_t backend; /* sparsek_backend; AUTO: a Hopper GPU if there is one, else the CPU */
  int32_t device;  /* CUDA device ordinal */
  int32_t threads; /* of the CPU back-end; 0: one for each core this process may use */
  /* The application's allocator of device memory, for the matrices and plans of the CUDA back-end and the workspaces of
   * their products; null: a pool of the library's. Either both or none. What buffer_create, tuning and products in
   * graphs take is not of it. allocate: `bytes` bytes of that device, at a multiple of 256, for work that is put into
   * the stream from now on; null where there are none, which becomes SPARSEK_OUT_OF_MEMORY. release: they are no longer
   * used when what is in the stream by now has ended. Both are called by any thread that calls the library, at once by
   * several, with the device as the current one and never with a stream that is captured; release also while another
   * stream is captured, and where a context is destroyed. They must not call the library. */
  void* (*allocate)(void* user, size_t bytes, int32_t device, sparsek_stream stream);
  void (*release)(void* user, void* memory, size_t bytes, int32_t device, sparsek_stream stream);
  void* user; /* given to both */
} sparsek_context_options;

typedef struct sparsek_context_info {
  size_t abi_size;
  int32_t backend; /* SPARSEK_CPU or SPARSEK_CUDA */
  int32_t device;
  int32_t threads;
  int32_t gpu_fault;  /* 1: AUTO gave the CPU although there is an NVIDIA driver; reason says what is wrong with it */
  const char* reason; /* why this back-end; lives as long as the context */
  const char* isa;    /* CPU: the vector instructions in use, "avx512", "avx2" or "generic" */
} sparsek_context_info;

/* A BSR matrix as the caller has it. */
typedef struct sparsek_bsr {
  size_t abi_size;
  int64_t rows, cols;       /* M, K */
  int64_t block_m, block_k; /* bm, bk */
  int64_t nnzb;
  int32_t dtype;       /* sparsek_dtype of values */
  int32_t index_type;  /* sparsek_index_type of row_ptr, col_idx and block_idx */
  int32_t memory;      /* sparsek_memory of all arrays */
  int32_t reserved;    /* 0; 1 is accepted, and has no effect. The index is checked wherever it lies */
  const void* row_ptr; /* (ceil(M/bm) + 1) */
  const void* col_idx; /* (nnzb) */
  const void* values;  /* (nnzb, bm, bk); null: given later, with matrix_set_values or with each product */
  /* (nnzb), of index_type: which block of values each entry of col_idx names, below nnzb. null: 0, 1, ... */
  const void* block_idx;
  /* Device arrays are read in the order of this stream; null: the default stream. Host arrays are read before
   * matrix_create returns. */
  sparsek_stream stream;
  int32_t flags; /* of sparsek_bsr_flag */
  int32_t reserved2;
} sparsek_bsr;

typedef struct sparsek_plan_options {
  size_t abi_size;
  /* The extent of the dense operands that A does not have, see sparsek_op: of SPARSEK_DSD the columns of B and C. The
   * most that a product may have. */
  int64_t n;
  /* Of products that give none; 0: without gaps between rows, or columns. The kernel is chosen for them, see
   * multiply_args. Of SPARSEK_SDD ldc is 0. */
  int64_t ldb, ldc;
  int32_t alignment; /* bytes to which B's and C's addresses will be aligned, if not to a larger element; 0: 16 */
  int32_t reserved;
  const char* kernel; /* a kernel's name, or null: chosen by the library, see plan_create */
  /* The epilogue; all 0: alpha A B + beta C, of B's type. */
  int32_t dtype_c;    /* sparsek_dtype of C and the bias; 0: B's */
  int32_t bias;       /* sparsek_bias */
  int32_t activation; /* sparsek_activation */
  int32_t reserved2;
  /* 1: absent blocks may be multiplied as zeros. Where B holds Inf or NaN, an element of C may then be NaN although
   * none of its blocks reads them: the caller accepts that, or knows that B is finite. Without this, a kernel of
   * another library is chosen only where it is named or tuned for. */
  int32_t allow_dense;
  int32_t reserved3;
  double tuning_seconds;    /* above 0: measure for about this long, unless a similar product is known */
  int32_t op;               /* sparsek_op */
  int32_t order_b, order_c; /* sparsek_order of B and C; of SPARSEK_SDD order_c is 0 */
  int32_t compute;          /* sparsek_compute */
  int32_t flags;            /* of sparsek_plan_flag */
  /* The most CTAs (on the CPU: threads) that a product uses, so that SMs stay free for other work; 0: all. Kernels of
   * other libraries use all. With a limit, measurements of other plans choose no kernel, and a tuner stores none. */
  int32_t workers;
  /* 1: a promise that no kernel which is before a product in its stream, and may still run when the product is about to
   * begin, writes A's values. So they are not computed in that stream shortly before. A product of few columns then
   * loads its first blocks while the kernel before it ends, which saves some tenths of a microsecond. Copies of values
   * (matrix_set_values) break no promise: products begin behind them. */
  int32_t values_static;
  int32_t alignment_c; /* like alignment, of C alone; alignment is then B's. 0: alignment */
  /* Of X, as ldb and order_b; 0 unless op is SPARSEK_SDD. */
  int64_t ldx;
  int32_t order_x;
  int32_t reserved5;
  /* sparsek_dtype of B; 0: the matrix's. Where it is wider, elements of A are multiplied as they are, and products are
   * summed in B's type. SPARSEK_UNSUPPORTED_DTYPE where it is another and not wider, or for another op or order than 0.
   */
  int32_t dtype_b;
  int32_t reserved4;
} sparsek_plan_options;

typedef struct sparsek_plan_info {
  size_t abi_size;
  const char* kernel;                     /* lives as long as the plan */
  const char* reason;                     /* why this kernel */
  int32_t tile_m, tile_n, tile_k, stages; /* these, tiles and entries: 0 where another library chooses them */
  int64_t tiles;                          /* CTA tiles of C (CPU: tasks); a tile that is split counts as its parts */
  /* Loads of a block row of B, summed over the row groups. plan_describe: -1 where only the device knows. */
  int64_t entries;
  /* Device memory: what the plan holds, alone or shared with other plans of its matrix, and the workspace of one
   * product. */
  int64_t workspace_bytes;
  double unit_roundoff; /* of one accumulation step of this kernel: the u of the error bound */
  /* Slabs of 16 rows x tile_n of which sums were computed again since the plan was made, because one was NaN or, with
   * fp32, Inf: 0 where operands and sums are finite. Where several CTAs share a tile, each part of a slab may count.
   * Where the plan was in use, reading this waits for the device. */
  int64_t recomputed;
  int32_t chosen_by; /* sparsek_chosen_by */
  int32_t reserved;
  double predicted_seconds; /* of one product, by the cost model; 0: it does not cover this kernel, or was not used */
  double measured_seconds;  /* of one product when it, or a similar one, was measured; 0: none was */
  const char* warning;      /* about the tuning cache: what is wrong with its file, or "". Lives like reason */
  /* A hash of the work list, computed when it is read: two plans of one kernel with the same digest do the same work in
   * the same order. 0 where another library chooses. A caller whose abi_size ends before it does not wait for it. */
  uint64_t digest;
  int64_t product_bytes; /* device memory: the workspace of one product; 0: it needs none */
  /* How far the product of two elements may be off, as a share of it, before it is summed up: the p of the error bound.
   * 0 unless the kernel rounds elements of A and B first, see SPARSEK_COMPUTE_TF32. */
  double product_roundoff;
  /* Of sparsek_copies: which operands each product copies to or from another order, since the kernel cannot take them
   * as they lie. */
  int32_t copies;
  int32_t reserved2;
  /* Device memory, part of workspace_bytes: A's values as the kernel reads them, which the plan keeps, alone or with
   * other plans of its matrix, see plan_create; 0: none. */
  int64_t kept_bytes;
} sparsek_plan_info;

/* How plans are tuned. */
typedef struct sparsek_tuner_options {
  size_t abi_size;
  double seconds; /* budget; each candidate that may be the fastest is measured at least once */
  int32_t all;    /* 1: measure every candidate that can compute the product, however slow its prediction */
  int32_t reserved;
} sparsek_tuner_options;

/* One candidate of a tuner. Strings live until the tuner's next step. */
typedef struct sparsek_candidate_info {
  size_t abi_size;
  const char* kernel;
  const char* note; /* why it is not measured, or no longer; "" where it is */
  int32_t serves;   /* 0: it cannot compute this product, and note says why */
  int32_t best;     /* 1: the winner so far */
  int32_t runs;     /* products that were timed */
  int32_t reserved;
  double predicted_seconds; /* by the cost model; 0: it does not cover this kernel */
  double seconds;           /* median of the runs; 0 where there are none */
  double spread;            /* distance of the quartiles as a share of the median */
  double setup_seconds;     /* cost of new values beyond their copy, where the kernel needs its own layout */
} sparsek_candidate_info;

typedef struct sparsek_multiply_args {
  size_t abi_size;
  float alpha, beta; /* finite; beta = 0: C and c_in are not read */
  /* Of the sizes that sparsek_op says and the planned order, of the planned type, in the back-end's memory; must not
   * overlap C. */
  const void* b;
  /* At least the length of a row, or of a column where they are column-major; 0: the planned one. One that was planned
   * for, or any other. But where the planned ldb and alignment are multiples of 16 bytes, ldb must be too, if the
   * kernel needs that: SPARSEK_BAD_LEADING_DIMENSION says so. */
  int64_t ldb;
  void* c;     /* of the planned type, in the back-end's memory */
  int64_t ldc; /* as ldb; of SPARSEK_SDD 0 */
  sparsek_stream stream;
  /* One value for each row or column of C, as planned, of C's type, in the back-end's memory; null where the plan has
   * none. */
  const void* bias;
  /* (nnzb, bm, bk), of the matrix's type, in the back-end's memory, with the alignment that the kernel needs; null: the
   * matrix's. The matrix does not keep them, so products with values of their own may run at once. For kernels of other
   * libraries that need A in another layout, each such product lays them out, in memory of its own. Null for
   * SPARSEK_SDD. */
  const void* values;
  int64_t n; /* of this product, 1 to the planned one; 0: the planned one */
  /* What beta is multiplied with in place of C: of C's sizes, order and type, in the back-end's memory. It may be C,
   * and must not overlap it else. null: C. Baselines and kernels of other libraries copy it to C first, and refuse one
   * row for all rows. */
  const void* c_in;
  int64_t ldc_in; /* as ldc; 0: ldc; -1: c_in is one row for all rows of C, its elements one after the other */
  /* One number each, in the back-end's memory, finite, read when the product runs: alpha and beta are multiplied with
   * them, in fp32. null: 1. With beta = 0, C is not read whatever beta_device holds. Baselines and kernels of other
   * libraries refuse them (SPARSEK_BAD_ARGUMENT). */
  const float *alpha_device, *beta_device;
  /* Device memory, aligned to 256 bytes, of at least plan_info.product_bytes, for this product alone until it has
   * ended. null: from a pool of the context. The CPU back-end uses none. */
  void* workspace;
  size_t workspace_bytes;
  /* Bytes of memory from b and from c on: SPARSEK_BAD_SIZE where they are too few for the operand. 0: not checked.
   * Where they are given, ldb or ldc = 0 stands for a planned one without gaps between rows alone. */
  int64_t bytes_b, bytes_c;
  int32_t dtype_b; /* sparsek_dtype of B, which must be the planned one; 0: not checked */
  int32_t flags;   /* of sparsek_multiply_flag */
  /* Products, which run one after the other; 0 and 1: one, and the strides are not used. Above 1: not for multiply_time
   * and graph_time. */
  int32_t batch;
  int32_t reserved;
  /* Elements from one product of a batch to the next, at least 0; c_in moves as c does, unless it is one row. What a
   * product reads must not be written by another one. */
  int64_t stride_b, stride_c, stride_values, stride_bias;
  /* X of SPARSEK_SDD, as b, ldb, bytes_b and stride_b; 0 for others. */
  const void* x;
  int64_t ldx, bytes_x, stride_x;
} sparsek_multiply_args;

/* A plan as plain data: what plan_measure found, to be copied at will, also into another process with the same library
 * and a GPU of the same kind. */
typedef struct sparsek_plan_layout {
  size_t abi_size;
  int64_t bytes;           /* of the plan's memory, which is the caller's */
  int64_t workspace_bytes; /* of a product; 0: it needs none */
  int32_t alignment;       /* of that memory, in bytes */
  int32_t reserved;
  uint64_t header[48]; /* the library's */
} sparsek_plan_layout;

/* An index that a function makes, and what it makes it of: see pattern_from_mask and those behind it, which say what
 * they read. Members that a function does not read must be 0. */
typedef struct sparsek_pattern_args {
  size_t abi_size;
  /* The index: block columns are strictly increasing within a block row. */
  int64_t rows, cols;       /* M, K */
  int64_t block_m, block_k; /* bm, bk */
  int64_t capacity;         /* blocks that col_idx, block_idx, row_idx and values have room for */
  int32_t dtype;            /* sparsek_dtype of values; 0 where they are null */
  int32_t index_type;       /* sparsek_index_type of row_ptr, col_idx, block_idx, row_idx and bins */
  int32_t memory;           /* sparsek_memory of all arrays, those that are read too */
  int32_t flags;            /* of sparsek_pattern_flag */
  void* row_ptr;            /* (ceil(M/bm) + 1) */
  void* col_idx;            /* (capacity) */
  void* values;             /* (capacity, bm, bk) */
  void* block_idx;          /* (capacity) */
  void* row_idx;            /* (capacity): the block row of each entry, as of a matrix in COO */
  int64_t* blocks;          /* (1): the blocks that there are, also above the capacity; may be null */
  /* (1): 0; or a status in the lowest 8 bits and above them the place of a fault. SPARSEK_OVER_CAPACITY (place 0): the
   * index has the first `capacity` blocks, in the order of rows and columns, and none was written beyond. All other
   * faults: the index has no blocks. */
  int64_t* fault;
  sparsek_stream stream; /* ignored with SPARSEK_HOST */
  /* What it is made of. */
  const void* source;
  int64_t ld;                /* elements from one row (or column) of source to the next; 0: without gaps */
  int32_t source_dtype;      /* sparsek_dtype of source, where its elements are numbers */
  int32_t source_index_type; /* sparsek_index_type of source, where its elements are columns or counts */
  int32_t order;             /* sparsek_order of a dense matrix */
  int32_t norm;              /* sparsek_norm */
  double threshold;
  int64_t count; /* pattern_from_topk: blocks of a block row at most; pattern_from_counts: counts */
  void* norms;   /* (ceil(M/bm), ceil(K/bk)), of fp32, or fp64 where source is of it */
  void* bins;    /* (count + 1): pattern_from_counts */
} sparsek_pattern_args;

/* Work on the values of a matrix. Arrays are in a->memory, and the work is done in the order of a->stream. The index is
 * not checked (pattern_check does): a wrong one is a fault of the GPU. Members that a function does not read must be 0.
 * Sums are in fp32, of fp64 in fp64, in an order that depends on sizes and types alone: the same bits each time, on a
 * GPU and on the CPU. NaN and Inf are treated as by IEEE 754, and a maximum with NaN is NaN. */
typedef struct sparsek_values_args {
  size_t abi_size;
  const sparsek_bsr* a; /* flags: SPARSEK_BSR_BOUND, else 0 */
  void* out;
  const void* b;      /* blocks like a's, in the same places; or a dense matrix, of a's type */
  int64_t ld;         /* of a dense matrix; 0: without gaps */
  int32_t order;      /* sparsek_order of a dense matrix */
  int32_t norm;       /* sparsek_norm */
  int32_t transposed; /* sum: see there */
  int32_t reserved;
  /* Factors, of fp32, or fp64 where a is of it; null: 1. */
  const void *row_factors, *column_factors; /* (M), (K) */
  double alpha, beta;                       /* rounded to fp32, unless a is of fp64 */
} sparsek_values_args;

/* Attention: for each batch and head, O = softmax(S) V with S = scale * Q K^T over the keys that a query sees, and the
 * gradients of that. Query head h has key head h / (heads_q / heads_k).
 *
 * Query i sees key j where the layout has the block of both and the rules let it: with p as sparsek_attention_flag
 * says, p - window_left <= j <= p + window_right, i < length_q and j < length_k. The lengths are those of the call, or
 * seq_q and seq_k. A query that sees no key has O = 0 and LSE = -Inf, and passes no gradient. A block of which no query
 * sees a key is neither read nor computed. Elements at and beyond the lengths are never read; what is masked within a
 * block that is computed should be finite, since 0 times Inf or NaN may reach queries of that block.
 *
 * Sums are in fp32, of fp64 in fp64, and results are rounded once, O to dtype_o and gradients to the type of Q. Of
 * SPARSEK_E4M3 there is the forward pass alone, without mass: SPARSEK_NO_SUCH_KERNEL refuses all else. */
typedef struct sparsek_attention_options {
  size_t abi_size;
  int64_t batch, heads_q, heads_k; /* heads_q is a multiple of heads_k, which V has too */
  int64_t seq_q, seq_k;
  int64_t head_size;   /* of Q and K */
  int64_t head_size_v; /* of V and O; 0: head_size */
  /* Which blocks of S there are; null: all. The index of a matrix without values: its block rows are, one after the
   * other, those of each layout batch and layout head, of ceil(seq_q / block_m) each: rows = layout_batch *
   * layout_heads
   * * ceil(seq_q / block_m) * block_m, cols = seq_k. The type is not used, and the index is copied. For a GPU it may
   * lie in host memory or in device memory, see attention_create. */
  const sparsek_bsr* layout;
  int64_t layout_batch;              /* 1, for all batches the same, or batch; 0: 1 */
  int64_t layout_heads;              /* a divisor of heads_q: consecutive query heads share one; 0: 1 */
  int64_t window_left, window_right; /* any number; 0 without their flags */
  double scale;                      /* finite; 0: 1 / sqrt(head_size) */
  double soft_cap;                   /* above 0: S = soft_cap * tanh(scale * Q K^T / soft_cap); 0: none */
  int32_t dtype;                     /* sparsek_dtype of Q, K, V and their gradients, and of O but for dtype_o */
  int32_t flags;                     /* of sparsek_attention_flag */
  const char* kernel;                /* a kernel's name, or null: chosen by the library */
  int32_t workers;                   /* the most CTAs, or threads; 0: all */
  int32_t reserved;
  /* sparsek_dtype of O: dtype, or 0 for the same; where dtype is SPARSEK_E4M3: SPARSEK_BF16 or SPARSEK_FP16, 0: the
   * first of them. */
  int32_t dtype_o;
  int32_t reserved2;
} sparsek_attention_options;

typedef struct sparsek_attention_info {
  size_t abi_size;
  const char* kernel;   /* of the forward pass; lives as long as the handle */
  const char* backward; /* of the backward pass; "" where it is not served */
  /* Of one call with all lengths seq_q and seq_k, over all batches and heads; of a layout in device memory: -1. */
  int64_t blocks;  /* that are computed */
  int64_t partial; /* of these, blocks that a rule or the end of a sequence cuts */
  int64_t pairs; /* a query and a key that it sees: each is 2 (head_size + head_size_v) operations of a forward pass */
  int64_t forward_bytes, backward_bytes; /* device memory: the workspace of one call; 0: it needs none */
  double unit_roundoff;                  /* of one step of the sums: the u of the error bound; of e4m3 on a GPU 2^-13 */
  double product_roundoff; /* how far an element of P or of dS is rounded before it is multiplied: the p of the bound */
} sparsek_attention_info;

/* Operands, in the back-end's memory, of the planned types. Strides: elements from one batch, one head and one row to
 * the next; all three 0: (batch, heads, seq, size) without gaps. The elements of a row follow each other. */
typedef struct sparsek_attention_args {
  size_t abi_size;
  const void *q, *k, *v;
  /* attention_forward writes o and, where it is not null, lse: the natural logarithm of the sum of exp(S) for each
   * query, (batch, heads_q, seq_q) without gaps, of fp32, or fp64 where Q is of it. attention_backward reads both. What
   * lies beyond length_q in o becomes 0, in lse -Inf. */
  void *o, *lse;
  int64_t stride_q[3], stride_k[3], stride_v[3], stride_o[3];
  /* (batch), in the back-end's memory: how long each sequence is, read when the call runs. null: seq_q, seq_k. What is
   * below 0 or above these is taken for the nearest of the two. */
  const int32_t *lengths_q, *lengths_k;
  sparsek_stream stream;
  void* workspace; /* device memory, as of a product; null: from a pool of the context */
  size_t workspace_bytes;
  /* Of attention_backward: the gradient of O, read, and those of Q, K and V, written, of which null ones are not
   * computed. Rows beyond the lengths become 0. */
  const void* grad_o;
  void *grad_q, *grad_k, *grad_v;
  int64_t stride_grad_o[3], stride_grad_q[3], stride_grad_k[3], stride_grad_v[3];
  /* Where it is not null, attention_forward, which then needs lse, also writes what share of the weights each block
   * has: the sum of exp(S - lse) over its queries and keys, (batch, heads_q, query blocks, key blocks) without gaps, of
   * the type of lse; 0 of blocks that the layout does not have. Without a layout blocks are 128 x 128. On a GPU a pool
   * of the context gives memory for it: 4 bytes for each 16 queries and 64, 32 or 16 keys, with more than a block. */
  void* mass;
  /* Added to the scores, after the soft cap: S = scale * Q K^T + bias; -Inf hides the key from the query. Of
   * bias_dtype: the type of O, or fp32 where O is of less. Strides: elements from one batch, query head, query and key
   * to the next, of which any may be 0, so that what is there is used again; all four 0: (batch, heads_q, seq_q, seq_k)
   * without gaps. Only pairs of blocks that are computed are read. null: none. */
  const void* bias;
  int64_t stride_bias[4];
  /* Which pairs of a block see each other, for blocks of which not all do. mask_index, (block rows of the layout, key
   * blocks) without gaps, has the number of each block's bits in mask; one that is not in [0, mask_blocks), as -1: all
   * pairs see each other. Bits: (mask_blocks, block_m, ceil(block_k / 32)), key j of a block in bit j % 32 of word
   * j / 32. Both are read when the call runs. Without a layout blocks are 128 x 128, of one block row for each of
   * queries. null: none. */
  const uint32_t* mask;
  const int32_t* mask_index;
  int64_t mask_blocks;
  int32_t bias_dtype; /* sparsek_dtype; not used without a bias */
  int32_t reserved;
  /* Of attention_backward: the gradient of the bias, written where it is not null: P (dP - sum dO O) of each pair, 0
   * where the query does not see the key, (batch, heads_q, seq_q, seq_k) without gaps, of the type of lse. To add up
   * what strides of 0 use again is up to the caller. */
  void* grad_bias;
  /* Keys and values in pages of a cache, where page_rows is above 0: k and v are then (pages, heads_k, page_rows, size)
   * by their strides, of which the first goes from page to page, and key j of batch b is row j % page_rows of page
   * page_table[b * page_table_stride + j / page_rows]. So a table has ceil(seq_k / page_rows) pages for each batch;
   * those behind length_k are not looked up. It lies in the back-end's memory and is read when the call runs. Keys of a
   * page whose number is not in [0, pages), as -1, are hidden from all queries, and not read. Of attention_forward
   * without mass; on a GPU page_rows is a multiple of 16, and there is neither a bias nor a mask.
   * SPARSEK_NO_SUCH_KERNEL refuses all else. */
  const int32_t* page_table;
  int64_t page_table_stride; /* elements from one batch to the next; 0: without gaps */
  int64_t pages;             /* at least 1 */
  int64_t page_rows;         /* 0: keys and values do not lie in pages */
  /* Of Q, K and V of SPARSEK_E4M3: what their elements are multiplied by, of fp32, one for each batch and head of the
   * operand without gaps, in the back-end's memory, read when the call runs: S = scale * scale_q * scale_k * Q K^T, O =
   * scale_v * softmax(S) V. With pages scale_k and scale_v are those of the sequences too. Scales are finite and above
   * 0: what others give is not specified, but nothing waits or is written elsewhere. null: 1. Of other types: null. */
  const float *scale_q, *scale_k, *scale_v;
} sparsek_attention_args;

/* Compares one output of attention with a reference in fp64 (of fp64: with 64 bits of fraction), element by element,
 * computed straight from the arrays, all in host memory. With w = softmax(S), L keys seen, D = head_size, u the
 * unit_roundoff and p the product_roundoff, an error of at most
 *     e = |scale| gamma(D + 3) sum|q||k| + 8 u (|S| + |soft_cap| + |bias|) + 8 u max|S| + (8 b + 16) u
 * in each exponent (b: blocks of that row) makes weights w (1 + a), |a| <= exp(e) (1 + gamma(L + b + 8)) - 1, hence
 * with A = sum w a |O - ref|   <= (sum w |v| (a + p (1 + a)) + |ref| A + underflow) / (1 - A) + u_out |ref| + eta_out
 *     |LSE - ref| <= -log(1 - A) + 8 u (1 + |ref| + max|S|)
 * Of SPARSEK_E4M3, q, k and v are those times their scales, which must be finite and above 0, and D + 3 is D + 6. Where
 * p is above 0 there, kernels round weights to E4M3, a row's greatest one so far at 2^6 or above, small ones by 2^-10:
 * so 2^-16 max(w (1 + a)) sum|v| is added to the underflow. They add up products of E4M3, and u is of these sums alone:
 * of the D of a score, and of those of 512 weights and values at most, which are added up in fp32. So u becomes
 * min(u, 2^-22) but in gamma(D + 6), and for the a of O's sum with |v|, not of A, gamma(L + b + 8) becomes
 * (1 + n u / (1 - n u)) (1 + gamma(L / 512 + 2 b + 8)) - 1 with the u of the sums and n = min(L, 512) + 8.
 * The gradients are those of the o and lse that are given: P = exp(S - lse), dS = P (dP - sum dO O), whose errors are
 * taken through the sums of dQ = scale dS K, dK = scale dS^T Q and dV = P^T dO in the same way. Mass is that of the lse
 * that is given: the errors of its weights, and gamma(n) of the sum of n of them. The gradient of the bias is dS before
 * the derivative of the soft cap. gamma(n) = n u / (1 - n u); u_out and eta_out as of sparsek_check_args. */
typedef struct sparsek_attention_check_args {
  size_t abi_size;
  const sparsek_attention_options* options;
  const sparsek_attention_args* args;     /* of gradients: with o and lse */
  double unit_roundoff, product_roundoff; /* from sparsek_attention_info */
  int32_t output;                         /* sparsek_attention_output */
  int32_t threads;                        /* 0: one for each core */
} sparsek_attention_check_args;

/* Blocks of rows of queries or keys, as gates score them: of each column of a block the mean, the maximum and the
 * minimum. Sums are in fp32, of fp64 in fp64, in an order that depends on sizes and types alone. A maximum and a
 * minimum with NaN are NaN. */
typedef struct sparsek_pool_args {
  size_t abi_size;
  int64_t batch, heads, seq;
  int64_t head_size;   /* 1 to 4096 */
  int64_t block;       /* rows of a block, at least 1; the last block may have fewer */
  const void* x;       /* (batch, heads, seq, head_size):(stride_x, 1) */
  int64_t stride_x[3]; /* all 0: without gaps */
  void* out;      /* (batch, heads, ceil(seq / block), 3, head_size) without gaps, of fp32, or fp64 where x is of it */
  int32_t dtype;  /* sparsek_dtype of x */
  int32_t memory; /* sparsek_memory of both */
  sparsek_stream stream;
} sparsek_pool_args;

/* Dense products for comparison: C = A B, all row-major and without gaps between rows, by cuBLAS, with products summed
 * in fp32. Set i of operands is a[i], b[i], c[i], all in device memory. */
typedef struct sparsek_dense_time_args {
  size_t abi_size;
  int64_t m, n, k;      /* at least 1 */
  int32_t dtype;        /* of A, B and C: SPARSEK_BF16 or SPARSEK_FP16 */
  int32_t set_count;    /* sets of operands, at least 1 */
  const void* const* a; /* (set_count) addresses, each of (M, K):(K, 1) */
  const void* const* b; /* (set_count) addresses, each of (K, N):(N, 1) */
  void* const* c;       /* (set_count) addresses, each of (M, N):(N, 1) */
  int32_t warmup, repeats;
  sparsek_stream stream;
} sparsek_dense_time_args;

/* Compares C with ref = act(pre), pre = alpha A B + beta C0 + bias, computed in fp64 straight from the BSR arrays (host
 * memory only). Each element must satisfy
 *     |C - ref| <= lambda E + r u32 (|pre| + E) + u_out |ref| + s 2^-150 + eta_out
 *     E = gamma_L |alpha| sum|a||b| + k u32 (|alpha ref_AB| + |beta C0| + |bias|) + (|alpha| L + 2) 2^-150
 *     gamma_L = p + (1 + p) L u / (1 - L u)
 * E bounds the error of pre: L is the number of products summed into the element, u the kernel's unit_roundoff
 * (accumulation), p its product_roundoff, u32 = 2^-24 (epilogue), and k = 2, with a bias 3, the roundings of the
 * epilogue; the terms in 2^-150 are underflow (Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed.,
 * sections 3.1 and 2.8). The activation multiplies that by lambda, its Lipschitz constant, and adds the error of its
 * own evaluation in fp32:
 *                none   ReLU   GELU   SiLU
 *     lambda     1      1      1.13   1.1
 *     r, s       0, 0   0, 0   4, 2   4, 2
 * u_out is the unit roundoff of C's type and eta_out half of its smallest subnormal. Where ref is NaN or Inf, C must be
 * the same, and where pre is -Inf and there is an activation, C must be 0; where |ref| with its bound reaches the
 * type's overflow threshold, C may be Inf. For a B of fp64, u32 is 2^-53, u_out 2^-52 and 2^-150 is 2^-1075, and the
 * reference is computed with 64 bits and rounded to fp64. For L u >= 1 there is no finite bound: such an element is
 * only required to be NaN or Inf where ref is. Kernels that multiply fp32 on tensor cores take subnormal elements of A
 * and B as if they were off by less than 2^-149: their products with elements above 1 may be beyond the bound.
 *
 * For args->op, what sparsek_op says takes the place of A B. */
typedef struct sparsek_check_args {
  size_t abi_size;
  const sparsek_bsr* a; /* host arrays */
  int64_t n;
  const void* b; /* (K, N):(ldb, 1), host, of type dtype_b */
  int64_t ldb;
  const void* c0; /* (M, N):(ldc, 1), host, of type dtype_c: C before the product; null where beta is 0 */
  const void* c;  /* (M, N):(ldc, 1), host, of type dtype_c: the result to check */
  int64_t ldc;
  float alpha, beta;
  double unit_roundoff; /* from sparsek_plan_info */
  int32_t threads;      /* 0: one for each core */
  int32_t reserved;
  int32_t dtype_c;    /* sparsek_dtype of C0, C and the bias; 0: B's */
  int32_t bias_kind;  /* sparsek_bias */
  int32_t activation; /* sparsek_activation */
  int32_t reserved2;
  const void* bias;        /* (M) or (N), host, of type dtype_c; null where bias_kind is SPARSEK_BIAS_NONE */
  double product_roundoff; /* from sparsek_plan_info; 0 unless A and B are of fp32 */
  /* The product and its operands, as sparsek_op says; 0: SPARSEK_DSD of row-major ones. ld = 0: without gaps. Of
   * SPARSEK_SDD C and C0 are the blocks, ldc is 0, a's values are not used, and the report's rows and columns are those
   * of A; what blocks have beyond A must be 0, and is not counted in `elements`. */
  int32_t op;
  int32_t order_b, order_c;
  int32_t order_x;
  const void* x; /* host, of a's type */
  int64_t ldx;
  int32_t dtype_b; /* sparsek_dtype of B; 0: a's. As in sparsek_plan_options */
  int32_t reserved3;
} sparsek_check_args;

typedef struct sparsek_check_report {
  size_t abi_size;
  int64_t elements;             /* checked: all of C */
  int64_t failures;             /* elements beyond their bound */
  double max_abs_c;             /* max |C| over finite elements */
  double max_error;             /* max |C - ref| over finite elements */
  double max_ratio;             /* max |C - ref| / bound: at most 1 where nothing failed */
  int64_t worst_row, worst_col; /* the element with max_ratio */
  double worst_c, worst_ref, worst_bound;
  int64_t first_row, first_col; /* the first failure in row order; -1 where none */
} sparsek_check_report;

/* A tuning cache: measured times of kernels. Strings live as long as the handle. */
typedef struct sparsek_tuning_cache_info {
  size_t abi_size;
  const char* path;  /* "" for the shipped cache, and where the user's is off */
  const char* fault; /* what is wrong with it and what to do, or "" */
  const char* build; /* which build this library is: only entries of this build and of "shipped" are used */
  int64_t entries;
  int32_t state; /* sparsek_tuning_state */
  int32_t reserved;
} sparsek_tuning_cache_info;

/* The products that one entry serves, and when their kernels were measured. */
typedef struct sparsek_tuning_entry {
  size_t abi_size;
  const char* id;     /* 16 letters from k to z, the same for the same product everywhere */
  const char* device; /* the GPU's name; on the CPU the vector instructions in use */
  const char* build;  /* of the library; "shipped": any */
  const char* op;     /* "dsd", "dsd_t", "sdd", "dds", "dds_t"; behind it the column-major operands: "dsd/bc" */
  int64_t m, n, k;
  int64_t block_m, block_k;
  int64_t measured;         /* when: seconds since 1970-01-01 00:00 UTC */
  int32_t sm_count;         /* on the CPU: threads */
  int32_t dtype, dtype_c;   /* sparsek_dtype of A, and of C */
  int32_t bias, activation; /* sparsek_bias, sparsek_activation */
  int32_t density_class;    /* of the pattern: coarse classes of its density, */
  int32_t spread_class;     /* of the spread of its block rows' lengths, */
  int32_t union_class;      /* and of the columns that neighbouring rows share */
  int32_t candidates;       /* kernels that were measured */
  int32_t reserved;
  int32_t dtype_b;     /* sparsek_dtype of B */
  int32_t kept_values; /* 1: plans of some kernels kept A's values packed, see plan_create; 0: none could */
} sparsek_tuning_entry;

typedef struct sparsek_tuning_candidate {
  size_t abi_size;
  const char* kernel;
  double seconds;       /* of a product, the median */
  double spread;        /* distance of the quartiles / seconds */
  double setup_seconds; /* of converting new values to its layout */
} sparsek_tuning_candidate;

/* The result of a change of a tuning cache. */
typedef struct sparsek_tuning_change {
  size_t abi_size;
  int64_t entries;    /* merged: those that are new or newer; cleared: those that were removed */
  char warning[1024]; /* about a file that was set aside: why and where it is; else "" */
} sparsek_tuning_change;

/* The functions. Names in comments are those of the C convention sparsek_<name>. */
typedef struct sparsek_api {
  size_t abi_size;
  int32_t abi_version;

  const char* (*status_name)(sparsek_status); /* "SPARSEK_COL_IDX_RANGE" */
  const char* (*last_error)(void);            /* of this thread; "" if its last call succeeded */

  sparsek_status (*build_info)(sparsek_build_info* out);
  int32_t (*kernel_count)(void);
  sparsek_status (*kernel_info)(int32_t index, sparsek_kernel_info* out);
  /* CUDA devices that the driver shows; 0 where there is no driver. */
  int32_t (*device_count)(void);
  sparsek_status (*device_info)(int32_t device, sparsek_device_info* out);

  sparsek_status (*context_create)(const sparsek_context_options* options, sparsek_context** out);
  sparsek_status (*context_info)(const sparsek_context*, sparsek_context_info* out);
  void (*context_destroy)(sparsek_context*);

  /* Checks the index and takes the matrix into the back-end. The index is copied: that of host arrays in host memory,
   * that of device arrays by a kernel, which this waits for, in device memory, where it stays. Values: host values are
   * copied to the device by the CUDA back-end and referenced (not copied) by the CPU back-end, so they must outlive the
   * matrix there; device values are referenced.
   * Device arrays are read in the order of bsr->stream.
   *
   * SPARSEK_BSR_ASYNC, of device arrays: nothing is waited for, by this call and plan_create (unless it tunes). The
   * index is copied and checked, and plans are made, in bsr->stream, which must not be captured and must exist until
   * they are; then the arrays may be changed. What uses a plan in another stream comes behind that by itself. A fault
   * of the index comes by matrix_status, and the plans of such an index have no entries: products set C to act(beta C +
   * bias). What a plan's kernel is chosen by is what is known to the host: it takes the block rows for equally long.
   * Block rows with many columns in common share tiles (products up to 8 % faster) where a product is expected to take
   * at least eight times as long as finding them takes, so that a plan which is used twice is worth it; else
   * neighbouring block rows do. Kernels of other libraries do not serve such a matrix. In host memory the flag has no
   * effect. */
  sparsek_status (*matrix_create)(sparsek_context*, const sparsek_bsr*, sparsek_matrix** out);
  /* New values for the same pattern, (nnzb, bm, bk) of the same type. Lifetimes are as in matrix_create. A copy to the
   * device is ordered in the stream, and the host array must stay unchanged until the stream has passed it. Products
   * that still run must come before it in the stream. What plans keep of host values, and of frozen ones in device
   * memory (SPARSEK_BSR_FROZEN), is made again behind the copy, in the order of the stream (plan_info.kept_bytes). A
   * graph has captured the address of the values: capture it again after they move between host and device. A graph
   * that sets host or frozen values uses those plans as their products do; plans that are made after it was captured
   * keep nothing. */
  sparsek_status (*matrix_set_values)(sparsek_matrix*, const void* values, int32_t memory, sparsek_stream);
  void (*matrix_destroy)(sparsek_matrix*);

  /* The matrix must outlive its plans. On the CUDA back-end plan_create allocates device memory, and waits for its own
   * work on the device, but for no other stream. The plan of an index in device memory is made there, and does the same
   * work in the same order as that of the same index in host memory, with two exceptions. The planner on the host may
   * put similar block rows together where there are more than 65536 block columns (fewer entries, the same C), and may
   * split tiles whose rows are far longer than others (C within the same bound, but its sums rounded differently).
   * Where options->kernel names none, the kernel is the one that was the fastest when a similar product was measured:
   * by this library on such a device (the tuning cache, a file of the user: tuning_cache_open), or before the library
   * was shipped. Similar products have the same sizes, block, types and epilogue, and about the same density, spread of
   * row lengths and share of common columns in neighbouring block rows. Without such a record a cost model chooses, or,
   * with options->tuning_seconds, a tuner measures.
   * Some kernels read A packed: as dense tiles, or as planes of fp32. Where the matrix has a copy of host values, or
   * frozen ones (SPARSEK_BSR_FROZEN), the CUDA back-end's plan of such a kernel keeps them packed, unless that takes
   * more than 256 MiB or than there is, or all that plans of the matrix keep takes more than 512 MiB, and products do
   * not pack them. Other values in device memory may change at any time: each product packs them, and so it does those
   * given with it, unless these are the matrix's frozen ones, by their address. */
  sparsek_status (*plan_create)(sparsek_matrix*, const sparsek_plan_options*, sparsek_plan** out);
  sparsek_status (*plan_info)(const sparsek_plan*, sparsek_plan_info* out);
  void (*plan_destroy)(sparsek_plan*);

  /* Does not wait; may be captured into a CUDA graph. The CPU back-end returns when C is written. C must not overlap
   * what is read: SPARSEK_BAD_ARGUMENT, except for the matrix's values. B and C may be columns of one array. One plan
   * may be in use on several streams at once. The same plan gives the same bits each time.
   * Allocates nothing, unless plan_info.product_bytes is above 0: the plan has split tiles or rows, multiplies fp32 on
   * tensor cores, packs A, or copies operands, since the kernel cannot take their order (plan_info.copies), or reads 16
   * bytes of a row at once and rows are not aligned to these, or no multiple of them. Then a product takes its
   * workspace from a pool of the context, in the order of the stream. The pool has held it since the plan was made, and
   * asks the driver for more only where products run at once. A captured product gets separate memory by cudaMalloc, or
   * that of a graph which is gone: the plan keeps it for as long as the graph, an executable graph or a copy of it
   * exists, and frees it when the plan is destroyed. Such a graph has no memory nodes: it can be cloned, and
   * instantiated any number of times, of which one runs at a time, since they share that memory. Kernels of other
   * libraries may take workspace in the order of the stream, which in a graph means memory nodes, need not give the
   * same bits, and may round alpha A B to C's type before they add beta C. */
  sparsek_status (*multiply)(sparsek_plan*, const sparsek_multiply_args*);
  /* Times `repeats` multiplies after `warmup` ones, taking args[0], args[1], ... in turn, so that rotated buffers
   * keep L2 cold; seconds[repeats] gets each one's time (CUDA events on the GPU). Waits for the device. */
  sparsek_status (*multiply_time)(sparsek_plan*, const sparsek_multiply_args* args, int32_t arg_count, int32_t warmup,
                                  int32_t repeats, double* seconds);

  /* Memory of the context's back-end (CUDA: device memory; CPU: host memory aligned to 64 bytes). */
  sparsek_status (*buffer_create)(sparsek_context*, size_t bytes, void** out);
  sparsek_status (*buffer_destroy)(sparsek_context*, void*);
  /* To and from that memory, ordered in the stream. The host side must stay valid until the stream has passed
   * the copy (stream_synchronize). */
  sparsek_status (*buffer_write)(sparsek_context*, void* buffer, const void* host, size_t bytes, sparsek_stream);
  sparsek_status (*buffer_read)(sparsek_context*, void* host, const void* buffer, size_t bytes, sparsek_stream);
  sparsek_status (*buffer_fill)(sparsek_context*, void* buffer, int32_t byte, size_t bytes, sparsek_stream);

  sparsek_status (*stream_create)(sparsek_context*, sparsek_stream* out);
  sparsek_status (*stream_destroy)(sparsek_context*, sparsek_stream);
  sparsek_status (*stream_synchronize)(sparsek_context*, sparsek_stream);
  /* *done is 1 where everything in the stream has finished. */
  sparsek_status (*stream_query)(sparsek_context*, sparsek_stream, int32_t* done);

  /* Returns SPARSEK_CHECK_FAILED, with the report filled in, where an element is beyond its bound. */
  sparsek_status (*check)(const sparsek_check_args*, sparsek_check_report* out);

  /* Times `repeats` dense products after `warmup` ones, as multiply_time does, taking the sets of operands in turn;
   * seconds[repeats] gets each one's time. Waits for the device. cuBLAS is opened by the first call: the one of
   * SPARSEK_CUBLAS where that is set (the library's file, its folder, or Python's folder `nvidia`), else the one that
   * the loader finds. cuSPARSE is opened in the same way, by SPARSEK_CUSPARSE, for plans that need it. A library is
   * opened once in a process; a failure is final. SPARSEK_NO_LIBRARY where there is none, and always on the CPU
   * back-end. */
  sparsek_status (*dense_time)(sparsek_context*, const sparsek_dense_time_args*, double* seconds);

  /* Times products without their launches: captures `count` of them, that of plans[i] with args[i], one after
   * the other into one CUDA graph, on a separate stream (args[i].stream is not used), and replays it `warmup` +
   * `repeats` times; seconds[repeats] gets the time of each of the last replays, divided by count. All plans must be of
   * one context; one may occur more than once. Does not wait for earlier work in other streams.
   * SPARSEK_NO_DEVICE on the CPU back-end. */
  sparsek_status (*graph_time)(sparsek_plan* const* plans, const sparsek_multiply_args* args, int32_t count,
                               int32_t warmup, int32_t repeats, double* seconds);

  /* Measures the kernels that could compute a plan. The tuner allocates random operands B and C and, on a GPU, twice
   * the size of L2. It multiplies the matrix's values, which must have been set, on a separate stream, and never into a
   * graph that is being captured. options->kernel must be null, and options->tuning_seconds is not used. Use a tuner
   * from one thread at a time. */
  sparsek_status (*tuner_create)(sparsek_matrix*, const sparsek_plan_options*, const sparsek_tuner_options*,
                                 sparsek_tuner** out);
  /* Measures one candidate a little further and sets *candidate to its index, or to -1 where nothing is left to do: the
   * budget is spent or the ranking is clear. Among candidates that are equally fast within the spread of their times,
   * the one of the highest priority is the best. */
  sparsek_status (*tuner_step)(sparsek_tuner*, int32_t* candidate);
  /* The candidates, in the order of priority. */
  int32_t (*tuner_candidate_count)(const sparsek_tuner*);
  sparsek_status (*tuner_candidate)(const sparsek_tuner*, int32_t index, sparsek_candidate_info* out);
  /* Makes a plan with the best kernel so far, and stores the measurements in the tuning cache. Afterwards the tuner can
   * only be asked for its candidates; where the call fails, the tuner is unchanged. SPARSEK_BAD_ARGUMENT where nothing
   * was measured. */
  sparsek_status (*tuner_finish)(sparsek_tuner*, sparsek_plan** out);
  void (*tuner_destroy)(sparsek_tuner*);

  /* Reads a tuning cache: the file, or with a null path the user's. That is the file of SPARSEK_TUNING_CACHE ("off" for
   * none), else sparsek/tuning.txt in XDG_CACHE_HOME, else in HOME/.cache. A missing file has no entries. Of a
   * file with a fault, the good entries are read: see tuning_cache_info. `source` is sparsek_tuning_source; the shipped
   * cache has no path. */
  sparsek_status (*tuning_cache_open)(const char* path, int32_t source, sparsek_tuning_cache** out);
  sparsek_status (*tuning_cache_info)(const sparsek_tuning_cache*, sparsek_tuning_cache_info* out);
  /* The newest entry has index 0. Strings live as long as the handle. */
  sparsek_status (*tuning_cache_entry)(const sparsek_tuning_cache*, int64_t index, sparsek_tuning_entry* out);
  /* The best first. */
  sparsek_status (*tuning_cache_candidate)(const sparsek_tuning_cache*, int64_t index, int32_t candidate,
                                           sparsek_tuning_candidate* out);
  void (*tuning_cache_close)(sparsek_tuning_cache*);
  /* Merges the entries of `from` into a file, or with a null path into the user's cache; where both have one for the
   * same products, the newer one stays. The file is replaced atomically; where that fails (SPARSEK_IO_ERROR), it is
   * unchanged, and no other writer's entries are lost. The user's cache is created where it is missing. Where it has a
   * fault, it is renamed, and its good entries are kept; another file with a fault is refused. */
  sparsek_status (*tuning_cache_merge)(const char* into, const sparsek_tuning_cache* from, sparsek_tuning_change* out);
  /* Removes the file, or with a null path the user's cache. A file with a fault is treated as by tuning_cache_merge. */
  sparsek_status (*tuning_cache_clear)(const char* path, sparsek_tuning_change* out);

  /* For measurements: holds `count` SMs of the context's GPU, from 1 to all but one, as another program or a
   * communication kernel would, so that the time of products beside it can be measured. A kernel in a separate stream
   * occupies them: one CTA an SM takes all of its shared memory, so that no other CTA fits, and waits. Its CTAs
   * together read a word of host memory at most once in about 4 us, and cause no other traffic. Returns when all CTAs
   * run, each on an SM of its own. The kernel ends at most a millisecond after sms_release began, or `seconds` after it
   * began (above 0, at most 60), so that a program that fails leaves no SM occupied. A call that waits for the whole
   * device waits for that: cudaMalloc, cudaFree, and cudaStreamCreate where that takes memory. One hold at a time in a
   * context, else SPARSEK_BAD_ARGUMENT: streams share the device's queues, and a second could wait for the first to
   * end. SPARSEK_CUDA_ERROR where other work kept the SMs busy for `seconds`. SPARSEK_NO_DEVICE on the CPU back-end. */
  sparsek_status (*sms_hold)(sparsek_context*, int32_t count, double seconds, sparsek_sm_hold** out);
  /* Waits until the SMs are free, and frees the handle, whatever it returns. *expired (may be null) is 1 where they
   * were free before the call, since `seconds` had passed: what was measured then is not valid. */
  sparsek_status (*sms_release)(sparsek_sm_hold*, int32_t* expired);

  /* Like plan_info, but never waits: recomputed is -1 and digest 0, which have to be fetched from the device, and so
   * are the entries of a plan of a matrix with SPARSEK_BSR_ASYNC: -1. */
  sparsek_status (*plan_describe)(const sparsek_plan*, sparsek_plan_info* out);
  /* Whether a matrix's index is good: the status and the message that matrix_create would have returned.
   * SPARSEK_NOT_READY where it has not been checked yet, which only happens with SPARSEK_BSR_ASYNC; with `wait` = 1
   * (else 0), waits until it is. */
  sparsek_status (*matrix_status)(sparsek_matrix*, int32_t wait);
  /* Like plan_destroy and matrix_destroy, for handles whose last use is in this stream, or before it in the stream's
   * order: their memory is given back in the order of the stream, at once for what the stream gets next. That of a
   * matrix which still has plans, and where the stream is being captured or a product was captured, is given back as by
   * plan_destroy and matrix_destroy. */
  void (*plan_release)(sparsek_plan*, sparsek_stream);
  void (*matrix_release)(sparsek_matrix*, sparsek_stream);

  /* Plans for an index that changes. These calls wait for nothing, and allocate nothing but what multiply does; all but
   * plan_measure enqueue their work in index->stream or args->stream, which may be captured: a replay reads what the
   * arrays hold by then. In host memory, on the CPU back-end, the work is done when they return, and a fault of the
   * index is returned too. */

  /* A plan for a new index of the same sizes, block and types, with no more blocks than nnzb of matrix_create: in the
   * memory of the old one, and of its matrix, which must have been made with SPARSEK_BSR_ASYNC (or in host memory).
   * Other plans of the matrix keep the old index. index->values: as for matrix_set_values, null for the same ones.
   * Earlier products of the plan must be before it in the stream. A fault comes by matrix_status, which after a replay
   * tells that of the last one: the caller sees to it that the replay has ended. */
  sparsek_status (*plan_update)(sparsek_plan*, const sparsek_bsr* index);

  /* The same without handles. plan_measure works out, on the host, how a product will be computed, and the memory that
   * takes. shape: sizes, block and types; nnzb is an upper bound; its arrays, flags and memory are not used.
   * options->tuning_seconds must be 0. Kernels of other libraries are not chosen. */
  sparsek_status (*plan_measure)(sparsek_context*, const sparsek_bsr* shape, const sparsek_plan_options* options,
                                 sparsek_plan_layout* out);
  /* Writes a plan for the index, of the sizes that were measured for, into memory of layout->bytes; index->values is
   * not used. *fault, in the same memory as the index, becomes 0, or for an index with a fault its status in the lowest
   * 8 bits and above them its place in row_ptr, col_idx or block_idx (on the CPU back-end, without the place). Such a
   * plan has no entries: products are act(beta C + bias). fault may be null. */
  sparsek_status (*plan_write)(sparsek_context*, const sparsek_bsr* index, const sparsek_plan_layout* layout,
                               void* memory, int64_t* fault);
  /* A product by a plan that was written before in the order of the stream; args->values must be given (but for
   * SPARSEK_SDD), and args->workspace where layout->workspace_bytes is not 0. As for multiply otherwise. Any number may
   * run at once. The CPU back-end keeps but the index in that memory, and makes its plan with each product. */
  sparsek_status (*plan_run)(sparsek_context*, const sparsek_plan_layout* layout, const void* memory,
                             const sparsek_multiply_args* args);

  /* Patterns that are made in device memory, without the host: each call enqueues its work in args->stream, waits for
   * nothing and allocates nothing, and may be captured into a graph, whose replays read what the arrays hold by then.
   * With SPARSEK_HOST, arrays are in host memory, also of a context of a GPU, and the work is done when the call
   * returns. The index is the same either way. It is for a matrix with SPARSEK_BSR_BOUND and nnzb = capacity, for
   * plan_update and for plan_write. A status that is returned is of the arguments alone: faults of what is read, and a
   * capacity that is too small, come by *args->fault. */

  /* The blocks whose element of `source`, (block rows, block columns):(ld, 1), is not 0. An element is a byte, or with
   * SPARSEK_PATTERN_BITS a bit (ld counts bits, a multiple of 8; without gaps, rows begin at bytes). With source_dtype:
   * elements are numbers, and the blocks those above `threshold`, or NaN. */
  sparsek_status (*pattern_from_mask)(sparsek_context*, const sparsek_pattern_args* args);
  /* In each block row the `count` blocks of the highest scores: `source` is (block rows, block columns):(ld, 1) of
   * source_dtype. Of equal scores those of lower columns are taken; NaN is the highest score, and blocks of -Inf are
   * never taken. With source_index_type: `source` is (block rows, count):(ld, 1), the block columns themselves, in any
   * order; negative ones name no block, and one that occurs twice counts once. Faults: SPARSEK_COL_IDX_RANGE and the
   * place in `source`. */
  sparsek_status (*pattern_from_topk)(sparsek_context*, const sparsek_pattern_args* args);
  /* The blocks of a dense matrix, `source` of args->dtype (M, K) in `order`, whose `norm` is above `threshold`, or NaN;
   * and their values, unless `values` is null (then source_dtype says the type). What a block has beyond M or K is 0.
   * `norms` gets the norms of all blocks, summed as by block_norms. SPARSEK_NORM_L2 of tiny elements may be 0, since
   * their squares underflow: to keep all that is not 0, take SPARSEK_NORM_MAX. */
  sparsek_status (*pattern_from_dense)(sparsek_context*, const sparsek_pattern_args* args);
  /* The blocks that have elements of a CSR matrix, and their values unless `values` is null, with zeros for what is
   * absent. csr: of the same sizes, with blocks of 1 x 1, memory and stream as in args; columns strictly increasing; no
   * block_idx. Where csr->row_ptr is null, `source` is (nnzb), of csr->index_type: the row of each element, increasing,
   * of a matrix in COO. Faults are those of an index, SPARSEK_ROW_PTR_NOT_MONOTONE for a row in COO that is out of
   * order. */
  sparsek_status (*pattern_from_csr)(sparsek_context*, const sparsek_bsr* csr, const sparsek_pattern_args* args);
  /* Those blocks of a, of the same sizes, whose scores are above `threshold`, or NaN; or with `count` above 0 the
   * `count` highest ones of each block row, as by pattern_from_topk. `source` is (nnzb), of source_dtype, in the order
   * of a's entries, like what block_norms writes. block_idx gets the blocks of a, and values, which may be null, copies
   * of them in the order of the new entries. a's index is not checked. */
  sparsek_status (*pattern_from_blocks)(sparsek_context*, const sparsek_bsr* a, const sparsek_pattern_args* args);
  /* The topology of experts (dropless mixture of experts) that have `count` counts of tokens, `source` of
   * source_index_type. A is block-diagonal: expert i has ceil(source[i] / bm) block rows behind those of the experts
   * before, and its columns are i K / count and on, all of them; K must be a multiple of count * bk. bins[i] gets the
   * first block row of expert i, and the last element the end; at most the largest number of index_type. Block rows
   * behind that are empty. Where the block rows of the experts do not fit into M: SPARSEK_OVER_CAPACITY, and those that
   * fit are there; then *blocks counts at most 2^31 block rows. A count below 0: SPARSEK_BAD_SIZE and its place. */
  sparsek_status (*pattern_from_counts)(sparsek_context*, const sparsek_pattern_args* args);
  /* One block-diagonal matrix of `count` matrices: block row r of matrix i is one of its block rows behind those of the
   * matrices before, and its columns come behind theirs. So a product multiplies B's below each other into C's below
   * each other. The sizes of all but the last must be multiples of the block, SPARSEK_BAD_SIZE, and the index is no
   * larger than their sum. Of matrices with as many blocks as nnzb says, values are theirs behind each other;
   * block_idx, where it is given, gets the places that they have where those of each matrix have room for its nnzb.
   * `capacity` is at least the sum of all nnzb. The indices are checked where the result is used, of
   * which each fault of theirs is one. */
  sparsek_status (*pattern_block_diagonal)(sparsek_context*, const sparsek_bsr* const* matrices, int32_t count,
                                           const sparsek_pattern_args* args);
  /* The index of A^T, sizes of which args has: rows = a->cols, block_m = a->block_k and so on. block_idx gets the
   * blocks of a, whose values stay where and as they are. `capacity` is at least a->nnzb. Faults are those of a's
   * index. */
  sparsek_status (*transpose_index)(sparsek_context*, const sparsek_bsr* a, const sparsek_pattern_args* args);
  /* A's elements as CSR: args has blocks of 1 x 1 and A's sizes; with row_idx, also COO. Elements that are 0 in a block
   * are elements; those beyond M or K are none. A's index is not checked. */
  sparsek_status (*to_csr)(sparsek_context*, const sparsek_bsr* a, const sparsek_pattern_args* args);
  /* Whether an index is good, in the order of a->stream: *fault becomes 0, or as that of plan_write, with the place. */
  sparsek_status (*pattern_check)(sparsek_context*, const sparsek_bsr* a, int64_t* fault);

  /* Values, see sparsek_values_args. They wait for nothing and may be captured, too. */

  /* out = A as a dense matrix (M, K) in `order`, zeros included. */
  sparsek_status (*to_dense)(sparsek_context*, const sparsek_values_args* args);
  /* out (nnzb, bm, bk) = the blocks of the dense matrix b, (M, K) in `order`. What they have beyond M or K is 0. */
  sparsek_status (*gather_values)(sparsek_context*, const sparsek_values_args* args);
  /* out (nnzb), in the order of col_idx = the norm of each block, in the type of the sums. Rows beyond M do not count.
   */
  sparsek_status (*block_norms)(sparsek_context*, const sparsek_values_args* args);
  /* out (M) = the sums of A's rows, in the type of the sums. With transposed = 1, a's index is one of transpose_index,
   * with the values of the matrix that it was made of, whose blocks lie as (bk, bm) of a: sums of that matrix's
   * columns. */
  sparsek_status (*sum)(sparsek_context*, const sparsek_values_args* args);
  /* out (nnzb, bm, bk) = element (i, j) of A times row_factors[i], times column_factors[j]. out may be a->values. What
   * blocks have beyond M or K has the factor 1. */
  sparsek_status (*scale)(sparsek_context*, const sparsek_values_args* args);
  /* out = alpha * A * b, element by element; out = alpha * A + beta * b. Each operation is rounded. out may be
   * a->values or b. */
  sparsek_status (*multiply_values)(sparsek_context*, const sparsek_values_args* args);
  sparsek_status (*add_values)(sparsek_context*, const sparsek_values_args* args);

  /* Attention, see sparsek_attention_options. attention_create checks the layout as matrix_create does an index, and
   * keeps a copy. SPARSEK_NO_SUCH_KERNEL where the back-end has no kernel for the sizes, the type or the rules.
   *
   * A layout in device memory stays there: kernels copy and check it, and list its blocks, in layout->stream. With
   * SPARSEK_BSR_ASYNC nothing is waited for; the stream must not be captured, and the arrays may be changed when it has
   * passed the call. Calls in other streams come behind that by themselves. With SPARSEK_BSR_BOUND there may be fewer
   * blocks than nnzb, for which there is room. A fault of the index comes by attention_status; no query sees a key
   * then. The lists that a backward pass needs are made with each one, in its workspace. */
  sparsek_status (*attention_create)(sparsek_context*, const sparsek_attention_options*, sparsek_attention** out);
  sparsek_status (*attention_info)(const sparsek_attention*, sparsek_attention_info* out);
  /* Do not wait, and may be captured into a CUDA graph; the CPU back-end returns when the outputs are written. What is
   * written must not overlap what is read. One handle may be in use on several streams at once. The same handle gives
   * the same bits each time, on the CPU for any number of threads, but for the gradient of Q on a GPU with
   * SPARSEK_ATTENTION_ANY_ORDER. */
  sparsek_status (*attention_forward)(sparsek_attention*, const sparsek_attention_args*);
  sparsek_status (*attention_backward)(sparsek_attention*, const sparsek_attention_args*);
  /* Times forward passes, or with `backward` = 1 (else 0) backward passes, as multiply_time does products. */
  sparsek_status (*attention_time)(sparsek_attention*, const sparsek_attention_args* args, int32_t arg_count,
                                   int32_t backward, int32_t warmup, int32_t repeats, double* seconds);
  void (*attention_destroy)(sparsek_attention*);
  /* As plan_release. */
  void (*attention_release)(sparsek_attention*, sparsek_stream);
  /* Returns SPARSEK_CHECK_FAILED, with the report filled in, where an element is beyond its bound. A row of the report
   * is ((batch * heads) + head) * seq + position. */
  sparsek_status (*attention_check)(const sparsek_attention_check_args*, sparsek_check_report* out);
  /* Another layout, of the same rows, columns and blocks. Of attention that was made with a layout in device memory and
   * SPARSEK_BSR_ASYNC: in device memory, with at most as many blocks. Waits for nothing and allocates nothing; its work
   * is put into layout->stream, which may be captured: a replay reads what the arrays hold by then. Earlier calls must
   * come before it in the stream. On the CPU back-end: in host memory, when no call is running. */
  sparsek_status (*attention_update)(sparsek_attention*, const sparsek_bsr* layout);
  /* As matrix_status, of a layout in device memory; SPARSEK_OK of others. */
  sparsek_status (*attention_status)(sparsek_attention*, int32_t wait);
  /* See sparsek_pool_args. Waits for nothing, and may be captured into a CUDA graph. */
  sparsek_status (*attention_pool)(sparsek_context*, const sparsek_pool_args* args);
} sparsek_api;

/* The table for this ABI version, or null where the library does not know the version. Lives as long as the
 * library. */
SPARSEK_EXPORT const sparsek_api* sparsek_get_api(int32_t abi_version);

#ifdef __cplusplus
}
#endif
#endif /* SPARSEK_H_ */
