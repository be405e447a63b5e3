// SPDX-License-Identifier: Apache-2.0
// The CUDA back-end: memory, streams, and the making of matrices and plans.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <memory>

#include "abi/backend.h"
#include "abi/error.h"
#include "abi/guard.h"
#include "abi/product_form.h"
#include "cuda/attention_pool.h"
#include "cuda/cuda_attention.h"
#include "cuda/cuda_error.h"
#include "cuda/cuda_matrix.h"
#include "cuda/cuda_plan.h"
#include "cuda/device_rates.h"
#include "cuda/device_scope.h"
#include "cuda/form_plan.h"
#include "cuda/graph_time.h"
#include "cuda/list_candidates.h"
#include "cuda/make_pattern.h"
#include "cuda/memory_pool.h"
#include "cuda/plan_memory.h"
#include "cuda/rehearsal.h"
#include "cuda/sampled_kernels.h"
#include "cuda/sampled_plan.h"
#include "cuda/sm_hold.h"
#include "cuda/vendor/library_handles.h"
#include "cuda/vendor/library_plan.h"
#include "plan/transpose_index.h"

namespace sparsek {
namespace {

using cuda::check;
using cuda::DeviceScope;
using cuda::FinalDeviceScope;
using cuda::is_captured;
using cuda::LibraryHandles;
using cuda::require_not_captured;

cudaStream_t stream_of(sparsek_stream stream) { return static_cast<cudaStream_t>(stream); }

class CudaBackend final : public Backend {
 public:
  CudaBackend(int device, const sparsek_device_info& info, const DeviceAllocator& allocator)
      : device_(device),
        allocator_(allocator),
        rates_(cuda::device_rates(device)),
        l2_bytes_(static_cast<size_t>(info.l2_bytes)),
        name_(info.name),
        hold_memory_(rates_.sm_count),
        libraries_(std::make_unique<LibraryHandles>(device)) {}
  ~CudaBackend() override {
    const FinalDeviceScope scope(device_);
    libraries_.reset();
    plan_memory_.reset();
    pool_.reset();
  }

  sparsek_backend kind() const override { return SPARSEK_CUDA; }
  int device() const override { return device_; }
  int threads() const override { return 0; }
  const char* isa() const override { return "sm_90a"; }
  bool is_lost() const override { return cuda::is_cuda_lost(); }

  std::unique_ptr<MatrixState> make_matrix(const sparsek_bsr& a) override {
    DeviceScope scope(device_);
    return std::make_unique<cuda::CudaMatrix>(a, device_, plan_memory());
  }
  std::unique_ptr<PlanState> make_plan(MatrixState& matrix, const PlanOptions& options) override {
    DeviceScope scope(device_);
    auto& a = static_cast<cuda::CudaMatrix&>(matrix);
    if (options.op == SPARSEK_SDD) return std::make_unique<cuda::SampledPlan>(a, options, rates_.sm_count);
    if (cuda::has_form_plan(a.shape(), options)) return std::make_unique<cuda::FormPlan>(a, options, rates_.sm_count);
    if (const cuda::LibraryKernel* const kernel = cuda::find_library_kernel(options.kernel)) {
      if (options.own_kernels) {
        fail(SPARSEK_NO_SUCH_KERNEL, "kernel %s is one of %s, and options->flags allow only the library's own",
             kernel->name, kernel->library);
      }
      return cuda::make_library_plan(*kernel, a, options, *libraries_);
    }
    return std::make_unique<cuda::CudaPlan>(a, options, rates_.sm_count);
  }

  std::unique_ptr<MatrixState> make_pattern(const BsrShape& shape, sparsek_dtype dtype) override {
    DeviceScope scope(device_);
    return std::make_unique<cuda::CudaMatrix>(shape, dtype, device_, plan_memory());
  }
  PlanDataSize plan_data_size(MatrixState& pattern, const PlanOptions& options) override {
    const auto plan = data_plan(pattern, options, nullptr);
    return {plan->data_bytes(), plan->product_bytes()};
  }
  void write_plan_data(MatrixState& pattern, const PlanOptions& options, const sparsek_bsr& index, void* memory,
                       int64_t* fault) override {
    DeviceScope scope(device_);
    cuda::check_memory(memory, SPARSEK_DEVICE, device_, "memory");
    if (fault != nullptr) cuda::check_memory(fault, SPARSEK_DEVICE, device_, "fault");
    if (index.memory != SPARSEK_DEVICE) fail(SPARSEK_WRONG_MEMORY, "the index is not in device memory");
    cuda::check_memory(index.row_ptr, SPARSEK_DEVICE, device_, "row_ptr");
    if (index.nnzb > 0) cuda::check_memory(index.col_idx, SPARSEK_DEVICE, device_, "col_idx");
    if (index.block_idx != nullptr) cuda::check_memory(index.block_idx, SPARSEK_DEVICE, device_, "block_idx");
    named(index.stream);
    data_plan(pattern, options, memory)->write(index, fault);
  }
  std::unique_ptr<PlanState> open_plan_data(MatrixState& pattern, const PlanOptions& options,
                                            const void* memory) override {
    // What a product writes there is its counter alone, atomically.
    return data_plan(pattern, options, const_cast<void*>(memory));
  }

