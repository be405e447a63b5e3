// SPDX-License-Identifier: Apache-2.0
// Values element by element: between blocks and a dense matrix, with factors, and of two matrices of one pattern.
#include <type_traits>

#include "abi/dtype.h"
#include "cuda/block_walk.cuh"
#include "cuda/dependent_launch.cuh"
#include "cuda/pattern_parts.h"

namespace sparsek::cuda {
// Named, since the symbols of kernels in an unnamed namespace depend on the path of the checkout.
namespace block_values {

using pattern::Given;
using pattern::ValuesJob;

constexpr int kThreads = kPatternThreads;

// A dense matrix, whose elements have the bytes of T.
template <class T>
struct Dense {
  T* data;
  int64_t ld, rows, cols;
  bool by_rows, whole;  // whole: rows begin at multiples of 16 bytes

  __device__ T* at(int64_t row, int64_t col) const { return data + (by_rows ? row * ld + col : col * ld + row); }
  // Whether a vector that begins there can be read and written as a whole.
  __device__ bool has_vector(int64_t row, int64_t col) const { return whole && row < rows && col + kVector<T> <= cols; }
  __device__ bool has(int64_t row, int64_t col) const { return row < rows && col < cols; }
};

// What is done with elements that follow each other in a row of a block, of values from `place` on.
template <class T>
struct Expand {
  Dense<T> dense;
  const T* values;

  __device__ void vector(int64_t row, int64_t col, int64_t place) const {
    const ElementVector<T> read = load_vector(values + place);
    if (dense.has_vector(row, col)) {
      *reinterpret_cast<uint4*>(dense.at(row, col)) = read.whole;
      return;
    }
#pragma unroll
    for (int v = 0; v < kVector<T>; ++v) {
      if (dense.has(row, col + v)) *dense.at(row, col + v) = read.element[v];
    }
  }
  __device__ void element(int64_t row, int64_t col, int64_t place) const {
    if (dense.has(row, col)) *dense.at(row, col) = values[place];
  }
};

template <class T>
struct Gather {
  Dense<const T> dense;
  T* values;

  __device__ void vector(int64_t row, int64_t col, int64_t place) const {
    ElementVector<T> read;
    if (dense.has_vector(row, col)) {
      read.whole = *reinterpret_cast<const uint4*>(dense.at(row, col));
    } else {
#pragma unroll
      for (int v = 0; v < kVector<T>; ++v) {
        if (dense.has(row, col + v)) read.element[v] = *dense.at(row, col + v);
      }
    }
    *reinterpret_cast<uint4*>(values + place) = read.whole;
  }
  __device__ void element(int64_t row, int64_t col, int64_t place) const {
    values[place] = dense.has(row, col) ? *dense.at(row, col) : T{0};
  }
};

template <class T>
struct Scale {
  const T* values;
  T* out;
  const Wide<T>*row_factors, *column_factors;
  int64_t rows, cols;

