// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include "abi/backend.h"
#include "cuda/device_scope.h"
#include "cuda/time_runs.h"

namespace sparsek::cuda {

// Times products of a plan, which take the arguments in turn; see time_runs.
template <class Plan>
void time_products(Plan& plan, int device, const MultiplyArgs* args, int arg_count, int warmup, int repeats,
                   double* seconds) {
  DeviceScope scope(device);
  const auto stream = static_cast<cudaStream_t>(args[0].stream);
  require_not_captured(stream, "multiply_time");
  int turn = 0;
  const auto run = [&] {
    MultiplyArgs now = args[turn++ % arg_count];
    now.stream = stream;  // one stream, so that the times do not overlap
    plan.multiply(now);
  };
  time_runs(stream, warmup, repeats, run, seconds);
}

}  // namespace sparsek::cuda
