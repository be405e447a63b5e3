// SPDX-License-Identifier: Apache-2.0
#include "cuda/releases.h"

#include <algorithm>
#include <utility>

#include "cuda/cuda_error.h"
#include "cuda/device_scope.h"

namespace sparsek::cuda {
namespace {

// So much is kept for streams that the application has not named again: a few hundred plans.
constexpr size_t kMostKept = 256, kMostKeptBytes = size_t{64} << 20;

constexpr unsigned long long kDefaultId = ~0ull;

bool is_default(cudaStream_t stream) { return stream == nullptr || stream == cudaStreamLegacy; }

}  // namespace

Releases::Releases(MemoryPool& pool, int device) : pool_(pool), device_(device), behind_default_(cudaStreamDefault) {
  check(cudaEventCreateWithFlags(&mark_, cudaEventDisableTiming), "cudaEventCreate");
  if (const cudaError_t error = cudaMalloc(&reserve_, 1); error != cudaSuccess) {
    cudaEventDestroy(mark_);
    check(error, "cudaMalloc");
  }
}

Releases::~Releases() {
  const FinalDeviceScope scope(device_);
  settle();
  cudaFree(reserve_);
  cudaEventDestroy(mark_);
}

void Releases::opened(cudaStream_t stream) {
  unsigned long long id = 0;
  check(cudaStreamGetId(stream, &id), "cudaStreamGetId");
  const std::lock_guard lock(mutex_);
  own_.push_back({id, stream});
  ++time_;
}

void Releases::closing(cudaStream_t stream) noexcept {
  seen(stream);
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(own_.begin(), own_.end(), [&](const OwnStream& own) { return own.stream == stream; });
  if (found == own_.end()) return;
  ++time_;
  if (order_behind(stream)) {  // and with it all that is released from now on
    own_.erase(found);
  } else {
    found->stream = nullptr;
  }
}

const Releases::OwnStream* Releases::find_own(unsigned long long id) const noexcept {
  const auto found = std::find_if(own_.begin(), own_.end(), [&](const OwnStream& own) { return own.id == id; });
  return found == own_.end() ? nullptr : &*found;
}

StreamUse Releases::describe(cudaStream_t stream) const {
  if (is_default(stream)) return {kDefaultId, stream, StreamUse::Kind::kDefault};
  StreamUse use = {0, stream, StreamUse::Kind::kForeign};
  check(cudaStreamGetId(stream, &use.id), "cudaStreamGetId");
  return use;
}

bool Releases::use(StreamUses& uses, cudaStream_t stream) {
  if (is_captured(stream)) {
    uses.set_anywhere();
    return true;
  }
  if (keeps_) seen(stream);
  // By the handle, which is quicker to compare than the stream's number is to be had. Another stream has the same one
  // only when this is gone: where the library made either, time has passed; else memory is kept for the first, which
  // the application cannot name any more.
  const unsigned long long time = time_.load(std::memory_order_acquire);
  if (uses.is_last(stream, time) && stream != cudaStreamPerThread) return false;
  const RelaxedCapture relaxed;
  StreamUse use = describe(stream);
  if (use.kind == StreamUse::Kind::kForeign) {
    const std::lock_guard lock(mutex_);
    if (find_own(use.id) != nullptr) use.kind = StreamUse::Kind::kOwn;
  }
  uses.add(use, time);
  return false;
}

bool Releases::order_behind(cudaStream_t stream) noexcept {
  // Looked at before and after: another thread may begin a capture meanwhile, and what waits for a mark within it would
  // become a part of the graph.
  const auto is_free = [&] {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    return cudaStreamIsCapturing(stream, &status) == cudaSuccess && status == cudaStreamCaptureStatusNone;
  };
  const bool done = is_free() && cudaEventRecord(mark_, stream) == cudaSuccess && is_free() &&
                    cudaStreamWaitEvent(freeing_, mark_, 0) == cudaSuccess;
  if (!done) cudaGetLastError();
  return done;
}

void Releases::seen(cudaStream_t stream) noexcept {
  if (!keeps_ || is_default(stream)) return;
  const RelaxedCapture relaxed;
  unsigned long long id = 0;
  if (cudaStreamGetId(stream, &id) != cudaSuccess) {
    cudaGetLastError();
    return;
  }
  const std::lock_guard lock(mutex_);
  const auto has_id = [&](const Kept& kept) {
    return std::find(kept.ids.begin(), kept.ids.end(), id) != kept.ids.end();
  };
  if (std::none_of(kept_.begin(), kept_.end(), has_id) || !order_behind(stream)) return;
  for (Kept& kept : kept_) {
    kept.ids.erase(std::remove(kept.ids.begin(), kept.ids.end(), id), kept.ids.end());
    if (!kept.ids.empty()) continue;
    pool_.release(kept.memory, kept.bytes, freeing_);
    kept_bytes_ -= kept.bytes;
  }
  kept_.erase(std::remove_if(kept_.begin(), kept_.end(), [](const Kept& kept) { return kept.ids.empty(); }),
              kept_.end());
  keeps_ = !kept_.empty();
}

void Releases::keep(void* memory, size_t bytes, std::vector<unsigned long long> ids) {
  kept_.push_back({memory, bytes, std::move(ids)});
  kept_bytes_ += bytes;
  keeps_ = true;
}

bool Releases::order_behind(const StreamUse& use) noexcept {
  switch (use.kind) {
    case StreamUse::Kind::kDefault:
      return order_behind(behind_default_);
    case StreamUse::Kind::kOwn: {
      const OwnStream* const own = find_own(use.id);
      return own == nullptr || (own->stream != nullptr && order_behind(own->stream));
    }
    case StreamUse::Kind::kForeign:
      return false;
  }
  return false;
}

void Releases::release(void* memory, size_t bytes, const StreamUses& uses, cudaStream_t stream) noexcept {
  const FinalDeviceScope scope(device_);
  if (uses.ends_in(stream) || uses.none()) {
    pool_.release(memory, bytes, stream);
    return;
  }
  bool wait = uses.is_anywhere();
  try {
    if (!wait) {
      std::vector<unsigned long long> unknown;
      const std::vector<StreamUse> list = uses.list();
      unknown.reserve(list.size());
      const std::lock_guard lock(mutex_);
      for (const StreamUse& use : list) {
        if (!order_behind(use)) unknown.push_back(use.id);
      }
      if (unknown.empty()) {
        pool_.release(memory, bytes, freeing_);
        return;
      }
      wait = kept_.size() >= kMostKept || kept_bytes_ + bytes > kMostKeptBytes;
      if (!wait) return keep(memory, bytes, std::move(unknown));
    }
  } catch (...) {  // no memory for the lists
  }
  // Where even that is impossible, the memory stays as it is: lost, but not another's while a kernel reads it.
  if (wait_for_device()) pool_.release(memory, bytes, freeing_);
}

bool Releases::wait_for_device() noexcept {
  void* reserve = nullptr;
  std::vector<Kept> kept;
  {
    const std::lock_guard lock(mutex_);
    reserve = std::exchange(reserve_, nullptr);
    if (reserve == nullptr && cudaMalloc(&reserve, 1) != cudaSuccess) {
      cudaGetLastError();
      return false;
    }
    kept.swap(kept_);
    kept_bytes_ = 0;
    keeps_ = false;
  }
  // Freeing memory that is of no pool waits for whatever the device has to do, and leaves captures alone:
  // cudaDeviceSynchronize would spoil them.
  cudaFree(reserve);
  for (const Kept& one : kept) pool_.release(one.memory, one.bytes, freeing_);
  const std::lock_guard lock(mutex_);
  if (reserve_ == nullptr && cudaMalloc(&reserve_, 1) != cudaSuccess) cudaGetLastError();  // tried again when needed
  return true;
}

void Releases::settle() noexcept {
  if (keeps_) wait_for_device();
  cudaStreamSynchronize(freeing_);
}

}  // namespace sparsek::cuda
