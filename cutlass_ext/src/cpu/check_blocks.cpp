// SPDX-License-Identifier: Apache-2.0
#include "cpu/check_blocks.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <vector>

#include "cpu/check_fp64.h"
#include "cpu/check_judge.h"
#include "cpu/check_threads.h"
#include "cpu/check_values.h"
#include "cpu/cpu_count.h"
#include "cpu/floating_point.h"

namespace sparsek::cpu {
namespace {

double value_of(const void* data, int32_t dtype, int64_t at) {
  switch (dtype) {
    case SPARSEK_BF16:
      return Element<SPARSEK_BF16>::value(static_cast<const uint16_t*>(data)[at]);
    case SPARSEK_FP16:
      return Element<SPARSEK_FP16>::value(static_cast<const uint16_t*>(data)[at]);
    case SPARSEK_FP64:
      return static_cast<const double*>(data)[at];
    default:
      return static_cast<const float*>(data)[at];
  }
}

// A dense matrix of any order.
struct Matrix {
  const void* data;
  int32_t dtype;
  int64_t row, step;
  double at(int64_t i, int64_t j) const { return value_of(data, dtype, i * row + j * step); }
};

Matrix matrix_of(const void* data, int32_t dtype, int32_t order, int64_t ld) {
  return order == SPARSEK_ROW_MAJOR ? Matrix{data, dtype, ld, 1} : Matrix{data, dtype, 1, ld};
}

// A block and where it is.
struct Place {
  int64_t row, col;    // of the matrix, of its first element
  int64_t rows, cols;  // that lie in the matrix
  int64_t first;       // element of `c`
};

// sum: of wide enough a type that the products of two elements are exact, or nearly.
template <typename Wide>
class BlockChecker {
 public:
  explicit BlockChecker(const sparsek_check_args& args)
      : args_(args),
        x_(matrix_of(args.x, args.a->dtype, args.order_x, args.ldx)),
        b_(matrix_of(args.b, args.a->dtype, args.order_b, args.ldb)),
        output_(output_type(args.dtype_c)),
        bound_(args, output_, args.n),
        sums_(static_cast<size_t>(args.a->block_m * args.a->block_k)),
        magnitudes_(sums_.size()),
        b_row_(static_cast<size_t>(args.a->block_k)) {}

  const Tally& tally() const { return tally_; }

  void check(const Place& place) {
    add_up(place);
    for (int64_t i = 0; i < args_.a->block_m; ++i) {
      for (int64_t j = 0; j < args_.a->block_k; ++j) {
        const int64_t in_block = i * args_.a->block_k + j, at = place.first + in_block;
        const double c = value_of(args_.c, args_.dtype_c, at);
        if (i >= place.rows || j >= place.cols) {
          tally_.require_zero(place.row + i, place.col + j, c);
          continue;
        }
        const double c0 = args_.beta == 0 ? 0 : value_of(args_.c0, args_.dtype_c, at);
        tally_.judge(place.row + i, place.col + j, c, reference(static_cast<size_t>(in_block), c0), output_);
      }
    }
  }

 private:
  void add_up(const Place& place) {
    std::fill(sums_.begin(), sums_.end(), Wide{0});
    std::fill(magnitudes_.begin(), magnitudes_.end(), Wide{0});
    for (int64_t k = 0; k < args_.n; ++k) {
      for (int64_t j = 0; j < place.cols; ++j) b_row_[j] = b_.at(k, place.col + j);
      for (int64_t i = 0; i < place.rows; ++i) {
        const Wide factor = x_.at(place.row + i, k);
        Wide* const sum = sums_.data() + i * args_.a->block_k;
        Wide* const magnitude = magnitudes_.data() + i * args_.a->block_k;
        for (int64_t j = 0; j < place.cols; ++j) {
          const Wide product = factor * b_row_[j];
          sum[j] += product;
          magnitude[j] += std::fabs(product);
        }
      }
    }
  }

  Reference reference(size_t in_block, double c0) const {
    if (args_.dtype_c == SPARSEK_FP64) {
      return reference_fp64(args_, sums_[in_block], magnitudes_[in_block], args_.n, c0, 0);
    }
    return bound_.reference(static_cast<double>(sums_[in_block]), static_cast<double>(magnitudes_[in_block]), c0, 0);
  }

  const sparsek_check_args& args_;
  const Matrix x_, b_;
  const OutputType output_;
  const Bound bound_;
  Tally tally_;
  std::vector<Wide> sums_, magnitudes_, b_row_;
};

template <typename Wide>
void check_as(const sparsek_check_args& args, const BsrIndex& index, sparsek_check_report& report) {
  const int64_t wanted = args.threads > 0 ? args.threads : usable_cpu_count();
  // Everything is allocated before the first thread starts.
  std::vector<BlockChecker<Wide>> workers(static_cast<size_t>(std::clamp<int64_t>(index.block_rows, 1, wanted)),
                                          BlockChecker<Wide>(args));
  std::atomic<int32_t> next{0};
  const int64_t area = static_cast<int64_t>(index.block_m) * index.block_k;
  run_checkers(workers, [&](BlockChecker<Wide>& own) {
    const DefaultFloatingPoint floating_point;
    for (int32_t r = next++; r < index.block_rows; r = next++) {
      for (int32_t e = index.row_ptr[r]; e < index.row_ptr[r + 1]; ++e) {
        const int64_t block = index.block_idx.empty() ? e : index.block_idx[e];
        const int64_t row = static_cast<int64_t>(r) * index.block_m;
        const int64_t col = static_cast<int64_t>(index.col_idx[e]) * index.block_k;
        own.check({row, col, std::min<int64_t>(index.block_m, index.rows - row),
                   std::min<int64_t>(index.block_k, index.cols - col), block * area});
      }
    }
  });
  Tally total;
  for (const BlockChecker<Wide>& own : workers) total.merge(own.tally());
  total.write(report);
}

}  // namespace

void check_blocks(const sparsek_check_args& args, const BsrIndex& index, sparsek_check_report& report) {
  if (args.dtype_c == SPARSEK_FP64) {
    check_as<long double>(args, index, report);
  } else {
    check_as<double>(args, index, report);
  }
}

}  // namespace sparsek::cpu
