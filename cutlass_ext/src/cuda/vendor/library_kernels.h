// SPDX-License-Identifier: Apache-2.0
// What NVIDIA's libraries offer as kernels of a plan. They are taken by name, and chosen with
// allow_dense or by the tuner.
#pragma once

#include <array>
#include <string>

#include "abi/backend.h"

namespace sparsek::cuda {

struct OpenedLibrary;

// How A is laid out for a library.
enum class LibraryFormat { kDense, kBsr, kBlockedEll };

struct LibraryKernel {
  const char* name;
  const char* why;
  const char* library;
  LibraryFormat format;
  bool reads_absent;  // multiplies absent blocks as zeros, and 0 x Inf is NaN
  const OpenedLibrary& (*file)();
};

const std::array<LibraryKernel, 3>& library_kernels();

// Null where there is none of that name.
const LibraryKernel* find_library_kernel(const std::string& name);

// Why a kernel does not serve a case, wherever its library is; empty where it does. longest_row: blocks of the block
// row that has most.
std::string obstacle(const LibraryKernel& kernel, const BsrShape& matrix, int64_t longest_row, sparsek_dtype dtype,
                     const PlanOptions& options);

// Why the library is not there; empty where it is. It is opened by the first call of the process.
const std::string& missing_library(const LibraryKernel& kernel);

// Bytes to which cuSPARSE is given operands and their rows: it does not say what it needs where it loads and stores
// several elements at once.
constexpr int kSparseAlignment = 16;

// Elements from one row to the next of A laid out densely: a multiple of 16 bytes, or cuBLAS would leave out its best
// kernels.
constexpr int64_t dense_pitch(int64_t cols) { return (cols + 7) / 8 * 8; }

}  // namespace sparsek::cuda
