// SPDX-License-Identifier: Apache-2.0
#include "cuda/graph_time.h"

#include <cuda_runtime_api.h>

#include "cuda/cuda_error.h"
#include "cuda/stream.h"
#include "cuda/time_runs.h"

namespace sparsek::cuda {
namespace {

// What `enqueue` put into a stream, ready to be replayed.
class Graph {
 public:
  template <class Enqueue>
  Graph(cudaStream_t stream, Enqueue&& enqueue) {
    // Relaxed: a kernel that was never launched is loaded meanwhile, and other threads are left alone.
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), "cudaStreamBeginCapture");
    cudaGraph_t captured = nullptr;
    try {
      enqueue();
    } catch (...) {
      if (cudaStreamEndCapture(stream, &captured) == cudaSuccess) cudaGraphDestroy(captured);
      cudaGetLastError();  // that of an end without a graph
      throw;
    }
    check(cudaStreamEndCapture(stream, &captured), "cudaStreamEndCapture");
    const cudaError_t error = cudaGraphInstantiate(&exec_, captured, 0);
    cudaGraphDestroy(captured);
    check(error, "cudaGraphInstantiate");
    check(cudaGraphUpload(exec_, stream), "cudaGraphUpload");  // or the first replay would
  }
  ~Graph() { cudaGraphExecDestroy(exec_); }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  void launch(cudaStream_t stream) { check(cudaGraphLaunch(exec_, stream), "cudaGraphLaunch"); }

 private:
  cudaGraphExec_t exec_ = nullptr;
};

}  // namespace

void graph_time(PlanState* const* plans, const MultiplyArgs* args, int count, int warmup, int repeats,
                double* seconds) {
  const Stream stream;
  Graph graph(stream, [&] {
    for (int i = 0; i < count; ++i) {
      MultiplyArgs now = args[i];
      now.stream = stream;
      now.in_own_graph = true;
      plans[i]->multiply(now);
    }
  });
  time_runs(stream, warmup, repeats, [&] { graph.launch(stream); }, seconds);
  for (int i = 0; i < repeats; ++i) seconds[i] /= count;
}

}  // namespace sparsek::cuda
