// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>

#include "abi/backend.h"
#include "cuda/hold_kernel.h"
#include "cuda/stream.h"

namespace sparsek::cuda {

// The words of a hold, in pinned memory that is taken with the first and kept: cudaHostAlloc and cudaFreeHost wait for
// kernels that hold SMs, also those of other contexts. For several threads at once.
class HoldMemory {
 public:
  explicit HoldMemory(int sm_count) : sm_count_(sm_count) {}
  int sm_count() const { return sm_count_; }
  // All 0, and room for a word of each SM behind them. Throws SPARSEK_BAD_ARGUMENT where they are taken. The device is
  // the current one.
  HoldWords* take();
  void give_back() noexcept;

 private:
  struct Free {
    void operator()(void* memory) const { cudaFreeHost(memory); }
  };

  const int sm_count_;
  std::mutex mutex_;  // of those below
  std::unique_ptr<HoldWords, Free> memory_;
  bool is_taken_ = false;
};

// SMs of the device that are held, as sparsek.h says of sms_hold.
class CudaSmHold final : public SmHold {
 public:
  // Waits until all are held. The device is the current one; memory, which is its, must outlive this.
  CudaSmHold(int device, HoldMemory& memory, int count, double seconds);
  ~CudaSmHold() override;
  bool release() override;

 private:
  struct GiveBack {
    HoldMemory* memory;
    void operator()(HoldWords*) const { memory->give_back(); }
  };

  const uint32_t* cta_words() const { return reinterpret_cast<const uint32_t*>(words_.get() + 1); }
  // Throws where the kernel has failed.
  void check_kernel() const;
  void wait_for_all(double seconds) const;
  // Waits until all CTAs have ended.
  void stop();

  const int device_;
  const int count_;
  Stream stream_;
  std::unique_ptr<HoldWords, GiveBack> words_;
  bool stopped_ = false;
};

}  // namespace sparsek::cuda
