// SPDX-License-Identifier: Apache-2.0
// The tile function on vectors of an instruction set. Included once by each kernel_*.cpp, which defines `Isa`
// before it. Everything is in an anonymous namespace and nothing of the standard library is used, so that code for
// other machines gets no wide instructions.
//
//   For each slot of the tile, at most kPieceRows rows at a time:
//     gather the products, kDepth at a time: copy A's rows to fp32, note where each row of B lies
//     for each strip of columns: sum the products in registers, at most kMaxRows rows at a time
//     C = act(alpha * sums + beta * C + bias), rounded once
//
//   Tall blocks read each row of B several times: it is packed to fp32 first, a strip's rows one after the other.
//   Low blocks read it in place and convert on load.
#pragma once

#include "cpu/activation.h"
#include "cpu/element.h"
#include "cpu/kernel.h"

namespace sparsek::cpu {
namespace {

using Vector = Isa::Vector;
constexpr int kLanes = Isa::kLanes;
constexpr int kMaxRows = Isa::kMaxRows;                 // rows summed in registers at once
constexpr int kMaxVectors = Isa::kMaxVectors;           // vectors of a strip at most
constexpr int kPackedVectors = Isa::vectors(kMaxRows);  // vectors of a packed strip
constexpr int kLowRows = 32;                            // blocks up to this height read B in place

static_assert(kTileCols % (kPackedVectors * kLanes) == 0, "strips must cut a tile evenly");

inline int smaller(int64_t a, int64_t b) { return static_cast<int>(a < b ? a : b); }

// Rows of B packed for one strip.
struct PackedRows {
  const float* first;
  int64_t pitch;
  Vector load(int k, int lane) const { return Isa::load(first + k * pitch + lane); }
};

// Rows of B in place.
template <typename T>
struct RowsInPlace {
  const T* const* row;
  int64_t col;
  Vector load(int k, int lane) const { return Isa::load(row[k] + col + lane); }
};

// sums (kRows, kVectors * kLanes):(kTileCols, 1) += A (kRows, depth):(kADepth, 1) * B; the first visit starts at 0.
template <typename Rows, int kRows, int kVectors>
void multiply_strip(const float* a, Rows b, int depth, bool first, float* sums) {
  Vector sum[kRows][kVectors];
  for (int i = 0; i < kRows; ++i) {
    for (int j = 0; j < kVectors; ++j) {
      sum[i][j] = first ? Isa::zero() : Isa::load(sums + i * kTileCols + j * kLanes);
    }
  }
  for (int k = 0; k < depth; ++k) {
    Vector row[kVectors];
    for (int j = 0; j < kVectors; ++j) row[j] = b.load(k, j * kLanes);
    for (int i = 0; i < kRows; ++i) {
      const Vector factor = Isa::broadcast(a[i * kADepth + k]);
      for (int j = 0; j < kVectors; ++j) sum[i][j] = Isa::multiply_add(factor, row[j], sum[i][j]);
    }
  }
  for (int i = 0; i < kRows; ++i) {
    for (int j = 0; j < kVectors; ++j) Isa::store(sums + i * kTileCols + j * kLanes, sum[i][j]);
  }
}

template <typename Rows>
using StripFunction = void (*)(const float* a, Rows b, int depth, bool first, float* sums);

// The instances for (rows, vectors); those that do not fit the registers do not exist.
template <typename Rows>
struct StripTable {
  StripFunction<Rows> at[kMaxRows][kMaxVectors];
};

template <typename Rows, int kIndex = 0>
constexpr void fill_table(StripTable<Rows>& table) {
  if constexpr (kIndex < kMaxRows * kMaxVectors) {
    constexpr int kRows = kIndex / kMaxVectors + 1, kVectors = kIndex % kMaxVectors + 1;
    if constexpr (kVectors <= Isa::vectors(kRows)) {
      table.at[kRows - 1][kVectors - 1] = multiply_strip<Rows, kRows, kVectors>;
    }
    fill_table<Rows, kIndex + 1>(table);
  }
}

template <typename Rows>
constexpr StripTable<Rows> make_table() {
  StripTable<Rows> table{};
  fill_table(table);
  return table;
}

template <typename Rows>
constexpr StripTable<Rows> kStrips = make_table<Rows>();

// One strip over all rows of the piece, in parts of even height.
template <typename Rows>
void multiply_rows(const Scratch& scratch, Rows b, int rows, int depth, bool first, int col, int vectors) {
  const int parts = (rows + kMaxRows - 1) / kMaxRows;
  for (int part = 0; part < parts; ++part) {
    const int begin = rows * part / parts, end = rows * (part + 1) / parts;
    kStrips<Rows>.at[end - begin - 1][vectors - 1](scratch.a + begin * kADepth, b, depth, first,
                                                   scratch.c + begin * kTileCols + col);
  }
}

template <typename T>
void convert(const T* from, int64_t count, float* to) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) Isa::store(to + i, Isa::load(from + i));
  for (; i < count; ++i) to[i] = Isa::to_float(from[i]);
}

