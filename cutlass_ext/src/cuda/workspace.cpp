// SPDX-License-Identifier: Apache-2.0
#include "cuda/workspace.h"

#include "cuda/cuda_error.h"
#include "cuda/graph_buffers.h"
#include "cuda/graph_guest.h"

namespace sparsek::cuda {
Workspace::Workspace(MemoryPool& pool, size_t bytes)
    : pool_(pool), bytes_(bytes), graph_buffers_(std::make_shared<GraphBuffers>(bytes)) {
  pool.keep(bytes);
}

void Workspace::take_in_store(cudaStream_t stream) {
  pool_.release(pool_.allocate(bytes_, stream), bytes_, stream);
  check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
}

Workspace::~Workspace() { graph_buffers_->clear(); }

Workspace::Use::Use(Workspace& workspace, cudaStream_t stream)
    : pool_(workspace.pool_), bytes_(workspace.bytes_), stream_(stream) {
  const cudaGraph_t graph = captured_graph(stream);
  captured_ = graph != nullptr;
  data_ = captured_ ? workspace.graph_buffers_->belonging_to(graph) : pool_.allocate(workspace.bytes_, stream);
}

Workspace::Use::~Use() {
  if (!captured_) pool_.release(data_, bytes_, stream_);
}

}  // namespace sparsek::cuda
