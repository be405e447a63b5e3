// SPDX-License-Identifier: Apache-2.0
// Dense products by cuBLAS, which is opened at run time.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <mutex>

#include "sparsek.h"

namespace sparsek::cuda {

class CublasLibrary;

// C = alpha A B + beta C, all row-major and in device memory.
struct DenseProduct {
  int64_t m, n, k;        // within int32, and so the strides
  sparsek_dtype dtype;    // of A and B
  sparsek_dtype dtype_c;  // that or, of 16-bit elements, SPARSEK_FP32
  float alpha, beta;      // beta = 0: C is not read
  const void* a;          // (M, K):(lda, 1)
  const void* b;          // (K, N):(ldb, 1)
  void* c;                // (M, N):(ldc, 1)
  int64_t lda, ldb, ldc;
};

// A cuBLAS handle on one device, for any threads and streams. Products are summed in fp32, those that are split too,
// and those of fp64 in fp64.
//
// It has no workspace of ours: two streams would use that at once. cuBLAS has workspaces of its own, made with the
// handle and as large as it recommends for the device, and deals them out to the streams; where a product is captured,
// it puts the allocation of one into the graph.
class Cublas {
 public:
  // The current device must be `device`. Throws SPARSEK_NO_LIBRARY where there is no cuBLAS.
  explicit Cublas(int device);
  ~Cublas();
  Cublas(const Cublas&) = delete;
  Cublas& operator=(const Cublas&) = delete;

  // The current device must be the handle's.
  void multiply(const DenseProduct& product, cudaStream_t stream);

  // As sparsek.h says of dense_time; the arguments were checked at the edge.
  void time(const sparsek_dense_time_args& args, double* seconds);

 private:
  const int device_;
  const CublasLibrary& library_;
  std::mutex mutex_;  // held from setting the handle's stream to the end of the call in it
  void* handle_ = nullptr;
};

}  // namespace sparsek::cuda
