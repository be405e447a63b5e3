// SPDX-License-Identifier: Apache-2.0
// Launches of the kernels that make patterns and work on values.
#pragma once

#include <algorithm>
#include <cstdint>

#include "cuda/launch_dependent.h"
#include "pattern/job.h"

namespace sparsek::cuda {

constexpr int kPatternThreads = 256;
constexpr int64_t kMostPatternCtas = 132 * 16;

// CTAs that have so many threads together, or as many as are useful.
inline unsigned pattern_ctas(int64_t threads, int64_t of_cta = kPatternThreads) {
  const int64_t ctas = threads / of_cta + (threads % of_cta != 0 ? 1 : 0);
  return static_cast<unsigned>(std::clamp<int64_t>(ctas, 1, kMostPatternCtas));
}

// Of kPatternThreads threads, unless others are named. The kernel must begin with start_dependent.
template <class... Formal, class... Actual>
void launch_pattern(const char* name, unsigned ctas, unsigned threads, sparsek_stream stream, void (*kernel)(Formal...),
                    const Actual&... arguments) {
  cudaFuncAttributes attributes;  // loads the kernel, which a capture does not allow
  check(cudaFuncGetAttributes(&attributes, kernel), name);
  launch_dependent<Formal...>(name, kernel, dim3(ctas), threads, 0, static_cast<cudaStream_t>(stream), arguments...);
}

// Before kernels that look for faults: there is none yet.
inline void enqueue_no_fault(int64_t* fault, sparsek_stream stream) {
  check(cudaMemsetAsync(fault, 0xff, sizeof(*fault), static_cast<cudaStream_t>(stream)), "cudaMemsetAsync");
}

}  // namespace sparsek::cuda
