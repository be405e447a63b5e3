// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>
#include <mutex>
#include <type_traits>

namespace sparsek::cuda {

// Device memory in the order of streams, which the driver keeps for the next use. For several threads at once.
class MemoryPool {
 public:
  explicit MemoryPool(int device);

  // Has the pool keep so many bytes, for the largest of all calls, beside what it keeps anyway.
  void keep(size_t bytes);
  // To be used by what is put into the stream from now on. Throws Error where there is none.
  void* allocate(size_t bytes, cudaStream_t stream);
  // Behind what was put into the stream until now.
  void release(void* memory, cudaStream_t stream) noexcept { cudaFreeAsync(memory, stream); }

 private:
  struct Destroy {
    void operator()(cudaMemPool_t pool) const { cudaMemPoolDestroy(pool); }  // takes effect when all was released
  };
  std::unique_ptr<std::remove_pointer_t<cudaMemPool_t>, Destroy> pool_;
  std::mutex mutex_;  // of largest_
  size_t largest_ = 0;
};

}  // namespace sparsek::cuda
