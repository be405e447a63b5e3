// SPDX-License-Identifier: Apache-2.0
#include "cpu/cpu_tuning.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "abi/dtype.h"
#include "abi/product_form.h"
#include "cpu/cost_model.h"
#include "cpu/kernel_list.h"
#include "plan/transpose_index.h"

namespace sparsek::cpu {
namespace {

// Memory for one operand, aligned to 64 bytes and filled with random numbers.
class Operand {
 public:
  Operand(int64_t elements, sparsek_dtype dtype, uint32_t seed) : elements_(elements) {
    const size_t bytes = static_cast<size_t>(elements) * dtype_bytes(dtype);
    constexpr size_t kAlignment = 64;
    data_ = std::aligned_alloc(kAlignment, (bytes / kAlignment + 1) * kAlignment);
    if (data_ == nullptr) throw std::bad_alloc();
    fill(dtype, seed);
  }
  ~Operand() { std::free(data_); }
  Operand(const Operand&) = delete;
  Operand& operator=(const Operand&) = delete;

  void* data() const { return data_; }

 private:
  // Random bits of sign and fraction with the exponent of [0.5, 1), for each type.
  void fill(sparsek_dtype dtype, uint32_t seed) {
    for (int64_t i = 0; i < elements_; ++i) {
      seed = seed * 1664525u + 1013904223u;  // a linear congruential generator (Knuth, vol. 2, 3.3.4)
      const uint32_t random = seed >> 8;
      switch (dtype) {
        case SPARSEK_BF16:
          static_cast<uint16_t*>(data_)[i] = static_cast<uint16_t>((random & 0x807f) | 0x3f00);
          break;
        case SPARSEK_FP16:
          static_cast<uint16_t*>(data_)[i] = static_cast<uint16_t>((random & 0x83ff) | 0x3800);
          break;
        case SPARSEK_FP32:
          static_cast<uint32_t*>(data_)[i] = (random & 0x7fffff) | (random & 1) << 31 | 0x3f000000;
          break;
        case SPARSEK_FP64:
          static_cast<uint64_t*>(data_)[i] = static_cast<uint64_t>(random & 0xfffff) << 32 |
                                             static_cast<uint64_t>(random & 1) << 63 | 0x3fe0000000000000;
          break;
        case SPARSEK_E4M3:  // of no operand
          break;
      }
    }
  }

  int64_t elements_;
  void* data_;
};

class CpuRehearsal final : public tune::Rehearsal {
 public:
  CpuRehearsal(const MatrixState& matrix, const PlanOptions& options)
      : options_(options),
        x_(options.op == SPARSEK_SDD ? elements(lines_of_x(matrix.shape(), options.n, options.order_x), options.ldx)
                                     : 0,
           matrix.dtype, 5),
        b_(elements(lines_of_b(options.op, matrix.shape(), options.n, options.order_b), options.ldb), options.dtype_b,
           1),
        c_(elements(lines_of_c(options.op, matrix.shape(), options.n, options.order_c), options.ldc), options.dtype_c,
           2),
        bias_(std::max(outer_extent(options.op, matrix.shape()), options.n), options.dtype_c, 3),
        cold_(kColdBytes / 4, SPARSEK_FP32, 4) {}

  void warm_up(PlanState& plan, int products) override {
    for (int i = 0; i < products; ++i) plan.multiply(arguments());
  }

  void time(PlanState& plan, int repeats, double* seconds) override {
    const MultiplyArgs args = arguments();
    for (int i = 0; i < repeats; ++i) {
      // Writing this much evicts the operands from the caches.
      std::memset(cold_.data(), i, kColdBytes);
      plan.multiply_time(&args, 1, 0, 1, seconds + i);
    }
  }

 private:
  MultiplyArgs arguments() const {
    MultiplyArgs args = {};
    args.alpha = 1;
    args.n = options_.n;
    args.x = x_.data();
    args.ldx = options_.ldx;
    args.b = b_.data();
    args.ldb = options_.ldb;
    args.c = c_.data();
    args.ldc = options_.ldc;
    args.c_in = args.c;
    args.ldc_in = args.ldc;
    args.bias = options_.bias == SPARSEK_BIAS_NONE ? nullptr : bias_.data();
    return args;
  }

  static constexpr int64_t kColdBytes = 64 << 20;

  // The elements of an operand whose lines begin ld elements apart.
  static int64_t elements(const Lines& lines, int64_t ld) {
    return lines.count > 0 && lines.length > 0 ? (lines.count - 1) * ld + lines.length : 0;
  }

  const PlanOptions options_;
  const Operand x_, b_, c_, bias_, cold_;
};

}  // namespace

std::vector<tune::Candidate> list_candidates(const MatrixState& matrix, const PlanOptions& options, int threads) {
  std::vector<tune::Candidate> list;
  for (ListedKernel& listed : listed_kernels()) {
    tune::Candidate candidate;
    candidate.kernel = listed.kernel->name;
    candidate.obstacle = std::move(listed.obstacle);
    if (candidate.obstacle.empty()) {
      const BsrShape shape = transposes_a(options.op) ? transposed(matrix.shape()) : matrix.shape();
      candidate.predicted_seconds =
          options.op == SPARSEK_SDD
              ? predict_blocks(*listed.kernel, shape, matrix.dtype, options.n, threads)
              : predict(*listed.kernel, shape, {matrix.dtype, options.dtype_b}, options.n, threads);
    }
    list.push_back(std::move(candidate));
  }
  return list;
}

std::unique_ptr<tune::Rehearsal> make_rehearsal(const MatrixState& matrix, const PlanOptions& options) {
  return std::make_unique<CpuRehearsal>(matrix, options);
}

}  // namespace sparsek::cpu
