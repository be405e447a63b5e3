// SPDX-License-Identifier: Apache-2.0
#include "cpu/workspace.h"

#include <mutex>
#include <new>
#include <utility>

namespace sparsek::cpu {
namespace {

constexpr size_t kPage = 4096;  // no two workers share a page

constexpr size_t kABytes = sizeof(float) * kPieceRows * kADepth;
constexpr size_t kBBytes = sizeof(float) * kDepth * kTileCols;
constexpr size_t kCBytes = sizeof(float) * kPieceRows * kTileCols;
constexpr size_t kRowBytes = sizeof(void*) * kDepth;
constexpr size_t kWorkerBytes = (kABytes + kBBytes + kCBytes + kRowBytes + kPage - 1) / kPage * kPage;
static_assert(kABytes % 64 == 0 && kBBytes % 64 == 0 && kCBytes % 64 == 0, "each part starts on a cache line");

}  // namespace

Workspace::Workspace(int workers)
    : memory_(static_cast<std::byte*>(std::aligned_alloc(kPage, kWorkerBytes * static_cast<size_t>(workers)))) {
  if (memory_ == nullptr) throw std::bad_alloc();
}

Scratch Workspace::scratch(int worker) const {
  std::byte* const base = memory_.get() + kWorkerBytes * static_cast<size_t>(worker);
  return {reinterpret_cast<float*>(base), reinterpret_cast<float*>(base + kABytes),
          reinterpret_cast<float*>(base + kABytes + kBBytes),
          reinterpret_cast<const void**>(base + kABytes + kBBytes + kCBytes)};
}

WorkspacePool::WorkspacePool(int workers) : workers_(workers) { put(take()); }

std::unique_ptr<Workspace> WorkspacePool::take() {
  {
    const std::lock_guard lock(mutex_);
    if (!free_.empty()) {
      std::unique_ptr<Workspace> workspace = std::move(free_.back());
      free_.pop_back();
      return workspace;
    }
    free_.reserve(made_ + 1);
    ++made_;
  }
  return std::make_unique<Workspace>(workers_);
}

void WorkspacePool::put(std::unique_ptr<Workspace> workspace) noexcept {
  const std::lock_guard lock(mutex_);
  free_.push_back(std::move(workspace));
}

}  // namespace sparsek::cpu
