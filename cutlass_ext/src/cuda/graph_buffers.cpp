// SPDX-License-Identifier: Apache-2.0
#include "cuda/graph_buffers.h"

#include <utility>

#include "cuda/cuda_error.h"

namespace sparsek::cuda {
// What a graph refers to, and each copy of it. Its end is told by a thread of the driver, which must not call CUDA and
// may come when the plan is gone: so the buffer is not freed, only given back.
struct GraphBuffers::Loan {
  Loan(std::shared_ptr<GraphBuffers> from, size_t buffer, void* memory)
      : from(std::move(from)), buffer(buffer), memory(memory) {}
  ~Loan() { from->give_back(buffer); }
  Loan(const Loan&) = delete;
  Loan& operator=(const Loan&) = delete;

  const std::shared_ptr<GraphBuffers> from;
  const size_t buffer;
  void* const memory;
};

void CUDART_CB GraphBuffers::end_loan(void* loan) { delete static_cast<Loan*>(loan); }

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
  cudaUserObject_t object = nullptr;
  check(cudaUserObjectCreate(&object, loan.get(), end_loan, 1, cudaUserObjectNoDestructorSync), "cudaUserObjectCreate");
  loan.release();  // it is the object's
  // The object's one reference becomes the graph's.
  if (const cudaError_t error = cudaGraphRetainUserObject(graph, object, 1, cudaGraphUserObjectMove);
      error != cudaSuccess) {
    cudaUserObjectRelease(object, 1);
    check(error, "cudaGraphRetainUserObject");
  }
  return memory;
}

}  // namespace sparsek::cuda
