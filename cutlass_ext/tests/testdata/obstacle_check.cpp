// SPDX-License-Identifier: Apache-2.0
// What NVIDIA's libraries serve. Prints the first wrong answer and exits with 1.
#include <cstdio>
#include <functional>
#include <string>

#include "cuda/runtime_library.h"
#include "cuda/vendor/library_kernels.h"

namespace sparsek::cuda {
namespace {

int opened = 0;

}  // namespace

// The libraries themselves are not opened: only what is asked of them is counted.
const OpenedLibrary& cublas_file() {
  static const OpenedLibrary none = {nullptr, "no cuBLAS"};
  ++opened;
  return none;
}
const OpenedLibrary& cusparse_file() {
  static const OpenedLibrary there = {&opened, ""};
  ++opened;
  return there;
}

}  // namespace sparsek::cuda

namespace {

struct Question {
  sparsek::BsrShape matrix;
  int64_t longest_row;
  sparsek_dtype dtype;
  sparsek::PlanOptions options;
};

// One that all serve: 8 x 8 blocks, two in each row but one.
Question served() {
  Question q = {};
  q.matrix.rows = q.matrix.cols = 512;
  q.matrix.block_m = q.matrix.block_k = 64;
  q.matrix.block_rows = q.matrix.block_cols = 8;
  q.matrix.nnzb = 15;
  q.longest_row = 2;
  q.dtype = SPARSEK_BF16;
  q.options.n = q.options.ldb = q.options.ldc = 256;
  q.options.alignment = 16;
  q.options.dtype_c = SPARSEK_BF16;
  q.options.allow_dense = true;
  return q;
}

struct Case {
  const char* what;
  std::function<void(Question&)> change;
  const char *dense, *bsr, *bell, *csr, *vector;  // a part of each one's answer; "": it serves the case
};

const Case kCases[] = {
    {"as it is", [](Question&) {}, "", "", "", "", "vectors: N"},
    {"fp16", [](Question& q) { q.dtype = q.options.dtype_c = SPARSEK_FP16; }, "", "", "", "", "vectors: N"},
    {"fp32", [](Question& q) { q.dtype = q.options.dtype_c = SPARSEK_FP32; }, "", "", "bf16 and fp16", "",
     "vectors: N"},
    {"fp64", [](Question& q) { q.dtype = q.options.dtype_c = SPARSEK_FP64; }, "", "", "bf16 and fp16", "",
     "vectors: N"},
    {"C in fp32", [](Question& q) { q.options.dtype_c = SPARSEK_FP32; }, "", "", "", "", "vectors: N"},
    {"C in fp16", [](Question& q) { q.options.dtype_c = SPARSEK_FP16; }, "C in the type", "C in the type",
     "C in the type", "C in the type", "C in the type"},
    {"C of fp64 in fp32", [](Question& q) { q.dtype = SPARSEK_FP64, q.options.dtype_c = SPARSEK_FP32; },
     "C in the type", "C in the type", "bf16 and fp16", "C in the type", "C in the type"},
    {"a bias", [](Question& q) { q.options.bias = SPARSEK_BIAS_ROW; }, "bias", "bias", "bias", "bias", "bias"},
    {"an activation", [](Question& q) { q.options.activation = SPARSEK_ACTIVATION_RELU; }, "activation", "activation",
     "activation", "activation", "activation"},
    {"NaN kept out", [](Question& q) { q.options.allow_dense = false; }, "allow_dense", "", "allow_dense",
     "allow_dense", "vectors: N"},
    {"no columns of B", [](Question& q) { q.options.n = 0; }, "nothing", "nothing", "nothing", "nothing", "nothing"},
    {"no rows", [](Question& q) { q.matrix.rows = q.matrix.block_rows = q.matrix.nnzb = 0; }, "nothing", "nothing",
     "nothing", "nothing", "nothing"},
    {"no blocks", [](Question& q) { q.matrix.nnzb = q.longest_row = 0; }, "nothing", "nothing", "nothing", "nothing",
     "nothing"},
    {"blocks that are not square", [](Question& q) { q.matrix.block_k = 32; }, "", "square", "square", "",
     "vectors: N"},
    {"M within a block", [](Question& q) { q.matrix.rows = 500; }, "", "multiples of the block",
     "multiples of the block", "multiples of the block", "multiples of the block"},
    {"K within a block", [](Question& q) { q.matrix.cols = 500; }, "", "multiples of the block",
     "multiples of the block", "multiples of the block", "multiples of the block"},
    {"B's rows out of line", [](Question& q) { q.options.ldb = 260; }, "", "16 bytes", "16 bytes", "16 bytes",
     "vectors: N"},
    {"C's rows out of line", [](Question& q) { q.options.ldc = 260; }, "", "16 bytes", "16 bytes", "16 bytes",
     "vectors: N"},
    {"C's rows in line, in fp32",
     [](Question& q) {
       q.options.ldc = 260;
       q.options.dtype_c = SPARSEK_FP32;
     },
     "", "", "", "", "vectors: N"},
    {"N out of line", [](Question& q) { q.options.n = 250; }, "", "", "in multiples of 8", "", "vectors: N"},
    {"a vector", [](Question& q) { q.options.n = q.options.ldb = q.options.ldc = 1; }, "", "16 bytes", "16 bytes",
     "16 bytes", ""},
    {"a column", [](Question& q) { q.options.n = q.options.ldc = 1, q.options.ldb = 4; }, "", "16 bytes", "16 bytes",
     "16 bytes", "vectors: N"},
    {"addresses of vectors out of line",
     [](Question& q) {
       q.options.n = q.options.ldb = q.options.ldc = 1;
       q.options.alignment_c = 8;
     },
     "", "16 bytes", "16 bytes", "16 bytes", "vectors that are aligned"},
    {"addresses out of line", [](Question& q) { q.options.alignment = 8; }, "", "16 bytes", "16 bytes", "16 bytes",
     "vectors: N"},
    {"a long row, four for each block",
     [](Question& q) {
       q.matrix.nnzb = 16;
       q.longest_row = 8;
     },
     "", "", "", "", "vectors: N"},
    {"a long row, more than four", [](Question& q) { q.longest_row = 8; }, "", "", "longest, of 8 blocks", "",
     "vectors: N"},
    {"more block rows than the extent of a grid",
     [](Question& q) { q.matrix.block_rows = 65536, q.matrix.rows = 65536 * 64, q.matrix.nnzb = 65536 * 2; }, "", "",
     "65535 block rows", "", "vectors: N"},
    {"a long pitch", [](Question& q) { q.options.ldb = int64_t{1} << 31; }, "below 2^31", "", "", "", "vectors: N"},
    {"a K that padding makes too long",
     [](Question& q) {
       q.matrix.cols = INT32_MAX;
       q.matrix.block_m = q.matrix.block_k = 1;
     },
     "below 2^31", "", "", "", "vectors: N"},
    {"more elements than 32 bits count", [](Question& q) { q.matrix.nnzb = 1 << 19; }, "", "", "", "2^31 - 1 elements",
     "2^31 - 1 elements"},
};

bool answers(const Case& c, const std::string& got, const char* want, const char* kernel) {
  const bool right = *want == '\0' ? got.empty() : got.find(want) != std::string::npos;
  if (!right) std::printf("%s, %s: got \"%s\", want \"%s\"\n", c.what, kernel, got.c_str(), want);
  return right;
}

}  // namespace

int main() {
  using namespace sparsek::cuda;
  for (const Case& c : kCases) {
    Question q = served();
    c.change(q);
    const char* const want[] = {c.dense, c.bsr, c.bell, c.csr, c.vector};
    for (size_t i = 0; i < library_kernels().size(); ++i) {
      const LibraryKernel& kernel = library_kernels()[i];
      if (!answers(c, obstacle(kernel, q.matrix, q.longest_row, q.dtype, q.options), want[i], kernel.name)) return 1;
    }
  }
  if (opened != 0) {
    std::printf("%d libraries were opened to answer what needs none\n", opened);
    return 1;
  }
  const LibraryKernel* const dense = find_library_kernel("cublas_dense");
  const LibraryKernel* const bell = find_library_kernel("cusparse_bell");
  if (dense == nullptr || bell == nullptr || find_library_kernel("") != nullptr) {
    std::printf("the kernels are not found by their names\n");
    return 1;
  }
  if (missing_library(*dense) != "no cuBLAS" || !missing_library(*bell).empty()) {
    std::printf("a library is taken for another\n");
    return 1;
  }
}
