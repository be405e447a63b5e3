// SPDX-License-Identifier: Apache-2.0
// The few functions of cuSPARSE that are used, found in the library at run time.
#pragma once

#include <cuda_runtime_api.h>
#include <library_types.h>

#include <cstddef>
#include <cstdint>

namespace sparsek::cuda {

// cuSPARSE's enumerations, by the values of its interface.
constexpr int kCusparseSuccess = 0;
constexpr int kCusparseNoTranspose = 0;
constexpr int kCusparseInt32 = 2;
constexpr int kCusparseBaseZero = 0;
constexpr int kCusparseRowOrder = 2;
constexpr int kCusparseBlockedEllAlgorithm = 13;
constexpr int kCusparseBsrAlgorithm = 14;
constexpr int kCusparseCsrAlgorithm = 12;       // the others round sums to 16-bit types on the way, and take longer
constexpr int kCusparseCsrVectorAlgorithm = 2;  // the fastest; it may sum in another order each time

class CusparseLibrary {
 public:
  // Throws SPARSEK_NO_LIBRARY, again with each call, where there is none.
  static const CusparseLibrary& get();

  int (*create)(void** handle) = nullptr;
  int (*destroy)(void* handle) = nullptr;
  int (*set_stream)(void* handle, cudaStream_t stream) = nullptr;
  int (*create_bsr)(void** matrix, int64_t block_rows, int64_t block_cols, int64_t blocks, int64_t block_m,
                    int64_t block_k, void* row_ptr, void* col_idx, void* values, int row_ptr_type, int col_idx_type,
                    int index_base, cudaDataType type, int order) = nullptr;
  int (*create_blocked_ell)(void** matrix, int64_t rows, int64_t cols, int64_t block, int64_t ell_cols, void* col_idx,
                            void* values, int col_idx_type, int index_base, cudaDataType type) = nullptr;
  int (*create_csr)(void** matrix, int64_t rows, int64_t cols, int64_t count, void* row_ptr, void* col_idx,
                    void* values, int row_ptr_type, int col_idx_type, int index_base, cudaDataType type) = nullptr;
  int (*create_vector)(void** vector, int64_t count, void* values, cudaDataType type) = nullptr;
  int (*create_dense)(void** matrix, int64_t rows, int64_t cols, int64_t stride, void* values, cudaDataType type,
                      int order) = nullptr;
  int (*destroy_sparse)(const void* matrix) = nullptr;
  int (*destroy_dense)(const void* matrix) = nullptr;
  int (*destroy_vector)(const void* vector) = nullptr;
  int (*multiply_bytes)(void* handle, int transpose_a, int transpose_b, const void* alpha, const void* a, const void* b,
                        const void* beta, void* c, cudaDataType compute_type, int algorithm, size_t* bytes) = nullptr;
  int (*multiply)(void* handle, int transpose_a, int transpose_b, const void* alpha, const void* a, const void* b,
                  const void* beta, void* c, cudaDataType compute_type, int algorithm, void* workspace) = nullptr;
  // The same with vectors.
  int (*multiply_vector_bytes)(void* handle, int transpose, const void* alpha, const void* a, const void* x,
                               const void* beta, void* y, cudaDataType compute_type, int algorithm,
                               size_t* bytes) = nullptr;
  int (*multiply_vector)(void* handle, int transpose, const void* alpha, const void* a, const void* x, const void* beta,
                         void* y, cudaDataType compute_type, int algorithm, void* workspace) = nullptr;
  const char* (*error_string)(int status) = nullptr;

  // Throws Error where a call failed.
  void check(int status, const char* call) const;

 private:
  CusparseLibrary();
};

}  // namespace sparsek::cuda