  __device__ Wide<T> of_row(int64_t row) const {
    return row_factors == nullptr || row >= rows ? Wide<T>{1} : row_factors[row];
  }
  __device__ T scaled(T x, Wide<T> by_row, int64_t col) const {
    const Wide<T> by_column = column_factors == nullptr || col >= cols ? Wide<T>{1} : column_factors[col];
    T result;
    store(&result, times(times(load(x), by_row), by_column));
    return result;
  }
  __device__ void vector(int64_t row, int64_t col, int64_t place) const {
    ElementVector<T> vector = load_vector(values + place);
    const Wide<T> by_row = of_row(row);
#pragma unroll
    for (int v = 0; v < kVector<T>; ++v) vector.element[v] = scaled(vector.element[v], by_row, col + v);
    *reinterpret_cast<uint4*>(out + place) = vector.whole;
  }
  __device__ void element(int64_t row, int64_t col, int64_t place) const {
    out[place] = scaled(values[place], of_row(row), col);
  }
};

// The lanes of a group have `run` neighbouring entries at a time. whole: vectors of blocks do not reach beyond a row,
// and lie at multiples of 16 bytes.
template <class T, class Work>
__global__ void __launch_bounds__(kThreads) walk_blocks(Given a, Work work, int lanes, int64_t run, bool whole) {
  start_dependent();
  const BsrShape& shape = a.shape;
  const Group group(lanes);
  const int64_t entries = entries_of(a), elements = int64_t{shape.block_m} * shape.block_k;
  for (int64_t begin = group.group * run; begin < entries; begin += group.groups * run) {
    int64_t block_row = block_row_of(a, begin);
    for (int64_t entry = begin; entry < min(begin + run, entries); ++entry) {
      while (a.row_ptr.get(block_row + 1) <= entry) ++block_row;
      const int64_t row = block_row * shape.block_m, col = a.col_idx.get(entry) * shape.block_k;
      const int64_t place = a.block(entry) * elements;
      const int32_t step = lanes * kVector<T>;
      int32_t line = 0, at = group.lane * kVector<T>;
      for (int64_t e = at; e < elements; e += step, at += step) {
        if (at >= shape.block_k) {
          line += at / shape.block_k;
          at %= shape.block_k;
        }
        if (whole) {
          work.vector(row + line, col + at, place + e);
          continue;
        }
        int32_t line_of = line, at_of = at;
#pragma unroll
        for (int v = 0; v < kVector<T>; ++v) {
          if (e + v >= elements) break;
          work.element(row + line_of, col + at_of, place + e + v);
          if (++at_of == shape.block_k) {
            at_of = 0;
            ++line_of;
          }
        }
      }
    }
  }
}

// Entries that a group has at a time, so that it looks for a block row once for several small blocks.
int64_t run_for(int64_t elements, int64_t bytes) {
  constexpr int64_t kBytes = 8192;
  return std::clamp<int64_t>(kBytes / (elements * bytes), 1, 32);
}

template <class T, class Work>
void walk(const Given& a, const Work& work, bool whole, sparsek_stream stream) {
  const BsrShape& shape = a.shape;
  if (shape.nnzb == 0) return;
  const int64_t elements = int64_t{shape.block_m} * shape.block_k, run = run_for(elements, sizeof(T));
  const int lanes = pattern::lanes_for(elements, kVector<T>);
  launch_pattern("walk of blocks", pattern_ctas((shape.nnzb + run - 1) / run * lanes), kThreads, stream,
                 walk_blocks<T, Work>, a, work, lanes, run, whole && shape.block_k % kVector<T> == 0);
}

// Of elements that are only copied.
template <class Work>
void with_bytes(sparsek_dtype dtype, Work work) {
  switch (dtype_bytes(dtype)) {
    case 2:
      return work(static_cast<uint16_t*>(nullptr));
    case 4:
      return work(static_cast<uint32_t*>(nullptr));
    default:
      return work(static_cast<uint64_t*>(nullptr));
  }
}

// The lanes of a group have an entry.
template <class T>
__global__ void __launch_bounds__(kThreads) copy_named(pattern::Made to, const T* from, int lanes, bool whole) {
  start_dependent();
  const Group group(lanes);
  const int64_t entries = to.row_ptr.get(to.shape.block_rows);
  const int64_t elements = int64_t{to.shape.block_m} * to.shape.block_k;
  for (int64_t entry = group.group; entry < entries; entry += group.groups) {
    const T* const source = from + to.block_idx.get(entry) * elements;
    T* const out = static_cast<T*>(to.values) + entry * elements;
    if (whole) {
#pragma unroll 4
      for (int64_t e = group.lane * kVector<T>; e < elements; e += lanes * kVector<T>) {
        *reinterpret_cast<uint4*>(out + e) = load_vector(source + e).whole;
      }
    } else {
      for (int64_t e = group.lane; e < elements; e += lanes) out[e] = source[e];
    }
  }
}

template <class T>
struct Combine {
  const T *a, *b;
  T* out;
  Wide<T> alpha, beta;
  bool adds;

