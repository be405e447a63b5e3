// SPDX-License-Identifier: Apache-2.0
// Scratch memory of the workers, kept between multiplies so that a multiply allocates nothing.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

#include "abi/fork.h"
#include "cpu/kernel.h"

namespace sparsek::cpu {

// The scratch of all workers of one multiply.
class Workspace {
 public:
  explicit Workspace(int workers);  // throws std::bad_alloc
  Scratch scratch(int worker) const;

 private:
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  std::unique_ptr<std::byte, Free> memory_;
};

// One workspace for each multiply that runs at the same time.
class WorkspacePool {
 public:
  explicit WorkspacePool(int workers);  // makes the first; throws std::bad_alloc
  WorkspacePool(const WorkspacePool&) = delete;
  WorkspacePool& operator=(const WorkspacePool&) = delete;

  // A workspace from the pool, returned to it by the destructor. Makes another one where all are in use.
  class Loan {
   public:
    explicit Loan(WorkspacePool& pool) : pool_(pool), workspace_(pool.take()) {}
    ~Loan() { pool_.put(std::move(workspace_)); }
    Loan(const Loan&) = delete;
    Loan& operator=(const Loan&) = delete;
    const Workspace& operator*() const { return *workspace_; }

   private:
    WorkspacePool& pool_;
    std::unique_ptr<Workspace> workspace_;
  };

 private:
  std::unique_ptr<Workspace> take();
  void put(std::unique_ptr<Workspace> workspace) noexcept;

  const int workers_;
  ForkMutex mutex_;
  size_t made_ = 0;
  std::vector<std::unique_ptr<Workspace>> free_;  // its capacity is the number of workspaces made
};

}  // namespace sparsek::cpu
