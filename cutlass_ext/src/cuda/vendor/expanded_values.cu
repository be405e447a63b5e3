// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>

#include "abi/dtype.h"
#include "abi/error.h"
#include "cuda/cuda_error.h"
#include "cuda/vendor/expanded_values.h"
#include "cuda/vendor/library_kernels.h"

namespace sparsek::cuda {
// Named, since the symbols of kernels in an unnamed namespace depend on the path of the checkout.
namespace expanding {

constexpr int kThreads = 256;
constexpr int64_t kMostCtasOfRow = 64;

// Extents across count units: elements, or vectors of them.
struct Places {
  const int32_t* row_ptr;  // (block_rows + 1)
  const int32_t* col_idx;  // (nnzb); null: the blocks of a row are one behind the other
  int32_t block_m, width;
  int64_t rows, cols;
  int64_t pitch;  // 0: each row is as long as the blocks of its block row, and behind the one before
};

// A CTA takes every gridDim.y-th block of a block row; a warp's threads lie along rows of blocks.
template <class Unit>
__global__ void __launch_bounds__(kThreads) scatter(const Unit* __restrict__ values /* (nnzb, bm, width) */,
                                                    Unit* __restrict__ out /* (rows, cols):(pitch, 1) */, Places to) {
  const int64_t block_row = blockIdx.x;
  const int64_t begin = to.row_ptr[block_row], end = to.row_ptr[block_row + 1];
  const int64_t pitch = to.pitch > 0 ? to.pitch : (end - begin) * to.width;
  Unit* const first_row = out + (to.pitch > 0 ? block_row * to.block_m * pitch : begin * to.block_m * to.width);
  for (int64_t block = begin + blockIdx.y; block < end; block += gridDim.y) {
    const int64_t first = (to.col_idx == nullptr ? block - begin : to.col_idx[block]) * to.width;
    for (int32_t i = threadIdx.y; i < to.block_m; i += blockDim.y) {
      const int64_t row = block_row * to.block_m + i;
      if (row >= to.rows) break;
      const Unit* const from = values + (block * to.block_m + i) * to.width;
      for (int32_t k = threadIdx.x; k < to.width && first + k < to.cols; k += blockDim.x) {
        first_row[i * pitch + first + k] = from[k];
      }
    }
  }
}

__global__ void __launch_bounds__(kThreads)
    list_columns(const int32_t* __restrict__ row_ptr, const int32_t* __restrict__ col_idx, int64_t width,
                 int32_t* __restrict__ out /* (block_rows, width) */) {
  const int64_t row = blockIdx.x;
  const int64_t begin = row_ptr[row], count = row_ptr[row + 1] - begin;
  for (int64_t i = threadIdx.x; i < width; i += kThreads) out[row * width + i] = i < count ? col_idx[begin + i] : -1;
}

// Of the elements of each block row; the places are those that scatter puts their values to.
__global__ void __launch_bounds__(kThreads)
    list_elements(const int32_t* __restrict__ row_ptr, const int32_t* __restrict__ col_idx, int32_t block_m,
                  int32_t block_k, int32_t* __restrict__ row_out /* (rows + 1) */,
                  int32_t* __restrict__ col_out /* (nnzb * bm * bk) */) {
  const int64_t block_row = blockIdx.x;
  const int64_t begin = row_ptr[block_row], width = (row_ptr[block_row + 1] - begin) * block_k;
  const int64_t first = begin * block_m * block_k;
  for (int64_t i = blockIdx.y; i < block_m; i += gridDim.y) {
    if (threadIdx.x == 0) row_out[block_row * block_m + i] = static_cast<int32_t>(first + i * width);
    for (int64_t at = threadIdx.x; at < width; at += kThreads) {
      col_out[first + i * width + at] = col_idx[begin + at / block_k] * block_k + static_cast<int32_t>(at % block_k);
    }
  }
  if (block_row + 1 == gridDim.x && blockIdx.y == 0 && threadIdx.x == 0) {
    row_out[gridDim.x * int64_t{block_m}] = static_cast<int32_t>(first + block_m * width);
  }
}

bool aligned(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer) % sizeof(uint4) == 0; }

template <class Unit>
void launch(const void* values, void* out, const Places& to, const BsrShape& shape, cudaStream_t stream) {
  unsigned across = 1;
  while (across < 32 && across < static_cast<unsigned>(to.width)) across *= 2;
  const int64_t ctas_of_row = std::clamp<int64_t>(shape.nnzb / shape.block_rows, 1, kMostCtasOfRow);
  const dim3 grid(static_cast<unsigned>(shape.block_rows), static_cast<unsigned>(ctas_of_row));
  scatter<<<grid, dim3(across, kThreads / across), 0, stream>>>(static_cast<const Unit*>(values),
                                                                static_cast<Unit*>(out), to);
  check(cudaGetLastError(), "expansion of the values");
}

const BsrShape& shape_of(const AnyIndex& index) {
  return std::visit([](const auto& any) -> const BsrShape& { return any; }, index);
}

}  // namespace expanding

