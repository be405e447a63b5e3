// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "abi/backend.h"
#include "cuda/hold_kernel.h"
#include "cuda/stream.h"

namespace sparsek::cuda {

// SMs of the device that are held, as sparsek.h says of sms_hold.
class CudaSmHold final : public SmHold {
 public:
  // Waits until all are held. The device, which has `sm_count` SMs, is the current one.
  CudaSmHold(int device, int sm_count, int count, double seconds);
  ~CudaSmHold() override;
  bool release() override;

 private:
  struct Free {
    void operator()(HoldWords* words) const { cudaFreeHost(words); }
  };

  void wait_for_all(int count, double seconds) const;
  void stop();

  const int device_;
  Stream stream_;
  std::unique_ptr<HoldWords, Free> words_;
  bool stopped_ = false;
};

}  // namespace sparsek::cuda
