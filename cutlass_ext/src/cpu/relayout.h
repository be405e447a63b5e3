// SPDX-License-Identifier: Apache-2.0
// Copies of dense matrices to the other order, for kernels that take one alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "abi/fork.h"
#include "cpu/thread_pool.h"

namespace sparsek::cpu {

// Of a matrix of elements of `bytes` bytes: element (i, j) is i * row + j * step elements behind the first.
struct Strided {
  char* data;
  int64_t row, step;
};

// to (rows, cols) = from, with threads of the pool. One of the steps of `to` is 1, and it overlaps nothing of `from`.
void copy_elements(ThreadPool& pool, int threads, int64_t rows, int64_t cols, int64_t bytes, const Strided& from,
                   const Strided& to);

// Memory of products that run, kept for the next ones.
class BufferPool {
  struct Free {
    void operator()(char* memory) const { std::free(memory); }
  };
  struct Buffer {
    std::unique_ptr<char, Free> memory;
    size_t bytes = 0;
  };

 public:
  // At least `bytes` bytes, aligned to 64; none where there are 0. Throws std::bad_alloc.
  class Loan {
   public:
    Loan(BufferPool& pool, size_t bytes) : pool_(pool), buffer_(pool.take(bytes)) {}
    ~Loan() { pool_.put(std::move(buffer_)); }
    Loan(const Loan&) = delete;
    Loan& operator=(const Loan&) = delete;
    char* data() const { return buffer_.memory.get(); }

   private:
    BufferPool& pool_;
    Buffer buffer_;
  };

 private:
  Buffer take(size_t bytes);  // throws std::bad_alloc
  void put(Buffer buffer) noexcept;

  ForkMutex mutex_;
  std::vector<Buffer> free_;  // its capacity is the number of buffers that are there
  size_t made_ = 0;
};

}  // namespace sparsek::cpu
