// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>

#include "abi/error.h"
#include "cuda/cuda_error.h"
#include "cuda/vendor/expanded_values.h"
#include "cuda/vendor/library_kernels.h"

namespace sparsek::cuda {
// Named, since the symbols of kernels in an unnamed namespace depend on the path of the checkout.
namespace expanding {

constexpr int kThreads = 256;
constexpr int kElementsOfVector = sizeof(uint4) / sizeof(uint16_t);
constexpr int64_t kMostCtasOfRow = 64;

// Extents across count units: elements, or vectors of them.
struct Places {
  const int32_t* row_ptr;  // (block_rows + 1)
  const int32_t* col_idx;  // (nnzb); null: the blocks of a row are one behind the other
  int32_t block_m, width;
  int64_t rows, cols, pitch;
};

// A CTA takes every gridDim.y-th block of a block row; a warp's threads lie along rows of blocks.
template <class Unit>
__global__ void __launch_bounds__(kThreads) scatter(const Unit* __restrict__ values /* (nnzb, bm, width) */,
                                                    Unit* __restrict__ out /* (rows, cols):(pitch, 1) */, Places to) {
  const int64_t block_row = blockIdx.x;
  const int64_t begin = to.row_ptr[block_row], end = to.row_ptr[block_row + 1];
  for (int64_t block = begin + blockIdx.y; block < end; block += gridDim.y) {
    const int64_t first = (to.col_idx == nullptr ? block - begin : to.col_idx[block]) * to.width;
    for (int32_t i = threadIdx.y; i < to.block_m; i += blockDim.y) {
      const int64_t row = block_row * to.block_m + i;
      if (row >= to.rows) break;
      const Unit* const from = values + (block * to.block_m + i) * to.width;
      for (int32_t k = threadIdx.x; k < to.width && first + k < to.cols; k += blockDim.x) {
        out[row * to.pitch + first + k] = from[k];
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

ExpandedValues::ExpandedValues(const AnyIndex& index, Expansion expansion, PlanMemory& memory, const StreamUses& uses)
    : shape_(expanding::shape_of(index)), expansion_(expansion), arrays_(index, memory, uses) {
  const bool dense = expansion == Expansion::kDense;
  cols_ = dense ? shape_.cols : longest_row(index) * shape_.block_k;
  pitch_ = dense ? dense_pitch(cols_) : cols_;
  const size_t count = static_cast<size_t>(shape_.rows) * static_cast<size_t>(pitch_);
  require_free_memory(count * sizeof(uint16_t), dense ? "A as a dense matrix" : "A as Blocked-ELL");
  elements_ = PoolArray<uint16_t>(memory, count, &uses);
  check(cudaMemsetAsync(elements_.data(), 0, elements_.bytes(), memory.stream()), "cudaMemsetAsync");
  check(cudaStreamSynchronize(memory.stream()), "cudaStreamSynchronize");
}

void ExpandedValues::fill(const void* values, cudaStream_t stream) const {
  scatter_to(elements_.data(), values, stream);
}

void ExpandedValues::fill_other(void* elements, const void* values, cudaStream_t stream) const {
  check(cudaMemsetAsync(elements, 0, element_bytes(), stream), "cudaMemsetAsync");
  scatter_to(static_cast<uint16_t*>(elements), values, stream);
}

void ExpandedValues::scatter_to(uint16_t* elements, const void* values, cudaStream_t stream) const {
  const int32_t* const col_idx = expansion_ == Expansion::kDense ? arrays_.col_idx() : nullptr;
  constexpr int kVector = expanding::kElementsOfVector;
  // The pitch makes room for the last vector of a row where the columns end within it.
  if (shape_.block_k % kVector == 0 && pitch_ % kVector == 0 && expanding::aligned(values)) {
    expanding::launch<uint4>(values, elements,
                             {arrays_.row_ptr(), col_idx, shape_.block_m, shape_.block_k / kVector, shape_.rows,
                              (cols_ + kVector - 1) / kVector, pitch_ / kVector},
                             shape_, stream);
  } else {
    expanding::launch<uint16_t>(
        values, elements, {arrays_.row_ptr(), col_idx, shape_.block_m, shape_.block_k, shape_.rows, cols_, pitch_},
        shape_, stream);
  }
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

void require_free_memory(size_t bytes, const char* what) {
  size_t free = 0, total = 0;
  check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  if (bytes > free) {
    fail(SPARSEK_OUT_OF_MEMORY, "%s takes %zu bytes of device memory, and %zu are free", what, bytes, free);
  }
}

}  // namespace sparsek::cuda
