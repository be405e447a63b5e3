// SPDX-License-Identifier: Apache-2.0
// Functions of the driver that are called with each product: the runtime's own take twice as long or more. They are
// found through the runtime, so that the library can be linked and loaded without libcuda.
#pragma once

#include <cuda.h>
#include <cudaTypedefs.h>

namespace sparsek::cuda {

// A member is null where the driver has no such function.
struct Driver {
  PFN_cuCtxGetCurrent_v4000 current_context;
  PFN_cuCtxGetId_v12000 context_id;
  PFN_cuPointerGetAttributes_v7000 pointer_attributes;
  PFN_cuStreamIsCapturing_v10000 stream_is_capturing;
  PFN_cuStreamGetId_v12000 stream_id;
  PFN_cuTensorMapEncodeTiled_v12000 encode_tiled;
  PFN_cuLaunchKernelEx_v11060 launch;
};

// They need a current context: to be called within a DeviceScope.
const Driver& driver();

}  // namespace sparsek::cuda
