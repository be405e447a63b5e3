// SPDX-License-Identifier: Apache-2.0
// The library in a process that forks. The child has one thread, a copy of the one that called fork: a lock that
// another thread held would stay locked in it for ever. Memory that is guarded by none may be half written.
#pragma once

#include <mutex>

namespace sparsek {

// A mutex that no thread holds at the moment of a fork: fork waits for it. So it is for short sections, within which no
// other of this kind is locked, made or destroyed.
class ForkMutex : public std::mutex {
 public:
  ForkMutex() : ForkMutex(nullptr, nullptr) {}
  // in_child(owner) is called in the child before fork returns there, with the mutex locked.
  ForkMutex(void (*in_child)(void*) noexcept, void* owner);
  ~ForkMutex();
  ForkMutex(const ForkMutex&) = delete;
  ForkMutex& operator=(const ForkMutex&) = delete;

 private:
  friend struct ForkHandlers;
  void (*const in_child_)(void*) noexcept;
  void* const owner_;
  ForkMutex *previous_ = nullptr, *next_ = nullptr;
};

// How many forks are between the process that loaded the library and this one.
int fork_count() noexcept;

}  // namespace sparsek
