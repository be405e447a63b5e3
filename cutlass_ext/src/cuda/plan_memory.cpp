// SPDX-License-Identifier: Apache-2.0
#include "cuda/plan_memory.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace sparsek::cuda {

PlanMemory::PlanMemory(MemoryPool& pool) : pool_(pool) {
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
  stream_.reset(stream);
  void* staging = nullptr;
  check(cudaMallocHost(&staging, kStagingBytes), "cudaMallocHost");
  staging_.reset(static_cast<std::byte*>(staging));
}

PlanMemory::Block PlanMemory::allocate(size_t bytes) {
  return Block(static_cast<std::byte*>(pool_.allocate(bytes, stream())), bytes, stream());
}

PlanMemory::Block::~Block() {
  if (data_ != nullptr) cudaFreeAsync(data_, stream_);
}

void PlanMemory::Block::swap(Block& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(stream_, other.stream_);
}

void PlanMemory::copy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  check(cudaMemcpyAsync(to, from, bytes, kind, stream()), "cudaMemcpyAsync");
  check(cudaStreamSynchronize(stream()), "cudaStreamSynchronize");
}

void PlanMemory::write(const Block& to, const std::vector<HostPart>& parts) {
  const std::lock_guard<std::mutex> lock(staging_use_);
  std::byte* const staging = staging_.get();
  size_t begin = 0, end = 0;  // of the block: what the staging memory holds
  for (const HostPart& part : parts) {
    for (size_t done = 0; done < part.bytes;) {
      const size_t at = part.at + done;
      if (at >= begin + kStagingBytes) {
        copy(to.data() + begin, staging, end - begin, cudaMemcpyHostToDevice);
        begin = at;
      }
      const size_t now = std::min(part.bytes - done, begin + kStagingBytes - at);
      std::memcpy(staging + (at - begin), static_cast<const std::byte*>(part.from) + done, now);
      end = at + now;
      done += now;
    }
  }
  if (end > begin) copy(to.data() + begin, staging, end - begin, cudaMemcpyHostToDevice);
}

}  // namespace sparsek::cuda
