// SPDX-License-Identifier: Apache-2.0
// Products that read A once, in place, as far as its columns of C fit in registers: the row function of a kernel
// (cpu/kernel.h). Included once by each kernel_*.cpp, which defines `Isa` and `Lanes` before it.
//
//   For each block row of the chunk, at most kPieceRows rows of it at a time:
//     for each strip of columns, as many as fit in registers with the rows:
//       for each block: for each of its columns: load that row of B, add its product with each row of A to the sums
//     C = act(alpha * sums + beta * C + bias), rounded once
//
//   Few columns have short vectors. One column has none, but for dot_kernel.h, where it may be summed in another order.
//   The sums of an element are one chain of additions. Where a strip has few of them, several block rows are summed at
//   once, so that their chains overlap.
//
//   Elements of A that are not of the type of the sums, fp32 or, where B is of it, fp64, are converted to that first,
//   all of a few block rows at once, and blocks that do not follow each other in memory are copied one after the other.
//   Of a transpose, blocks are copied as they are, and their columns read as its rows.
#pragma once

#include "cpu/dot_kernel.h"
#include "cpu/element.h"
#include "cpu/epilogue_fp64.h"
#include "cpu/kernel.h"
#include "cpu/row_sums.h"
#include "cpu/tile_kernel.h"

namespace sparsek::cpu {
namespace {

inline void convert(const double* from, int64_t count, double* to) {
  __builtin_memcpy(to, from, static_cast<size_t>(count) * sizeof(double));
}
template <typename A>
void convert(const A* from, int64_t count, double* to) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) Isa::store(to + i, Isa::load(from + i));
  for (; i < count; ++i) to[i] = Isa::to_float(from[i]);
}

// C from sums of rows [row, row + count): (count, columns):(kTileCols, 1), in whole vectors.
inline void write_sums(const Product& product, const Rows& rows, float* sums, int64_t row, int count) {
  const Tile tile = {row, row + count, rows.col, rows.col_end, 0, 0};
  write_rows(product, tile, {nullptr, nullptr, sums, nullptr}, row, count);
}
inline void write_sums(const Product& product, const Rows& rows, double* sums, int64_t row, int count) {
  for (int i = 0; i < count; ++i) write_row_fp64(product, row + i, rows.col, rows.col_end, sums + i * kTileCols);
}

// The rows of a chunk. A has elements of type A, B of type T.
template <typename A, typename T>
class RowRunner {
  using S = Sum<T>;

 public:
  RowRunner(const Product& product, const Rows& rows, const Scratch& scratch)
      : product_(product),
        rows_(rows),
        scratch_(scratch),
        height_(rows.in_block_end - rows.in_block),
        cols_(static_cast<int>(rows.col_end - rows.col)),
        in_place_(__is_same(A, S) && product.entry_block == nullptr && !product.transposed),
        stores_sums_(__is_same(T, S) && product.dtype_c == (sizeof(S) == 8 ? SPARSEK_FP64 : SPARSEK_FP32) &&
                     product.beta == 0 && product.bias_kind == SPARSEK_BIAS_NONE &&
                     product.activation == SPARSEK_ACTIVATION_NONE) {
    strip_.pitch = product.transposed ? 1 : product.block_k;
    strip_.across = product.transposed ? height_ : 1;
    strip_.width = product.block_k;
    strip_.step = static_cast<int64_t>(in_place_ ? product.block_m : height_) * product.block_k;
    strip_.ldb = product.ldb;
    strip_.alpha = static_cast<S>(product.alpha);
    strip_.ldc = product.ldc;
  }

  void run() {
    // Vectors along rows of B need its column without gaps, and blocks that end within it.
    const bool by_dots = Isa::kPermutes && cols_ == 1 && product_.any_order && product_.ldb == 1 &&
                         product_.entry_block == nullptr && !product_.transposed &&
                         product_.depth % product_.block_k == 0;
    if constexpr (Isa::kPermutes && __is_same(A, T)) {
      if (by_dots) return run_dots(values_at(0), area(), 0, rows_.begin, rows_.end);
    }
    for (int32_t r = rows_.begin; r < rows_.end;) {
      const int32_t first = product_.row_ptr[r];
      int32_t end = rows_.end;
      if (!in_place_) {
        for (end = r + 1; end < rows_.end && fits(product_.row_ptr[end + 1] - first, kBatch);) ++end;
        if (!fits(product_.row_ptr[end] - first, kCapacity)) {
          run_long_row(r);
          r = end;
          continue;
        }
      }
      take(first, product_.row_ptr[end]);
      if constexpr (Isa::kPermutes && !__is_same(A, T)) {
        if (by_dots) {
          run_dots(a_, strip_.step, first, r, end);
          r = end;
          continue;
        }
      }
      run_rows(r, end);
      r = end;
    }
  }

