// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <vector>

#include "cuda/event.h"

namespace sparsek::cuda {

// Times the work that `repeats` calls of run() enqueue in the stream, after `warmup` calls, and waits for it.
// seconds: (repeats), the time of each call's work.
template <class Run>
void time_runs(cudaStream_t stream, int warmup, int repeats, Run&& run, double* seconds) {
  for (int i = 0; i < warmup; ++i) run();
  std::vector<Event> marks(static_cast<size_t>(repeats) + 1);
  marks[0].record(stream);
  for (int i = 0; i < repeats; ++i) {
    run();
    marks[i + 1].record(stream);
  }
  marks[repeats].wait();
  for (int i = 0; i < repeats; ++i) seconds[i] = marks[i + 1].seconds_since(marks[i]);
}

}  // namespace sparsek::cuda
