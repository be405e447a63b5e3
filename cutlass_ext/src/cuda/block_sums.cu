// SPDX-License-Identifier: Apache-2.0
#include "cuda/block_walk.cuh"
#include "cuda/dependent_launch.cuh"
#include "cuda/pattern_parts.h"

namespace sparsek::cuda {
// Named, since the symbols of kernels in an unnamed namespace depend on the path of the checkout.
namespace block_sums {

using pattern::Given;

constexpr int kThreads = kPatternThreads;
constexpr int kAtOnce = 4;  // vectors of a lane in flight

struct Addition {
  template <class S>
  __device__ S operator()(S a, S b) const {
    return plus(a, b);
  }
};

template <class T>
__device__ void add_vector(Wide<T> (&sums)[kVector<T>], const ElementVector<T>& vector) {
#pragma unroll
  for (int v = 0; v < kVector<T>; ++v) sums[v] = plus(sums[v], load(vector.element[v]));
}

// The lanes of a group have a row. whole: lines of blocks begin at multiples of 16 bytes, and consist of vectors.
template <class T>
__global__ void __launch_bounds__(kThreads) sum_rows(Given a, int lanes, bool whole, Wide<T>* out) {
  start_dependent();
  const BsrShape& shape = a.shape;
  const T* const values = static_cast<const T*>(a.values);
  const Group group(lanes);
  const int32_t step = lanes * kVector<T>;
  for (int64_t first = group.first, row = group.group; first < shape.rows; first += group.groups, row += group.groups) {
    Wide<T> sums[kVector<T>] = {};
    if (row < shape.rows) {
      const int64_t block_row = divide(row, shape.block_m), line = row - block_row * shape.block_m;
      const int64_t end = a.row_ptr.get(block_row + 1);
      int32_t col = group.lane * kVector<T>;
      int64_t entry = a.row_ptr.get(block_row);
      if (col >= shape.block_k) entry = end;  // the lane has nothing to read
      while (entry < end) {
        // Zeros that are added in place of what is not there change no sum.
        ElementVector<T> vectors[kAtOnce];
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i) {
          if (entry >= end) break;
          const T* const from = values + (a.block(entry) * shape.block_m + line) * shape.block_k + col;
          vectors[i] = load_some(from, shape.block_k - col, whole);
          col += step;
          if (col >= shape.block_k) {
            col = group.lane * kVector<T>;
            ++entry;
          }
        }
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i) add_vector<T>(sums, vectors[i]);
      }
    }
    __syncwarp();
    const Wide<T> sum = fold_lanes(sums, lanes, Addition());
    if (group.lane == 0 && row < shape.rows) out[row] = sum;
  }
}

// The rows of stored blocks, (block_k, block_m), that a thread has: every so manyth.
template <class T>
class StoredRows {
 public:
  __device__ StoredRows(const Given& a, int64_t entry, int32_t line, int step)
      : a_(a),
        entry_(entry),
        line_(line),
        entry_step_(step / a.shape.block_k),
        line_step_(step % a.shape.block_k),
        is_ragged_(a.shape.cols % a.shape.block_k != 0) {}

  // The addresses of the next ones; null where there are no more, or where a has no such column. Whether there was any.
  __device__ bool next(const T* (&from)[kAtOnce], int64_t end) {
    const BsrShape& shape = a_.shape;
    const bool any = entry_ < end;
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      from[i] = nullptr;
      if (entry_ >= end) continue;
      if (!is_ragged_ || a_.col_idx.get(entry_) * shape.block_k + line_ < shape.cols) {
        from[i] = static_cast<const T*>(a_.values) + (a_.block(entry_) * shape.block_k + line_) * shape.block_m;
      }
      entry_ += entry_step_;
      line_ += line_step_;
      if (line_ >= shape.block_k) {
        line_ -= shape.block_k;
        ++entry_;
      }
    }
    return any;
  }

 private:
  const Given& a_;
  int64_t entry_;
  int32_t line_, entry_step_, line_step_;
  bool is_ragged_;
};

constexpr int kColumnThreads = pattern::kColumnGroups * pattern::kMostColumnLanes;

