// SPDX-License-Identifier: Apache-2.0
// Chooses kernels from a table of its own. Prints the first wrong choice and exits with 1.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "abi/error.h"
#include "cuda/choose_kernel.h"

namespace sparsek::cuda {
namespace {

KernelOps ops(bool tma_b, bool tma_c, bool any_rows) {
  KernelOps made = {};
  made.tma_b = tma_b;
  made.tma_c = tma_c;
  made.any_rows = any_rows;
  return made;
}

const KernelOps kPlain = ops(false, false, false), kLoads = ops(true, false, true), kBoth = ops(true, true, false);

}  // namespace

// The baseline comes first: only its mark keeps it from being chosen.
extern const KernelDesc kKernels[] = {
    {"baseline", "to compare", SPARSEK_BF16, 128, 128, 32, 2, 64, true, 32, 0, true, &kPlain},
    {"few", "few columns", SPARSEK_BF16, 64, 16, 64, 4, 16, true, 16, 16, false, &kLoads},
    {"fast", "rows of 64", SPARSEK_BF16, 128, 256, 64, 4, 64, false, 64, 0, false, &kBoth},
    {"multiples", "multiples of 16", SPARSEK_BF16, 128, 256, 64, 4, 16, true, 16, 0, false, &kLoads},
    {"every", "every block", SPARSEK_BF16, 0, 64, 1, 1, 1, true, 1, 0, false, &kPlain},
};
extern const int kKernelCount = 5;

}  // namespace sparsek::cuda

namespace {

struct Case {
  int32_t block_m, block_k;
  sparsek_dtype dtype;
  int64_t n, ldb, ldc;
  int32_t alignment;
  const char* name;
  const char* want;  // the kernel, or a part of the error
  sparsek_status status;
};

const Case kCases[] = {
    {64, 64, SPARSEK_BF16, 256, 256, 256, 16, "", "fast", SPARSEK_OK},
    {64, 64, SPARSEK_BF16, 256, 256, 256, 16, "baseline", "baseline", SPARSEK_OK},
    {128, 32, SPARSEK_BF16, 256, 256, 256, 16, "baseline", "baseline", SPARSEK_OK},
    {128, 64, SPARSEK_BF16, 256, 256, 256, 16, "", "multiples", SPARSEK_OK},
    {64, 32, SPARSEK_BF16, 256, 256, 256, 16, "", "multiples", SPARSEK_OK},
    {64, 64, SPARSEK_BF16, 250, 256, 256, 16, "", "multiples", SPARSEK_OK},
    {64, 64, SPARSEK_BF16, 256, 256, 257, 16, "", "multiples", SPARSEK_OK},
    {64, 64, SPARSEK_BF16, 256, 257, 256, 16, "", "every", SPARSEK_OK},
    {64, 64, SPARSEK_BF16, 256, 256, 256, 8, "", "every", SPARSEK_OK},
    {64, 64, SPARSEK_BF16, 256, int64_t{1} << 38, 256, 16, "", "every", SPARSEK_OK},
    {24, 64, SPARSEK_BF16, 256, 256, 256, 16, "", "every", SPARSEK_OK},
    {64, 64, SPARSEK_BF16, 256, 256, 256, 16, "every", "every", SPARSEK_OK},
    {64, 64, SPARSEK_BF16, 16, 16, 16, 16, "", "few", SPARSEK_OK},
    {64, 64, SPARSEK_BF16, 17, 24, 17, 16, "", "multiples", SPARSEK_OK},
    {64, 64, SPARSEK_BF16, 256, 256, 256, 16, "few", "few", SPARSEK_OK},
    {64, 64, SPARSEK_BF16, 250, 256, 256, 16, "fast", "N and ldc in multiples of 8", SPARSEK_NO_SUCH_KERNEL},
    {128, 64, SPARSEK_BF16, 256, 256, 256, 16, "fast", "another block height", SPARSEK_NO_SUCH_KERNEL},
    {128, 16, SPARSEK_BF16, 256, 256, 256, 16, "baseline", "another block width", SPARSEK_NO_SUCH_KERNEL},
    {64, 64, SPARSEK_FP16, 256, 256, 256, 16, "every", "another type", SPARSEK_NO_SUCH_KERNEL},
    {64, 64, SPARSEK_BF16, 256, 256, 256, 16, "none", "no CUDA kernel none", SPARSEK_NO_SUCH_KERNEL},
    {64, 64, SPARSEK_FP16, 256, 256, 256, 16, "", "no CUDA kernel serves blocks", SPARSEK_UNSUPPORTED_BLOCK},
};

// Rows that have much in common with others than their neighbours: 0 and 2, 1 and 3.
void check_pairs() {
  sparsek::BsrIndex index;
  index.block_m = index.block_k = 64;
  index.rows = index.cols = 4 * 64;
  index.block_rows = index.block_cols = 4;
  sparsek::PlanOptions options = {};
  options.n = options.ldb = options.ldc = 256;
  options.alignment = 16;
  options.dtype_c = SPARSEK_BF16;
  for (const bool crossed : {true, false}) {
    index.row_ptr = {0, 2, 4, 6, 8};
    index.col_idx =
        crossed ? std::vector<int32_t>{0, 1, 2, 3, 0, 1, 2, 3} : std::vector<int32_t>{0, 1, 0, 1, 2, 3, 2, 3};
    std::string reason;
    const std::string got = sparsek::cuda::choose_kernel(index, &index, SPARSEK_BF16, options, reason)->name;
    if (got != (crossed ? "multiples" : "fast")) {
      std::printf("rows to be paired %s: got %s\n", crossed ? "crosswise" : "as they are", got.c_str());
      std::exit(1);
    }
  }
}

}  // namespace

int main() {
  check_pairs();
  for (const Case& c : kCases) {
    sparsek::BsrShape matrix;
    matrix.block_m = c.block_m;
    matrix.block_k = c.block_k;
    sparsek::PlanOptions options = {};
    options.n = c.n;
    options.ldb = c.ldb;
    options.ldc = c.ldc;
    options.alignment = c.alignment;
    options.dtype_c = c.dtype;
    options.kernel = c.name;
    std::string got, reason;
    sparsek_status status = SPARSEK_OK;
    try {
      got = sparsek::cuda::choose_kernel(matrix, nullptr, c.dtype, options, reason)->name;
    } catch (const sparsek::Error& error) {
      status = error.status();
      got = error.what();
    }
    const bool right = status == SPARSEK_OK ? got == c.want && !reason.empty() : got.find(c.want) != std::string::npos;
    if (status != c.status || !right) {
      std::printf("case %d: blocks of %dx%d, n %lld, kernel \"%s\": got %s (%s), want %s\n",
                  static_cast<int>(&c - kCases), c.block_m, c.block_k, static_cast<long long>(c.n), c.name, got.c_str(),
                  reason.c_str(), c.want);
      return 1;
    }
  }
}
