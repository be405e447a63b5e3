// SPDX-License-Identifier: Apache-2.0
#include "cuda/graph_buffers.h"

#include <utility>

#include "cuda/graph_guest.h"

namespace sparsek::cuda {
// Its end may come when the plan is gone, and without CUDA: so the buffer is not freed, only given back.
struct GraphBuffers::Loan final : GraphGuest {
  Loan(std::shared_ptr<GraphBuffers> from, size_t buffer, void* memory)
      : from(std::move(from)), buffer(buffer), memory(memory) {}
  ~Loan() override { from->give_back(buffer); }

  const std::shared_ptr<GraphBuffers> from;
  const size_t buffer;
  void* const memory;
};

std::unique_ptr<GraphBuffers::Loan> GraphBuffers::take() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!free_.empty()) {
      const size_t buffer = free_.back();
      free_.pop_back();
      return std::make_unique<Loan>(shared_from_this(), buffer, buffers_[buffer].data());
    }
  }
  // Not while the lock is held: the thread that gives back must not wait for the driver.
  DeviceArray<std::byte> made(bytes_);
  const std::lock_guard<std::mutex> lock(mutex_);
  free_.reserve(buffers_.size() + 1);  // so that giving back needs no memory
  buffers_.push_back(std::move(made));
  return std::make_unique<Loan>(shared_from_this(), buffers_.size() - 1, buffers_.back().data());
}

void GraphBuffers::give_back(size_t buffer) noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!buffers_.empty()) free_.push_back(buffer);
}

void GraphBuffers::clear() {
  decltype(buffers_) gone;  // destroyed behind the lock: see take
  const std::lock_guard<std::mutex> lock(mutex_);
  gone.swap(buffers_);
  free_.clear();
}

void* GraphBuffers::belonging_to(cudaGraph_t graph) {
  std::unique_ptr<Loan> loan = take();
  void* const memory = loan->memory;
  give_to_graph(graph, std::move(loan));
  return memory;
}

}  // namespace sparsek::cuda
