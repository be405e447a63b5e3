// SPDX-License-Identifier: Apache-2.0
#include <type_traits>

#include "cuda/block_walk.cuh"
#include "cuda/dependent_launch.cuh"
#include "cuda/pattern_parts.h"

namespace sparsek::cuda {
// Named, since the symbols of kernels in an unnamed namespace depend on the path of the checkout.
namespace block_norms {

using pattern::Given;

constexpr int kThreads = kPatternThreads;

// A block in memory: so many of its lines, and so many elements of each, are within the matrix.
template <class T>
struct Place {
  const T* from;
  int64_t lines, length;
};

// The blocks of a dense matrix, whose lines are rows or columns. across: its blocks along a line.
template <class T>
struct InDense {
  const T* data;
  int64_t ld;
  int32_t lines, length;  // of a block
  int64_t all_lines, all_length;
  int32_t block_cols;
  int64_t count;
  bool by_rows;

  __device__ int64_t blocks() const { return count; }
  __device__ Place<T> operator()(int64_t block) const {
    const int64_t row = divide(block, block_cols), col = block - row * block_cols;
    const int64_t line = (by_rows ? row : col) * lines, at = (by_rows ? col : row) * length;
    return {data + line * ld + at, min(int64_t{lines}, all_lines - line), min(int64_t{length}, all_length - at)};
  }
};

// The blocks of a matrix, in the order of its entries.
template <class T>
struct InValues {
  Given a;
  int64_t ld;          // the width of a block
  int32_t last_lines;  // of the blocks of the last block row