 private:
  static constexpr int64_t kCapacity = kPieceRows * kADepth * sizeof(float) / sizeof(S);
  static constexpr int64_t kBatch = kCapacity / 8;  // elements that are converted at once, so that they stay in L1

  bool fits(int64_t blocks, int64_t elements) const { return blocks * strip_.step <= elements; }

  // Rows of C that block row r has in the piece: fewer where C ends.
  int height(int32_t r) const {
    const int64_t left = product_.rows - static_cast<int64_t>(r) * product_.block_m - rows_.in_block;
    return left < height_ ? static_cast<int>(left > 0 ? left : 0) : height_;
  }
  int64_t first_row(int32_t r) const { return static_cast<int64_t>(r) * product_.block_m + rows_.in_block; }

  // Elements of a block.
  int64_t area() const { return static_cast<int64_t>(product_.block_m) * product_.block_k; }
  // The piece's rows of the values of the block that stands at an entry, and which block that is.
  int64_t block_at(int32_t entry) const {
    return product_.entry_block == nullptr ? entry : product_.entry_block[entry];
  }
  const A* values_at(int64_t block) const {
    const int64_t to_piece = product_.transposed ? rows_.in_block : int64_t{rows_.in_block} * product_.block_k;
    return static_cast<const A*>(product_.values) + block * area() + to_piece;
  }

  // Makes the values of blocks [begin, end) follow each other, as sums are computed of them.
  void take(int32_t begin, int32_t end) {
    taken_ = begin;
    if constexpr (__is_same(A, S)) {
      if (in_place_) {
        a_ = values_at(begin);
        return;
      }
    }
    S* to = reinterpret_cast<S*>(scratch_.a);
    a_ = to;
    if (product_.entry_block == nullptr && height_ == product_.block_m && !product_.transposed) {
      convert(values_at(begin), (end - begin) * area(), to);
      return;
    }
    for (int32_t e = begin; e < end; ++e, to += strip_.step) take_columns(block_at(e), 0, product_.block_k, to);
  }

  // Copies columns [begin, end) of a block, one row of theirs after the other, or of a transpose one column.
  void take_columns(int64_t block, int32_t begin, int32_t end, S* to) {
    const A* const from = values_at(block);
    const int32_t width = end - begin;
    if (product_.transposed) {
      if (height_ == product_.block_m) return convert(from + int64_t{begin} * height_, int64_t{width} * height_, to);
      for (int32_t k = begin; k < end; ++k, to += height_) convert(from + int64_t{k} * product_.block_m, height_, to);
    } else if (width == product_.block_k) {
      convert(from, int64_t{width} * height_, to);
    } else {
      for (int i = 0; i < height_; ++i, to += width) convert(from + int64_t{i} * product_.block_k + begin, width, to);
    }
  }

  Walk<S> walk(int32_t begin, int32_t end) const {
    return {a_ + (begin - taken_) * strip_.step, product_.entry_k + begin, end - begin};
  }
  Walk<S> walk(int32_t r) const { return walk(product_.row_ptr[r], product_.row_ptr[r + 1]); }

  // Columns of the last block that lie beyond K are not multiplied: 0, or how many are.
  int cut_width(const Walk<S>& walk) const {
    if (walk.count == 0) return 0;
    const int64_t left = product_.depth - walk.k[walk.count - 1];
    return left < product_.block_k ? static_cast<int>(left) : 0;
  }

  S* c_at(int64_t row, int col) const { return static_cast<S*>(product_.c) + row * product_.ldc + rows_.col + col; }

  // Whether `height` rows are whole blocks of so many columns.
  bool is_square(int height) const {
    return height == strip_.width && height == strip_.pitch && strip_.across == 1 &&
           strip_.step == int64_t{height} * height;
  }

