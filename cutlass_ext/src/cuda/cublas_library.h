// SPDX-License-Identifier: Apache-2.0
// The few functions of cuBLAS that are used, found in the library at run time.
#pragma once

#include <cuda_runtime_api.h>
#include <library_types.h>

#include <cstddef>

namespace sparsek::cuda {

// cuBLAS's enumerations, by the values of its interface.
constexpr int kCublasSuccess = 0;
constexpr int kCublasNoTranspose = 0;
constexpr int kCublasCompute32F = 68, kCublasCompute64F = 70;
constexpr int kCublasGemmDefault = -1;
constexpr int kCublasNoReducedPrecisionReduction = 16;

class CublasLibrary {
 public:
  // Throws SPARSEK_NO_LIBRARY, again with each call, where there is none.
  static const CublasLibrary& get();

  int (*create)(void** handle) = nullptr;
  int (*destroy)(void* handle) = nullptr;
  int (*set_math_mode)(void* handle, int mode) = nullptr;
  int (*set_stream)(void* handle, cudaStream_t stream) = nullptr;
  int (*gemm)(void* handle, int transpose_a, int transpose_b, int m, int n, int k, const void* alpha, const void* a,
              cudaDataType a_type, int lda, const void* b, cudaDataType b_type, int ldb, const void* beta, void* c,
              cudaDataType c_type, int ldc, int compute_type, int algorithm) = nullptr;

  // Throws Error where a call failed.
  void check(int status, const char* call) const;

 private:
  CublasLibrary();
};

}  // namespace sparsek::cuda
