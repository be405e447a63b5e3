// SPDX-License-Identifier: Apache-2.0
// What the cost model must say whatever its coefficients are. Prints the first thing that is wrong.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "cuda/cost_model.h"

namespace {

using namespace sparsek;
using namespace sparsek::cuda;

KernelOps ops(int most_cluster, bool may_split) {
  KernelOps made = {};
  made.most_cluster = most_cluster;
  made.may_split = may_split;
  return made;
}

const KernelOps kOps = ops(1, false), kShares = ops(4, false), kSplits = ops(1, true);
const KernelDesc kModelled[] = {
    {"a", "skinny", "", SPARSEK_BF16, 64, 16, 64, 9, 16, true, 16, false, &kOps},
    {"b", "skinny", "", SPARSEK_BF16, 64, 64, 64, 6, 16, true, 16, false, &kOps},
    {"c", "collective", "", SPARSEK_BF16, 128, 256, 64, 4, 64, false, 64, false, &kOps},
    {"d", "wgmma_gather", "", SPARSEK_BF16, 128, 256, 64, 4, 8, true, 8, false, &kOps},
    {"e", "simt", "", SPARSEK_BF16, 0, 64, 1, 1, 1, true, 1, false, &kOps},
};

BsrShape shape_of(int64_t m, int64_t k, int32_t block, double density) {
  BsrShape shape;
  shape.rows = m;
  shape.cols = k;
  shape.block_m = shape.block_k = block;
  shape.block_rows = static_cast<int32_t>((m + block - 1) / block);
  shape.block_cols = static_cast<int32_t>((k + block - 1) / block);
  shape.nnzb = static_cast<int64_t>(density * shape.block_rows * shape.block_cols);
  return shape;
}

double predicted(const KernelDesc& kernel, const BsrShape& shape, int64_t n) {
  const PatternStats stats = expected_stats(shape, shape.block_rows > 0 ? shape.nnzb / shape.block_rows : 0);
  return predict(kernel, {shape, stats, n, 2, 132, false});
}

void expect(bool holds, const char* what, const KernelDesc& kernel) {
  if (holds) return;
  std::printf("wrong of %s: %s\n", kernel.family, what);
  std::exit(1);
}

}  // namespace

int main() {
  for (const KernelDesc& kernel : kModelled) {
    const BsrShape half = shape_of(4096, 4096, 64, 0.5), few = shape_of(4096, 4096, 64, 0.05);
    const double time = predicted(kernel, half, 4096);
    expect(time > 2e-6 && time < 1, "a product takes from microseconds to a second", kernel);
    expect(predicted(kernel, few, 4096) < time / 2, "fewer blocks take less", kernel);
    expect(predicted(kernel, half, 8192) > 1.5 * time, "twice the columns take more", kernel);
    for (const BsrShape& empty : {shape_of(4096, 4096, 64, 0), shape_of(0, 0, 64, 0)}) {
      const double nothing = predicted(kernel, empty, 256);
      expect(std::isfinite(nothing) && nothing > 0, "a product without blocks takes the time of its launch", kernel);
    }
    expect(std::isfinite(predicted(kernel, half, 0)), "so does one without columns", kernel);

    // The same blocks, one row with as many as all others together: a worker has them to itself.
    PatternStats even = expected_stats(half, half.nnzb / half.block_rows), uneven = even;
    uneven.longest_row = uneven.rows64.longest = uneven.rows128.longest = 64 * 64;
    expect(predict(kernel, {half, uneven, 64, 2, 132, false}) > 2 * predict(kernel, {half, even, 64, 2, 132, false}),
           "one long row takes more", kernel);
  }
  // Few long rows: sharing them pays.
  const BsrShape few_rows = shape_of(256, 8192, 64, 0.9);
  for (const auto& [kernel, shared] : {std::pair{kModelled[0], &kShares}, std::pair{kModelled[3], &kSplits}}) {
    KernelDesc sharing = kernel;
    sharing.ops = shared;
    expect(predicted(sharing, few_rows, 16) < 0.8 * predicted(kernel, few_rows, 16), "long rows in parts take less",
           kernel);
    const BsrShape many_rows = shape_of(65536, 4096, 64, 0.1);
    expect(predicted(sharing, many_rows, 4096) == predicted(kernel, many_rows, 4096), "tiles enough are not cut",
           kernel);
  }
  const BsrShape shape = shape_of(4096, 4096, 64, 0.1);
  const PatternStats stats = expected_stats(shape, shape.block_rows > 0 ? shape.nnzb / shape.block_rows : 0);
  const Work work = {shape, stats, 4096, 2, 132, false};
  expect(predict(LibraryFormat::kDense, work) > 140e-6, "the dense product is bound by the tensor cores", kModelled[0]);
  expect(predict(LibraryFormat::kBsr, work) > 10 * predict(kModelled[2], work), "cuSPARSE is slow", kModelled[0]);
  expect(predict(LibraryFormat::kBlockedEll, work) > predict(kModelled[2], work), "so is Blocked-ELL", kModelled[0]);
}
