// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>

#include "cuda/device_scope.h"
#include "cuda/memory_pool.h"

namespace sparsek::cuda {

class GraphBuffers;

// The memory that the products of a plan work in. Products may run at once, in streams and in CUDA graphs, so each has
// memory of its own:
//
//   in a stream  from a pool, for as long as the product takes
//   in a graph   from the plan, for as long as the graph that the product was captured into, what was instantiated from
//                it or a copy of it exists; then another capture gets it. Memory nodes would be simpler, but a graph
//                that has them can neither be cloned nor be instantiated twice. Copies of a graph that run at once
//                share the memory, as they share C, and may wait for each other for ever (cuda/wgmma_planes.cuh).
class Workspace {
 public:
  // bytes: of one product. pool must outlive this.
  Workspace(MemoryPool& pool, size_t bytes);
  // What was captured must not run any more.
  ~Workspace();
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  size_t bytes() const { return bytes_; }
  // The pool has so much in store when the call returns, which uses the stream and waits for it.
  void take_in_store(cudaStream_t stream);

  // For what is put into the stream, or captured from it, as long as this exists.
  class Use {
   public:
    Use(Workspace& workspace, cudaStream_t stream);
    ~Use();
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

    void* data() const { return data_; }

   private:
    const RelaxedCapture relaxed_;
    MemoryPool& pool_;
    const size_t bytes_;
    cudaStream_t stream_;
    void* data_;
    bool captured_;
  };

 private:
  MemoryPool& pool_;
  size_t bytes_;
  std::shared_ptr<GraphBuffers> graph_buffers_;
};

}  // namespace sparsek::cuda
