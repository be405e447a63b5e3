// SPDX-License-Identifier: Apache-2.0
// The kernels of NVIDIA's libraries that a plan can use. They run where they are named, and are chosen with allow_dense
// or by the tuner.
#pragma once

#include <array>
#include <string>

#include "abi/backend.h"

namespace sparsek::cuda {

struct OpenedLibrary;

// The layout of A for a library.
enum class LibraryFormat { kDense, kBsr, kBlockedEll, kCsr, kCsrByVector };

constexpr bool is_csr(LibraryFormat format) {
  return format == LibraryFormat::kCsr || format == LibraryFormat::kCsrByVector;
}

struct LibraryKernel {
  const char* name;
  const char* why;
  const char* library;
  LibraryFormat format;
  bool reads_absent;  // multiplies absent blocks as zeros, and 0 x Inf is NaN
  const OpenedLibrary& (*file)();
};

const std::array<LibraryKernel, 5>& library_kernels();

// The kernel of that name, or null.
const LibraryKernel* find_library_kernel(const std::string& name);

// Why a kernel does not serve a case, whether or not its library is installed; empty where it does. longest_row: blocks
// of the longest block row.
std::string obstacle(const LibraryKernel& kernel, const BsrShape& matrix, int64_t longest_row, sparsek_dtype dtype,
                     const PlanOptions& options);

// Why the library cannot be used; empty where it can. The first call of the process opens it.
const std::string& missing_library(const LibraryKernel& kernel);

// The alignment in bytes of operands and their rows that is required for cuSPARSE, which does not document what it
// needs where it loads and stores several elements at once.
constexpr int kSparseAlignment = 16;

// Whether B and C of a product are vectors.
constexpr bool takes_vectors(int64_t n, int64_t ldb, int64_t ldc) { return n == 1 && ldb == 1 && ldc == 1; }

// The pitch in elements of A as a dense matrix: a multiple of 16 bytes, since cuBLAS does not use its best kernels
// otherwise.
constexpr int64_t dense_pitch(int64_t cols) { return (cols + 7) / 8 * 8; }

}  // namespace sparsek::cuda
