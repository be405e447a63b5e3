// SPDX-License-Identifier: Apache-2.0
#include "cuda/cuda_matrix.h"

#include <vector>

#include "abi/dtype.h"
#include "abi/error.h"
#include "cuda/validate.h"

namespace sparsek::cuda {

void check_memory(const void* pointer, sparsek_memory memory, int device, const char* name) {
  cudaPointerAttributes attributes = {};
  check(cudaPointerGetAttributes(&attributes, pointer), "cudaPointerGetAttributes");
  const bool on_device = attributes.type == cudaMemoryTypeDevice;
  if (memory == SPARSEK_HOST && on_device) {
    fail(SPARSEK_WRONG_MEMORY, "%s is a pointer to memory of CUDA device %d, given as host memory", name,
         attributes.device);
  }
  if (memory == SPARSEK_DEVICE && attributes.type == cudaMemoryTypeUnregistered) {
    fail(SPARSEK_WRONG_MEMORY, "%s is a host pointer, given as device memory", name);
  }
  if (memory == SPARSEK_DEVICE && on_device && attributes.device != device) {
    fail(SPARSEK_WRONG_MEMORY, "%s lies on CUDA device %d, the context is on device %d", name, attributes.device,
         device);
  }
}

namespace {

// The index of a device matrix, copied to the host for the planner.
BsrIndex fetch_index(const sparsek_bsr& a, int device) {
  check_bsr_header(a);
  const int64_t rows = (a.rows + a.block_m - 1) / a.block_m;
  const size_t index_bytes = a.index_type == SPARSEK_INT64 ? 8 : 4;
  check_memory(a.row_ptr, SPARSEK_DEVICE, device, "row_ptr");
  if (a.nnzb > 0) check_memory(a.col_idx, SPARSEK_DEVICE, device, "col_idx");
  if (a.validate_device) validate_device_index(a);

  std::vector<int64_t> row_ptr(rows + 1), col_idx(a.nnzb);  // int64, for the alignment of either type
  check(cudaMemcpy(row_ptr.data(), a.row_ptr, (rows + 1) * index_bytes, cudaMemcpyDeviceToHost), "cudaMemcpy");
  check(cudaMemcpy(col_idx.data(), a.col_idx, a.nnzb * index_bytes, cudaMemcpyDeviceToHost), "cudaMemcpy");
  sparsek_bsr host = a;
  host.row_ptr = row_ptr.data();
  host.col_idx = col_idx.data();
  return make_bsr_index(host);
}

}  // namespace

CudaMatrix::CudaMatrix(const sparsek_bsr& a, int device) : device_(device) {
  dtype = static_cast<sparsek_dtype>(a.dtype);
  if (a.memory == SPARSEK_DEVICE) {
    index = fetch_index(a, device);
  } else {
    check_memory(a.row_ptr, SPARSEK_HOST, device, "row_ptr");
    if (a.nnzb > 0) check_memory(a.col_idx, SPARSEK_HOST, device, "col_idx");
    index = make_bsr_index(a);
  }
  if (a.values != nullptr) {
    set_values(a.values, static_cast<sparsek_memory>(a.memory), nullptr);
    check(cudaStreamSynchronize(nullptr), "cudaStreamSynchronize");
  }
}

size_t CudaMatrix::value_bytes() const {
  return static_cast<size_t>(index.nnzb() * index.block_m * index.block_k * dtype_bytes(dtype));
}

void CudaMatrix::set_values(const void* values, sparsek_memory memory, sparsek_stream stream) {
  if (index.nnzb() == 0) return;
  DeviceScope scope(device_);
  check_memory(values, memory, device_, "values");
  if (memory == SPARSEK_DEVICE) {
    values_ = values;
    return;
  }
  const std::lock_guard lock(owning_);
  if (owned_values_.data() == nullptr) owned_values_ = DeviceArray<char>(value_bytes());
  check(cudaMemcpyAsync(owned_values_.data(), values, value_bytes(), cudaMemcpyHostToDevice,
                        static_cast<cudaStream_t>(stream)),
        "cudaMemcpyAsync");
  values_ = owned_values_.data();
}

}  // namespace sparsek::cuda
