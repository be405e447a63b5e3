// SPDX-License-Identifier: Apache-2.0
// A level of matching: bundles are compared, and pairs of them become the bundles of the next level.
#pragma once

#include "cuda/bundle_pairs.cuh"
#include "cuda/bundle_partners.cuh"
#include "cuda/dependent_launch.cuh"
#include "cuda/last_cta.cuh"

namespace sparsek::cuda {
// Named, since the symbols of kernels in an unnamed namespace depend on the path of the checkout.
namespace matching {

static_assert(kCompareThreads == kPairThreads);

// The CTAs (x, c) compare bundles of chunk first_chunk + c; the one of a chunk that ends last pairs them up, and where
// it is the only chunk, writes the order of the rows behind the last level. kEach: as for list_partners.
template <int kEach>
__global__ void __launch_bounds__(kPairThreads) match_level(Work work, int level, int32_t first_chunk) {
  __shared__ union {
    Comparison<kEach> comparison;
    Pairing pairing;
  } shared;
  start_dependent();
  const int32_t here = blockIdx.y, chunk = first_chunk + here;
  list_partners<kEach>(work, level, first_chunk, shared.comparison);
  if (!is_last_cta(work.arrived + here, gridDim.x)) return;
  pair_up(work, level, here, chunk, shared.pairing);
  if (work.chunks() > 1 || 2 << level != work.group) return;
  __syncthreads();
  for (int32_t place = threadIdx.x; place < work.padded_rows; place += kPairThreads) {
    write_order(work, work.rows[(level + 1) % 2], place);
  }
}

}  // namespace matching
}  // namespace sparsek::cuda
