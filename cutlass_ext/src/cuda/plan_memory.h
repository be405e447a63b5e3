// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstring>
#include <memory>
#include <mutex>
#include <type_traits>
#include <vector>

#include "cuda/cuda_error.h"
#include "cuda/event_pool.h"
#include "cuda/memory_pool.h"
#include "cuda/releases.h"
#include "cuda/tile_counters.h"

namespace sparsek::cuda {

// An array of the host that is copied to byte `at` of a block of device memory.
struct HostPart {
  const void* from;
  size_t bytes;
  size_t at;
};

// The device memory that the matrices and plans of a context lie in, and the stream in which they are made. From a
// pool, so that a plan lies where one before it lay: a call of cudaMalloc or cudaFree takes longer than making a small
// plan, and waits for whatever runs. For several threads at once.
class PlanMemory {
 public:
  // The current device must be that of the pool, here and wherever a function of this is called. The pool must outlive
  // this.
  PlanMemory(MemoryPool& pool, int device);
  ~PlanMemory() { tile_counters_->clear(); }
  PlanMemory(const PlanMemory&) = delete;
  PlanMemory& operator=(const PlanMemory&) = delete;

  // Owns some bytes. They are given back without waiting, behind the uses of them that are recorded.
  class Block {
   public:
    Block() = default;
    ~Block();
    Block(Block&& other) noexcept { swap(other); }
    Block& operator=(Block&& other) noexcept {
      swap(other);
      return *this;
    }

    std::byte* data() const { return data_; }
    size_t bytes() const { return bytes_; }
    // Where nothing that was put into the stream until now uses it any more: it is given back behind this one.
    void give_back_in(cudaStream_t stream) { stream_ = stream; }

   private:
    friend class PlanMemory;
    void swap(Block& other) noexcept;

    std::byte* data_ = nullptr;
    size_t bytes_ = 0;
    PlanMemory* from_ = nullptr;
    const StreamUses* uses_ = nullptr;
    cudaStream_t stream_ = nullptr;
  };

  // To be used in the stream, or when what the stream holds has ended. uses: where its uses in other streams are
  // recorded; it must outlive the block. Null: there are none. Throws SPARSEK_OUT_OF_MEMORY.
  Block allocate(size_t bytes, const StreamUses* uses) { return allocate(bytes, uses, stream()); }
  Block allocate(size_t bytes, const StreamUses* uses, cudaStream_t stream);
  cudaStream_t stream() const { return stream_.get(); }
  MemoryPool& pool() { return pool_; }
  Releases& releases() { return releases_; }
  TileCounters& tile_counters() { return *tile_counters_; }
  EventPool& events() { return events_; }

  // These are ordered in the stream, and complete when they return. What lies between the parts of a block gets any
  // value; parts are in ascending order.
  void write(const Block& to, const std::vector<HostPart>& parts);
  template <class T>
  T read(const T* from) {
    T value;
    read(&value, from, 1);
    return value;
  }
  // count: of elements that fit into the staging memory.
  template <class T>
  void read(T* to, const T* from, size_t count) {
    static_assert(std::is_trivially_copyable_v<T>);
    const std::lock_guard<std::mutex> lock(staging_use_);
    copy(staging_.get(), from, count * sizeof(T), cudaMemcpyDeviceToHost);
    std::memcpy(to, staging_.get(), count * sizeof(T));
  }

 private:
  static constexpr size_t kStagingBytes = size_t{1} << 20;

  struct Destroy {
    void operator()(cudaStream_t stream) const { cudaStreamDestroy(stream); }
    void operator()(std::byte* pinned) const { cudaFreeHost(pinned); }
  };

  // Complete when it returns.
  void copy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind);

  MemoryPool& pool_;
  Releases releases_;
  EventPool events_;
  std::unique_ptr<std::remove_pointer_t<cudaStream_t>, Destroy> stream_;
  std::mutex staging_use_;
  std::shared_ptr<TileCounters> tile_counters_;
  std::unique_ptr<std::byte, Destroy> staging_;  // pinned: the GPU copies from it and to it by itself
};

// Owns an array in such memory.
template <class T>
class PoolArray {
 public:
  PoolArray() = default;
  // As PlanMemory::allocate.
  PoolArray(PlanMemory& memory, size_t count, const StreamUses* uses)
      : PoolArray(memory, count, uses, memory.stream()) {}
  PoolArray(PlanMemory& memory, size_t count, const StreamUses* uses, cudaStream_t stream) {
    if (count > 0) block_ = memory.allocate(count * sizeof(T), uses, stream);
  }

  T* data() const { return reinterpret_cast<T*>(block_.data()); }
  size_t bytes() const { return block_.bytes(); }
  const PlanMemory::Block& block() const { return block_; }

 private:
  PlanMemory::Block block_;
};

}  // namespace sparsek::cuda