// The same of `rows` rows and `count` columns of a transpose, from the matrix, to rows kADepth apart.
template <typename T>
void convert_transposed(const T* from, int64_t pitch, int rows, int count, float* to) {
  for (int k = 0; k < count; ++k) {
    for (int i = 0; i < rows; ++i) to[i * kADepth + k] = Isa::to_float(from[k * pitch + i]);
  }
}

// Columns [col, col + cols) of the gathered rows of B as a strip of whole vectors, zero beyond the last column.
template <typename T>
PackedRows pack_strip(const Scratch& scratch, int depth, int col, int cols, int vectors) {
  const int width = vectors * kLanes;
  float* const first = scratch.b + static_cast<int64_t>(col) * kDepth;
  for (int k = 0; k < depth; ++k) {
    float* const to = first + static_cast<int64_t>(k) * width;
    convert(static_cast<const T*>(scratch.b_row[k]) + col, cols, to);
    for (int i = cols; i < width; ++i) to[i] = 0;
  }
  return {first, width};
}

// Adds the gathered products to the accumulators.
template <typename T>
void multiply_gathered(const Scratch& scratch, bool in_place, int rows, int depth, int cols, bool first) {
  const int parts = (rows + kMaxRows - 1) / kMaxRows;
  const int widest = in_place ? Isa::vectors((rows + parts - 1) / parts) : kPackedVectors;
  for (int col = 0; col < cols;) {
    const int left = cols - col;
    if (in_place && left >= kLanes) {
      const int vectors = smaller(widest, left / kLanes);
      const RowsInPlace<T> b{reinterpret_cast<const T* const*>(scratch.b_row), col};
      multiply_rows(scratch, b, rows, depth, first, col, vectors);
      col += vectors * kLanes;
      continue;
    }
    const int vectors = smaller(widest, (left + kLanes - 1) / kLanes);
    const int strip_cols = smaller(left, vectors * kLanes);
    const PackedRows b = pack_strip<T>(scratch, depth, col, strip_cols, vectors);
    multiply_rows(scratch, b, rows, depth, first, col, vectors);
    col += vectors * kLanes;
  }
}

// Where a vector's elements lie: all of them, or the first of them, where the row ends.
struct WholeVector {
  template <typename T>
  Vector load(const T* p) const {
    return Isa::load(p);
  }
  template <typename T>
  void store(T* p, Vector v) const {
    Isa::store(p, v);
  }
};

struct PartOfVector {
  Isa::Part part;
  explicit PartOfVector(int count) : part(Isa::part(count)) {}
  template <typename T>
  Vector load(const T* p) const {
    return Isa::load(p, part);
  }
  template <typename T>
  void store(T* p, Vector v) const {
    Isa::store(p, v, part);
  }
};

// The epilogue of one row of the tile; C has type T.
template <typename T, bool kMayHaveBias, sparsek_activation kActivation>
struct RowEpilogue {
  const Vector alpha, beta;
  const bool reads_c, has_row_bias;
  const T* const column_bias;  // at the tile's first column; null where there is none
  Vector row_bias;

  RowEpilogue(const Product& product, const Tile& tile)
      : alpha(Isa::broadcast(product.alpha)),
        beta(Isa::broadcast(product.beta)),
        reads_c(product.beta != 0),
        has_row_bias(product.bias_kind == SPARSEK_BIAS_ROW),
        column_bias(product.bias_kind == SPARSEK_BIAS_COLUMN ? static_cast<const T*>(product.bias) + tile.col
                                                             : nullptr),
        row_bias(Isa::zero()) {}

  // Column `col` of the tile and those that follow, from the sums of the row.
  template <typename Width>
  void write(Width width, const float* sums, const T* c_in, T* c, int col) const {
    Vector v = Isa::multiply(alpha, Isa::load(sums + col));
    if (reads_c) v = Isa::multiply_add(beta, width.load(c_in + col), v);
    if (kMayHaveBias && has_row_bias) v = Isa::add(v, row_bias);
    if (kMayHaveBias && column_bias != nullptr) v = Isa::add(v, width.load(column_bias + col));
    width.store(c + col, activated<kActivation>(v));
  }
};

// C = act(alpha * sums + beta * c_in + bias) for rows [row, row + rows), rounded once. beta = 0: c_in is not read. The
// sums lie in whole vectors.
template <typename T, bool kMayHaveBias, sparsek_activation kActivation>
void write_rows(const Product& product, const Tile& tile, const Scratch& scratch, int64_t row, int rows) {
  const int cols = static_cast<int>(tile.col_end - tile.col);
  const int whole = cols / kLanes * kLanes;
  const PartOfVector rest(cols - whole);
  RowEpilogue<T, kMayHaveBias, kActivation> epilogue(product, tile);
  for (int i = 0; i < rows; ++i) {
    if (kMayHaveBias && epilogue.has_row_bias) {
      epilogue.row_bias = Isa::broadcast(Isa::to_float(static_cast<const T*>(product.bias)[row + i]));
    }
    const float* const sums = scratch.c + static_cast<int64_t>(i) * kTileCols;
    T* const c = static_cast<T*>(product.c) + (row + i) * product.ldc + tile.col;
    const T* const c_in = static_cast<const T*>(product.c_in) + (row + i) * product.ldc_in + tile.col;
    for (int col = 0; col < whole; col += kLanes) epilogue.write(WholeVector{}, sums, c_in, c, col);
    if (whole < cols) epilogue.write(rest, sums, c_in, c, whole);
  }
}

