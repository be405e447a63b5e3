// SPDX-License-Identifier: Apache-2.0
// Checks every element of C against fp64, a panel of rows and columns at a time, or, where it is fp64, against a higher
// precision.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

#include "abi/backend.h"
#include "cpu/check_fp64.h"
#include "cpu/check_judge.h"
#include "cpu/check_sums.h"
#include "cpu/check_threads.h"
#include "cpu/check_values.h"
#include "cpu/cpu_count.h"
#include "cpu/cpu_features.h"
#include "cpu/floating_point.h"

namespace sparsek {
namespace cpu {
namespace {

SumFunction sum_function() {
  if (has_avx512()) return sum_panel_avx512;
  if (has_avx2()) return sum_panel_avx2;
  return sum_panel_generic;
}

// Owns the buffers of a panel.
class PanelMemory {
 public:
  PanelMemory() : memory_(static_cast<double*>(std::aligned_alloc(64, sizeof(double) * kDoubles))) {
    if (memory_ == nullptr) throw std::bad_alloc();
  }
  PanelBuffers buffers() const {
    double* const sum = memory_.get();
    double* const magnitude = sum + kPanelRows * kPanelCols;
    double* const a = magnitude + kPanelRows * kPanelCols;
    return {sum, magnitude, a, a + kPanelRows * kPanelDepth};
  }

 private:
  static constexpr size_t kDoubles = 2 * kPanelRows * kPanelCols + kPanelRows * kPanelDepth + kPanelDepth * kPanelCols;
  struct Free {
    void operator()(double* memory) const { std::free(memory); }
  };
  std::unique_ptr<double, Free> memory_;
};

// A piece: at most kPanelRows rows of one block row.
struct RowPiece {
  int64_t block_row, in_block;
  int64_t row;  // of C
  int rows;
};

// Cuts the rows of C into pieces, numbered from 0.
class RowPieces {
 public:
  explicit RowPieces(const sparsek_bsr& a)
      : rows_(a.rows),
        block_m_(a.block_m),
        per_block_((std::min(a.block_m, std::max<int64_t>(a.rows, 1)) + kPanelRows - 1) / kPanelRows) {}

  int64_t count() const { return rows_ == 0 ? 0 : ((rows_ - 1) / block_m_ + 1) * per_block_; }

  // May be empty: the last block row may extend beyond C.
  RowPiece operator[](int64_t i) const {
    RowPiece piece;
    piece.block_row = i / per_block_;
    piece.in_block = i % per_block_ * kPanelRows;
    piece.row = piece.block_row * block_m_ + piece.in_block;
    const int64_t rows = std::min(block_m_ - piece.in_block, rows_ - piece.row);
    piece.rows = static_cast<int>(std::clamp<int64_t>(rows, 0, kPanelRows));
    return piece;
  }

