// SPDX-License-Identifier: Apache-2.0
// Asks which kernels of a table of its own serve what. Prints the first wrong answer and exits with 1.
#include <cstdio>
#include <string>

#include "abi/error.h"
#include "cuda/find_kernel.h"

namespace sparsek::cuda {
namespace {

KernelOps ops(bool tma_b, bool any_epilogue) {
  KernelOps made = {};
  made.tma_b = tma_b;
  made.any_epilogue = any_epilogue;
  return made;
}

KernelOps copying() {
  KernelOps made = ops(false, true);
  made.workspace_bytes = [](const LaunchArgs&) { return size_t{1}; };
  return made;
}

KernelOps ops_of_chunks() {
  KernelOps made = ops(false, true);
  made.takes_chunks = true;
  made.most_block = 32;
  return made;
}

const KernelOps kPlain = ops(false, true), kLoads = ops(true, false), kLoadsWide = ops(true, true), kCopies = copying(),
                kChunks = ops_of_chunks();

}  // namespace

extern const KernelDesc kKernels[] = {
    {"few", "a", "few columns", SPARSEK_BF16, SPARSEK_BF16, 64, 16, 64, 4, 16, true, 16, false, &kLoads},
    {"fast", "b", "rows of 64", SPARSEK_BF16, SPARSEK_BF16, 128, 256, 64, 4, 64, false, 64, false, &kLoads},
    {"multiples", "c", "multiples of 16", SPARSEK_BF16, SPARSEK_BF16, 128, 256, 64, 4, 16, true, 16, false, &kLoads},
    {"every", "d", "every block", SPARSEK_BF16, SPARSEK_BF16, 0, 64, 1, 1, 1, true, 1, false, &kPlain},
    {"copies", "e", "multiples of 8", SPARSEK_FP32, SPARSEK_FP32, 128, 128, 32, 4, 8, true, 16, false, &kCopies},
    {"wide", "g", "multiples of 8", SPARSEK_FP64, SPARSEK_FP64, 64, 128, 16, 4, 8, true, 8, false, &kLoadsWide},
    {"small", "f", "small blocks", SPARSEK_BF16, SPARSEK_BF16, 0, 128, 1, 4, 1, true, 1, false, &kChunks},
    {"small wide", "f", "small blocks", SPARSEK_FP64, SPARSEK_FP64, 0, 128, 1, 4, 1, true, 1, false, &kChunks},
    {"small mixed", "f", "small blocks", SPARSEK_FP32, SPARSEK_FP64, 0, 128, 1, 4, 1, true, 1, false, &kChunks},
};
extern const int kKernelCount = 9;

}  // namespace sparsek::cuda