template <typename T>
void write_rows(const Product& product, const Tile& tile, const Scratch& scratch, int64_t row, int rows) {
  switch (product.activation) {
    case SPARSEK_ACTIVATION_NONE:
      if (product.bias_kind == SPARSEK_BIAS_NONE) {
        return write_rows<T, false, SPARSEK_ACTIVATION_NONE>(product, tile, scratch, row, rows);
      }
      return write_rows<T, true, SPARSEK_ACTIVATION_NONE>(product, tile, scratch, row, rows);
    case SPARSEK_ACTIVATION_RELU:
      return write_rows<T, true, SPARSEK_ACTIVATION_RELU>(product, tile, scratch, row, rows);
    case SPARSEK_ACTIVATION_GELU:
      return write_rows<T, true, SPARSEK_ACTIVATION_GELU>(product, tile, scratch, row, rows);
    case SPARSEK_ACTIVATION_SILU:
      return write_rows<T, true, SPARSEK_ACTIVATION_SILU>(product, tile, scratch, row, rows);
  }
}

inline void write_rows(const Product& product, const Tile& tile, const Scratch& scratch, int64_t row, int rows) {
  switch (product.dtype_c) {
    case SPARSEK_BF16:
      return write_rows<Bf16>(product, tile, scratch, row, rows);
    case SPARSEK_FP16:
      return write_rows<Fp16>(product, tile, scratch, row, rows);
    case SPARSEK_FP32:
      return write_rows<float>(product, tile, scratch, row, rows);
    case SPARSEK_FP64:
      break;  // tile_kernel_fp64.h
    case SPARSEK_E4M3:
      break;  // no C is of it
  }
}

// Rows [row, row + rows) of C, all in one block row: slot `slot` of the tile, from row `in_block` of its blocks.
template <typename T>
void run_piece(const Product& product, const Tile& tile, const Scratch& scratch, int slot, int64_t row, int rows,
               int32_t in_block) {
  const int cols = static_cast<int>(tile.col_end - tile.col);
  const bool in_place = product.block_m <= kLowRows;
  const int64_t block_size = static_cast<int64_t>(product.block_m) * product.block_k;
  const T* const b = static_cast<const T*>(product.b) + tile.col;

  bool first = true;
  int depth = 0;
  const int32_t* blocks = product.entry_block + static_cast<int64_t>(tile.entry_begin) * product.slots + slot;
  for (int32_t e = 0; e < tile.entry_count; ++e, blocks += product.slots) {
    if (*blocks < 0) continue;
    const T* const a = static_cast<const T*>(product.values) + *blocks * block_size +
                       (product.transposed ? in_block : static_cast<int64_t>(in_block) * product.block_k);
    const int64_t k_begin = product.entry_k[tile.entry_begin + e];
    const int width = smaller(product.block_k, product.depth - k_begin);  // columns beyond K are not multiplied
    for (int k = 0; k < width;) {
      const int count = smaller(width - k, kDepth - depth);
      if (product.transposed) {
        convert_transposed(a + static_cast<int64_t>(k) * product.block_m, product.block_m, rows, count,
                           scratch.a + depth);
      } else {
        for (int i = 0; i < rows; ++i) {
          convert(a + static_cast<int64_t>(i) * product.block_k + k, count, scratch.a + i * kADepth + depth);
        }
      }
      for (int j = 0; j < count; ++j) scratch.b_row[depth + j] = b + (k_begin + k + j) * product.ldb;
      k += count;
      depth += count;
      if (depth == kDepth) {
        multiply_gathered<T>(scratch, in_place, rows, depth, cols, first);
        first = false;
        depth = 0;
      }
    }
  }
  if (depth > 0 || first) multiply_gathered<T>(scratch, in_place, rows, depth, cols, first);

  write_rows(product, tile, scratch, row, rows);
}

template <typename T>
void run_tile(const Product& product, const Tile& tile, const Scratch& scratch) {
  const int32_t first_in_block = static_cast<int32_t>(tile.row % product.block_m);
  for (int slot = 0; slot < product.slots; ++slot) {
    const int64_t begin = tile.row + static_cast<int64_t>(slot) * product.block_m;
    const int64_t end = begin + smaller(product.block_m - first_in_block, tile.row_end - begin);
    for (int64_t row = begin; row < end; row += kPieceRows) {
      run_piece<T>(product, tile, scratch, slot, row, smaller(kPieceRows, end - row),
                   first_in_block + static_cast<int32_t>(row - begin));
    }
  }
}

}  // namespace
}  // namespace sparsek::cpu
