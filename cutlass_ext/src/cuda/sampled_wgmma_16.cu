// SPDX-License-Identifier: Apache-2.0
// The kernels of cuda/sampled_wgmma.cuh for cells that are 16 wide.
#include "cuda/sampled_wgmma.cuh"

namespace sparsek::cuda {

SampledOps sampled_wgmma_16(sparsek_dtype dtype) { return sampled_wgmma_kernel::ops<16>(dtype); }

}  // namespace sparsek::cuda
