// SPDX-License-Identifier: Apache-2.0
// How many threads take part in a product on the CPU: at most as many as the plan's options allow, and all without a
// limit. Each tile holds its thread until all of them have come, or so much time is over that they would have.
// Prints the first difference and exits with 1.
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "cpu/cpu_plan.h"

namespace sparsek::cpu {
namespace {

constexpr int kThreads = 6;

std::mutex mutex;
std::condition_variable came;
std::set<std::thread::id> seen;
std::chrono::steady_clock::time_point patience_ends;

void meet(const Product&, const Tile&, const Scratch&) {
  std::unique_lock<std::mutex> lock(mutex);
  seen.insert(std::this_thread::get_id());
  came.notify_all();
  came.wait_until(lock, patience_ends, [] { return seen.size() >= kThreads; });
}

const Kernel kMeeting = {"meeting", "none",  "counts threads", meet,    meet,    meet,    nullptr,
                         nullptr,   nullptr, nullptr,          nullptr, nullptr, nullptr, nullptr,
                         nullptr,   nullptr, nullptr,          nullptr, nullptr, nullptr};

size_t threads_of_a_product(CpuMatrix& matrix, const std::shared_ptr<Workers>& workers, int32_t limit) {
  PlanOptions options = {};
  options.n = options.ldb = options.ldc = 1024;
  options.dtype_b = options.dtype_c = SPARSEK_FP32;
  options.workers = limit;
  CpuPlan plan(matrix, options, workers);
  MultiplyArgs args = {};
  args.n = options.n;
  seen.clear();
  patience_ends =
      std::chrono::steady_clock::now() + std::chrono::milliseconds(limit > 0 && limit < kThreads ? 200 : 30000);
  plan.multiply(args);
  return seen.size();
}

}  // namespace

const Kernel& first_kernel() { return kMeeting; }
const Kernel& kernel_named(const std::string&) { return kMeeting; }

}  // namespace sparsek::cpu

int main() {
  using namespace sparsek;
  constexpr int32_t kBlockRows = 64;
  std::vector<int32_t> row_ptr(kBlockRows + 1), col_idx(kBlockRows);
  for (int32_t i = 0; i <= kBlockRows; ++i) row_ptr[i] = i;
  sparsek_bsr a = {};
  a.abi_size = sizeof(a);
  a.rows = kBlockRows * 64;
  a.cols = a.block_m = a.block_k = 64;
  a.nnzb = kBlockRows;
  a.dtype = SPARSEK_FP32;
  a.index_type = SPARSEK_INT32;
  a.memory = SPARSEK_HOST;
  a.row_ptr = row_ptr.data();
  a.col_idx = col_idx.data();
  cpu::CpuMatrix matrix(a);
  const auto workers = std::make_shared<cpu::Workers>(cpu::kThreads);
  for (const int32_t limit : {0, 1, 2, 3, cpu::kThreads, 2 * cpu::kThreads}) {
    const size_t want = limit == 0 || limit > cpu::kThreads ? cpu::kThreads : static_cast<size_t>(limit);
    const size_t got = cpu::threads_of_a_product(matrix, workers, limit);
    if (got != want) {
      std::printf("with workers = %d, %zu threads took part, want %zu\n", limit, got, want);
      return 1;
    }
  }
  return 0;
}
