// SPDX-License-Identifier: Apache-2.0
// Stands in for CUDA's header: what the memory of plans calls, with the host's memory for the device's. Counts what is
// there, and fails the call that it is told to. Streams hold what is put into them until it may run: work of the test's
// waits until the test ends it, and whatever would wait for the device ends all of it and is counted.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <set>

enum cudaError_t { cudaSuccess, cudaErrorMemoryAllocation, cudaErrorStreamCaptureImplicit };
enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost };
enum cudaStreamCaptureMode {
  cudaStreamCaptureModeGlobal,
  cudaStreamCaptureModeThreadLocal,
  cudaStreamCaptureModeRelaxed
};
enum cudaStreamCaptureStatus { cudaStreamCaptureStatusNone, cudaStreamCaptureStatusActive };
enum {
  cudaMemAllocationTypePinned,
  cudaMemLocationTypeDevice,
  cudaMemPoolAttrReleaseThreshold,
  cudaMemPoolReuseAllowInternalDependencies
};
constexpr unsigned cudaStreamDefault = 0, cudaStreamNonBlocking = 1, cudaEventDisableTiming = 2;
struct CUmemPoolHandle_st {};
using cudaMemPool_t = CUmemPoolHandle_st*;
struct cudaMemPoolProps {
  int allocType;
  struct {
    int type, id;
  } location;
};

namespace cuda_on_host {
using Flag = std::shared_ptr<bool>;

struct Step {
  Flag until;   // it can be taken; null: at once
  Flag sets;    // what it sets; may be null
  void* frees;  // what it frees; may be null
};

inline int alive = 0;          // pools, streams, events, blocks of either memory
inline int calls = 0;          // that could have failed
inline int failing_call = -1;  // the first: 0
inline int copies = 0;
inline int waits = 0;  // for work that had not ended
inline bool no_memory = false;
}  // namespace cuda_on_host

struct CUstream_st {
  std::deque<cuda_on_host::Step> steps;
  unsigned long long id;
  bool waits_for_default, captured;
};
using cudaStream_t = CUstream_st*;
struct CUevent_st {
  cuda_on_host::Flag mark;
};
using cudaEvent_t = CUevent_st*;

namespace cuda_on_host {
inline std::set<cudaStream_t> streams;
inline CUstream_st default_stream = {{}, 1, false, false};
inline unsigned long long last_id = 1;

inline cudaError_t next_call() { return calls++ == failing_call ? cudaErrorMemoryAllocation : cudaSuccess; }

template <class T>
cudaError_t make(T** out, size_t bytes) {
  if (no_memory || next_call() != cudaSuccess) return cudaErrorMemoryAllocation;
  ++alive;
  *out = static_cast<T*>(std::malloc(bytes));
  return cudaSuccess;
}
inline cudaError_t destroy(void* object) {
  if (object == nullptr) return cudaSuccess;
  --alive;
  std::free(object);
  return cudaSuccess;
}

inline CUstream_st& at(cudaStream_t stream) {
  return stream == nullptr || stream == reinterpret_cast<cudaStream_t>(1) ? default_stream : *stream;
}

// Takes all steps that can be taken. With `all`, work ends that had not, and is waited for.
inline void run(bool all) {
  bool waited = false;
  for (bool moved = true; moved;) {
    moved = false;
    const auto run_one = [&](CUstream_st& stream) {
      while (!stream.steps.empty()) {
        const Step step = stream.steps.front();
        if (step.until && !*step.until) {
          if (!all) return;
          if (step.until.use_count() <= 3) waited = *step.until = true;  // nothing but the test would ever set it
          if (!*step.until) return;
        }
        stream.steps.pop_front();
        if (step.sets) *step.sets = true;
        destroy(step.frees);
        moved = true;
      }
    };
    run_one(default_stream);
    for (const cudaStream_t stream : streams) run_one(*stream);
  }
  waits += waited;
}

inline void put(cudaStream_t stream, const Step& step) {
  CUstream_st& to = at(stream);
  if (to.waits_for_default) {
    const Flag before = std::make_shared<bool>(false);
    default_stream.steps.push_back({nullptr, before, nullptr});
    to.steps.push_back({before, nullptr, nullptr});
  }
  to.steps.push_back(step);
  run(false);
}

// Work that ends when the test sets the flag, and finish().
inline Flag begin_work(cudaStream_t stream) {
  const Flag end = std::make_shared<bool>(false);
  put(stream, {end, nullptr, nullptr});
  return end;
}
inline void finish(const Flag& work) {
  *work = true;
  run(false);
}

inline cudaStream_t make_stream(unsigned flags) {
  ++alive;
  const auto stream = new CUstream_st{{}, ++last_id, flags == cudaStreamDefault, false};
  streams.insert(stream);
  return stream;
}
}  // namespace cuda_on_host