  __device__ int64_t blocks() const { return entries_of(a); }
  __device__ Place<T> operator()(int64_t entry) const {
    const BsrShape& shape = a.shape;
    int64_t lines = shape.block_m;
    if (last_lines != lines && entry >= a.row_ptr.get(shape.block_rows - 1)) lines = last_lines;
    return {static_cast<const T*>(a.values) + a.block(entry) * shape.block_m * shape.block_k, lines, shape.block_k};
  }
};

struct Addition {
  template <class S>
  __device__ S operator()(S a, S b) const {
    return plus(a, b);
  }
};
// NaN where there is one.
struct Larger {
  template <class S>
  __device__ S operator()(S a, S b) const {
    return a > b || a != a ? a : b;
  }
};

// What an element adds to a norm.
template <sparsek_norm kNorm, class S>
__device__ S part(S x) {
  return kNorm == SPARSEK_NORM_L2 ? times(x, x) : fabs(x);
}

// The lanes of a group have a block. length: of a line of a block. whole: lines begin at multiples of 16 bytes, and
// consist of vectors.
template <class T, sparsek_norm kNorm, class Blocks>
__global__ void __launch_bounds__(kThreads)
    norms(Blocks blocks, int32_t length, int64_t elements, int lanes, bool whole, Wide<T>* out) {
  using S = Wide<T>;
  using Add = std::conditional_t<kNorm == SPARSEK_NORM_MAX, Larger, Addition>;
  start_dependent();
  const Group group(lanes);
  const int64_t count = blocks.blocks();
  const Add add;
  const int64_t vectors = (elements + kVector<T> - 1) / kVector<T>;
  for (int64_t first = group.first, block = group.group; first < count; first += group.groups, block += group.groups) {
    S sums[kVector<T>] = {};
    if (block < count) {
      const Place<T> place = blocks(block);
      if (whole && blocks.ld == length && place.length == length) {  // one line of memory
        const int64_t within = place.lines * place.length / kVector<T>;
#pragma unroll 4
        for (int64_t q = group.lane; q < within; q += lanes) {
          const ElementVector<T> vector = load_vector(place.from + q * kVector<T>);
#pragma unroll
          for (int v = 0; v < kVector<T>; ++v) sums[v] = add(sums[v], part<kNorm>(load(vector.element[v])));
        }
      } else if (whole) {
        const int32_t in_line = length / kVector<T>;
        int32_t line = group.lane / in_line, at = group.lane % in_line * kVector<T>;
#pragma unroll 4
        for (int64_t q = group.lane; q < vectors; q += lanes) {
          if (line < place.lines && at < place.length) {
            const int64_t left = place.length - at;
            const ElementVector<T> vector = load_some(place.from + line * blocks.ld + at, left, left >= kVector<T>);
#pragma unroll
            for (int v = 0; v < kVector<T>; ++v) sums[v] = add(sums[v], part<kNorm>(load(vector.element[v])));
          }
          at += lanes * kVector<T>;
          if (at >= length) {
            line += at / length;
            at %= length;
          }
        }
      } else {
        for (int64_t q = group.lane; q < vectors; q += lanes) {
#pragma unroll
          for (int v = 0; v < kVector<T>; ++v) {
            const int64_t e = q * kVector<T> + v, line = e / length, at = e - line * length;
            if (line >= place.lines || at >= place.length) continue;
            sums[v] = add(sums[v], part<kNorm>(load(place.from[line * blocks.ld + at])));
          }
        }
      }
    }
    __syncwarp();
    const S sum = fold_lanes(sums, lanes, add);
    if (group.lane == 0 && block < count) out[block] = kNorm == SPARSEK_NORM_L2 ? sqrt(sum) : sum;
  }
}

// The same where each lane has one vector of a block at most: a group has several blocks at once, so that enough loads
// are in flight.
template <class T, sparsek_norm kNorm, class Blocks>
__global__ void __launch_bounds__(kThreads)
    norms_of_small(Blocks blocks, int32_t length, int64_t elements, int lanes, Wide<T>* out) {
  using S = Wide<T>;
  using Add = std::conditional_t<kNorm == SPARSEK_NORM_MAX, Larger, Addition>;
  constexpr int kAtOnce = 4;
  start_dependent();
  const Group group(lanes);
  const int64_t count = blocks.blocks();
  const Add add;
  const int32_t in_line = length / kVector<T>, line = group.lane / in_line, at = group.lane % in_line * kVector<T>;
  const bool has_vector = group.lane * kVector<T> < elements;
  const int64_t step = kAtOnce * group.groups;
  for (int64_t first = group.first, block = group.group; first < count; first += step, block += step) {
    ElementVector<T> vectors[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      if (block + i * group.groups >= count || !has_vector) continue;
      const Place<T> place = blocks(block + i * group.groups);
      const int64_t left = place.length - at;
      if (line >= place.lines || left <= 0) continue;
      vectors[i] = load_some(place.from + line * blocks.ld + at, left, left >= kVector<T>);
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      S sums[kVector<T>];  // zeros that are not there change no norm
#pragma unroll
      for (int v = 0; v < kVector<T>; ++v) sums[v] = part<kNorm>(load(vectors[i].element[v]));
      const S sum = fold_lanes(sums, lanes, add);
      const int64_t to = block + i * group.groups;
      if (group.lane == 0 && to < count) out[to] = kNorm == SPARSEK_NORM_L2 ? sqrt(sum) : sum;
    }
  }
}

template <class T, sparsek_norm kNorm, class Blocks>
void launch_norm(const Blocks& blocks, int64_t count, int32_t length, int64_t elements, bool whole, Wide<T>* out,
                 sparsek_stream stream) {
  const int lanes = pattern::lanes_for(elements, kVector<T>);
  whole = whole && length % kVector<T> == 0;
  const unsigned ctas = pattern_ctas(count * lanes);
  if (whole && elements <= int64_t{lanes} * kVector<T>) {
    launch_pattern("norms of small blocks", ctas, kThreads, stream, norms_of_small<T, kNorm, Blocks>, blocks, length,
                   elements, lanes, out);
  } else {
    launch_pattern("norms of blocks", ctas, kThreads, stream, norms<T, kNorm, Blocks>, blocks, length, elements, lanes,
                   whole, out);
  }
}

template <class T, class Blocks>
void launch(const Blocks& blocks, int64_t count, int32_t length, int64_t elements, bool whole, sparsek_norm norm,
            void* out, sparsek_stream stream) {
  auto* const to = static_cast<Wide<T>*>(out);
  switch (norm) {
    case SPARSEK_NORM_MAX:
      return launch_norm<T, SPARSEK_NORM_MAX>(blocks, count, length, elements, whole, to, stream);
    case SPARSEK_NORM_L1:
      return launch_norm<T, SPARSEK_NORM_L1>(blocks, count, length, elements, whole, to, stream);
    case SPARSEK_NORM_L2:
      return launch_norm<T, SPARSEK_NORM_L2>(blocks, count, length, elements, whole, to, stream);
  }
}

}  // namespace block_norms

void norm_dense_blocks(const pattern::MakeJob& job) {
  const BsrShape& shape = job.to.shape;
  const int64_t count = int64_t{shape.block_rows} * shape.block_cols;
  if (count == 0) return;
  with_element(job.dtype, [&](auto* element) {
    using T = std::remove_pointer_t<decltype(element)>;
    const bool by_rows = job.order == SPARSEK_ROW_MAJOR;
    const block_norms::InDense<T> blocks{static_cast<const T*>(job.source),
                                         job.ld,
                                         by_rows ? shape.block_m : shape.block_k,
                                         by_rows ? shape.block_k : shape.block_m,
                                         by_rows ? shape.rows : shape.cols,
                                         by_rows ? shape.cols : shape.rows,
                                         shape.block_cols,
                                         count,
                                         by_rows};
    const bool whole = is_vector_aligned(job.source) && job.ld % kVector<T> == 0;
    block_norms::launch<T>(blocks, count, blocks.length, int64_t{shape.block_m} * shape.block_k, whole, job.norm,
                           job.norms, job.stream);
  });
}

void norm_blocks(const pattern::ValuesJob& job) {
  const BsrShape& shape = job.a.shape;
  if (shape.nnzb == 0) return;
  const auto last_lines = static_cast<int32_t>(shape.rows - int64_t{shape.block_rows - 1} * shape.block_m);
  with_element(job.dtype, [&](auto* element) {
    using T = std::remove_pointer_t<decltype(element)>;
    block_norms::launch<T>(block_norms::InValues<T>{job.a, shape.block_k, last_lines}, shape.nnzb, shape.block_k,
                           int64_t{shape.block_m} * shape.block_k, is_vector_aligned(job.a.values), job.norm, job.out,
                           job.stream);
  });
}

}  // namespace sparsek::cuda
