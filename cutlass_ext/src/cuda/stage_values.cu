// SPDX-License-Identifier: Apache-2.0
#include "cuda/stage_values.h"

#include "cuda/dependent_launch.cuh"
#include "cuda/launch.cuh"
#include "cuda/marked_pairs.cuh"

namespace sparsek::cuda {

// Named, since the symbols that nvcc makes for an unnamed namespace differ from build to build.
namespace stage_values {

constexpr int kThreads = 256;
constexpr int kTogether = 8;  // elements of a thread: it writes 16 bytes

// Sources are read once, and the values of neighbours in a unit lie in few lines.
__global__ void __launch_bounds__(kThreads)
    copy_kernel(const uint32_t* sources, const int32_t* units, const uint16_t* values, uint16_t* to) {
  start_dependent();
  const int64_t first = (int64_t(blockIdx.x) * kThreads + threadIdx.x) * kTogether;
  if (first >= int64_t(__ldg(units)) * kUnit) return;
  const auto* const from = reinterpret_cast<const uint4*>(sources + first);
  const uint4 low = __ldcs(from), high = __ldcs(from + 1);
  const uint32_t source[kTogether] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
  uint32_t value[kTogether];
#pragma unroll
  for (int i = 0; i < kTogether; ++i) {
    value[i] = source[i] == kNoSource ? kAbsent : present(__ldg(values + source[i]));
  }
  *reinterpret_cast<uint4*>(to + first) = {value[0] | value[1] << 16, value[2] | value[3] << 16,
                                           value[4] | value[5] << 16, value[6] | value[7] << 16};
}

}  // namespace stage_values

cudaError_t prepare_stage_values() {
  cudaFuncAttributes attributes;
  return cudaFuncGetAttributes(&attributes, stage_values::copy_kernel);
}

cudaError_t copy_stage_values(const ListSizes& sizes, const StageLists& lists, const void* values, void* to,
                              cudaStream_t stream) {
  using namespace stage_values;
  constexpr int64_t kOfCta = int64_t{kThreads} * kTogether;
  const auto ctas = static_cast<int>((sizes.units() * kUnit + kOfCta - 1) / kOfCta);
  return launch_kernel(copy_kernel, ctas, kThreads, 0, stream, {/*overlap=*/true}, lists.sources,
                       lists.counts + sizes.groups, static_cast<const uint16_t*>(values), static_cast<uint16_t*>(to));
}

}  // namespace sparsek::cuda
