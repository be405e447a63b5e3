// SPDX-License-Identifier: Apache-2.0
#include "cuda/tile_counters.h"

#include <utility>

#include "cuda/cuda_error.h"
#include "cuda/driver.h"
#include "cuda/graph_guest.h"

namespace sparsek::cuda {
namespace {

constexpr size_t kChunk = 1024;  // counters of one allocation

unsigned long long id_of(cudaStream_t stream) {
  unsigned long long id = 0;
  const auto ask = driver().stream_id;
  if (ask != nullptr && ask(stream, &id) == CUDA_SUCCESS) return id;
  check(cudaStreamGetId(stream, &id), "cudaStreamGetId");
  return id;
}

}  // namespace

struct TileCounters::Loan final : GraphGuest {
  Loan(std::shared_ptr<TileCounters> from, uint32_t* counter) : from(std::move(from)), counter(counter) {}
  ~Loan() override { from->give_back(counter); }

  const std::shared_ptr<TileCounters> from;
  uint32_t* const counter;
};

TileCounters::TileCounters(cudaStream_t stream) : stream_(stream) { grow(); }

void TileCounters::grow() {
  DeviceArray<uint32_t> chunk(kChunk);
  const RelaxedCapture relaxed;
  check(cudaMemsetAsync(chunk.data(), 0, chunk.bytes(), stream_), "cudaMemsetAsync");
  check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
  const std::lock_guard<std::mutex> lock(mutex_);
  free_.reserve(kChunk * (chunks_.size() + 1));  // so that giving back needs no memory
  chunks_.push_back(std::move(chunk));
  for (size_t i = kChunk; i-- > 0;) free_.push_back(chunks_.back().data() + i);
}

uint32_t* TileCounters::take() {
  while (true) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (!free_.empty()) {
        uint32_t* const counter = free_.back();
        free_.pop_back();
        return counter;
      }
    }
    // Not while the lock is held: a thread of the driver that gives back must not wait for the driver.
    grow();
  }
}

void TileCounters::give_back(uint32_t* counter) noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!chunks_.empty()) free_.push_back(counter);
}

void TileCounters::clear() {
  decltype(chunks_) gone;  // destroyed behind the lock: see take
  const std::lock_guard<std::mutex> lock(mutex_);
  gone.swap(chunks_);
  free_.clear();
}

uint32_t* TileCounters::of(cudaStream_t stream, bool captured) {
  if (captured) {
    const cudaGraph_t graph = captured_graph(stream);
    uint32_t* const counter = take();
    give_to_graph(graph, std::make_unique<Loan>(shared_from_this(), counter));
    return counter;
  }
  // The number and not the handle, which another stream may get while this one's products still run.
  const unsigned long long id = id_of(stream);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (const auto found = of_stream_.find(id); found != of_stream_.end()) return found->second;
  }
  uint32_t* const counter = take();
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto [place, is_new] = of_stream_.emplace(id, counter);
  if (!is_new) free_.push_back(counter);  // another thread was faster
  return place->second;
}

}  // namespace sparsek::cuda
