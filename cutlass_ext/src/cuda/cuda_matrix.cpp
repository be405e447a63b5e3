// SPDX-License-Identifier: Apache-2.0
#include "cuda/cuda_matrix.h"

#include <algorithm>

#include "abi/dtype.h"
#include "abi/error.h"
#include "cuda/device_scope.h"
#include "cuda/peer_access.h"
#include "cuda/stream.h"
#include "cuda/time_runs.h"

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
  if (memory == SPARSEK_DEVICE && on_device && attributes.device != device && !may_read_peer(pointer)) {
    fail(SPARSEK_WRONG_MEMORY,
         "%s lies on CUDA device %d, which device %d may not use: enable peer access (cudaDeviceEnablePeerAccess), or "
         "copy it",
         name, attributes.device, device);
  }
}

namespace {

AnyIndex make_index(const sparsek_bsr& a, int device, PlanMemory& device_memory, const StreamUses& uses) {
  const auto memory = static_cast<sparsek_memory>(a.memory);
  check_memory(a.row_ptr, memory, device, "row_ptr");
  if (a.nnzb > 0) check_memory(a.col_idx, memory, device, "col_idx");
  if (memory == SPARSEK_DEVICE) return make_device_index(a, device_memory, uses);
  return make_bsr_index(a);
}

}  // namespace

CudaMatrix::CudaMatrix(const sparsek_bsr& a, int device, PlanMemory& memory)
    : device_(device), memory_(memory), index_(make_index(a, device, memory, uses_)) {
  dtype = static_cast<sparsek_dtype>(a.dtype);
  if (const auto* const host = std::get_if<BsrIndex>(&index_)) orders_ = std::make_unique<RowOrders>(*host);
  if (a.values == nullptr || shape().nnzb == 0) return;
  check_memory(a.values, static_cast<sparsek_memory>(a.memory), device_, "values");
  if (a.memory == SPARSEK_DEVICE) {
    values_ = a.values;
    return;
  }
  copy_values(a.values, memory_.stream());
  check(cudaStreamSynchronize(memory_.stream()), "cudaStreamSynchronize");
  values_ = owned_values_.data();
}

const BsrShape& CudaMatrix::shape() const {
  return std::visit([](const auto& index) -> const BsrShape& { return index; }, index_);
}

const PatternStats& CudaMatrix::stats() const {
  return stats_.get(
      [this] { return orders_ != nullptr ? pattern_stats(*orders_) : expected_stats(shape(), longest_row(index_)); });
}

size_t CudaMatrix::value_bytes() const {
  return static_cast<size_t>(shape().nnzb) * shape().block_m * shape().block_k * dtype_bytes(dtype);
}

void CudaMatrix::set_values(const void* values, sparsek_memory memory, sparsek_stream stream) {
  if (shape().nnzb == 0) return;
  DeviceScope scope(device_);
  check_memory(values, memory, device_, "values");
  if (memory == SPARSEK_DEVICE) {
    values_ = values;
    return;
  }
  const auto order = static_cast<cudaStream_t>(stream);
  const bool captured = memory_.releases().use(uses_, order);
  const std::lock_guard lock(owning_);
  copy_values(values, order);
  for (const auto& place : expanded_) {
    if (const auto used = place.lock()) used->fill(owned_values_.data(), order);
  }
  // Nothing outside of a graph can wait for a part of it.
  if (!captured) copied_.record(order);
  values_ = owned_values_.data();
}

void CudaMatrix::copy_values(const void* host, cudaStream_t stream) {
  if (owned_values_.data() == nullptr) {
    owned_values_ = PoolArray<char>(memory_, value_bytes(), &uses_);
    // In whatever stream they are used.
    check(cudaStreamSynchronize(memory_.stream()), "cudaStreamSynchronize");
  }
  owned_ = owned_values_.data();
  check(cudaMemcpyAsync(owned_values_.data(), host, value_bytes(), cudaMemcpyHostToDevice, stream), "cudaMemcpyAsync");
}

std::shared_ptr<const ExpandedValues> CudaMatrix::expanded(Expansion expansion) {
  const std::lock_guard lock(owning_);
  auto& place = expanded_[static_cast<int>(expansion)];
  if (auto used = place.lock()) return used;
  const auto made = std::make_shared<const ExpandedValues>(index_, expansion, memory_, uses_);
  if (values_ != nullptr && !is_referenced(values_)) {
    copied_.wait();
    made->fill(values_, memory_.stream());
    check(cudaStreamSynchronize(memory_.stream()), "cudaStreamSynchronize");
  }
  place = made;
  return made;
}

double CudaMatrix::fill_time(const ExpandedValues& expanded) {
  const std::lock_guard lock(owning_);
  if (values_ == nullptr) {
    fail(SPARSEK_NULL_POINTER, "the matrix has no values yet: give them with matrix_set_values");
  }
  copied_.wait();
  constexpr int kWarmup = 1, kRepeats = 5;
  double seconds[kRepeats];
  const Stream stream;
  time_runs(stream, kWarmup, kRepeats, [&] { expanded.fill(values_, stream); }, seconds);
  std::sort(seconds, seconds + kRepeats);
  return seconds[kRepeats / 2];
}

}  // namespace sparsek::cuda