  std::unique_ptr<AttentionState> make_attention(const AttentionShape& shape, AttentionLayout layout,
                                                 const std::string& kernel) override {
    DeviceScope scope(device_);
    return cuda::make_attention(shape, layout, kernel, plan_memory(), device_, rates_.sm_count, l2_bytes_);
  }
  std::unique_ptr<AttentionState> make_attention_on_device(const AttentionShape& shape, const sparsek_bsr& layout,
                                                           const std::string& kernel) override {
    DeviceScope scope(device_);
    return cuda::make_attention(shape, layout, kernel, plan_memory(), device_, rates_.sm_count, l2_bytes_);
  }

  const std::string& processor() const override { return name_; }
  int units() const override { return rates_.sm_count; }
  std::vector<tune::Candidate> candidates(const MatrixState& matrix, const PlanOptions& options,
                                          bool libraries) override {
    cuda::DeviceRates rates = rates_;
    if (options.workers > 0) rates.sm_count = std::min(rates.sm_count, options.workers);
    const auto& a = static_cast<const cuda::CudaMatrix&>(matrix);
    if (options.op == SPARSEK_SDD) return cuda::list_sampled(a, options, rates);
    if (!transposes_a(options.op)) {
      return cuda::list_candidates(a, options, rates, libraries && cuda::is_plain(options));
    }
    if (const auto known = a.transposed()) return cuda::list_candidates(*known, options, rates, false);
    const cuda::CudaMatrix pattern(transposed(a.shape()), a.dtype, device_, a.memory());
    return cuda::list_candidates(pattern, options, rates, false);
  }
  std::unique_ptr<tune::Rehearsal> rehearse(MatrixState& matrix, const PlanOptions& options) override {
    DeviceScope scope(device_);
    return cuda::make_rehearsal(static_cast<cuda::CudaMatrix&>(matrix), options, l2_bytes_);
  }

  void* allocate(size_t bytes) override {
    DeviceScope scope(device_);
    void* buffer = nullptr;
    check(cudaMalloc(&buffer, bytes), "cudaMalloc");
    return buffer;
  }
  void release(void* buffer) override {
    DeviceScope scope(device_);
    check(cudaFree(buffer), "cudaFree");
  }
  void write(void* buffer, const void* host, size_t bytes, sparsek_stream stream) override {
    DeviceScope scope(device_);
    named(stream);
    check(cudaMemcpyAsync(buffer, host, bytes, cudaMemcpyHostToDevice, stream_of(stream)), "cudaMemcpyAsync");
  }
  void read(void* host, const void* buffer, size_t bytes, sparsek_stream stream) override {
    DeviceScope scope(device_);
    named(stream);
    check(cudaMemcpyAsync(host, buffer, bytes, cudaMemcpyDeviceToHost, stream_of(stream)), "cudaMemcpyAsync");
  }
  void fill(void* buffer, int byte, size_t bytes, sparsek_stream stream) override {
    DeviceScope scope(device_);
    named(stream);
    check(cudaMemsetAsync(buffer, byte, bytes, stream_of(stream)), "cudaMemsetAsync");
  }

  sparsek_stream stream_create() override {
    DeviceScope scope(device_);
    cudaStream_t stream = nullptr;
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
    try {
      plan_memory().releases().opened(stream);
    } catch (...) {
      cudaStreamDestroy(stream);
      throw;
    }
    return stream;
  }
  void stream_destroy(sparsek_stream stream) override {
    DeviceScope scope(device_);
    plan_memory().releases().closing(stream_of(stream));
    check(cudaStreamDestroy(stream_of(stream)), "cudaStreamDestroy");
  }
  void stream_synchronize(sparsek_stream stream) override {
    DeviceScope scope(device_);
    require_not_captured(stream_of(stream), "stream_synchronize");
    check(cudaStreamSynchronize(stream_of(stream)), "cudaStreamSynchronize");
    plan_memory().releases().seen(stream_of(stream));
  }
  bool stream_done(sparsek_stream stream) override {
    DeviceScope scope(device_);
    require_not_captured(stream_of(stream), "stream_query");
    const cudaError_t error = cudaStreamQuery(stream_of(stream));
    if (error == cudaErrorNotReady) return false;
    check(error, "cudaStreamQuery");
    return true;
  }

