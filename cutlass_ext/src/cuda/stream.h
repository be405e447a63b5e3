// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include "cuda/cuda_error.h"

namespace sparsek::cuda {

// A stream of the library.
class Stream {
 public:
  // A non-blocking stream does not synchronise with the default stream.
  explicit Stream(unsigned flags = cudaStreamNonBlocking, int priority = 0) {
    check(cudaStreamCreateWithPriority(&stream_, flags, priority), "cudaStreamCreate");
  }
  ~Stream() { cudaStreamDestroy(stream_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  operator cudaStream_t() const { return stream_; }
  void wait() const { check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize"); }

 private:
  cudaStream_t stream_ = nullptr;
};

}  // namespace sparsek::cuda
