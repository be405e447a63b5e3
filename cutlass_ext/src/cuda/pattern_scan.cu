// SPDX-License-Identifier: Apache-2.0
#include <cub/block/block_scan.cuh>

#include "cuda/dependent_launch.cuh"
#include "cuda/pattern_launch.h"
#include "cuda/pattern_parts.h"

namespace sparsek::cuda {
// Named, since the symbols of kernels in an unnamed namespace depend on the path of the checkout.
namespace pattern_scan {

constexpr int kThreads = 1024, kItems = 8;  // rows of a thread in a round

// One CTA.
__global__ void __launch_bounds__(kThreads) scan_rows(pattern::Made to, Scan scan) {
  using BlockScan = cub::BlockScan<int64_t, kThreads>;
  __shared__ typename BlockScan::TempStorage storage;
  start_dependent();
  const uint64_t found = scan.judged ? static_cast<uint64_t>(*to.fault) : pattern::kNoFault;
  const bool is_faulty = found != pattern::kNoFault;
  const int64_t rows = to.shape.block_rows, capacity = is_faulty ? 0 : to.shape.nnzb;
  int64_t before = 0;
  for (int64_t base = 0; base < rows; base += kThreads * kItems) {
    const int64_t first = base + static_cast<int64_t>(threadIdx.x) * kItems;
    int64_t counts[kItems], sum = 0;
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      counts[i] = first + i < rows ? to.row_ptr.get(first + i + 1) : 0;
      sum += counts[i];
    }
    int64_t at, all;
    BlockScan(storage).ExclusiveSum(sum, at, all);
    at += before;
#pragma unroll
    for (int i = 0; i < kItems; ++i) {
      const int64_t end = at + counts[i];
      if (first + i < rows) to.row_ptr.set(first + i + 1, min(scan.exclusive ? at : end, capacity));
      at = end;
    }
    before += all;
    __syncthreads();
  }
  if (threadIdx.x != 0) return;
  to.row_ptr.set(0, 0);
  if (to.blocks != nullptr) *to.blocks = is_faulty ? 0 : before;
  *to.fault = is_faulty ? pattern::reported_fault(found) : before > capacity ? int64_t{SPARSEK_OVER_CAPACITY} : 0;
}

}  // namespace pattern_scan

void enqueue_scan(const pattern::Made& to, Scan scan, sparsek_stream stream) {
  launch_pattern("scan of the rows", 1, pattern_scan::kThreads, stream, pattern_scan::scan_rows, to, scan);
}

}  // namespace sparsek::cuda
