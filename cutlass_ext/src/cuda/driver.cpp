// SPDX-License-Identifier: Apache-2.0
#include "cuda/driver.h"

#include <cuda_runtime_api.h>

#include <memory>

#include "abi/made_once.h"

namespace sparsek::cuda {
namespace {

template <class Function>
void find(Function& to, const char* name, unsigned version) {
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult found;
  const cudaError_t error = cudaGetDriverEntryPointByVersion(name, &entry, version, cudaEnableDefault, &found);
  to = reinterpret_cast<Function>(error == cudaSuccess ? entry : nullptr);
}

std::unique_ptr<Driver> find_all() {
  auto all = std::make_unique<Driver>();
  find(all->current_context, "cuCtxGetCurrent", 4000);
  find(all->context_id, "cuCtxGetId", 12000);
  find(all->pointer_attributes, "cuPointerGetAttributes", 7000);
  find(all->stream_is_capturing, "cuStreamIsCapturing", 10000);
  find(all->stream_id, "cuStreamGetId", 12000);
  find(all->encode_tiled, "cuTensorMapEncodeTiled", 12000);
  find(all->launch, "cuLaunchKernelEx", 11060);
  cudaGetLastError();  // of a function that was not found
  return all;
}

std::atomic<Driver*> found{nullptr};

}  // namespace

const Driver& driver() { return made_once(found, find_all); }

}  // namespace sparsek::cuda
