// SPDX-License-Identifier: Apache-2.0
// What a back-end does for the ABI. Arguments were checked at the edge: sizes, enumerations, nulls, abi_size.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "abi/error.h"
#include "plan/attention.h"
#include "plan/bsr_index.h"
#include "plan/pattern_stats.h"
#include "plan/row_pool.h"
#include "sparsek.h"
#include "tune/candidate.h"

namespace sparsek {

namespace tune {
class Rehearsal;  // tune/rehearsal.h
}
namespace pattern {  // pattern/job.h
struct Given;
struct MakeJob;
struct ValuesJob;
}  // namespace pattern

// A matrix in a back-end: the checked index, the values in the back-end's memory.
class MatrixState {
 public:
  virtual ~MatrixState() = default;

  sparsek_dtype dtype = SPARSEK_BF16;

  virtual const BsrShape& shape() const = 0;
  // Worked out when it is first asked for. Of an index in device memory: what is expected of its sizes.
  virtual const PatternStats& stats() const = 0;

  // Copies or references values, as sparsek.h says of matrix_set_values. Throws SPARSEK_WRONG_MEMORY where the
  // pointer is not of the memory it is said to be of.
  virtual void set_values(const void* values, sparsek_memory memory, sparsek_stream stream) = 0;

  // Whether the index is checked in a stream, and plans are made there: then no call waits for that.
  virtual bool is_async() const { return false; }
  // Of such a matrix: throws the fault of its index. Whether the check is complete; with `wait`, waits for it.
  virtual bool check_index(bool /*wait*/) { return true; }
  // Before it is destroyed: all its uses are before what the stream gets from now on.
  virtual void end_in(sparsek_stream /*stream*/) {}
};

// Arguments of a multiply with the defaults filled in, of a product in its form (abi/product_form.h).
struct MultiplyArgs {
  float alpha, beta;
  const float *alpha_device, *beta_device;  // factors of alpha and beta, read when the product runs; null: 1
  int64_t n;                                // columns, at most the planned ones
  const void* values;                       // null: the matrix's
  const void* b;
  int64_t ldb;
  void* c;
  int64_t ldc;
  const void* c_in;  // what beta is multiplied with; may be c
  int64_t ldc_in;    // of C's order; 0: one row for all
  void* workspace;   // of product_bytes() at least; null: the back-end's own
  sparsek_stream stream;
  const void* bias;           // null where there is none
  bool trusted = false;       // the driver is not asked in which memory pointers lie
  bool in_own_graph = false;  // captured into a graph that is destroyed before the call ends which this product is of
  const void* x = nullptr;    // of SPARSEK_SDD
  int64_t ldx = 0;
};

class PlanState {
 public:
  virtual ~PlanState() = default;
  // All but recomputed and digest. entries is -1 where it is known to the device alone.
  virtual void info(sparsek_plan_info& out) const = 0;
  // Waits until the plan is made, where it is not known.
  virtual int64_t entries() const { return 0; }
  // As sparsek_plan_info says: it may wait for the device.
  virtual int64_t recomputed() const { return 0; }
  // As sparsek_plan_info says. It waits for a copy from the device, but for no product.
  virtual uint64_t digest() const { return 0; }
  // Device memory that one product works in.
  virtual size_t product_bytes() const { return 0; }
  // Blocks that a product of SPARSEK_SDD writes.
  virtual int64_t blocks() const { return 0; }
  // As sparsek.h says of plan_update.
  virtual void update(const sparsek_bsr& /*index*/) {
    fail(SPARSEK_BAD_ARGUMENT, "a plan of a kernel of another library gets no other index");
  }
  virtual void multiply(const MultiplyArgs& args) = 0;
  virtual void multiply_time(const MultiplyArgs* args, int arg_count, int warmup, int repeats, double* seconds) = 0;
  // Seconds that laying the matrix's values out for this plan takes: once for new ones from the host, with each product
  // for those that are referenced. Measured, so it waits for the device, and throws SPARSEK_NULL_POINTER where no
  // values are set. 0 where they are read as they are.
  virtual double setup_time() { return 0; }
  // As MatrixState::end_in.
  virtual void end_in(sparsek_stream /*stream*/) {}
};

// Plan options with the defaults filled in, of a product in its form (abi/product_form.h).
struct PlanOptions {
  sparsek_op op = SPARSEK_DSD;  // as it was asked for
  sparsek_order order_x = SPARSEK_ROW_MAJOR, order_b = SPARSEK_ROW_MAJOR, order_c = SPARSEK_ROW_MAJOR;
  int64_t ldx = 0;
  int64_t n, ldb, ldc;
  int32_t alignment, alignment_c;  // of B and of C
  std::string kernel;              // empty: to be chosen
  sparsek_dtype dtype_b, dtype_c;
  sparsek_bias bias;
  sparsek_activation activation;
  bool allow_dense;              // the caller accepts what absent blocks, multiplied as zeros, make of Inf and NaN
  bool own_kernels = false;      // none of another library
  bool user_cache = true;        // the user's measurements may be read, and others added
  bool batch_invariant = false;  // the order of sums, and so the kernel, must not depend on n; with own_kernels
  int32_t workers = 0;           // the most CTAs, or threads, of a product; 0: all
  bool values_static = false;    // no kernel that may still run when a product begins writes A's values
  bool tf32 = false;             // elements may be rounded to TF32

