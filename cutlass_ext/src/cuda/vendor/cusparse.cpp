// SPDX-License-Identifier: Apache-2.0
#include "cuda/vendor/cusparse.h"

#include "cuda/cuda_error.h"
#include "cuda/cusparse_library.h"
#include "cuda/data_type.h"
#include "cuda/stream_memory.h"

namespace sparsek::cuda {
namespace {

// cuSPARSE's descriptors of a product's operands, and its scalars. They are small, in host memory, and a call reads
// them before it returns: so each call makes its own, and none is shared.
class Operands {
 public:
  Operands(const CusparseLibrary& library, const SparseProduct& x)
      : library_(library),
        alpha_(x.alpha, x.dtype),
        beta_(x.beta, x.dtype),
        sums_(sum_type(x.dtype)),
        is_vector_(x.format == LibraryFormat::kCsrByVector),
        algorithm_(algorithm(x)) {
    const int status = make(x);
    if (status == kCusparseSuccess) return;
    destroy();
    library_.check(status, name(x));
  }
  ~Operands() { destroy(); }
  Operands(const Operands&) = delete;
  Operands& operator=(const Operands&) = delete;

  static const char* name(const SparseProduct& x) {
    switch (x.format) {
      case LibraryFormat::kBsr:
        return "cusparse_bsr";
      case LibraryFormat::kCsr:
        return "cusparse_csr";
      case LibraryFormat::kCsrByVector:
        return "cusparse_csr_vector";
      default:
        return "cusparse_bell";
    }
  }

  int workspace_bytes(void* handle, size_t* bytes) const {
    if (is_vector_) {
      return library_.multiply_vector_bytes(handle, kCusparseNoTranspose, alpha_.data(), a_, b_, beta_.data(), c_,
                                            sums_, algorithm_, bytes);
    }
    return library_.multiply_bytes(handle, kCusparseNoTranspose, kCusparseNoTranspose, alpha_.data(), a_, b_,
                                   beta_.data(), c_, sums_, algorithm_, bytes);
  }
  int multiply(void* handle, void* workspace) const {
    if (is_vector_) {
      return library_.multiply_vector(handle, kCusparseNoTranspose, alpha_.data(), a_, b_, beta_.data(), c_, sums_,
                                      algorithm_, workspace);
    }
    return library_.multiply(handle, kCusparseNoTranspose, kCusparseNoTranspose, alpha_.data(), a_, b_, beta_.data(),
                             c_, sums_, algorithm_, workspace);
  }

 private:
  static int algorithm(const SparseProduct& x) {
    switch (x.format) {
      case LibraryFormat::kBsr:
        return kCusparseBsrAlgorithm;
      case LibraryFormat::kCsr:
        return kCusparseCsrAlgorithm;
      case LibraryFormat::kCsrByVector:
        return kCusparseCsrVectorAlgorithm;
      default:
        return kCusparseBlockedEllAlgorithm;
    }
  }

  int make_a(const SparseProduct& x) {
    // The interface takes non-const pointers to data that it only reads.
    const auto writable = [](const void* data) { return const_cast<void*>(data); };
    const cudaDataType type = data_type(x.dtype);
    switch (x.format) {
      case LibraryFormat::kBsr:
        return library_.create_bsr(&a_, x.m / x.block, x.k / x.block, x.blocks, x.block, x.block, writable(x.row_ptr),
                                   writable(x.col_idx), writable(x.values), kCusparseInt32, kCusparseInt32,
                                   kCusparseBaseZero, type, kCusparseRowOrder);
      case LibraryFormat::kCsr:
      case LibraryFormat::kCsrByVector:
        return library_.create_csr(&a_, x.m, x.k, x.blocks, writable(x.row_ptr), writable(x.col_idx),
                                   writable(x.values), kCusparseInt32, kCusparseInt32, kCusparseBaseZero, type);
      default:
        return library_.create_blocked_ell(&a_, x.m, x.k, x.block, x.blocks * x.block, writable(x.col_idx),
                                           writable(x.values), kCusparseInt32, kCusparseBaseZero, type);
    }
  }

  int make(const SparseProduct& x) {
    const int status = make_a(x);
    if (status != kCusparseSuccess) return status;
    void* const b = const_cast<void*>(x.b);
    const cudaDataType type = data_type(x.dtype), type_c = data_type(x.dtype_c);
    const int status_b = is_vector_ ? library_.create_vector(&b_, x.k, b, type)
                                    : library_.create_dense(&b_, x.k, x.n, x.ldb, b, type, kCusparseRowOrder);
    if (status_b != kCusparseSuccess) return status_b;
    return is_vector_ ? library_.create_vector(&c_, x.m, x.c, type_c)
                      : library_.create_dense(&c_, x.m, x.n, x.ldc, x.c, type_c, kCusparseRowOrder);
  }

  void destroy() {
    for (const void* const operand : {c_, b_}) {
      if (operand != nullptr) is_vector_ ? library_.destroy_vector(operand) : library_.destroy_dense(operand);
    }
    if (a_ != nullptr) library_.destroy_sparse(a_);
  }

  const CusparseLibrary& library_;
  const LibraryScalar alpha_, beta_;
  const cudaDataType sums_;
  const bool is_vector_;
  const int algorithm_;
  void *a_ = nullptr, *b_ = nullptr, *c_ = nullptr;
};

}  // namespace

Cusparse::Cusparse() : library_(CusparseLibrary::get()) { library_.check(library_.create(&handle_), "cusparseCreate"); }

Cusparse::~Cusparse() { library_.destroy(handle_); }

size_t Cusparse::workspace_bytes(const SparseProduct& x) {
  const Operands operands(library_, x);
  size_t bytes = 0;
  const std::lock_guard lock(mutex_);
  library_.check(operands.workspace_bytes(handle_, &bytes), Operands::name(x));
  return bytes;
}

void Cusparse::multiply(const SparseProduct& x, size_t workspace_bytes, cudaStream_t stream) {
  const Operands operands(library_, x);
  const StreamMemory workspace(workspace_bytes, stream);
  const std::lock_guard lock(mutex_);
  library_.check(library_.set_stream(handle_, stream), "cusparseSetStream");
  library_.check(operands.multiply(handle_, workspace.data()), Operands::name(x));
}

}  // namespace sparsek::cuda