  // Writes C from the sums of rows [row, row + count).
  void finish(S* sums, int64_t row, int count) const {
    if (!stores_sums_) write_sums(product_, rows_, sums, row, count);
  }

  void run_rows(int32_t begin, int32_t end) {
    const int vectors = (cols_ + Widths<T>::kLanesOfSums - 1) / Widths<T>::kLanesOfSums;
    const bool one_strip = height_ <= kMaxRows && vectors <= Isa::vectors(height_);
    const int most = one_strip ? joint(height_ * vectors) : 1;
    const bool may_join = most > 1 && product_.depth % product_.block_k == 0;
    int32_t r = begin;
    if (may_join) {
      for (; r + most <= end && height(r + most - 1) == height_; r += most) run_joint(r, most, vectors);
    }
    for (; r < end; ++r) {
      if (height(r) > 0) run_row(r);
    }
  }

  // Block rows [begin, end), whose blocks lie at `a` from entry `first` on, `step` elements apart.
  void run_dots(const T* a, int64_t step, int32_t first, int32_t begin, int32_t end) {
    // Where the block of entry 0 would be, which need not be memory.
    const auto begin_of_all = reinterpret_cast<uintptr_t>(a) - static_cast<uintptr_t>(first * step) * sizeof(T);
    DotRun<T> run = {product_.row_ptr,
                     product_.entry_k,
                     reinterpret_cast<const T*>(begin_of_all),
                     step,
                     product_.block_k,
                     0,
                     0,
                     static_cast<const T*>(product_.b) + rows_.col,
                     {}};
    const DotParts<T> parts = dot_parts(run);
    constexpr int kRowsOfCall = 4 * kRowsAtOnce;
    S of_rows[kRowsOfCall];
    for (int32_t r = begin; r < end;) {
      // Block rows of one height, as many as there is room for.
      const int rows = height(r);
      int32_t behind = r + 1;
      for (; behind < end && (behind + 1 - r) * (rows > 0 ? rows : 1) <= kRowsOfCall && height(behind) == rows;)
        ++behind;
      bool summed = false;
      if constexpr (__is_same(T, S)) {
        if (product_.block_m == 1 && product_.block_k == 1) {
          sum_elements(run, r, behind, of_rows);
          summed = true;
        }
      }
      if (!summed) sum_rows(parts, run, r, behind, rows, of_rows);
      if (stores_sums_) {
        const S* sum = of_rows;
        for (; r < behind; ++r) {
          S* c = c_at(first_row(r), 0);
          for (int i = 0; i < rows; ++i, c += product_.ldc) *c = static_cast<S>(product_.alpha) * *sum++;
        }
        continue;
      }
      for (const S* sum = of_rows; r < behind; ++r) {
        for (int i = 0; i < rows; ++i) sums()[i * kTileCols] = *sum++;
        finish(sums(), first_row(r), rows);
      }
    }
  }

  // Block rows [r, r + count), one strip of so many vectors.
  void run_joint(int32_t r, int count, int vectors) {
    Walk<S> walks[kMostJoint];
    Target<S> targets[kMostJoint];
    for (int t = 0; t < count; ++t) {
      walks[t] = walk(r + t);
      targets[t] = {sums() + t * kMaxRows * kTileCols, stores_sums_ ? c_at(first_row(r + t), 0) : nullptr};
    }
    strip_.b = static_cast<const T*>(product_.b) + rows_.col;
    strip_.cols = cols_;
    strip_.first = true;
    const SumTable<T>& table = Widths<T>::table(cols_);
    const auto& functions =
        vectors == 1 ? table.narrow[height_ - 1][is_square(height_)] : table.wide[height_ - 1][vectors - 1];
    functions[1](strip_, walks, targets);
    strip_.first = false;
    for (int t = 0; t < count; ++t) {
      if (walks[t].count > 0) functions[0](strip_, walks + t, targets + t);
      finish(targets[t].sums, first_row(r + t), height_);
    }
  }

  void run_row(int32_t r) {
    add(r, walk(r), true, true);
    finish(sums(), first_row(r), height(r));
  }

  // A block row whose values do not fit into scratch memory at once.
  void run_long_row(int32_t r) {
    if (height(r) == 0) return;
    const int32_t begin = product_.row_ptr[r], end = product_.row_ptr[r + 1];
    const auto most = static_cast<int32_t>(kCapacity / strip_.step);
    if (most == 0) return run_large_blocks(r);
    for (int32_t from = begin; from < end; from += most) {
      const int32_t to = end - from > most ? from + most : end;
      take(from, to);
      add(r, walk(from, to), from == begin, to == end);
    }
    finish(sums(), first_row(r), height(r));
  }