namespace {

struct Case {
  int32_t block_m, block_k;
  sparsek_dtype dtype, dtype_b, dtype_c;
  int64_t n, ldb, ldc;
  int32_t alignment;
  const char* serve;  // the kernels that do
};

const Case kCases[] = {
    {64, 64, SPARSEK_BF16, SPARSEK_BF16, SPARSEK_BF16, 256, 256, 256, 16, "few fast multiples every "},
    {128, 64, SPARSEK_BF16, SPARSEK_BF16, SPARSEK_BF16, 256, 256, 256, 16, "few multiples every "},
    {64, 32, SPARSEK_BF16, SPARSEK_BF16, SPARSEK_BF16, 256, 256, 256, 16, "few multiples every "},
    {64, 64, SPARSEK_BF16, SPARSEK_BF16, SPARSEK_FP32, 256, 256, 256, 16, "every "},
    {64, 64, SPARSEK_BF16, SPARSEK_BF16, SPARSEK_BF16, 250, 256, 256, 16, "few fast multiples every "},
    {64, 64, SPARSEK_BF16, SPARSEK_BF16, SPARSEK_BF16, 256, 256, 257, 16, "few fast multiples every "},
    {64, 64, SPARSEK_BF16, SPARSEK_BF16, SPARSEK_BF16, 256, 257, 256, 16, "few fast multiples every "},
    {64, 64, SPARSEK_BF16, SPARSEK_BF16, SPARSEK_BF16, 256, 256, 256, 8, "few fast multiples every "},
    {1 << 20, 1 << 12, SPARSEK_BF16, SPARSEK_BF16, SPARSEK_BF16, 256, 256, 256, 16, "every "},
    {64, 64, SPARSEK_BF16, SPARSEK_BF16, SPARSEK_BF16, 256, int64_t{1} << 38, 256, 16, "every "},
    {24, 64, SPARSEK_BF16, SPARSEK_BF16, SPARSEK_BF16, 256, 256, 256, 16, "every "},
    {32, 32, SPARSEK_BF16, SPARSEK_BF16, SPARSEK_FP32, 256, 257, 256, 2, "every small "},
    {33, 32, SPARSEK_BF16, SPARSEK_BF16, SPARSEK_BF16, 256, 256, 256, 16, "every "},
    {3, 40, SPARSEK_BF16, SPARSEK_BF16, SPARSEK_BF16, 256, 256, 256, 16, "every "},
    {3, 5, SPARSEK_BF16, SPARSEK_BF16, SPARSEK_BF16, 1 << 16, 1 << 29, 1 << 16, 16, "every small "},
    {3, 5, SPARSEK_BF16, SPARSEK_BF16, SPARSEK_BF16, (1 << 16) + 1, 1 << 29, 1 << 17, 16, "every "},
    {3, 5, SPARSEK_BF16, SPARSEK_BF16, SPARSEK_BF16, 256, (1 << 29) + 1, 256, 16, "every "},
    {64, 64, SPARSEK_FP16, SPARSEK_FP16, SPARSEK_FP16, 256, 256, 256, 16, ""},
    {192, 128, SPARSEK_FP32, SPARSEK_FP32, SPARSEK_BF16, 255, 255, 257, 4, "copies "},
    {96, 16, SPARSEK_FP32, SPARSEK_FP32, SPARSEK_FP32, 256, 256, 256, 16, "copies "},
    {96, 24, SPARSEK_FP32, SPARSEK_FP32, SPARSEK_FP32, 256, 256, 256, 16, ""},
    {136, 128, SPARSEK_FP32, SPARSEK_FP32, SPARSEK_FP32, 256, 256, 256, 16, ""},
    {64, 64, SPARSEK_FP32, SPARSEK_FP32, SPARSEK_FP32, 1 << 23, 1 << 23, 1 << 23, 16, "copies "},
    {64, 64, SPARSEK_FP32, SPARSEK_FP32, SPARSEK_FP32, 1 << 24, 1 << 24, 1 << 24, 16, ""},
    {24, 40, SPARSEK_FP64, SPARSEK_FP64, SPARSEK_FP64, 255, 255, 257, 8, "wide "},
    {24, 36, SPARSEK_FP64, SPARSEK_FP64, SPARSEK_FP64, 256, 256, 256, 16, ""},
    {64, 64, SPARSEK_FP64, SPARSEK_FP64, SPARSEK_FP64, 256, int64_t{1} << 37, 256, 16, ""},
    {3, 5, SPARSEK_FP64, SPARSEK_FP64, SPARSEK_FP64, 256, 1 << 28, 256, 8, "small wide "},
    {3, 5, SPARSEK_FP64, SPARSEK_FP64, SPARSEK_FP64, 256, (1 << 28) + 1, 256, 8, ""},
    {3, 5, SPARSEK_FP32, SPARSEK_FP64, SPARSEK_FP64, 256, 1 << 28, 256, 8, "small mixed "},
    {3, 5, SPARSEK_FP32, SPARSEK_FP64, SPARSEK_FP64, 256, (1 << 28) + 1, 256, 8, ""},
    {64, 64, SPARSEK_BF16, SPARSEK_FP32, SPARSEK_FP32, 256, 256, 256, 16, ""},
    {64, 64, SPARSEK_FP64, SPARSEK_FP64, SPARSEK_FP64, 1 << 28, 1 << 28, 1 << 28, 16, "wide "},
    {64, 64, SPARSEK_FP64, SPARSEK_FP64, SPARSEK_FP64, (1 << 28) + 1, 1 << 29, 1 << 29, 16, ""},
};

struct Named {
  const char* name;
  int64_t ldc;
  const char* want;  // "" where it serves, else a part of the error
};

const Named kNamed[] = {
    {"fast", 256, ""},
    {"every", 256, ""},
    {"fast", int64_t{1} << 38, "leading dimensions must be below 2^38"},
    {"none", 256, "no CUDA kernel none"},
};

// Matrices for a kernel that lists the elements of each stage.
struct Listed {
  int64_t rows, cols;
  int32_t block;
  int64_t blocks;
  const char* want;  // "" where it serves, else a part of the obstacle
};

constexpr int64_t kMillion = 1 << 20;

const Listed kListed[] = {
    {kMillion, 4096, 6, kMillion / 6, "sparser"},  // 2.2 million lists, 1.1 GiB
    {kMillion, 4096, 6, 0, "sparser"},
    {kMillion, 4096, 6, kMillion, "sparser"},  // about as many elements for each list as would do
    {kMillion, 4096, 6, kMillion * 3 / 2, ""},
    {kMillion / 4, 4096, 1, 0, "larger"},   // bounds of a million block rows and stages
    {kMillion / 8, 4096, 1, 0, "sparser"},  // 2^18 lists, 130 MiB
    {kMillion / 9, 4096, 1, 0, ""},
    {kMillion / 8, 6144, 1, kMillion, "sparser"},
    {24576, 24576, 6, 4096 * 24, ""},  // a stencil
    {4096, 4096, 1, 1, ""},
};

// A kernel that serves and is left out for another; "" : not.
struct Left {
  const char* family;
  int tile_n;
  int32_t block_m, block_k;
  const char* to;
};

const Left kLeft[] = {
    {"wgmma_packed", 256, 8, 16, "wgmma_gather"},
    {"wgmma_packed", 256, 8, 12, ""},
    {"wgmma_scatter", 256, 16, 8, "wgmma_gather"},
    {"wgmma_scatter", 64, 64, 64, "wgmma_gather"},
    {"wgmma_scatter", 256, 16, 4, ""},
    {"wgmma_scatter", 256, 8, 8, ""},
    {"wgmma_scatter", 64, 8, 32, ""},
    {"wgmma_scatter", 256, 4, 4, ""},
    {"dmma_packed", 64, 8, 8, "dmma"},
    {"dmma_packed", 64, 8, 4, ""},
    {"planes_packed", 128, 8, 16, "wgmma_planes"},
    {"planes_packed", 128, 8, 8, ""},
    {"wgmma_gather", 256, 8, 8, ""},
};

sparsek::PlanOptions options_of(int64_t n, int64_t ldb, int64_t ldc, int32_t alignment, sparsek_dtype dtype_b,
                                sparsek_dtype dtype_c) {
  sparsek::PlanOptions options = {};
  options.n = n;
  options.ldb = ldb;
  options.ldc = ldc;
  options.alignment = alignment;
  options.dtype_b = dtype_b;
  options.dtype_c = dtype_c;
  return options;
}

// A B that a kernel with loads of its own would read in pieces of less than 16 bytes, and whether it is copied before.
struct InPieces {
  int64_t n, ldb;
  int32_t alignment;
  bool packs;
};
constexpr InPieces kInPieces[] = {
    {64, 64, 16, false}, {31, 31, 2, false}, {32, 32, 2, true},
    {33, 40, 16, true},  {64, 65, 16, true}, {64, 64, 2, true},
};

}  // namespace

