// SPDX-License-Identifier: Apache-2.0
// Blocks of a product of two dense matrices, X B, where a matrix has blocks: the block function of a kernel
// (cpu/kernel.h), and a part of row_kernel.h, whose sums it uses.
//
//   For each block row of the task, at most kRowsAtOnce rows of it:
//     for some of its blocks, as many as have room for their sums:
//       for kDepth products at a time:
//         for each block, for each strip of its columns: add the products of X's rows and B's to the sums
//       blocks = act(alpha * sums + beta * blocks + bias), rounded once
//
//   X of 16 bits is converted to fp32 first, the rows of a block row at once. Tall blocks read each row of B several
//   times: it is packed, and converted, first. The sums of an element are one chain of additions.
#pragma once

#include "cpu/element.h"
#include "cpu/kernel.h"

namespace sparsek::cpu {
namespace {

inline int64_t element_bytes(sparsek_dtype dtype) { return dtype == SPARSEK_FP64 ? 8 : dtype == SPARSEK_FP32 ? 4 : 2; }

template <typename T>
class BlockRunner {
  using S = Sum<T>;

 public:
  BlockRunner(const SampledProduct& sampled, const Blocks& blocks, const Scratch& scratch)
      : sampled_(sampled),
        product_(sampled.product),
        blocks_(blocks),
        scratch_(scratch),
        height_(blocks.in_block_end - blocks.in_block),
        bytes_(element_bytes(product_.dtype_c)),
        stores_sums_(__is_same(T, S) && product_.dtype_c == (sizeof(S) == 8 ? SPARSEK_FP64 : SPARSEK_FP32) &&
                     product_.beta == 0 && product_.activation == SPARSEK_ACTIVATION_NONE) {
    product_.ldc = product_.ldc_in = product_.block_k;
  }

  void run() {
    // Room for the sums of a block, in whole vectors.
    const int most_cols = smaller(product_.block_k, kTileCols);
    room_ = (most_cols + kLanesOfSums - 1) / kLanesOfSums * kLanesOfSums;
    const int32_t at_once = kTileCols / room_;
    for (int32_t r = blocks_.begin; r < blocks_.end; ++r) {
      int32_t begin = product_.row_ptr[r], end = product_.row_ptr[r + 1];
      if (begin < blocks_.entry_begin) begin = blocks_.entry_begin;
      if (end > blocks_.entry_end) end = blocks_.entry_end;
      const int64_t row = static_cast<int64_t>(r) * product_.block_m + blocks_.in_block;
      rows_ = smaller(height_, product_.rows - row > 0 ? product_.rows - row : 0);
      for (int32_t e = begin; e < end; e += at_once) {
        const int32_t until = smaller(e + at_once, end);
        for (int32_t col = 0; col < product_.block_k; col += kTileCols) run_group(row, e, until, col);
        for (int32_t i = e; i < until; ++i) clear_beyond(i);
      }
    }
  }

 private:
  static constexpr int kLanesOfSums = Isa::lanes<S>();

  int64_t block_at(int32_t entry) const {
    return product_.entry_block == nullptr ? entry : product_.entry_block[entry];
  }
  int64_t area() const { return static_cast<int64_t>(product_.block_m) * product_.block_k; }
  // Columns of the block at an entry that lie in the matrix.
  int32_t width(int32_t entry) const { return smaller(product_.block_k, sampled_.cols - product_.entry_k[entry]); }
  char* c_of(int32_t entry) const { return static_cast<char*>(product_.c) + block_at(entry) * area() * bytes_; }

  // Columns [col, col + kTileCols), as far as there are any, of the blocks at entries [begin, end).
  void run_group(int64_t row, int32_t begin, int32_t end, int32_t col) {
    int64_t from = 0;
    do {
      const int depth = smaller(kDepth, product_.depth - from);
      const bool last = from + depth >= product_.depth;
      take_x(row, from, depth);
      for (int32_t e = begin; e < end; ++e) {
        const int cols = smaller(kTileCols, width(e) - col);
        if (cols <= 0 || rows_ == 0) continue;
        const T* const b = static_cast<const T*>(product_.b) + from * product_.ldb + product_.entry_k[e] + col;
        S* const direct = stores_sums_ && last ? reinterpret_cast<S*>(c_of(e)) +
                                                     static_cast<int64_t>(blocks_.in_block) * product_.block_k + col
                                               : nullptr;
        add(b, depth, cols, from == 0, sums() + (e - begin) * room_, direct);
      }
      from += depth;
    } while (from < product_.depth);
    if (stores_sums_) return;
    for (int32_t e = begin; e < end; ++e) {
      const int cols = smaller(kTileCols, width(e) - col);
      if (cols > 0) write(e, col, cols, sums() + (e - begin) * room_);
    }
  }

