// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstddef>
#include <mutex>
#include <vector>

#include "cuda/memory_pool.h"
#include "cuda/stream.h"
#include "cuda/stream_uses.h"

namespace sparsek::cuda {

// Gives memory of a pool back when the streams that use it have come past their uses, and waits for none of them: an
// event marks in each how far it has come, and a stream of this class's own, in which the memory is freed, waits for
// these.
//
// Nothing is put into a stream with each use, so that products cost no more: an event between two kernels would also
// keep the second from beginning early. So the mark is made when the memory is given back, in streams that are known to
// exist then: the default stream and those that the library made. An application's may be gone. What was used there is
// kept until the application names that stream again, in whatever call, or until much is kept: then this waits for the
// device.
//
// For several threads at once. The current device must be the pool's, within a DeviceScope.
class Releases {
 public:
  // The pool, which the memory is of, must outlive this.
  Releases(MemoryPool& pool, int device);
  // Waits for the device where something is kept.
  ~Releases();
  Releases(const Releases&) = delete;
  Releases& operator=(const Releases&) = delete;

  // A stream that the library made, and before it is destroyed.
  void opened(cudaStream_t stream);
  void closing(cudaStream_t stream) noexcept;

  // Before something that `uses` records is put into the stream. Returns whether the stream is being captured. Throws
  // Error, and then nothing must be put there.
  bool use(StreamUses& uses, cudaStream_t stream);
  // The application named the stream, which so exists. Does nothing in most cases.
  void seen(cudaStream_t stream) noexcept;

  // Frees memory of a pool behind its uses; memory that was never used, behind what `stream` holds.
  void release(void* memory, size_t bytes, const StreamUses& uses, cudaStream_t stream) noexcept;

  // Until everything that was given to the device has ended, in all streams. False where it cannot wait: then less than
  // a page of device memory is to be had.
  bool wait_for_device() noexcept;
  // Until what was released has been freed, for one who needs memory.
  void settle() noexcept;

  // Work in it comes behind what the default stream was given before, without using that stream.
  cudaStream_t behind_default() const { return behind_default_; }

 private:
  // Memory, and those of its streams that the application has to name.
  struct Kept {
    void* memory;
    size_t bytes;
    std::vector<unsigned long long> ids;
  };

  struct OwnStream {
    unsigned long long id;
    cudaStream_t stream;  // null: it was destroyed while it was captured, and how far it has come is not known
  };

  StreamUse describe(cudaStream_t stream) const;
  // With the mutex held, all three. The first two have the freeing stream wait for all that the stream has now, and
  // return false where that cannot be.
  bool order_behind(cudaStream_t stream) noexcept;
  bool order_behind(const StreamUse& use) noexcept;
  const OwnStream* find_own(unsigned long long id) const noexcept;  // null: closed, and done with
  void keep(void* memory, size_t bytes, std::vector<unsigned long long> ids);

  MemoryPool& pool_;
  const int device_;
  Stream freeing_;         // what is freed, is freed here
  Stream behind_default_;  // waits for the default stream, as the default stream does for it
  cudaEvent_t mark_;       // made again and again: those who wait have taken note of it
  std::mutex mutex_;       // of mark_ and of what follows
  std::vector<OwnStream> own_;
  std::vector<Kept> kept_;
  size_t kept_bytes_ = 0;
  std::atomic<bool> keeps_{false};           // kept_ has something
  std::atomic<unsigned long long> time_{1};  // passes when the library makes or destroys a stream
  void* reserve_ = nullptr;                  // memory of no pool: freeing it waits for the device
};

// A stream of the library's own for the uses of something.
class UsingStream {
 public:
  explicit UsingStream(Releases& releases) : releases_(releases) { releases.opened(stream_); }
  ~UsingStream() { releases_.closing(stream_); }
  operator cudaStream_t() const { return stream_; }
  void wait() const { stream_.wait(); }

 private:
  Releases& releases_;
  Stream stream_;
};

}  // namespace sparsek::cuda
