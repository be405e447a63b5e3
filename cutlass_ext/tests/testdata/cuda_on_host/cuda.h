// SPDX-License-Identifier: Apache-2.0
// Stands in for the driver's header: types alone, since cudaGetDriverEntryPointByVersion finds no function.
#pragma once

struct CUctx_st;
struct CUstream_st;
using CUcontext = CUctx_st*;
using CUstream = CUstream_st*;
using CUdeviceptr = unsigned long long;
struct CUtensorMap;
enum CUresult { CUDA_SUCCESS };
enum CUstreamCaptureStatus { CU_STREAM_CAPTURE_STATUS_NONE };
enum CUpointer_attribute {};
