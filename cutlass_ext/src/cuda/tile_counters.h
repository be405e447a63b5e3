// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "cuda/device_array.h"

namespace sparsek::cuda {

// Counters in device memory, from which the CTAs of a product take their tiles (collective/tile_queue.hpp). A counter
// is 0 except while a product runs that takes tiles from it, so only one product may have it at a time:
//
//   in a stream  products follow each other, and share the counter of their stream. A stream keeps its counter for the
//                life of this object, four bytes, since its products may run on after it was destroyed.
//   in a graph   each captured product has a counter of its own for as long as the graph, an executable graph or a copy
//                of it exists. Copies that run at once are at odds anyway: they write the same C.
//
// For several threads at once. Graphs may outlive the object's owner, hence std::enable_shared_from_this.
class TileCounters : public std::enable_shared_from_this<TileCounters> {
 public:
  // Counters are made on the current device, and set to 0 in the stream, for which this waits.
  explicit TileCounters(cudaStream_t stream);

  // For a product that is about to be put into the stream, or where that is being captured, into its graph.
  uint32_t* of(cudaStream_t stream, bool captured);

  // Frees all counters. What was captured must not run any more.
  void clear();

 private:
  struct Loan;

  void grow();
  uint32_t* take();
  void give_back(uint32_t* counter) noexcept;

  const cudaStream_t stream_;
  std::mutex mutex_;  // of what follows
  std::vector<DeviceArray<uint32_t>> chunks_;
  std::vector<uint32_t*> free_;
  std::unordered_map<unsigned long long, uint32_t*> of_stream_;  // by cudaStreamGetId
};

}  // namespace sparsek::cuda
