// SPDX-License-Identifier: Apache-2.0
// Stands in for CUDA's header: what cuda/plan_memory.cpp calls, with the host's memory for the device's. Counts what is
// there, and fails the call that it is told to.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>

enum cudaError_t { cudaSuccess, cudaErrorMemoryAllocation };
enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost };
enum { cudaMemAllocationTypePinned, cudaMemLocationTypeDevice, cudaMemPoolAttrReleaseThreshold };
constexpr unsigned cudaStreamNonBlocking = 1;
struct CUmemPoolHandle_st {};
struct CUstream_st {};
using cudaMemPool_t = CUmemPoolHandle_st*;
using cudaStream_t = CUstream_st*;
struct cudaMemPoolProps {
  int allocType;
  struct {
    int type, id;
  } location;
};

namespace cuda_on_host {
inline int alive = 0;          // pools, streams, blocks of either memory
inline int calls = 0;          // that could have failed
inline int failing_call = -1;  // the first: 0
inline int copies = 0;

inline cudaError_t next_call() { return calls++ == failing_call ? cudaErrorMemoryAllocation : cudaSuccess; }

template <class T>
cudaError_t make(T** out, size_t bytes) {
  if (next_call() != cudaSuccess) return cudaErrorMemoryAllocation;
  ++alive;
  *out = static_cast<T*>(std::malloc(bytes));
  return cudaSuccess;
}
inline cudaError_t destroy(void* object) {
  --alive;
  std::free(object);
  return cudaSuccess;
}
}  // namespace cuda_on_host

inline cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps*) {
  return cuda_on_host::make(pool, 1);
}
inline cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, int, void*) { return cuda_on_host::next_call(); }
inline cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) { return cuda_on_host::destroy(pool); }
inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) { return cuda_on_host::make(stream, 1); }
inline cudaError_t cudaStreamDestroy(cudaStream_t stream) { return cuda_on_host::destroy(stream); }
inline cudaError_t cudaStreamSynchronize(cudaStream_t) { return cuda_on_host::next_call(); }
inline cudaError_t cudaMallocHost(void** out, size_t bytes) { return cuda_on_host::make(out, bytes); }
inline cudaError_t cudaFreeHost(void* host) { return cuda_on_host::destroy(host); }
inline cudaError_t cudaMallocFromPoolAsync(void** out, size_t bytes, cudaMemPool_t, cudaStream_t) {
  return cuda_on_host::make(out, bytes);
}
inline cudaError_t cudaFreeAsync(void* data, cudaStream_t) { return cuda_on_host::destroy(data); }
inline cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind, cudaStream_t) {
  if (cuda_on_host::next_call() != cudaSuccess) return cudaErrorMemoryAllocation;
  ++cuda_on_host::copies;
  std::memcpy(to, from, bytes);
  return cudaSuccess;
}