int main() {
  using namespace sparsek::cuda;
  for (const Case& c : kCases) {
    sparsek::BsrShape matrix;
    matrix.block_m = c.block_m;
    matrix.block_k = c.block_k;
    std::string serve;
    for (int i = 0; i < kKernelCount; ++i) {
      const auto options = options_of(c.n, c.ldb, c.ldc, c.alignment, c.dtype_b, c.dtype_c);
      if (obstacle(kKernels[i], matrix, c.dtype, options).empty()) serve += std::string(kKernels[i].name) + " ";
    }
    if (serve != c.serve) {
      std::printf("case %d: %sserve, want %s\n", static_cast<int>(&c - kCases), serve.c_str(), c.serve);
      return 1;
    }
  }
  sparsek::BsrShape matrix;
  matrix.block_m = matrix.block_k = 64;
  for (const Named& c : kNamed) {
    auto options = options_of(256, 256, c.ldc, 16, SPARSEK_BF16, SPARSEK_BF16);
    options.kernel = c.name;
    std::string got;
    try {
      if (kernel_named(matrix, SPARSEK_BF16, options).name != options.kernel) got = "another kernel";
    } catch (const sparsek::Error& error) {
      got = error.status() == SPARSEK_NO_SUCH_KERNEL ? error.what() : "another status";
    }
    if (*c.want == '\0' ? !got.empty() : got.find(c.want) == std::string::npos) {
      std::printf("kernel %s, ldc %lld: got %s, want %s\n", c.name, static_cast<long long>(c.ldc), got.c_str(), c.want);
      return 1;
    }
  }
  for (const InPieces& c : kInPieces) {
    const KernelDesc kernel = {"", "row_mma", "", SPARSEK_BF16, SPARSEK_BF16, 0, 64, 32, 1, 1, true, 1, false, &kPlain};
    const auto options = options_of(c.n, c.ldb, 64, c.alignment, SPARSEK_BF16, SPARSEK_BF16);
    if (packs_b(kernel, options) != c.packs) {
      std::printf("row_mma: %lld columns, ldb %lld, aligned to %d: B is %scopied\n", static_cast<long long>(c.n),
                  static_cast<long long>(c.ldb), c.alignment, c.packs ? "not " : "");
      return 1;
    }
  }
  for (const Listed& c : kListed) {
    sparsek::BsrShape listed;
    listed.rows = c.rows;
    listed.cols = c.cols;
    listed.nnzb = c.blocks;
    listed.block_m = listed.block_k = c.block;
    const KernelDesc kernel = {"", "wgmma_scatter", "",      SPARSEK_BF16, SPARSEK_BF16, 128, 64, 64, 3, 1, true,
                               1,  false,           &kChunks};
    const auto options = options_of(64, 64, 64, 16, SPARSEK_BF16, SPARSEK_BF16);
    const std::string got = obstacle(kernel, listed, SPARSEK_BF16, options);
    if (*c.want == '\0' ? got.empty() : got.find(c.want) != std::string::npos) continue;
    std::printf("lists of %lld x %lld with %lld blocks: got \"%s\", want \"%s\"\n", static_cast<long long>(c.rows),
                static_cast<long long>(c.cols), static_cast<long long>(c.blocks), got.c_str(), c.want);
    return 1;
  }
  for (const Left& c : kLeft) {
    matrix.block_m = c.block_m;
    matrix.block_k = c.block_k;
    const KernelDesc kernel = {"", c.family, "", SPARSEK_BF16, SPARSEK_BF16, 128, c.tile_n, 64, 4,
                               1,  true,     1,  false,        &kChunks};
    const std::string got = left_to_another(kernel, matrix);
    if (*c.to == '\0' ? got.empty() : got.rfind(std::string(c.to) + " ", 0) == 0) continue;
    std::printf("%s of blocks of %dx%d is left: \"%s\", want to %s\n", c.family, c.block_m, c.block_k, got.c_str(),
                c.to);
    return 1;
  }
}
