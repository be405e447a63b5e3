// SPDX-License-Identifier: Apache-2.0
#include "cuda/cusparse_library.h"

#include "abi/error.h"
#include "cuda/runtime_library.h"

namespace sparsek::cuda {

CusparseLibrary::CusparseLibrary() {
  const auto find = [&](const char* name, auto& function) {
    find_function(cusparse_file(), "cuSPARSE", name, function);
  };
  find("cusparseCreate", create);
  find("cusparseDestroy", destroy);
  find("cusparseSetStream", set_stream);
  find("cusparseCreateBsr", create_bsr);
  find("cusparseCreateBlockedEll", create_blocked_ell);
  find("cusparseCreateCsr", create_csr);
  find("cusparseCreateDnVec", create_vector);
  find("cusparseCreateDnMat", create_dense);
  find("cusparseDestroySpMat", destroy_sparse);
  find("cusparseDestroyDnMat", destroy_dense);
  find("cusparseDestroyDnVec", destroy_vector);
  find("cusparseSpMM_bufferSize", multiply_bytes);
  find("cusparseSpMM", multiply);
  find("cusparseSpMV_bufferSize", multiply_vector_bytes);
  find("cusparseSpMV", multiply_vector);
  find("cusparseGetErrorString", error_string);
}

const CusparseLibrary& CusparseLibrary::get() {
  static const CusparseLibrary library;  // where the constructor throws, the next call tries again
  return library;
}

void CusparseLibrary::check(int status, const char* call) const {
  if (status == kCusparseSuccess) return;
  constexpr int kAllocationFailed = 2, kInsufficientResources = 11;
  constexpr int kInvalidValue = 3, kTypeNotSupported = 8, kNotSupported = 10;
  switch (status) {
    case kAllocationFailed:
    case kInsufficientResources:
      fail(SPARSEK_OUT_OF_MEMORY, "%s: out of device memory", call);
    case kInvalidValue:
    case kTypeNotSupported:
    case kNotSupported:
      fail(SPARSEK_NO_SUCH_KERNEL, "%s does not serve this product: cuSPARSE's status is %d (%s)", call, status,
           error_string(status));
    default:
      fail(SPARSEK_CUDA_ERROR, "%s: cuSPARSE's status is %d (%s)", call, status, error_string(status));
  }
}

}  // namespace sparsek::cuda
