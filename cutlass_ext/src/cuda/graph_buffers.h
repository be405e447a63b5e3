// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "cuda/device_array.h"

namespace sparsek::cuda {

// Buffers of one size. Each belongs to a CUDA graph for as long as the graph, an executable graph or a copy of it
// exists. Thread-safe.
class GraphBuffers : public std::enable_shared_from_this<GraphBuffers> {
 public:
  explicit GraphBuffers(size_t bytes) : bytes_(bytes) {}

  // A buffer that no other graph has, on the current device. May be called while streams are captured.
  void* belonging_to(cudaGraph_t graph);

  // Frees all buffers, whoever has them. There is none to be taken any more.
  void clear();

 private:
  struct Loan;

  std::unique_ptr<Loan> take();
  void give_back(size_t buffer) noexcept;

  const size_t bytes_;
  std::mutex mutex_;  // held for what is below
  std::vector<DeviceArray<std::byte>> buffers_;
  std::vector<size_t> free_;  // places in buffers_
};

}  // namespace sparsek::cuda