  __device__ T of(T x, T y) const {
    const Wide<T> scaled = times(alpha, load(x));
    T result;
    store(&result, adds ? plus(scaled, times(beta, load(y))) : times(scaled, load(y)));
    return result;
  }
};

template <class T>
__global__ void __launch_bounds__(kThreads) combine(Given a, Combine<T> work, bool whole) {
  start_dependent();
  // Where block_idx names the places, any of them may be in use.
  const int64_t blocks = a.block_idx.is_there() ? a.shape.nnzb : entries_of(a);
  const int64_t elements = blocks * a.shape.block_m * a.shape.block_k;
  const int64_t thread = blockIdx.x * int64_t{kThreads} + threadIdx.x, threads = int64_t{kThreads} * gridDim.x;
  if (!whole) {
    for (int64_t e = thread; e < elements; e += threads) work.out[e] = work.of(work.a[e], work.b[e]);
    return;
  }
  const int64_t vectors = elements / kVector<T>;
#pragma unroll 2
  for (int64_t q = thread; q < vectors; q += threads) {
    ElementVector<T> x = load_vector(work.a + q * kVector<T>);
    const ElementVector<T> y = load_vector(work.b + q * kVector<T>);
#pragma unroll
    for (int v = 0; v < kVector<T>; ++v) x.element[v] = work.of(x.element[v], y.element[v]);
    *reinterpret_cast<uint4*>(work.out + q * kVector<T>) = x.whole;
  }
  for (int64_t e = vectors * kVector<T> + thread; e < elements; e += threads) {
    work.out[e] = work.of(work.a[e], work.b[e]);
  }
}

}  // namespace block_values

void expand_blocks(const pattern::ValuesJob& job) {
  const BsrShape& shape = job.a.shape;
  const bool by_rows = job.order == SPARSEK_ROW_MAJOR;
  const int64_t lines = by_rows ? shape.rows : shape.cols, length = by_rows ? shape.cols : shape.rows;
  if (lines == 0 || length == 0) return;
  const auto bytes = static_cast<size_t>(dtype_bytes(job.dtype));
  const auto stream = static_cast<cudaStream_t>(job.stream);
  check(cudaMemset2DAsync(job.out, job.ld * bytes, 0, length * bytes, lines, stream), "cudaMemset2DAsync");
  block_values::with_bytes(job.dtype, [&](auto* element) {
    using T = std::remove_pointer_t<decltype(element)>;
    const bool whole = by_rows && is_vector_aligned(job.out) && job.ld % kVector<T> == 0;
    const auto* const values = static_cast<const T*>(job.a.values);
    const block_values::Expand<T> work{{static_cast<T*>(job.out), job.ld, shape.rows, shape.cols, by_rows, whole},
                                       values};
    block_values::walk<T>(job.a, work, whole && is_vector_aligned(values), job.stream);
  });
}

void gather_blocks(const pattern::Given& index, sparsek_dtype dtype, const void* dense, int64_t ld, sparsek_order order,
                   void* values, sparsek_stream stream) {
  block_values::with_bytes(dtype, [&](auto* element) {
    using T = std::remove_pointer_t<decltype(element)>;
    const BsrShape& shape = index.shape;
    const bool by_rows = order == SPARSEK_ROW_MAJOR;
    const bool whole = by_rows && is_vector_aligned(dense) && ld % kVector<T> == 0;
    const block_values::Gather<T> work{{static_cast<const T*>(dense), ld, shape.rows, shape.cols, by_rows, whole},
                                       static_cast<T*>(values)};
    block_values::walk<T>(index, work, whole && is_vector_aligned(values), stream);
  });
}

void copy_named_blocks(const pattern::MakeJob& job) {
  const pattern::Made& to = job.to;
  if (to.values == nullptr || to.shape.nnzb == 0) return;
  block_values::with_bytes(job.values_dtype, [&](auto* element) {
    using T = std::remove_pointer_t<decltype(element)>;
    const int64_t elements = int64_t{to.shape.block_m} * to.shape.block_k;
    const int lanes = pattern::lanes_for(elements, kVector<T>);
    const auto* const from = static_cast<const T*>(job.from[0].values);
    const bool whole = elements % kVector<T> == 0 && is_vector_aligned(from) && is_vector_aligned(to.values);
    launch_pattern("copy of blocks", pattern_ctas(to.shape.nnzb * lanes), kPatternThreads, job.stream,
                   block_values::copy_named<T>, to, from, lanes, whole);
  });
}

void scale_blocks(const pattern::ValuesJob& job) {
  with_element(job.dtype, [&](auto* element) {
    using T = std::remove_pointer_t<decltype(element)>;
    const block_values::Scale<T> work{static_cast<const T*>(job.a.values),
                                      static_cast<T*>(job.out),
                                      static_cast<const Wide<T>*>(job.row_factors),
                                      static_cast<const Wide<T>*>(job.column_factors),
                                      job.a.shape.rows,
                                      job.a.shape.cols};
    block_values::walk<T>(job.a, work, is_vector_aligned(job.a.values) && is_vector_aligned(job.out), job.stream);
  });
}

void combine_blocks(const pattern::ValuesJob& job) {
  const BsrShape& shape = job.a.shape;
  if (shape.nnzb == 0) return;
  with_element(job.dtype, [&](auto* element) {
    using T = std::remove_pointer_t<decltype(element)>;
    const block_values::Combine<T> work{
        static_cast<const T*>(job.a.values), static_cast<const T*>(job.b),   static_cast<T*>(job.out),
        static_cast<Wide<T>>(job.alpha),     static_cast<Wide<T>>(job.beta), job.what == pattern::Work::kAdd};
    const bool whole = is_vector_aligned(job.a.values) && is_vector_aligned(job.b) && is_vector_aligned(job.out);
    const int64_t vectors = shape.nnzb * shape.block_m * shape.block_k / kVector<T> + 1;
    launch_pattern("values of two matrices", pattern_ctas(vectors), kPatternThreads, job.stream,
                   block_values::combine<T>, job.a, work, whole);
  });
}

}  // namespace sparsek::cuda
