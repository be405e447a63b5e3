// SPDX-License-Identifier: Apache-2.0
#include "cuda/memory_pool.h"

#include <cstdint>

#include "cuda/cuda_error.h"

namespace sparsek::cuda {
namespace {

// What the pool keeps while nothing uses it: many plans of the usual size and a few workspaces for split
// tiles, beside the largest workspace.
constexpr uint64_t kKeptBytes = uint64_t{128} << 20;

}  // namespace

MemoryPool::MemoryPool(int device, const DeviceAllocator& allocator) : device_(device), allocator_(allocator) {
  if (allocator.allocate != nullptr) return;
  cudaMemPoolProps properties = {};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location.type = cudaMemLocationTypeDevice;
  properties.location.id = device;
  cudaMemPool_t pool = nullptr;
  check(cudaMemPoolCreate(&pool, &properties), "cudaMemPoolCreate");
  pool_.reset(pool);
  // Memory whose release still waits for products is not handed out: its next user would wait for them too.
  int allowed = 0;
  check(cudaMemPoolSetAttribute(pool, cudaMemPoolReuseAllowInternalDependencies, &allowed), "cudaMemPoolSetAttribute");
  keep(0);
}

void MemoryPool::keep(size_t bytes) {
  if (pool_ == nullptr) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (bytes > largest_) largest_ = bytes;
  uint64_t kept = kKeptBytes + largest_;
  check(cudaMemPoolSetAttribute(pool_.get(), cudaMemPoolAttrReleaseThreshold, &kept), "cudaMemPoolSetAttribute");
}

void* MemoryPool::allocate(size_t bytes, cudaStream_t stream) {
  if (pool_ == nullptr) {
    constexpr uintptr_t kAlignment = 256;
    void* const memory = allocator_.allocate(allocator_.user, bytes, device_, stream);
    if (memory == nullptr) {
      fail(SPARSEK_OUT_OF_MEMORY, "the application's allocator has no %zu bytes of device %d", bytes, device_);
    }
    if (reinterpret_cast<uintptr_t>(memory) % kAlignment != 0) {
      release(memory, bytes, stream);
      fail(SPARSEK_MISALIGNED, "the application's allocator gave %p, which is no multiple of %zu bytes", memory,
           static_cast<size_t>(kAlignment));
    }
    return memory;
  }
  void* memory = nullptr;
  check(cudaMallocFromPoolAsync(&memory, bytes, pool_.get(), stream), "cudaMallocFromPoolAsync");
  return memory;
}

void MemoryPool::release(void* memory, size_t bytes, cudaStream_t stream) noexcept {
  if (pool_ == nullptr) return allocator_.release(allocator_.user, memory, bytes, device_, stream);
  cudaFreeAsync(memory, stream);
}

}  // namespace sparsek::cuda
