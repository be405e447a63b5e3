// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <memory>

namespace sparsek::cuda {

// What exists for as long as a CUDA graph. It is destroyed by a thread of the driver, which must not call CUDA, and may
// be so when everything else of the library is gone.
class GraphGuest {
 public:
  virtual ~GraphGuest() = default;
};

// From now on the guest belongs to the graph: it is destroyed when the graph, each executable graph and each copy of it
// are gone.
void give_to_graph(cudaGraph_t graph, std::unique_ptr<GraphGuest> guest);

// The graph that the stream is being captured into, or null.
cudaGraph_t captured_graph(cudaStream_t stream);

}  // namespace sparsek::cuda
