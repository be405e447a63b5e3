// SPDX-License-Identifier: Apache-2.0
#include "cuda/graph_guest.h"

#include "cuda/cuda_error.h"

namespace sparsek::cuda {
namespace {

void CUDART_CB destroy(void* guest) { delete static_cast<GraphGuest*>(guest); }

}  // namespace

void give_to_graph(cudaGraph_t graph, std::unique_ptr<GraphGuest> guest) {
  cudaUserObject_t object = nullptr;
  check(cudaUserObjectCreate(&object, guest.get(), destroy, 1, cudaUserObjectNoDestructorSync), "cudaUserObjectCreate");
  guest.release();  // it is the object's
  // The object's one reference becomes the graph's.
  if (const cudaError_t error = cudaGraphRetainUserObject(graph, object, 1, cudaGraphUserObjectMove);
      error != cudaSuccess) {
    cudaUserObjectRelease(object, 1);
    check(error, "cudaGraphRetainUserObject");
  }
}

cudaGraph_t captured_graph(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  cudaGraph_t graph = nullptr;
  check(cudaStreamGetCaptureInfo(stream, &status, nullptr, &graph), "cudaStreamGetCaptureInfo");
  return status == cudaStreamCaptureStatusActive ? graph : nullptr;
}

}  // namespace sparsek::cuda
