// SPDX-License-Identifier: Apache-2.0
#include "cuda/vendor/library_kernels.h"

#include "abi/dtype.h"
#include "cuda/runtime_library.h"

namespace sparsek::cuda {
namespace {

// The limit on Blocked-ELL's padding: blocks in the layout for each stored block.
constexpr int64_t kMostPadding = 4;
// And on its block rows: the extent of a grid.
constexpr int32_t kMostEllRows = 65535;

// The limit of interfaces with 32-bit extents and strides.
std::string dense_obstacle(const BsrShape& matrix, const PlanOptions& options) {
  for (const int64_t extent : {matrix.rows, dense_pitch(matrix.cols), options.ldb, options.ldc}) {
    if (extent > INT32_MAX) return "its extents and strides must be below 2^31";
  }
  return "";
}

std::string sparse_obstacle(const LibraryKernel& kernel, const BsrShape& matrix, int64_t longest_row,
                            sparsek_dtype dtype, const PlanOptions& options) {
  const bool in_rows = is_csr(kernel.format);
  if (!in_rows && matrix.block_m != matrix.block_k) return "its blocks must be square";
  if (matrix.rows % matrix.block_m != 0 || matrix.cols % matrix.block_k != 0) {
    return "M and K must be multiples of the block";
  }
  if (in_rows && matrix.nnzb > INT32_MAX / matrix.block_m / matrix.block_k) {
    return "it counts at most 2^31 - 1 elements";
  }
  const bool aligned_vectors = options.alignment % kSparseAlignment == 0 && options.alignment_c % kSparseAlignment == 0;
  if (kernel.format == LibraryFormat::kCsrByVector) {
    if (!takes_vectors(options.n, options.ldb, options.ldc))
      return "it multiplies by vectors: N, ldb and ldc must be 1";
    return aligned_vectors ? "" : "it is given vectors that are aligned to 16 bytes alone";
  }
  const bool aligned = aligned_vectors && options.ldb * dtype_bytes(dtype) % kSparseAlignment == 0 &&
                       options.ldc * dtype_bytes(options.dtype_c) % kSparseAlignment == 0;
  if (!aligned) return "it is given B and C whose rows are aligned to 16 bytes alone";
  // With N = 1 it was seen to write past the end of rows of C.
  // With more it was seen to compute nothing, and to report no error.
  if (kernel.format == LibraryFormat::kBlockedEll && matrix.block_rows > kMostEllRows) {
    return "it is given at most " + std::to_string(kMostEllRows) + " block rows";
  }
  if (kernel.format == LibraryFormat::kBlockedEll && options.n % 8 != 0) return "it is given N in multiples of 8 alone";
  if (kernel.format == LibraryFormat::kBlockedEll && longest_row > kMostPadding * matrix.nnzb / matrix.block_rows) {
    return "with its rows padded to the longest, of " + std::to_string(longest_row) +
           " blocks, it would hold more than " + std::to_string(kMostPadding) + " blocks for each that is stored";
  }
  return "";
}

}  // namespace

const std::array<LibraryKernel, 5>& library_kernels() {
  static constexpr std::array<LibraryKernel, 5> kernels = {{
      {"cublas_dense", "A as a dense matrix: where most blocks are stored", "cuBLAS", LibraryFormat::kDense, true,
       cublas_file},
      {"cusparse_bsr", "cuSPARSE's product of BSR, square blocks", "cuSPARSE", LibraryFormat::kBsr, false,
       cusparse_file},
      {"cusparse_bell", "cuSPARSE's product of Blocked-ELL, square blocks, block rows of about one length", "cuSPARSE",
       LibraryFormat::kBlockedEll, true, cusparse_file},
      // Where rows are short it multiplies a row of B by zero.
      {"cusparse_csr", "cuSPARSE's product of CSR: every block as its elements", "cuSPARSE", LibraryFormat::kCsr, true,
       cusparse_file},
      {"cusparse_csr_vector", "the same by a vector", "cuSPARSE", LibraryFormat::kCsrByVector, false, cusparse_file},
  }};
  return kernels;
}

const LibraryKernel* find_library_kernel(const std::string& name) {
  for (const LibraryKernel& kernel : library_kernels()) {
    if (name == kernel.name) return &kernel;
  }
  return nullptr;
}

std::string obstacle(const LibraryKernel& kernel, const BsrShape& matrix, int64_t longest_row, sparsek_dtype dtype,
                     const PlanOptions& options) {
  const bool short_elements = dtype == SPARSEK_BF16 || dtype == SPARSEK_FP16;
  if (kernel.format == LibraryFormat::kBlockedEll && !short_elements) return "it takes bf16 and fp16";
  if (options.dtype_c != dtype && !(short_elements && options.dtype_c == SPARSEK_FP32)) {
    return "it writes C in the type of A or, where that has 16 bits, in fp32";
  }
  if (options.bias != SPARSEK_BIAS_NONE || options.activation != SPARSEK_ACTIVATION_NONE) {
    return "it has neither a bias nor an activation";
  }
  if (matrix.rows == 0 || matrix.cols == 0 || options.n == 0 || matrix.nnzb == 0) return "there is nothing to multiply";
  if (kernel.reads_absent && !options.allow_dense) {
    return "it multiplies absent blocks as zeros, which makes NaN of Inf and NaN: set allow_dense where B is finite";
  }
  if (kernel.format == LibraryFormat::kDense) return dense_obstacle(matrix, options);
  return sparse_obstacle(kernel, matrix, longest_row, dtype, options);
}

const std::string& missing_library(const LibraryKernel& kernel) { return kernel.file().why_not; }

}  // namespace sparsek::cuda
