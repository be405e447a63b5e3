// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>
#include <mutex>
#include <type_traits>

#include "abi/backend.h"

namespace sparsek::cuda {

// Device memory in the order of streams: the application's, where it gives an allocator, else of a pool of the
// driver's, which keeps it for the next use. For several threads at once.
class MemoryPool {
 public:
  explicit MemoryPool(int device, const DeviceAllocator& allocator = {});

  // Has a pool of the driver's keep so many bytes, for the largest of all calls, beside what it keeps anyway.
  void keep(size_t bytes);
  // To be used by what is put into the stream from now on. Throws Error where there is none.
  void* allocate(size_t bytes, cudaStream_t stream);
  // Behind what was put into the stream until now.
  void release(void* memory, size_t bytes, cudaStream_t stream) noexcept;

 private:
  struct Destroy {
    void operator()(cudaMemPool_t pool) const { cudaMemPoolDestroy(pool); }  // takes effect when all was released
  };
  const int device_;
  const DeviceAllocator allocator_;
  std::unique_ptr<std::remove_pointer_t<cudaMemPool_t>, Destroy> pool_;  // null: the application's memory
  std::mutex mutex_;                                                     // of largest_
  size_t largest_ = 0;
};

}  // namespace sparsek::cuda
