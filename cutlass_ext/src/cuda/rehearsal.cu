// SPDX-License-Identifier: Apache-2.0
#include "cuda/rehearsal.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <vector>

#include "abi/dtype.h"
#include "abi/product_form.h"
#include "cuda/device_array.h"
#include "cuda/device_scope.h"
#include "cuda/event.h"
#include "cuda/releases.h"
#include "cuda/stream_gate.h"

namespace sparsek::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kBlocks = 4096;  // each goes round, so that any size is served

}  // namespace

// Kernels have names of their own: what nvcc makes of a namespace without one differs from build to build.
namespace rehearsal {

// Evenly distributed from -1 to 1: products of ordinary numbers take ordinary power, and so does the clock.
template <class T>
__global__ void __launch_bounds__(kThreads) fill_random(T* out, size_t count, uint32_t seed) {
  for (size_t i = blockIdx.x * size_t{kThreads} + threadIdx.x; i < count; i += gridDim.x * size_t{kThreads}) {
    uint32_t x = static_cast<uint32_t>(i) * 0x9e3779b1u + seed;  // a multiplicative hash, mixed twice
    x = (x ^ x >> 16) * 0x85ebca6bu;
    x = (x ^ x >> 13) * 0xc2b2ae35u;
    out[i] = static_cast<T>(static_cast<float>(static_cast<int32_t>(x ^ x >> 16)) * 0x1p-31f);
  }
}

// Reading displaces what the cache holds and leaves nothing behind to be written back.
__global__ void __launch_bounds__(kThreads) read_all(const uint4* data, size_t count, uint32_t* never) {
  uint32_t all = 0;
  for (size_t i = blockIdx.x * size_t{kThreads} + threadIdx.x; i < count; i += gridDim.x * size_t{kThreads}) {
    const uint4 v = data[i];
    all |= v.x | v.y | v.z | v.w;
  }
  if (all != 0) *never = all;  // all are zero, which the compiler cannot know
}

}  // namespace rehearsal

namespace {

using rehearsal::fill_random;
using rehearsal::read_all;

void fill(void* out, size_t count, sparsek_dtype dtype, uint32_t seed, cudaStream_t stream) {
  if (count == 0) return;
  switch (dtype) {
    case SPARSEK_BF16:
      fill_random<<<kBlocks, kThreads, 0, stream>>>(static_cast<__nv_bfloat16*>(out), count, seed);
      break;
    case SPARSEK_FP16:
      fill_random<<<kBlocks, kThreads, 0, stream>>>(static_cast<__half*>(out), count, seed);
      break;
    case SPARSEK_FP32:
      fill_random<<<kBlocks, kThreads, 0, stream>>>(static_cast<float*>(out), count, seed);
      break;
    case SPARSEK_FP64:
      fill_random<<<kBlocks, kThreads, 0, stream>>>(static_cast<double*>(out), count, seed);
      break;
  }
  check(cudaGetLastError(), "fill_random");
}

class CudaRehearsal final : public tune::Rehearsal {
 public:
  CudaRehearsal(const CudaMatrix& matrix, const PlanOptions& options, size_t l2_bytes)
      : device_(matrix.device()),
        options_(options),
        stream_(matrix.memory().releases()),
        b_(elements(lines_of_b(options.op, matrix.shape(), options.n, options.order_b), options.ldb) *
           dtype_bytes(options.dtype_b)),
        c_(elements(lines_of_c(options.op, matrix.shape(), options.n, options.order_c), options.ldc) *
           dtype_bytes(options.dtype_c)),
        bias_(bias_elements(matrix, options) * dtype_bytes(options.dtype_c)),
        x_(x_elements(matrix, options) * dtype_bytes(matrix.dtype)),
        cold_(2 * l2_bytes / sizeof(uint4)),
        never_(1) {
    fill(b_.data(), b_.bytes() / dtype_bytes(options.dtype_b), options.dtype_b, 1, stream_);
    fill(x_.data(), x_.bytes() / dtype_bytes(matrix.dtype), matrix.dtype, 3, stream_);
    fill(bias_.data(), bias_.bytes() / dtype_bytes(options.dtype_c), options.dtype_c, 2, stream_);
    check(cudaMemsetAsync(cold_.data(), 0, cold_.bytes(), stream_), "cudaMemsetAsync");
    stream_.wait();
  }
  ~CudaRehearsal() override { cudaStreamSynchronize(stream_); }  // an error is reported where it is looked for

  void warm_up(PlanState& plan, int products) override {
    DeviceScope scope(device_);
    for (int i = 0; i < products; ++i) plan.multiply(arguments());
    stream_.wait();
  }

  void time(PlanState& plan, int repeats, double* seconds) override {
    DeviceScope scope(device_);
    const MultiplyArgs args = arguments();
    std::vector<Event> begin(repeats), end(repeats);
    StreamGate gate(stream_);  // a host that is slow to enqueue a product must not make its time longer
    for (int i = 0; i < repeats; ++i) {
      read_all<<<kBlocks, kThreads, 0, stream_>>>(cold_.data(), cold_.bytes() / sizeof(uint4), never_.data());
      check(cudaGetLastError(), "read_all");
      begin[i].record(stream_);
      plan.multiply(args);
      end[i].record(stream_);
    }
    gate.open();
    stream_.wait();
    for (int i = 0; i < repeats; ++i) seconds[i] = end[i].seconds_since(begin[i]);
  }

 private:
  MultiplyArgs arguments() const {
    MultiplyArgs args = {};
    args.alpha = 1;
    args.n = options_.n;
    args.b = b_.data();
    args.ldb = options_.ldb;
    args.c = c_.data();
    args.ldc = options_.ldc;
    args.c_in = args.c;
    args.ldc_in = args.ldc;
    args.stream = static_cast<cudaStream_t>(stream_);
    args.x = x_.data();
    args.ldx = options_.ldx;
    args.bias = options_.bias == SPARSEK_BIAS_NONE ? nullptr : bias_.data();
    return args;
  }

  // Of an operand: its last line ends with the matrix.
  static size_t elements(Lines lines, int64_t ld) {
    return lines.count > 0 && lines.length > 0 ? static_cast<size_t>((lines.count - 1) * ld + lines.length) : 0;
  }
  static size_t x_elements(const CudaMatrix& matrix, const PlanOptions& options) {
    if (options.op != SPARSEK_SDD) return 0;
    return elements(lines_of_x(matrix.shape(), options.n, options.order_x), options.ldx);
  }
  static size_t bias_elements(const CudaMatrix& matrix, const PlanOptions& options) {
    if (options.bias == SPARSEK_BIAS_NONE) return 0;
    return static_cast<size_t>(options.bias == SPARSEK_BIAS_ROW ? outer_extent(options.op, matrix.shape()) : options.n);
  }

  const int device_;
  const PlanOptions options_;
  UsingStream stream_;
  DeviceArray<char> b_, c_, bias_, x_;
  DeviceArray<uint4> cold_;
  DeviceArray<uint32_t> never_;
};

}  // namespace

std::unique_ptr<tune::Rehearsal> make_rehearsal(CudaMatrix& matrix, const PlanOptions& options, size_t l2_bytes) {
  matrix.wait_for_copy();  // of values, which may be on its way in another stream
  return std::make_unique<CudaRehearsal>(matrix, options, l2_bytes);
}

}  // namespace sparsek::cuda
