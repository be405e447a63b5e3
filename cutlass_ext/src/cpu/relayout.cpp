// SPDX-License-Identifier: Apache-2.0
#include "cpu/relayout.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <new>
#include <utility>

namespace sparsek::cpu {
namespace {

constexpr int64_t kSide = 32;  // of the squares that are copied at once, so that both sides stay in L1

// Element by element, along rows of `to`.
template <typename T>
void copy_square(int64_t rows, int64_t cols, const T* from, int64_t row, int64_t step, T* to, int64_t to_row,
                 int64_t to_step) {
  if (to_step == 1) {
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < cols; ++j) to[i * to_row + j] = from[i * row + j * step];
    }
  } else {
    for (int64_t j = 0; j < cols; ++j) {
      for (int64_t i = 0; i < rows; ++i) to[i * to_row + j * to_step] = from[i * row + j * step];
    }
  }
}

struct Job {
  int64_t rows, cols, bytes;
  Strided from, to;
  std::atomic<int64_t> next{0};
};

template <typename T>
void copy_band(const Job& job, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; i += kSide) {
    for (int64_t j = 0; j < job.cols; j += kSide) {
      copy_square(std::min(kSide, end - i), std::min(kSide, job.cols - j),
                  reinterpret_cast<const T*>(job.from.data) + i * job.from.row + j * job.from.step, job.from.row,
                  job.from.step, reinterpret_cast<T*>(job.to.data) + i * job.to.row + j * job.to.step, job.to.row,
                  job.to.step);
    }
  }
}

void work(void* context, int) {
  Job& job = *static_cast<Job*>(context);
  constexpr int64_t kBand = 4 * kSide;
  for (int64_t begin = job.next.fetch_add(kBand); begin < job.rows; begin = job.next.fetch_add(kBand)) {
    const int64_t end = std::min(begin + kBand, job.rows);
    if (job.bytes == 2) {
      copy_band<uint16_t>(job, begin, end);
    } else if (job.bytes == 4) {
      copy_band<uint32_t>(job, begin, end);
    } else {
      copy_band<uint64_t>(job, begin, end);
    }
  }
}

}  // namespace

void copy_elements(ThreadPool& pool, int threads, int64_t rows, int64_t cols, int64_t bytes, const Strided& from,
                   const Strided& to) {
  Job job{rows, cols, bytes, from, to};
  constexpr int64_t kElementsPerThread = 1 << 17;  // waking one takes about as long as copying so many
  const int64_t useful = std::max<int64_t>(1, rows * cols / kElementsPerThread);
  pool.run(static_cast<int>(std::min<int64_t>(threads, useful)), work, &job);
}

BufferPool::Buffer BufferPool::take(size_t bytes) {
  if (bytes == 0) return {};
  Buffer buffer;
  {
    const std::lock_guard lock(mutex_);
    // The smallest that is large enough, else one that makes room for a larger one.
    const auto better = [&](const Buffer& a, const Buffer& b) {
      const bool a_fits = a.bytes >= bytes, b_fits = b.bytes >= bytes;
      return a_fits != b_fits ? a_fits : a_fits ? a.bytes < b.bytes : a.bytes > b.bytes;
    };
    const auto best = std::min_element(free_.begin(), free_.end(), better);
    if (best != free_.end()) {
      buffer = std::move(*best);
      free_.erase(best);
    } else {
      free_.reserve(made_ + 1);
      ++made_;
    }
  }
  if (buffer.bytes < bytes) {
    constexpr size_t kAlignment = 64;
    const size_t rounded = (bytes / kAlignment + 1) * kAlignment;
    buffer.memory.reset();
    buffer.bytes = 0;
    buffer.memory.reset(static_cast<char*>(std::aligned_alloc(kAlignment, rounded)));
    if (buffer.memory == nullptr) {
      const std::lock_guard lock(mutex_);
      --made_;
      throw std::bad_alloc();
    }
    buffer.bytes = rounded;
  }
  return buffer;
}

void BufferPool::put(Buffer buffer) noexcept {
  if (buffer.bytes == 0) return;
  const std::lock_guard lock(mutex_);
  free_.push_back(std::move(buffer));
}

}  // namespace sparsek::cpu