  // X's rows of the block row, columns [from, from + depth).
  void take_x(int64_t row, int64_t from, int depth) {
    const T* const x = static_cast<const T*>(sampled_.x) + row * sampled_.x_row + from * sampled_.x_step;
    if constexpr (__is_same(T, S)) {
      x_ = x;
      pitch_ = sampled_.x_row;
      across_ = sampled_.x_step;
    } else {
      S* const to = reinterpret_cast<S*>(scratch_.a);
      x_ = to;
      if (sampled_.x_step == 1) {
        pitch_ = kADepth;
        across_ = 1;
        for (int i = 0; i < rows_; ++i) convert(x + i * sampled_.x_row, depth, to + i * kADepth);
      } else {
        pitch_ = 1;
        across_ = kRowsAtOnce;
        for (int k = 0; k < depth; ++k) convert(x + k * sampled_.x_step, rows_, to + k * kRowsAtOnce);
      }
    }
  }

  // Adds products to the sums of columns of a block: b, (depth, cols), is where they are in B. direct: null, or where
  // they are stored as the block's.
  void add(const T* b, int depth, int cols, bool first, S* sums, S* direct) {
    const int parts = (rows_ + kMaxRows - 1) / kMaxRows;
    const int vectors = (cols + kLanesOfSums - 1) / kLanesOfSums;
    const int most = Isa::vectors((rows_ + parts - 1) / parts), strips = (vectors + most - 1) / most;
    for (int s = 0; s < strips; ++s) {
      const int begin = vectors * s / strips, count = vectors * (s + 1) / strips - begin;
      const int col = begin * kLanesOfSums, width = smaller(cols - col, count * kLanesOfSums);
      S* const to = direct == nullptr ? nullptr : direct + col;
      if (parts > 2) {
        add_strip<S>(pack(b + col, depth, width), count * kLanesOfSums, depth, width, count, first, sums + col, to);
      } else {
        add_strip<T>(b + col, product_.ldb, depth, width, count, first, sums + col, to);
      }
    }
  }

  // One strip of B, in whole vectors.
  const S* pack(const T* b, int depth, int cols) {
    const int pitch = (cols + kLanesOfSums - 1) / kLanesOfSums * kLanesOfSums;
    S* const packed = reinterpret_cast<S*>(scratch_.b);
    for (int k = 0; k < depth; ++k) {
      S* const to = packed + k * pitch;
      convert(b + k * product_.ldb, cols, to);
      for (int j = cols; j < pitch; ++j) to[j] = 0;
    }
    return packed;
  }

  template <typename E>
  void add_strip(const E* b, int64_t ldb, int depth, int cols, int vectors, bool first, S* sums, S* direct) {
    Strip<E> strip;
    strip.step = 0;
    strip.pitch = pitch_;
    strip.across = across_;
    strip.width = depth;
    strip.b = b;
    strip.ldb = ldb;
    strip.cols = cols;
    strip.first = first;
    strip.alpha = static_cast<S>(product_.alpha);
    strip.ldc = product_.block_k;
    const int parts = (rows_ + kMaxRows - 1) / kMaxRows;
    const SumTable<E>& table = Widths<E>::table(cols);
    const int32_t origin = 0;
    for (int part = 0; part < parts; ++part) {
      const int from = rows_ * part / parts, height = rows_ * (part + 1) / parts - from;
      Walk<S> walk = {x_ + from * pitch_, &origin, 1};
      const Target<S> target = {sums + from * kTileCols,
                                direct == nullptr ? nullptr : direct + int64_t{from} * product_.block_k};
      const SumFunction<E> sum = vectors == 1 ? table.narrow[height - 1][0][0] : table.wide[height - 1][vectors - 1][0];
      sum(strip, &walk, &target);
    }
  }

  void write(int32_t entry, int32_t col, int cols, S* sums) {
    const int64_t to_block = block_at(entry) * area() * bytes_;
    Product block = product_;
    block.c = static_cast<char*>(product_.c) + to_block;
    block.c_in = static_cast<const char*>(product_.c_in) + to_block;
    write_sums(block, {0, 0, 0, 0, col, col + cols}, sums, blocks_.in_block, rows_);
  }

  // What the block has beyond the matrix becomes 0.
  void clear_beyond(int32_t entry) {
    const int32_t cols = width(entry);
    if (rows_ == height_ && cols == product_.block_k) return;
    for (int i = 0; i < height_; ++i) {
      const int64_t begin = i < rows_ ? cols : 0;
      char* const row = c_of(entry) + static_cast<int64_t>(blocks_.in_block + i) * product_.block_k * bytes_;
      __builtin_memset(row + begin * bytes_, 0, static_cast<size_t>((product_.block_k - begin) * bytes_));
    }
  }

  S* sums() const { return reinterpret_cast<S*>(scratch_.c); }

  const SampledProduct& sampled_;
  Product product_;
  const Blocks& blocks_;
  const Scratch& scratch_;
  const int height_;        // rows of the piece of a block
  const int64_t bytes_;     // of an element of a block
  const bool stores_sums_;  // blocks are alpha times the sums, in their type
  int room_ = 0;            // of the sums of a block
  int rows_ = 0;            // of the piece that lie in the matrix
  const S* x_ = nullptr;    // the rows of X that were taken
  int64_t pitch_ = 0, across_ = 0;
};

template <typename T>
void run_blocks(const SampledProduct& product, const Blocks& blocks, const Scratch& scratch) {
  BlockRunner<T>(product, blocks, scratch).run();
}

}  // namespace
}  // namespace sparsek::cpu
