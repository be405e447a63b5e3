// SPDX-License-Identifier: Apache-2.0
// Sparse products by cuSPARSE, which is opened at run time.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <mutex>

#include "cuda/vendor/library_kernels.h"
#include "sparsek.h"

namespace sparsek::cuda {

class CusparseLibrary;

// C = alpha A B + beta C, all in device memory; A of square blocks, its sizes multiples of the block. CSR has blocks
// of 1.
struct SparseProduct {
  LibraryFormat format;  // all but kDense
  int64_t m, n, k, block;
  int64_t blocks;          // BSR and CSR: nnzb; Blocked-ELL: of each block row
  const int32_t* row_ptr;  // BSR and CSR: (m / block + 1)
  const int32_t* col_idx;  // BSR and CSR: (nnzb); Blocked-ELL: (m / block, blocks), -1 where no block is
  const void* values;      // BSR and CSR: (nnzb, block, block); Blocked-ELL: (M, blocks * block)
  sparsek_dtype dtype;     // of A and B
  sparsek_dtype dtype_c;   // that or, of 16-bit elements, SPARSEK_FP32
  float alpha, beta;       // beta = 0: C is not read
  const void* b;           // (K, N):(ldb, 1)
  int64_t ldb;
  void* c;  // (M, N):(ldc, 1)
  int64_t ldc;
};

// A cuSPARSE handle on one device, for any threads and streams.
class Cusparse {
 public:
  // The current device must be the handle's, here and below. Throws SPARSEK_NO_LIBRARY where there is no cuSPARSE.
  Cusparse();
  ~Cusparse();
  Cusparse(const Cusparse&) = delete;
  Cusparse& operator=(const Cusparse&) = delete;

  // The bytes of device memory that a product needs while it runs; reads no operands. Throws SPARSEK_NO_SUCH_KERNEL
  // where cuSPARSE does not serve it.
  size_t workspace_bytes(const SparseProduct& product);
  // A product that needs workspace takes it from the device's pool in the order of the stream: streams that use one
  // plan at once share none, and a graph gets memory nodes.
  void multiply(const SparseProduct& product, size_t workspace_bytes, cudaStream_t stream);

 private:
  const CusparseLibrary& library_;
  std::mutex mutex_;  // held from setting the handle's stream to the end of the call in it
  void* handle_ = nullptr;
};

}  // namespace sparsek::cuda