 private:
  const int64_t rows_, block_m_, per_block_;
};

// The number of products summed into an element of the block row.
template <typename Index>
int64_t product_count(const sparsek_bsr& a, int64_t block_row) {
  const Index* const row_ptr = static_cast<const Index*>(a.row_ptr);
  const Index* const col_idx = static_cast<const Index*>(a.col_idx);
  const int64_t blocks = row_ptr[block_row + 1] - row_ptr[block_row];
  if (blocks == 0) return 0;
  // Only the last block column may extend beyond K, and columns increase.
  const int64_t last = col_idx[row_ptr[block_row + 1] - 1];
  return (blocks - 1) * a.block_k + std::min(a.block_k, a.cols - last * a.block_k);
}

// kDtype: of C.
template <int kDtype>
void judge_panel(const sparsek_check_args& args, const Bound& bound, const OutputType& output, const RowPiece& piece,
                 const Panel& panel, const PanelBuffers& sums, Tally& tally) {
  using Stored = typename Element<kDtype>::Stored;
  const Stored* const result = static_cast<const Stored*>(args.c);
  const Stored* const before = args.beta == 0 ? nullptr : static_cast<const Stored*>(args.c0);
  const Stored* const bias = static_cast<const Stored*>(args.bias);
  const auto bias_at = [&](int64_t row, int64_t col) -> double {
    if (args.bias_kind == SPARSEK_BIAS_NONE) return 0;
    return Element<kDtype>::value(bias[args.bias_kind == SPARSEK_BIAS_ROW ? row : col]);
  };
  for (int i = 0; i < panel.rows; ++i) {
    const int64_t row = piece.row + i;
    for (int j = 0; j < panel.cols; ++j) {
      const int64_t at = row * args.ldc + panel.col + j;
      const double c0 = before == nullptr ? 0 : Element<kDtype>::value(before[at]);
      const int in_panel = i * kPanelCols + j;
      tally.judge(row, panel.col + j, Element<kDtype>::value(result[at]),
                  bound.reference(sums.sum[in_panel], sums.magnitude[in_panel], c0, bias_at(row, panel.col + j)),
                  output);
    }
  }
}

// Takes pieces until none is left.
template <int kDtype>
void check_pieces(const sparsek_check_args& args, const RowPieces& pieces, std::atomic<int64_t>& next,
                  const PanelBuffers& buffers, Tally& tally) {
  const DefaultFloatingPoint floating_point;
  const SumFunction sum = sum_function();
  const OutputType output = output_type(kDtype);
  const sparsek_bsr& a = *args.a;
  const DenseB b = {args.b, args.ldb, args.dtype_b};
  for (int64_t i = next++; i < pieces.count(); i = next++) {
    const RowPiece piece = pieces[i];
    if (piece.rows == 0) continue;
    const int64_t products = a.index_type == SPARSEK_INT64 ? product_count<int64_t>(a, piece.block_row)
                                                           : product_count<int32_t>(a, piece.block_row);
    const Bound bound(args, output, products);
    for (int64_t col = 0; col < args.n; col += kPanelCols) {
      const Panel panel = {piece.block_row, piece.in_block, piece.rows, col,
                           static_cast<int>(std::min<int64_t>(kPanelCols, args.n - col))};
      sum(a, b, panel, buffers);
      judge_panel<kDtype>(args, bound, output, piece, panel, buffers, tally);
    }
  }
}

using CheckFunction = void (*)(const sparsek_check_args&, const RowPieces&, std::atomic<int64_t>&, const PanelBuffers&,
                               Tally&);

// The same for fp64, whose reference is computed an element at a time.
void check_pieces_fp64(const sparsek_check_args& args, const RowPieces& pieces, std::atomic<int64_t>& next,
                       const PanelBuffers&, Tally& tally) {
  const DefaultFloatingPoint floating_point;
  for (int64_t i = next++; i < pieces.count(); i = next++) {
    const RowPiece piece = pieces[i];
    for (int row = 0; row < piece.rows; ++row) {
      check_row_fp64(args, piece.block_row, piece.in_block + row, piece.row + row, tally);
    }
  }
}

CheckFunction check_function(int32_t dtype) {
  switch (dtype) {
    case SPARSEK_FP64:
      return check_pieces_fp64;
    case SPARSEK_BF16:
      return check_pieces<SPARSEK_BF16>;
    case SPARSEK_FP16:
      return check_pieces<SPARSEK_FP16>;
    default:
      return check_pieces<SPARSEK_FP32>;
  }
}

}  // namespace
}  // namespace cpu

void check_result(const sparsek_check_args& args, bool turned_over, sparsek_check_report& report) {
  const cpu::RowPieces pieces(*args.a);
  const cpu::CheckFunction check = cpu::check_function(args.dtype_c);
  const int64_t wanted = args.threads > 0 ? args.threads : cpu::usable_cpu_count();
  const int workers = static_cast<int>(std::clamp<int64_t>(pieces.count(), 1, wanted));

  // Everything is allocated before the first thread starts.
  struct Worker {
    explicit Worker(bool over) : tally(over) {}
    cpu::PanelMemory memory;
    cpu::Tally tally;
  };
  std::vector<Worker> state;
  state.reserve(static_cast<size_t>(workers));
  for (int i = 0; i < workers; ++i) state.emplace_back(turned_over);
  std::atomic<int64_t> next{0};
  cpu::run_checkers(state, [&](Worker& own) { check(args, pieces, next, own.memory.buffers(), own.tally); });

  cpu::Tally total;
  for (const Worker& own : state) total.merge(own.tally);
  total.write(report);
}

}  // namespace sparsek