  bool operator==(const PlanOptions& other) const {
    const auto members = [](const PlanOptions& o) {
      return std::tie(o.op, o.order_x, o.order_b, o.order_c, o.ldx, o.n, o.ldb, o.ldc, o.alignment, o.alignment_c,
                      o.kernel, o.dtype_b, o.dtype_c, o.bias, o.activation, o.allow_dense, o.own_kernels, o.user_cache,
                      o.batch_invariant, o.workers, o.values_static, o.tf32);
    };
    return members(*this) == members(other);
  }
};

// Bytes of a plan in memory of the caller's, and of the workspace of its products.
struct PlanDataSize {
  size_t plan, product;
};

// Attention over one layout. Arguments come checked, and with their strides filled in.
class AttentionState {
 public:
  virtual ~AttentionState() = default;
  // All but blocks, partial and pairs.
  virtual void info(sparsek_attention_info& out) const = 0;
  virtual void forward(const sparsek_attention_args& args) = 0;
  virtual void backward(const sparsek_attention_args& args) = 0;
  virtual void time(const sparsek_attention_args* args, int arg_count, bool backward, int warmup, int repeats,
                    double* seconds) = 0;
  // Another layout, of the same rows and blocks: on the host, or in device memory with no more blocks than the first,
  // in the order of its stream.
  virtual void update(AttentionLayout /*layout*/) {
    fail(SPARSEK_WRONG_MEMORY, "the layout lies in host memory: attention on a GPU gets another one in device memory");
  }
  virtual void update_on_device(const sparsek_bsr& /*layout*/) {
    fail(SPARSEK_WRONG_MEMORY, "the CPU back-end takes host arrays: the layout's memory is not SPARSEK_HOST");
  }
  // As MatrixState::check_index.
  virtual bool check_index(bool /*wait*/) { return true; }
  // As MatrixState::end_in.
  virtual void end_in(sparsek_stream /*stream*/) {}
};

// SMs that are held until this is destroyed.
class SmHold {
 public:
  virtual ~SmHold() = default;
  // Lets them go and waits until they are free. Whether they were free before, since the time had passed.
  virtual bool release() = 0;
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual sparsek_backend kind() const = 0;
  virtual int device() const = 0;
  virtual int threads() const = 0;
  virtual const char* isa() const = 0;
  // Whether this process is a forked child in which the back-end does not work. What was made by it must not even be
  // destroyed then, only forgotten.
  virtual bool is_lost() const { return false; }

  // Takes host arrays as they are, or device arrays where the back-end has such (else throws
  // SPARSEK_WRONG_MEMORY). Checks the index as sparsek.h says.
  virtual std::unique_ptr<MatrixState> make_matrix(const sparsek_bsr& a) = 0;
  // By the kernel that is named. Throws SPARSEK_NO_SUCH_KERNEL where it does not exist or does not serve.
  virtual std::unique_ptr<PlanState> make_plan(MatrixState& matrix, const PlanOptions& options) = 0;

  // Plans in memory of the caller's, of a pattern of which only the sizes are known; sparsek.h tells of all of this at
  // plan_measure. The kernel is named, as in make_plan.
  virtual std::unique_ptr<MatrixState> make_pattern(const BsrShape& shape, sparsek_dtype dtype) = 0;
  virtual PlanDataSize plan_data_size(MatrixState& pattern, const PlanOptions& options) = 0;
  virtual void write_plan_data(MatrixState& pattern, const PlanOptions& options, const sparsek_bsr& index, void* memory,
                               int64_t* fault) = 0;
  virtual std::unique_ptr<PlanState> open_plan_data(MatrixState& pattern, const PlanOptions& options,
                                                    const void* memory) = 0;

  // For the choice of a kernel. What the products run on: the GPU's name, or the CPU's vector instructions.
  virtual const std::string& processor() const = 0;
  virtual int units() const = 0;  // SMs, or threads
  // The kernels that are there to be chosen, in the order of priority; those of other libraries, which are opened for
  // it, where they are wanted.
  virtual std::vector<tune::Candidate> candidates(const MatrixState& matrix, const PlanOptions& options,
                                                  bool libraries) = 0;
  virtual std::unique_ptr<tune::Rehearsal> rehearse(MatrixState& matrix, const PlanOptions& options) = 0;