  // A block row of which a single block does not fit: its columns go through scratch memory one part after the other.
  void run_large_blocks(int32_t r) {
    const int32_t begin = product_.row_ptr[r], end = product_.row_ptr[r + 1];
    const Strip<T> strip = strip_;
    S* const to = reinterpret_cast<S*>(scratch_.a);
    for (int32_t e = begin; e < end; ++e) {
      const int64_t left = product_.depth - product_.entry_k[e];
      const int32_t width = smaller(product_.block_k, left);
      for (int32_t from = 0; from < width; from += kDepth) {
        const int32_t until = smaller(from + kDepth, width), k = product_.entry_k[e] + from;
        take_columns(block_at(e), from, until, to);
        strip_.width = until - from;
        if (!product_.transposed) strip_.pitch = strip_.width;
        add_part(r, {to, &k, 1}, e == begin && from == 0, e == end - 1 && until == width);
      }
    }
    strip_ = strip;
    finish(sums(), first_row(r), height(r));
  }

  // Adds a walk to the sums of block row r.
  void add(int32_t r, Walk<S> whole, bool first, bool last) {
    const int width = cut_width(whole);
    if (width > 0) --whole.count;
    // Where a row of B is read by several parts of the rows, it is read so often while it is in L1.
    const int32_t most = height_ > kMaxRows && product_.block_k < kDepth ? kDepth / product_.block_k : whole.count;
    do {
      Walk<S> part = whole;
      if (part.count > most) part.count = most;
      whole.count -= part.count;
      whole.a += part.count * strip_.step;
      whole.k += part.count;
      add_part(r, part, first, last && whole.count == 0 && width == 0);
      first = false;
    } while (whole.count > 0);
    if (width == 0) return;
    whole.count = 1;
    strip_.width = width;
    add_part(r, whole, first, last);
    strip_.width = product_.block_k;
  }

  void add_part(int32_t r, const Walk<S>& walk, bool first, bool last) {
    const int rows = height(r), parts = (rows + kMaxRows - 1) / kMaxRows;
    const int lanes = Widths<T>::kLanesOfSums, vectors = (cols_ + lanes - 1) / lanes;
    const int most = Isa::vectors((rows + parts - 1) / parts), strips = (vectors + most - 1) / most;
    strip_.first = first;
    for (int s = 0; s < strips; ++s) {
      const int begin = vectors * s / strips, count = vectors * (s + 1) / strips - begin;
      const int col = begin * lanes;
      strip_.cols = cols_ - col < count * lanes ? cols_ - col : count * lanes;
      strip_.b = static_cast<const T*>(product_.b) + rows_.col + col;
      const SumTable<T>& table = Widths<T>::table(strip_.cols);
      for (int part = 0; part < parts; ++part) {
        const int from = rows * part / parts, height = rows * (part + 1) / parts - from;
        Walk<S> own = walk;
        own.a += from * strip_.pitch;
        const Target<S> target = {sums() + from * kTileCols + col,
                                  stores_sums_ && last ? c_at(first_row(r) + from, col) : nullptr};
        const SumFunction<T> sum =
            count == 1 ? table.narrow[height - 1][is_square(height)][0] : table.wide[height - 1][count - 1][0];
        sum(strip_, &own, &target);
      }
    }
  }

  S* sums() const { return reinterpret_cast<S*>(scratch_.c); }

  const Product& product_;
  const Rows& rows_;
  const Scratch& scratch_;
  const int height_;  // rows of the piece of a block
  const int cols_;
  const bool in_place_;     // values are multiplied where they are
  const bool stores_sums_;  // C is alpha times the sums, in their type
  Strip<T> strip_;
  const S* a_ = nullptr;  // the values taken, from block taken_ on
  int32_t taken_ = 0;
};

template <typename A, typename T = A>
void run_rows(const Product& product, const Rows& rows, const Scratch& scratch) {
  RowRunner<A, T>(product, rows, scratch).run();
}

}  // namespace
}  // namespace sparsek::cpu

#include "cpu/block_kernel.h"
