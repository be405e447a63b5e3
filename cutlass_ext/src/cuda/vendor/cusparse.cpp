// SPDX-License-Identifier: Apache-2.0
#include "cuda/vendor/cusparse.h"

#include "cuda/cuda_error.h"
#include "cuda/cusparse_library.h"
#include "cuda/data_type.h"
#include "cuda/stream_memory.h"

namespace sparsek::cuda {
namespace {

// cuSPARSE's descriptors of a product's operands. They are small, in host memory, and a call reads them before it
// returns: so each call makes its own, and none is shared.
class Operands {
 public:
  Operands(const CusparseLibrary& library, const SparseProduct& x) : library_(library) {
    const int status = make(x);
    if (status == kCusparseSuccess) return;
    destroy();
    library_.check(status, name(x));
  }
  ~Operands() { destroy(); }
  Operands(const Operands&) = delete;
  Operands& operator=(const Operands&) = delete;

  static const char* name(const SparseProduct& x) {
    return x.format == LibraryFormat::kBsr ? "cusparse_bsr" : "cusparse_bell";
  }

  const void* a() const { return a_; }
  const void* b() const { return b_; }
  void* c() const { return c_; }

 private:
  // The interface takes non-const pointers to data that it only reads.
  int make(const SparseProduct& x) {
    const auto writable = [](const void* data) { return const_cast<void*>(data); };
    const cudaDataType type = data_type(x.dtype);
    const int status =
        x.format == LibraryFormat::kBsr
            ? library_.create_bsr(&a_, x.m / x.block, x.k / x.block, x.blocks, x.block, x.block, writable(x.row_ptr),
                                  writable(x.col_idx), writable(x.values), kCusparseInt32, kCusparseInt32,
                                  kCusparseBaseZero, type, kCusparseRowOrder)
            : library_.create_blocked_ell(&a_, x.m, x.k, x.block, x.blocks * x.block, writable(x.col_idx),
                                          writable(x.values), kCusparseInt32, kCusparseBaseZero, type);
    if (status != kCusparseSuccess) return status;
    const int status_b = library_.create_dense(&b_, x.k, x.n, x.ldb, writable(x.b), type, kCusparseRowOrder);
    if (status_b != kCusparseSuccess) return status_b;
    return library_.create_dense(&c_, x.m, x.n, x.ldc, x.c, data_type(x.dtype_c), kCusparseRowOrder);
  }

  void destroy() {
    if (c_ != nullptr) library_.destroy_dense(c_);
    if (b_ != nullptr) library_.destroy_dense(b_);
    if (a_ != nullptr) library_.destroy_sparse(a_);
  }

  const CusparseLibrary& library_;
  void *a_ = nullptr, *b_ = nullptr, *c_ = nullptr;
};

int algorithm(const SparseProduct& x) {
  return x.format == LibraryFormat::kBsr ? kCusparseBsrAlgorithm : kCusparseBlockedEllAlgorithm;
}

}  // namespace

Cusparse::Cusparse() : library_(CusparseLibrary::get()) { library_.check(library_.create(&handle_), "cusparseCreate"); }

Cusparse::~Cusparse() { library_.destroy(handle_); }

size_t Cusparse::workspace_bytes(const SparseProduct& x) {
  const Operands operands(library_, x);
  size_t bytes = 0;
  const std::lock_guard lock(mutex_);
  library_.check(library_.multiply_bytes(handle_, kCusparseNoTranspose, kCusparseNoTranspose, &x.alpha, operands.a(),
                                         operands.b(), &x.beta, operands.c(), CUDA_R_32F, algorithm(x), &bytes),
                 Operands::name(x));
  return bytes;
}

void Cusparse::multiply(const SparseProduct& x, size_t workspace_bytes, cudaStream_t stream) {
  const Operands operands(library_, x);
  const StreamMemory workspace(workspace_bytes, stream);
  const std::lock_guard lock(mutex_);
  library_.check(library_.set_stream(handle_, stream), "cusparseSetStream");
  library_.check(library_.multiply(handle_, kCusparseNoTranspose, kCusparseNoTranspose, &x.alpha, operands.a(),
                                   operands.b(), &x.beta, operands.c(), CUDA_R_32F, algorithm(x), workspace.data()),
                 Operands::name(x));
}

}  // namespace sparsek::cuda