  virtual void* allocate(size_t bytes) = 0;
  virtual void release(void* buffer) = 0;
  virtual void write(void* buffer, const void* host, size_t bytes, sparsek_stream stream) = 0;
  virtual void read(void* host, const void* buffer, size_t bytes, sparsek_stream stream) = 0;
  virtual void fill(void* buffer, int byte, size_t bytes, sparsek_stream stream) = 0;

  virtual sparsek_stream stream_create() = 0;
  virtual void stream_destroy(sparsek_stream stream) = 0;
  virtual void stream_synchronize(sparsek_stream stream) = 0;
  virtual bool stream_done(sparsek_stream stream) = 0;

  // In device memory; back-ends without it refuse. As sparsek.h says of pattern_from_mask and what follows it.
  virtual void make_index(const pattern::MakeJob& /*job*/) { refuse_device_memory(); }
  virtual void check_index(const pattern::Given& /*index*/, int64_t* /*fault*/, sparsek_stream /*stream*/) {
    refuse_device_memory();
  }
  virtual void work_on_values(const pattern::ValuesJob& /*job*/) { refuse_device_memory(); }
  virtual void pool_rows(const RowPool& /*job*/) { refuse_device_memory(); }

  // The kernel is named, or empty: to be chosen. Throws SPARSEK_NO_SUCH_KERNEL where there is none that serves.
  virtual std::unique_ptr<AttentionState> make_attention(const AttentionShape& /*shape*/, AttentionLayout /*layout*/,
                                                         const std::string& /*kernel*/) {
    fail(SPARSEK_NO_SUCH_KERNEL, "the CUDA back-end has no kernel of attention yet: use a context of the CPU");
  }
  // Of a layout in device memory, checked but for the index itself.
  virtual std::unique_ptr<AttentionState> make_attention_on_device(const AttentionShape& /*shape*/,
                                                                   const sparsek_bsr& /*layout*/,
                                                                   const std::string& /*kernel*/) {
    fail(SPARSEK_WRONG_MEMORY, "the CPU back-end takes host arrays: options->layout->memory is not SPARSEK_HOST");
  }

  // Product i is that of plans[i] with args[i], of `count` products; back-ends without a GPU refuse.
  virtual void graph_time(PlanState* const* /*plans*/, const MultiplyArgs* /*args*/, int /*count*/, int /*warmup*/,
                          int /*repeats*/, double* /*seconds*/) {
    fail(SPARSEK_NO_DEVICE, "graphs of products are CUDA's, and this context has no GPU");
  }
  // As sparsek.h says of sms_hold; back-ends without a GPU refuse.
  virtual std::unique_ptr<SmHold> hold_sms(int /*count*/, double /*seconds*/) {
    fail(SPARSEK_NO_DEVICE, "only SMs of a GPU can be held, and this context has no GPU");
  }
  // Back-ends without cuBLAS refuse.
  virtual void dense_time(const sparsek_dense_time_args&, double* /*seconds*/) {
    fail(SPARSEK_NO_LIBRARY, "dense products to compare with are cuBLAS's, and this context has no GPU");
  }

 private:
  [[noreturn]] static void refuse_device_memory() {
    fail(SPARSEK_WRONG_MEMORY, "the CPU back-end takes host arrays: memory is not SPARSEK_HOST");
  }
};

// threads = 0: one for each core that the process may use.
std::unique_ptr<Backend> make_cpu_backend(int threads);
// The application's allocator of device memory, as sparsek_context_options say; none where the functions are null.
struct DeviceAllocator {
  decltype(sparsek_context_options::allocate) allocate = nullptr;
  decltype(sparsek_context_options::release) release = nullptr;
  void* user = nullptr;
};

// Throws SPARSEK_NO_DEVICE where the device is none of compute capability 9.0 or there is no driver.
std::unique_ptr<Backend> make_cuda_backend(int device, const DeviceAllocator& allocator);

// Why there is no device.
struct NoDevice {
  std::string why;
  bool fault = false;  // there is a driver, and something is wrong with it
};

// Devices as the driver shows them; 0 where there is no driver, and then `out` (may be null) says why.
int cuda_device_count(NoDevice* out);
void cuda_device_info(int device, sparsek_device_info& out);

// Kernels of each back-end, in the order of priority.
int cpu_kernel_count();
void cpu_kernel_info(int index, sparsek_kernel_info& out);
int cuda_kernel_count();
void cuda_kernel_info(int index, sparsek_kernel_info& out);

// cpu/check.cpp: fills the report for a product of SPARSEK_DSD with row-major operands; arguments were checked at the
// edge, and the defaults are filled in. turned_over: the report is to be that of the transpose of C.
void check_result(const sparsek_check_args& args, bool turned_over, sparsek_check_report& report);

}  // namespace sparsek
