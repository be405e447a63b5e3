// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "abi/backend.h"
#include "abi/error.h"
#include "cpu/cpu_attention.h"
#include "cpu/cpu_count.h"
#include "cpu/cpu_plan.h"
#include "cpu/cpu_tuning.h"
#include "cpu/plan_data.h"

namespace sparsek {
namespace {

class CpuBackend final : public Backend {
 public:
  explicit CpuBackend(int threads) : isa_(cpu::first_kernel().isa), workers_(std::make_shared<cpu::Workers>(threads)) {}

  sparsek_backend kind() const override { return SPARSEK_CPU; }
  int device() const override { return 0; }
  int threads() const override { return workers_->pool.threads(); }
  const char* isa() const override { return isa_.c_str(); }

  std::unique_ptr<MatrixState> make_matrix(const sparsek_bsr& a) override {
    return std::make_unique<cpu::CpuMatrix>(a);
  }
  std::unique_ptr<PlanState> make_plan(MatrixState& matrix, const PlanOptions& options) override {
    return std::make_unique<cpu::CpuPlan>(static_cast<cpu::CpuMatrix&>(matrix), options, workers_);
  }

  std::unique_ptr<MatrixState> make_pattern(const BsrShape& shape, sparsek_dtype dtype) override {
    return std::make_unique<cpu::CpuMatrix>(shape, dtype);
  }
  PlanDataSize plan_data_size(MatrixState& pattern, const PlanOptions& options) override {
    cpu::kernel_named(options.kernel);
    return {cpu::plan_data_bytes(pattern.shape()), 0};
  }
  void write_plan_data(MatrixState& pattern, const PlanOptions&, const sparsek_bsr& index, void* memory,
                       int64_t* fault) override {
    cpu::write_plan_data(pattern.shape(), index, memory, fault);
  }
  std::unique_ptr<PlanState> open_plan_data(MatrixState& pattern, const PlanOptions& options,
                                            const void* memory) override {
    auto& matrix = static_cast<cpu::CpuMatrix&>(pattern);
    matrix.set_index(cpu::read_plan_data(pattern.shape(), memory));
    return std::make_unique<cpu::CpuPlan>(matrix, options, workers_);
  }

  std::unique_ptr<AttentionState> make_attention(const AttentionShape& shape, AttentionLayout layout,
                                                 const std::string& kernel) override {
    return cpu::make_attention(shape, std::move(layout), kernel, workers_);
  }

  const std::string& processor() const override { return isa_; }
  int units() const override { return threads(); }
  std::vector<tune::Candidate> candidates(const MatrixState& matrix, const PlanOptions& options, bool) override {
    return cpu::list_candidates(matrix, options, threads());
  }
  std::unique_ptr<tune::Rehearsal> rehearse(MatrixState& matrix, const PlanOptions& options) override {
    return cpu::make_rehearsal(matrix, options);
  }

  void* allocate(size_t bytes) override {
    constexpr size_t kAlignment = 64;
    void* const buffer =
        bytes > SIZE_MAX - kAlignment ? nullptr : std::aligned_alloc(kAlignment, (bytes / kAlignment + 1) * kAlignment);
    if (buffer == nullptr) fail(SPARSEK_OUT_OF_MEMORY, "%zu bytes of host memory cannot be allocated", bytes);
    return buffer;
  }
  void release(void* buffer) override { std::free(buffer); }

  // Every call has finished when it returns, so nothing is pending.
  void write(void* buffer, const void* host, size_t bytes, sparsek_stream) override { copy(buffer, host, bytes); }
  void read(void* host, const void* buffer, size_t bytes, sparsek_stream) override { copy(host, buffer, bytes); }
  void fill(void* buffer, int byte, size_t bytes, sparsek_stream) override {
    if (bytes > 0) std::memset(buffer, byte, bytes);
  }

  sparsek_stream stream_create() override { return nullptr; }
  void stream_destroy(sparsek_stream) override {}
  void stream_synchronize(sparsek_stream) override {}
  bool stream_done(sparsek_stream) override { return true; }

 private:
  static void copy(void* to, const void* from, size_t bytes) {
    if (bytes > 0) std::memcpy(to, from, bytes);  // null pointers are allowed with no bytes
  }

  const std::string isa_;
  const std::shared_ptr<cpu::Workers> workers_;
};

}  // namespace

std::unique_ptr<Backend> make_cpu_backend(int threads) {
  return std::make_unique<CpuBackend>(threads > 0 ? threads : cpu::usable_cpu_count());
}

}  // namespace sparsek
