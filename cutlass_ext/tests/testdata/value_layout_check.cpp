// SPDX-License-Identifier: Apache-2.0
// Asks of which kernels a plan keeps a layout of A's values. Prints the first wrong answer and exits with 1.
#include "cuda/value_layout.h"

#include <cstdio>
#include <cstdlib>

using namespace sparsek;
using namespace sparsek::cuda;

namespace {

// A kernel whose layout has so many bytes for each row of A.
template <size_t Bytes>
KernelDesc packing(KernelOps& ops) {
  ops = {};
  ops.layout_bytes = [](const LaunchArgs& sizes) { return static_cast<size_t>(sizes.rows) * Bytes; };
  KernelDesc kernel = {};
  kernel.ops = &ops;
  return kernel;
}

void expect(bool right, const char* what) {
  if (right) return;
  std::printf("wrong: %s\n", what);
  std::exit(1);
}

}  // namespace

int main() {
  BsrShape matrix = {};
  matrix.rows = 1024;
  matrix.cols = 512;
  matrix.block_m = matrix.block_k = 4;
  matrix.nnzb = 100;
  const LaunchArgs sizes = sizes_of(matrix, 48, 7, 2);
  expect(sizes.rows == 1024 && sizes.cols == 512 && sizes.n == 48 && sizes.block_m == 4 && sizes.block_k == 4 &&
             sizes.nnzb == 100 && sizes.workers == 7 && sizes.cluster == 2 && sizes.laid_out == nullptr,
         "the sizes of a product");
  KernelOps ops;
  const KernelDesc most = packing<kMostKeptBytes / 1024>(ops);
  expect(kept_bytes(most, sizes) == kMostKeptBytes, "the largest layout is kept");
  KernelOps larger_ops;
  expect(kept_bytes(packing<kMostKeptBytes / 1024 + 1>(larger_ops), sizes) == 0, "a larger one is not");
  matrix.nnzb = 0;
  expect(kept_bytes(most, sizes_of(matrix, 48, 7, 2)) == 0, "nothing is kept of no blocks");
  matrix.nnzb = 100;
  expect(kept_bytes(most, sizes_of(matrix, 0, 7, 2)) == 0, "nor by no columns");
  ops.layout_bytes = nullptr;
  expect(kept_bytes(most, sizes) == 0, "nor for a kernel that reads the values as they are");
}