  void make_index(const pattern::MakeJob& job) override {
    DeviceScope scope(device_);
    named(job.stream);
    cuda::make_pattern(job, device_);
  }
  void check_index(const pattern::Given& index, int64_t* fault, sparsek_stream stream) override {
    DeviceScope scope(device_);
    named(stream);
    cuda::check_pattern(index, fault, stream, device_);
  }
  void work_on_values(const pattern::ValuesJob& job) override {
    DeviceScope scope(device_);
    named(job.stream);
    cuda::work_on_values(job, device_);
  }
  void pool_rows(const RowPool& job) override {
    DeviceScope scope(device_);
    named(job.stream);
    cuda::pool_rows(job, device_);
  }

  void graph_time(PlanState* const* plans, const MultiplyArgs* args, int count, int warmup, int repeats,
                  double* seconds) override {
    DeviceScope scope(device_);
    cuda::graph_time(plans, args, count, warmup, repeats, seconds);
  }
  void dense_time(const sparsek_dense_time_args& args, double* seconds) override {
    DeviceScope scope(device_);
    libraries_->cublas().time(args, seconds);
  }
  std::unique_ptr<SmHold> hold_sms(int count, double seconds) override {
    DeviceScope scope(device_);
    return std::make_unique<cuda::CudaSmHold>(device_, hold_memory_, count, seconds);
  }

 private:
  std::unique_ptr<cuda::PlanInMemory> data_plan(MatrixState& pattern, const PlanOptions& options, void* memory) {
    DeviceScope scope(device_);
    auto& a = static_cast<cuda::CudaMatrix&>(pattern);
    auto* const bytes = static_cast<std::byte*>(memory);
    if (options.op == SPARSEK_SDD) return std::make_unique<cuda::SampledPlan>(a, options, rates_.sm_count, bytes);
    if (cuda::has_form_plan(a.shape(), options))
      return std::make_unique<cuda::FormPlan>(a, options, rates_.sm_count, bytes);
    return std::make_unique<cuda::CudaPlan>(a, options, rates_.sm_count, bytes);
  }
  cuda::PlanMemory& plan_memory() {
    const std::lock_guard<std::mutex> lock(memory_mutex_);
    if (pool_ == nullptr) pool_ = std::make_unique<cuda::MemoryPool>(device_, allocator_);
    if (plan_memory_ == nullptr) plan_memory_ = std::make_unique<cuda::PlanMemory>(*pool_, device_);
    return *plan_memory_;
  }
  // Before a copy is put into a stream. Throws where that would spoil another's capture.
  void named(sparsek_stream stream) {
    if (!is_captured(stream_of(stream))) plan_memory().releases().seen(stream_of(stream));
  }

  const int device_;
  const DeviceAllocator allocator_;
  const cuda::DeviceRates rates_;
  const size_t l2_bytes_;
  const std::string name_;
  cuda::HoldMemory hold_memory_;
  std::mutex memory_mutex_;
  std::unique_ptr<cuda::MemoryPool> pool_;  // this and the next are made when they are first needed
  std::unique_ptr<cuda::PlanMemory> plan_memory_;
  std::unique_ptr<LibraryHandles> libraries_;
};

}  // namespace

std::unique_ptr<Backend> make_cuda_backend(int device, const DeviceAllocator& allocator) {
  if (cuda::is_cuda_lost()) fail(SPARSEK_CUDA_ERROR, "%s", cuda::kCudaLost);
  NoDevice none;
  const int count = cuda_device_count(&none);
  if (count == 0) fail(SPARSEK_NO_DEVICE, "%s", none.why.c_str());
  if (device < 0 || device >= count) {
    fail(SPARSEK_NO_DEVICE, "there is no CUDA device %d: the driver shows %d", device, count);
  }
  sparsek_device_info info = {};
  cuda_device_info(device, info);
  if (!info.usable) {
    fail(SPARSEK_NO_DEVICE, "CUDA device %d (%s) has compute capability %d.%d; the kernels need 9.0 (Hopper)", device,
         info.name, info.compute_major, info.compute_minor);
  }
  set_capture_mode_exchange(cuda::exchange_capture_mode);
  return std::make_unique<CudaBackend>(device, info, allocator);
}

}  // namespace sparsek
