// SPDX-License-Identifier: Apache-2.0
#include "cuda/plan_memory.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "abi/error.h"

namespace sparsek::cuda {

PlanMemory::PlanMemory(MemoryPool& pool, int device) : pool_(pool), releases_(pool, device) {
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
  stream_.reset(stream);
  void* staging = nullptr;
  check(cudaMallocHost(&staging, kStagingBytes), "cudaMallocHost");
  staging_.reset(static_cast<std::byte*>(staging));
  tile_counters_ = std::make_shared<TileCounters>(stream);
}

PlanMemory::Block PlanMemory::allocate(size_t bytes, const StreamUses* uses, cudaStream_t stream) {
  Block block;
  try {
    block.data_ = static_cast<std::byte*>(pool_.allocate(bytes, stream));
  } catch (const Error& error) {
    if (error.status() != SPARSEK_OUT_OF_MEMORY) throw;
    releases_.settle();  // what was released may not have been freed yet
    block.data_ = static_cast<std::byte*>(pool_.allocate(bytes, stream));
  }
  block.bytes_ = bytes;
  block.from_ = this;
  block.uses_ = uses;
  block.stream_ = stream;
  return block;
}

PlanMemory::Block::~Block() {
  if (data_ == nullptr) return;
  static const StreamUses kNone;
  from_->releases_.release(data_, bytes_, uses_ == nullptr ? kNone : *uses_, stream_);
}

void PlanMemory::Block::swap(Block& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(from_, other.from_);
  std::swap(uses_, other.uses_);
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
