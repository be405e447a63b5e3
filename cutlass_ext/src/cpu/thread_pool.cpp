// SPDX-License-Identifier: Apache-2.0
#include "cpu/thread_pool.h"

#include <signal.h>

#include <chrono>
#include <new>
#include <system_error>

namespace sparsek::cpu {
namespace {

using Duration = std::chrono::steady_clock::duration;

// A helper keeps its core for so long behind a job, which a program may want for threads of its own. A caller has
// nothing else to do.
constexpr Duration kHelperLooks = std::chrono::microseconds(30), kCallerLooks = std::chrono::microseconds(200);

// Looks until `done` or for about so long.
template <typename Done>
void look_until(const Done& done, Duration most) {
  constexpr int kLooks = 32;  // between questions for the time
  const auto begin = std::chrono::steady_clock::now();
  do {
    for (int i = 0; i < kLooks; ++i) {
      if (done()) return;
      __builtin_ia32_pause();
    }
  } while (std::chrono::steady_clock::now() - begin < most);
}

}  // namespace

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  for (std::thread& helper : helpers_) helper.join();
}

// In the child of a fork: it has none of the helpers and of the callers. Its next job starts helpers of its own.
void ThreadPool::forget_threads(void* pool) noexcept {
  auto& own = *static_cast<ThreadPool*>(pool);
  own.started_ = false;
  own.jobs_ = nullptr;
  own.has_jobs_ = false;
  // Made anew without destroying the old ones: they would wait for threads.
  new (&own.helpers_) std::vector<std::thread>;
  new (&own.wake_) std::condition_variable;
}

// The mutex must be held.
void ThreadPool::start() {
  started_ = true;
  // Blocks all signals: the application's threads handle them, and their handlers may need an alternate stack.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    helpers_.reserve(static_cast<size_t>(threads_ - 1));
    for (int i = 1; i < threads_; ++i) helpers_.emplace_back([this] { help(); });
  } catch (const std::system_error&) {
    // There are fewer helpers then, and the callers do the rest.
  } catch (const std::bad_alloc&) {
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void ThreadPool::run(int parts, void (*work)(void*, int), void* context) {
  if (parts <= 0) return;
  if (parts == 1 || threads_ == 1) {
    for (int part = 0; part < parts; ++part) work(context, part);
    return;
  }
  Job job{work, context, parts, 0, parts, {}, nullptr};
  std::unique_lock<std::mutex> lock(mutex_);
  if (!started_) start();
  Job** end = &jobs_;
  while (*end != nullptr) end = &(*end)->following;
  *end = &job;
  has_jobs_ = true;
  wake_.notify_all();
  while (job.next < job.parts) take_part(job, lock);
  const auto is_finished = [&] { return job.unfinished.load(std::memory_order_acquire) == 0; };
  if (!is_finished()) {
    lock.unlock();
    look_until(is_finished, kCallerLooks);
    lock.lock();  // whoever ended the last part has let go of the job then
  }
  job.finished.wait(lock, is_finished);
}

void ThreadPool::help() {
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    wake_.wait(lock, [&] { return stopping_ || jobs_ != nullptr; });
    if (stopping_) return;
    while (jobs_ != nullptr) take_part(*jobs_, lock);
    lock.unlock();
    look_until([&] { return has_jobs_.load(std::memory_order_relaxed); }, kHelperLooks);
    lock.lock();
  }
}

// Runs the next part of the job without the lock. The job may not exist any more when this returns, unless it was
// called by the job's own caller.
void ThreadPool::take_part(Job& job, std::unique_lock<std::mutex>& lock) {
  const int part = job.next++;
  if (job.next == job.parts) remove(job);
  lock.unlock();
  job.work(job.context, part);
  lock.lock();
  // Notifies under the lock: the caller cannot return and destroy the job before the lock is released.
  if (--job.unfinished == 0) job.finished.notify_one();
}

void ThreadPool::remove(Job& job) {
  Job** link = &jobs_;
  while (*link != &job) link = &(*link)->following;
  *link = job.following;
  has_jobs_ = jobs_ != nullptr;
}

}  // namespace sparsek::cpu
