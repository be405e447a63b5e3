// SPDX-License-Identifier: Apache-2.0
// Stands in for the header of the types of the driver's functions.
#pragma once

#include "cuda.h"

using PFN_cuCtxGetCurrent_v4000 = CUresult (*)(CUcontext*);
using PFN_cuCtxGetId_v12000 = CUresult (*)(CUcontext, unsigned long long*);
using PFN_cuPointerGetAttributes_v7000 = CUresult (*)(unsigned, CUpointer_attribute*, void**, CUdeviceptr);
using PFN_cuStreamIsCapturing_v10000 = CUresult (*)(CUstream, CUstreamCaptureStatus*);
using PFN_cuStreamGetId_v12000 = CUresult (*)(CUstream, unsigned long long*);
using PFN_cuTensorMapEncodeTiled_v12000 = CUresult (*)();
using PFN_cuLaunchKernelEx_v11060 = CUresult (*)();
