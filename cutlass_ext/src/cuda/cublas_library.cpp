// SPDX-License-Identifier: Apache-2.0
#include "cuda/cublas_library.h"

#include "abi/error.h"
#include "cuda/runtime_library.h"

namespace sparsek::cuda {

CublasLibrary::CublasLibrary() {
  const auto find = [&](const char* name, auto& function) { find_function(cublas_file(), "cuBLAS", name, function); };
  find("cublasCreate_v2", create);
  find("cublasDestroy_v2", destroy);
  find("cublasSetMathMode", set_math_mode);
  find("cublasSetStream_v2", set_stream);
  find("cublasGemmEx", gemm);
}

const CublasLibrary& CublasLibrary::get() {
  static const CublasLibrary library;  // where the constructor throws, the next call tries again
  return library;
}

void CublasLibrary::check(int status, const char* call) const {
  if (status == kCublasSuccess) return;
  constexpr int kAllocationFailed = 3;
  if (status == kAllocationFailed) fail(SPARSEK_OUT_OF_MEMORY, "%s: out of device memory", call);
  fail(SPARSEK_CUDA_ERROR, "%s: cuBLAS's status is %d", call, status);
}

}  // namespace sparsek::cuda
