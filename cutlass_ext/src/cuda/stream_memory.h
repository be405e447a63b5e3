// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "cuda/cuda_error.h"

namespace sparsek::cuda {

// Device memory allocated and freed in the order of the stream: valid for work that is enqueued during its lifetime. In
// a captured stream, it is memory nodes.
class StreamMemory {
 public:
  StreamMemory(size_t bytes, cudaStream_t stream) : stream_(stream) {
    if (bytes > 0) check(cudaMallocAsync(&data_, bytes, stream), "cudaMallocAsync");
  }
  ~StreamMemory() {
    if (data_ != nullptr) cudaFreeAsync(data_, stream_);
  }
  StreamMemory(const StreamMemory&) = delete;
  StreamMemory& operator=(const StreamMemory&) = delete;

  void* data() const { return data_; }

 private:
  cudaStream_t stream_;
  void* data_ = nullptr;
};

}  // namespace sparsek::cuda
