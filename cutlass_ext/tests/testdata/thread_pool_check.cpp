// SPDX-License-Identifier: Apache-2.0
// Jobs of several callers on one pool: each part is done once before run() returns, whether helpers sleep, look for the
// next job or are at work, and also where the pool is gone right behind a job. For the thread sanitizer.
#include "cpu/thread_pool.h"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <thread>
#include <vector>

namespace {

using sparsek::cpu::ThreadPool;

struct Counts {
  std::vector<int> of_part;  // each written by the part alone, without atomics: run() has to order it before the reads
  std::chrono::microseconds takes;
};

void count_part(void* context, int part) {
  auto& counts = *static_cast<Counts*>(context);
  if (counts.takes.count() > 0) std::this_thread::sleep_for(counts.takes);
  ++counts.of_part[static_cast<size_t>(part)];
}

bool run_jobs(ThreadPool& pool, int caller, int jobs) {
  for (int job = 0; job < jobs; ++job) {
    const int parts = (caller + job) % 7 + 1;
    Counts counts = {std::vector<int>(static_cast<size_t>(parts)), std::chrono::microseconds(job % 16 == 0 ? 300 : 0)};
    pool.run(parts, count_part, &counts);
    for (const int count : counts.of_part) {
      if (count != 1) return false;
    }
    // Long enough for helpers to fall asleep, now and then.
    if (job % 10 == 9) std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  return true;
}

}  // namespace

int main() {
  std::atomic<bool> right = true;
  for (const int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    std::vector<std::thread> callers;
    for (int caller = 0; caller < 4; ++caller) {
      callers.emplace_back([&, caller] {
        if (!run_jobs(pool, caller, 1000)) right = false;
      });
    }
    for (std::thread& caller : callers) caller.join();
  }
  for (int i = 0; i < 50; ++i) {
    ThreadPool pool(3);
    if (!run_jobs(pool, i, 3)) right = false;
  }
  if (!right) std::fprintf(stderr, "a part of a job was not done once\n");
  return right ? 0 : 1;
}
