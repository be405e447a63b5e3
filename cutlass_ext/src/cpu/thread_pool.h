// SPDX-License-Identifier: Apache-2.0
// Threads that help callers with their jobs. Waking a thread that sleeps takes longer than many products do, on a
// virtual machine most of all, so both sides look again and again for a while before they sleep: a helper for the next
// job, a caller for the end of its own.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "abi/fork.h"

namespace sparsek::cpu {

class ThreadPool {
 public:
  // At most `threads` threads work on a job, its caller among them. They start with the first job of several parts.
  explicit ThreadPool(int threads) : threads_(threads), mutex_(forget_threads, this) {}
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return threads_; }

  // Calls work(context, part) once for each part in [0, parts) and returns when all have returned. `work` must not
  // throw. May be called from several threads at once; the caller takes parts as well, so that a job ends even where
  // no other thread is free or could be started.
  void run(int parts, void (*work)(void* context, int part), void* context);

 private:
  // On its caller's stack; in the list as long as it has parts that were not handed out.
  struct Job {
    void (*work)(void*, int);
    void* context;
    int parts;
    int next;                     // the first part not handed out
    std::atomic<int> unfinished;  // parts that have not returned; written with the lock, read without it as well
    std::condition_variable finished;
    Job* following = nullptr;
  };

  static void forget_threads(void* pool) noexcept;
  void start();
  void help();
  void take_part(Job& job, std::unique_lock<std::mutex>& lock);
  void remove(Job& job);

  const int threads_;
  ForkMutex mutex_;  // guards the members below and every Job in the list
  std::condition_variable wake_;
  Job* jobs_ = nullptr;
  std::atomic<bool> has_jobs_ = false;  // what jobs_ says, for those that look without the lock
  bool started_ = false;
  bool stopping_ = false;
  std::vector<std::thread> helpers_;
};

}  // namespace sparsek::cpu