ExpandedValues::ExpandedValues(const AnyIndex& index, sparsek_dtype dtype, Expansion expansion, PlanMemory& memory,
                               const StreamUses& uses)
    : shape_(expanding::shape_of(index)),
      expansion_(expansion),
      element_(static_cast<int>(dtype_bytes(dtype))),
      arrays_(index, memory, uses) {
  const bool dense = expansion == Expansion::kDense;
  cols_ = dense ? shape_.cols : longest_row(index) * shape_.block_k;
  pitch_ = dense ? dense_pitch(cols_) : expansion == Expansion::kRows ? 0 : cols_;
  const size_t elements = pitch_ > 0 ? static_cast<size_t>(shape_.rows) * static_cast<size_t>(pitch_)
                                     : static_cast<size_t>(shape_.nnzb) * static_cast<size_t>(shape_.block_m) *
                                           static_cast<size_t>(shape_.block_k);
  const size_t bytes = elements * static_cast<size_t>(element_);
  require_free_memory(bytes, dense                           ? "A as a dense matrix"
                             : expansion == Expansion::kRows ? "A as CSR"
                                                             : "A as Blocked-ELL");
  elements_ = PoolArray<char>(memory, bytes, &uses);
  check(cudaMemsetAsync(elements_.data(), 0, elements_.bytes(), memory.stream()), "cudaMemsetAsync");
  check(cudaStreamSynchronize(memory.stream()), "cudaStreamSynchronize");
}

void ExpandedValues::fill(const void* values, cudaStream_t stream) const {
  scatter_to(elements_.data(), values, stream);
}

void ExpandedValues::fill_other(void* elements, const void* values, cudaStream_t stream) const {
  if (expansion_ != Expansion::kRows) {
    check(cudaMemsetAsync(elements, 0, element_bytes(), stream), "cudaMemsetAsync");
  }
  scatter_to(elements, values, stream);
}

void ExpandedValues::scatter_to(void* elements, const void* values, cudaStream_t stream) const {
  const int in_vector = static_cast<int>(sizeof(uint4)) / element_;
  // The pitch makes room for the last vector of a row where the columns end within it.
  if (shape_.block_k % in_vector == 0 && pitch_ % in_vector == 0 && expanding::aligned(values) &&
      expanding::aligned(elements)) {
    scatter_units<uint4>(elements, values, stream);
  } else if (element_ == 2) {
    scatter_units<uint16_t>(elements, values, stream);
  } else if (element_ == 4) {
    scatter_units<uint32_t>(elements, values, stream);
  } else {
    scatter_units<uint64_t>(elements, values, stream);
  }
}

template <class Unit>
void ExpandedValues::scatter_units(void* elements, const void* values, cudaStream_t stream) const {
  const int32_t* const col_idx = expansion_ == Expansion::kDense ? arrays_.col_idx() : nullptr;
  const int in_unit = static_cast<int>(sizeof(Unit)) / element_;
  expanding::launch<Unit>(values, elements,
                          {arrays_.row_ptr(), col_idx, shape_.block_m, shape_.block_k / in_unit, shape_.rows,
                           (cols_ + in_unit - 1) / in_unit, pitch_ / in_unit},
                          shape_, stream);
}

PoolArray<int32_t> blocked_ell_columns(const AnyIndex& index, int64_t width, PlanMemory& memory,
                                       const StreamUses& uses) {
  const BsrShape& shape = expanding::shape_of(index);
  const IndexArrays arrays(index, memory, uses);
  PoolArray<int32_t> columns(memory, static_cast<size_t>(shape.block_rows) * static_cast<size_t>(width), &uses);
  expanding::list_columns<<<static_cast<unsigned>(shape.block_rows), expanding::kThreads, 0, memory.stream()>>>(
      arrays.row_ptr(), arrays.col_idx(), width, columns.data());
  check(cudaGetLastError(), "columns of Blocked-ELL");
  check(cudaStreamSynchronize(memory.stream()), "columns of Blocked-ELL");
  return columns;
}

CsrIndex::CsrIndex(const AnyIndex& index, PlanMemory& memory, const StreamUses& uses) {
  const BsrShape& shape = expanding::shape_of(index);
  const IndexArrays arrays(index, memory, uses);
  const size_t count =
      static_cast<size_t>(shape.nnzb) * static_cast<size_t>(shape.block_m) * static_cast<size_t>(shape.block_k);
  require_free_memory(count * sizeof(int32_t), "the index of A as CSR");
  row_ptr_ = PoolArray<int32_t>(memory, static_cast<size_t>(shape.rows) + 1, &uses);
  col_idx_ = PoolArray<int32_t>(memory, count, &uses);
  const auto ctas_of_row = static_cast<unsigned>(std::min<int64_t>(shape.block_m, expanding::kMostCtasOfRow));
  expanding::list_elements<<<dim3(static_cast<unsigned>(shape.block_rows), ctas_of_row), expanding::kThreads, 0,
                             memory.stream()>>>(arrays.row_ptr(), arrays.col_idx(), shape.block_m, shape.block_k,
                                                row_ptr_.data(), col_idx_.data());
  check(cudaGetLastError(), "the index of CSR");
  check(cudaStreamSynchronize(memory.stream()), "the index of CSR");
}

void require_free_memory(size_t bytes, const char* what) {
  size_t free = 0, total = 0;
  check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  if (bytes > free) {
    fail(SPARSEK_OUT_OF_MEMORY, "%s takes %zu bytes of device memory, and %zu are free", what, bytes, free);
  }
}

}  // namespace sparsek::cuda
