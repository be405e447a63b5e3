// SPDX-License-Identifier: Apache-2.0
// Stands in for CUDA's header: the types that cuda/kernel.h names.
#pragma once

using cudaError_t = int;
using cudaStream_t = struct CUstream_st*;
struct float4;
