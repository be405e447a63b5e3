// SPDX-License-Identifier: Apache-2.0
#include "cuda/cublas.h"

#include <vector>

#include "cuda/cublas_library.h"
#include "cuda/cuda_matrix.h"
#include "cuda/event.h"

namespace sparsek::cuda {
namespace {

// What NVIDIA recommends for Hopper: with less, cuBLAS's heuristics leave out some of its kernels.
constexpr size_t kWorkspaceBytes = size_t{32} << 20;

}  // namespace

Cublas::Cublas(int device) : device_(device), library_(CublasLibrary::get()), workspace_(kWorkspaceBytes) {
  library_.check(library_.create(&handle_), "cublasCreate");
}

Cublas::~Cublas() { library_.destroy(handle_); }

void Cublas::time(const sparsek_dense_time_args& args, double* seconds) {
  for (int set = 0; set < args.set_count; ++set) {
    check_memory(args.a[set], SPARSEK_DEVICE, device_, "a");
    check_memory(args.b[set], SPARSEK_DEVICE, device_, "b");
    check_memory(args.c[set], SPARSEK_DEVICE, device_, "c");
  }
  const auto stream = static_cast<cudaStream_t>(args.stream);
  library_.check(library_.set_stream(handle_, stream), "cublasSetStream");
  // After the stream: setting that takes the workspace away.
  library_.check(library_.set_workspace(handle_, workspace_.data(), kWorkspaceBytes), "cublasSetWorkspace");

  int turn = 0;
  const auto run = [&] { multiply(args, turn++ % args.set_count); };
  for (int i = 0; i < args.warmup; ++i) run();
  std::vector<Event> marks(static_cast<size_t>(args.repeats) + 1);
  marks[0].record(stream);
  for (int i = 0; i < args.repeats; ++i) {
    run();
    marks[i + 1].record(stream);
  }
  marks[args.repeats].wait();
  for (int i = 0; i < args.repeats; ++i) seconds[i] = marks[i + 1].seconds_since(marks[i]);
}

// cuBLAS is column-major, and a row-major matrix is a column-major one transposed: C^T = B^T A^T.
void Cublas::multiply(const sparsek_dense_time_args& args, int set) {
  const float one = 1, zero = 0;
  const cudaDataType type = args.dtype == SPARSEK_BF16 ? CUDA_R_16BF : CUDA_R_16F;
  const int m = static_cast<int>(args.m), n = static_cast<int>(args.n), k = static_cast<int>(args.k);
  library_.check(
      library_.gemm(handle_, kCublasNoTranspose, kCublasNoTranspose, n, m, k, &one, args.b[set], type, n, args.a[set],
                    type, k, &zero, args.c[set], type, n, kCublasCompute32F, kCublasGemmDefault),
      "cublasGemmEx");
}

}  // namespace sparsek::cuda
