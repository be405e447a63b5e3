// SPDX-License-Identifier: Apache-2.0
#include "cuda/cublas.h"

#include "cuda/cublas_library.h"
#include "cuda/cuda_matrix.h"
#include "cuda/data_type.h"
#include "cuda/device_scope.h"
#include "cuda/time_runs.h"

namespace sparsek::cuda {

Cublas::Cublas(int device) : device_(device), library_(CublasLibrary::get()) {
  library_.check(library_.create(&handle_), "cublasCreate");
  const int status = library_.set_math_mode(handle_, kCublasNoReducedPrecisionReduction);
  if (status != kCublasSuccess) library_.destroy(handle_);
  library_.check(status, "cublasSetMathMode");
}

Cublas::~Cublas() { library_.destroy(handle_); }

// cuBLAS is column-major, and a row-major matrix is a column-major one transposed: C^T = B^T A^T.
void Cublas::multiply(const DenseProduct& x, cudaStream_t stream) {
  const auto narrow = [](int64_t extent) { return static_cast<int>(extent); };
  const cudaDataType type = data_type(x.dtype);
  const LibraryScalar alpha(x.alpha, x.dtype), beta(x.beta, x.dtype);
  const int compute = x.dtype == SPARSEK_FP64 ? kCublasCompute64F : kCublasCompute32F;
  const std::lock_guard lock(mutex_);
  library_.check(library_.set_stream(handle_, stream), "cublasSetStream");
  library_.check(library_.gemm(handle_, kCublasNoTranspose, kCublasNoTranspose, narrow(x.n), narrow(x.m), narrow(x.k),
                               alpha.data(), x.b, type, narrow(x.ldb), x.a, type, narrow(x.lda), beta.data(), x.c,
                               data_type(x.dtype_c), narrow(x.ldc), compute, kCublasGemmDefault),
                 "cublasGemmEx");
}

void Cublas::time(const sparsek_dense_time_args& args, double* seconds) {
  for (int set = 0; set < args.set_count; ++set) {
    check_memory(args.a[set], SPARSEK_DEVICE, device_, "a");
    check_memory(args.b[set], SPARSEK_DEVICE, device_, "b");
    check_memory(args.c[set], SPARSEK_DEVICE, device_, "c");
  }
  const auto stream = static_cast<cudaStream_t>(args.stream);
  require_not_captured(stream, "dense_time");
  const auto dtype = static_cast<sparsek_dtype>(args.dtype);
  int turn = 0;
  const auto run = [&] {
    const int set = turn++ % args.set_count;
    multiply(
        {args.m, args.n, args.k, dtype, dtype, 1, 0, args.a[set], args.b[set], args.c[set], args.k, args.n, args.n},
        stream);
  };
  time_runs(stream, args.warmup, args.repeats, run, seconds);
}

}  // namespace sparsek::cuda