// Blocks lie as (block_k, block_m). Teams of a CTA have some columns of the stored blocks of a block row each: `lanes`
// threads a row of them, and as many rows at once as there are groups.
template <class T>
__global__ void __launch_bounds__(kColumnThreads) sum_columns(Given a, int lanes, bool whole, Wide<T>* out) {
  __shared__ Wide<T> shared[kColumnThreads][kVector<T>];
  start_dependent();
  const BsrShape& shape = a.shape;
  const int32_t width = lanes * kVector<T>, chunks = (shape.block_m + width - 1) / width;
  const int thread = static_cast<int>(threadIdx.x), of_team = lanes * pattern::kColumnGroups;
  const int teams = kColumnThreads / of_team, team = thread / of_team;
  const int lane = thread % lanes, group = thread % of_team / lanes;
  const int64_t turns = int64_t{shape.block_rows} * chunks;
  for (int64_t first = int64_t{blockIdx.x} * teams; first < turns; first += int64_t{gridDim.x} * teams) {
    const int64_t turn = first + team, block_row = turn / chunks;
    const int32_t col = static_cast<int32_t>(turn - block_row * chunks) * width + lane * kVector<T>;
    const bool has_columns = turn < turns && col < shape.block_m;
    Wide<T> sums[kVector<T>] = {};
    if (has_columns) {
      const int64_t end = a.row_ptr.get(block_row + 1);
      StoredRows<T> rows(a, a.row_ptr.get(block_row) + group / shape.block_k, group % shape.block_k,
                         pattern::kColumnGroups);
      const T* from[kAtOnce];
      // Where the next rows lie is looked up while those before are loaded.
      bool any = rows.next(from, end);
      while (any) {
        ElementVector<T> vectors[kAtOnce];
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i) {
          if (from[i] != nullptr) vectors[i] = load_some(from[i] + col, shape.block_m - col, whole);
        }
        any = rows.next(from, end);
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i) add_vector<T>(sums, vectors[i]);
      }
    }
#pragma unroll
    for (int half = pattern::kColumnGroups / 2; half > 0; half /= 2) {
      __syncthreads();
#pragma unroll
      for (int v = 0; v < kVector<T>; ++v) shared[thread][v] = sums[v];
      __syncthreads();
      if (group < half) {
#pragma unroll
        for (int v = 0; v < kVector<T>; ++v) sums[v] = plus(sums[v], shared[thread + half * lanes][v]);
      }
    }
    if (group != 0 || !has_columns) continue;
#pragma unroll
    for (int v = 0; v < kVector<T>; ++v) {
      const int64_t row = block_row * shape.block_m + col + v;
      if (col + v < shape.block_m && row < shape.rows) out[row] = sums[v];
    }
  }
}

}  // namespace block_sums

void sum_rows(const pattern::ValuesJob& job) {
  const BsrShape& shape = job.a.shape;
  if (shape.rows == 0) return;
  with_element(job.dtype, [&](auto* element) {
    using T = std::remove_pointer_t<decltype(element)>;
    auto* const out = static_cast<Wide<T>*>(job.out);
    const int64_t line = job.transposed ? shape.block_m : shape.block_k;
    const bool whole = is_vector_aligned(job.a.values) && line % kVector<T> == 0;
    if (!job.transposed) {
      const int lanes = pattern::lanes_for(shape.block_k, kVector<T>);
      launch_pattern("sums of rows", pattern_ctas(shape.rows * lanes), kPatternThreads, job.stream,
                     block_sums::sum_rows<T>, job.a, lanes, whole, out);
      return;
    }
    const int lanes = pattern::column_lanes_for(shape.block_m, kVector<T>);
    const int64_t width = lanes * kVector<T>, turns = shape.block_rows * ((shape.block_m + width - 1) / width);
    launch_pattern("sums of columns", pattern_ctas(turns * lanes * pattern::kColumnGroups, block_sums::kColumnThreads),
                   block_sums::kColumnThreads, job.stream, block_sums::sum_columns<T>, job.a, lanes, whole, out);
  });
}

}  // namespace sparsek::cuda
