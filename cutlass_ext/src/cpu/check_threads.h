// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <system_error>
#include <thread>
#include <vector>

namespace sparsek::cpu {

// Calls work(worker) once for each of the workers, at once, and returns when all have returned. `work` must not throw.
// Workers whose threads could not be started are left out: the others do the rest.
template <class Worker, class Work>
void run_checkers(std::vector<Worker>& workers, const Work& work) {
  std::vector<std::thread> threads;
  threads.reserve(workers.size());
  for (size_t i = 1; i < workers.size(); ++i) {
    try {
      threads.emplace_back([&work, &own = workers[i]] { work(own); });
    } catch (const std::system_error&) {
      break;
    }
  }
  work(workers[0]);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace sparsek::cpu