#define cudaStreamLegacy (reinterpret_cast<cudaStream_t>(1))
#define cudaStreamPerThread (reinterpret_cast<cudaStream_t>(2))

inline cudaError_t cudaGetLastError() { return cudaSuccess; }
enum cudaDriverEntryPointQueryResult { cudaDriverEntryPointSymbolNotFound };
constexpr unsigned long long cudaEnableDefault = 0;
inline cudaError_t cudaGetDriverEntryPointByVersion(const char*, void** entry, unsigned, unsigned long long,
                                                    cudaDriverEntryPointQueryResult* found) {
  *entry = nullptr;
  *found = cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}
inline cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
inline cudaError_t cudaSetDevice(int) { return cudaSuccess; }
inline cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode*) { return cudaSuccess; }
inline cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps*) {
  return cuda_on_host::make(pool, 1);
}
inline cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, int, void*) { return cuda_on_host::next_call(); }
inline cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) { return cuda_on_host::destroy(pool); }
inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  if (cuda_on_host::next_call() != cudaSuccess) return cudaErrorMemoryAllocation;
  *stream = cuda_on_host::make_stream(flags);
  return cudaSuccess;
}
inline cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int) {
  return cudaStreamCreateWithFlags(stream, flags);
}
// What it holds is done all the same.
inline cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  for (const cuda_on_host::Step& step : stream->steps) cuda_on_host::default_stream.steps.push_back(step);
  cuda_on_host::streams.erase(stream);
  delete stream;
  --cuda_on_host::alive;
  return cudaSuccess;
}
inline cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (cuda_on_host::next_call() != cudaSuccess) return cudaErrorMemoryAllocation;
  if (!cuda_on_host::at(stream).steps.empty()) cuda_on_host::run(true);
  return cudaSuccess;
}
inline cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long* id) {
  *id = cuda_on_host::at(stream).id;
  return cudaSuccess;
}
inline cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  *status = cuda_on_host::at(stream).captured ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
inline cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  if (cuda_on_host::next_call() != cudaSuccess) return cudaErrorMemoryAllocation;
  ++cuda_on_host::alive;
  *event = new CUevent_st;
  return cudaSuccess;
}
inline cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  --cuda_on_host::alive;
  return cudaSuccess;
}
inline cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  event->mark = std::make_shared<bool>(false);
  cuda_on_host::put(stream, {nullptr, event->mark, nullptr});
  return cudaSuccess;
}
inline cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  cuda_on_host::put(stream, {event->mark, nullptr, nullptr});
  return cudaSuccess;
}
inline cudaError_t cudaMalloc(void** out, size_t bytes) { return cuda_on_host::make(out, bytes); }
inline cudaError_t cudaFree(void* data) {
  if (data != nullptr) cuda_on_host::run(true);
  return cuda_on_host::destroy(data);
}
inline cudaError_t cudaMallocHost(void** out, size_t bytes) { return cuda_on_host::make(out, bytes); }
inline cudaError_t cudaFreeHost(void* host) { return cuda_on_host::destroy(host); }
inline cudaError_t cudaMallocFromPoolAsync(void** out, size_t bytes, cudaMemPool_t, cudaStream_t) {
  return cuda_on_host::make(out, bytes);
}
inline cudaError_t cudaFreeAsync(void* data, cudaStream_t stream) {
  cuda_on_host::put(stream, {nullptr, nullptr, data});
  return cudaSuccess;
}
inline cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind, cudaStream_t) {
  if (cuda_on_host::next_call() != cudaSuccess) return cudaErrorMemoryAllocation;
  ++cuda_on_host::copies;
  std::memcpy(to, from, bytes);
  return cudaSuccess;
}
