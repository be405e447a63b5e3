// SPDX-License-Identifier: Apache-2.0
#include "abi/fork.h"

#include <pthread.h>

#include <atomic>

namespace sparsek {
namespace {

std::mutex all_mutex;  // of what follows, and held through a fork
ForkMutex* all = nullptr;
std::atomic<int> forks{0};

}  // namespace

struct ForkHandlers {
  static void before() noexcept {
    all_mutex.lock();
    for (ForkMutex* one = all; one != nullptr; one = one->next_) one->lock();
  }
  static void in_parent() noexcept {
    for (ForkMutex* one = all; one != nullptr; one = one->next_) one->unlock();
    all_mutex.unlock();
  }
  static void in_child() noexcept {
    ++forks;
    for (ForkMutex* one = all; one != nullptr; one = one->next_) {
      if (one->in_child_ != nullptr) one->in_child_(one->owner_);
    }
    in_parent();
  }
  // Where that fails there is no memory, and forks are as they would be without it.
  static inline const int result = pthread_atfork(before, in_parent, in_child);
};

ForkMutex::ForkMutex(void (*in_child)(void*) noexcept, void* owner) : in_child_(in_child), owner_(owner) {
  const std::lock_guard lock(all_mutex);
  next_ = all;
  if (all != nullptr) all->previous_ = this;
  all = this;
}

ForkMutex::~ForkMutex() {
  const std::lock_guard lock(all_mutex);
  (previous_ != nullptr ? previous_->next_ : all) = next_;
  if (next_ != nullptr) next_->previous_ = previous_;
}

int fork_count() noexcept { return forks.load(std::memory_order_relaxed); }

}  // namespace sparsek
