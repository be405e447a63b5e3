// SPDX-License-Identifier: Apache-2.0
#include "cuda/cuda_matrix.h"

#include <algorithm>
#include <utility>

#include "abi/dtype.h"
#include "abi/error.h"
#include "cuda/device_scope.h"
#include "cuda/driver.h"
#include "cuda/stream.h"
#include "cuda/time_runs.h"
#include "plan/transpose_index.h"

namespace sparsek::cuda {

namespace {

// The usual case, in half the time of cudaPointerGetAttributes.
bool is_memory_of(int device, const void* pointer) {
  const auto ask = driver().pointer_attributes;
  if (ask == nullptr) return false;
  CUpointer_attribute attributes[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
  unsigned type = 0;  // as the driver leaves it for what is no memory of CUDA
  int ordinal = -1;
  void* values[] = {&type, &ordinal};
  return ask(2, attributes, values, reinterpret_cast<CUdeviceptr>(pointer)) == CUDA_SUCCESS &&
         type == CU_MEMORYTYPE_DEVICE && ordinal == device;
}

}  // namespace

void check_memory(const void* pointer, sparsek_memory memory, int device, const char* name) {
  if (memory == SPARSEK_DEVICE && is_memory_of(device, pointer)) return;
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
  // The address on the current device is null where that may not use the memory: neither enabled peer access nor the
  // access of a memory pool lets it.
  if (memory == SPARSEK_DEVICE && on_device && attributes.device != device && attributes.devicePointer == nullptr) {
    fail(SPARSEK_WRONG_MEMORY,
         "%s lies on CUDA device %d, which device %d may not use: enable peer access (cudaDeviceEnablePeerAccess), or "
         "copy it",
         name, attributes.device, device);
  }
}

CudaMatrix::CudaMatrix(const sparsek_bsr& a, int device, PlanMemory& memory)
    : device_(device),
      memory_(memory),
      is_async_(a.memory == SPARSEK_DEVICE && (a.flags & SPARSEK_BSR_ASYNC) != 0),
      is_bounded_((a.flags & SPARSEK_BSR_BOUND) != 0),
      is_frozen_((a.flags & SPARSEK_BSR_FROZEN) != 0),
      stream_(static_cast<cudaStream_t>(a.stream)),
      index_(make_index(a)) {
  dtype = static_cast<sparsek_dtype>(a.dtype);
  if (is_async_) made_.record(memory_.events(), stream_);
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

CudaMatrix::CudaMatrix(const BsrShape& shape, sparsek_dtype type, int device, PlanMemory& memory)
    : device_(device),
      memory_(memory),
      is_async_(true),
      is_bounded_(true),
      is_frozen_(false),
      stream_(nullptr),
      index_(DeviceIndex(shape)) {
  dtype = type;
}

AnyIndex CudaMatrix::make_index(const sparsek_bsr& a) {
  const auto where = static_cast<sparsek_memory>(a.memory);
  check_memory(a.row_ptr, where, device_, "row_ptr");
  if (a.nnzb > 0) check_memory(a.col_idx, where, device_, "col_idx");
  if (a.block_idx != nullptr) check_memory(a.block_idx, where, device_, "block_idx");
  if (where == SPARSEK_HOST) return make_bsr_index(a);
  if (is_async_) {
    if (memory_.releases().use(uses_, stream_)) {
      fail(SPARSEK_BAD_ARGUMENT,
           "bsr->stream is being captured into a graph, which may run when the matrix is gone: make the matrix before "
           "the capture and use plan_update, or use plan_write");
    }
    return DeviceIndex(a, memory_, uses_, stream_);
  }
  if (stream_ != nullptr) require_not_captured(stream_, "matrix_create without SPARSEK_BSR_ASYNC");
  const cudaStream_t order = stream_ != nullptr ? stream_ : memory_.releases().behind_default();
  DeviceIndex index(a, memory_, uses_, order);
  check(cudaStreamSynchronize(order), "copy of the index");
  index.give_back_in(memory_.stream());
  index.longest_row = index.require_good(memory_);
  return index;
}

bool CudaMatrix::update(const sparsek_bsr& a) {
  const BsrShape now = make_bsr_shape(a);
  const BsrShape& made = shape();
  if (!is_async_ || a.memory != SPARSEK_DEVICE) {
    fail(SPARSEK_BAD_ARGUMENT,
         "only a matrix that was made with SPARSEK_BSR_ASYNC gets another index, of device arrays");
  }
  if (now.rows != made.rows || now.cols != made.cols || now.block_m != made.block_m || now.block_k != made.block_k ||
      a.dtype != dtype || now.nnzb > made.nnzb) {
    fail(SPARSEK_BAD_SIZE, "the matrix was made for %lld x %lld in blocks of %d x %d, at most %lld, of dtype %d",
         static_cast<long long>(made.rows), static_cast<long long>(made.cols), made.block_m, made.block_k,
         static_cast<long long>(made.nnzb), static_cast<int>(dtype));
  }
  check_memory(a.row_ptr, SPARSEK_DEVICE, device_, "row_ptr");
  if (a.nnzb > 0) check_memory(a.col_idx, SPARSEK_DEVICE, device_, "col_idx");
  if (a.block_idx != nullptr) check_memory(a.block_idx, SPARSEK_DEVICE, device_, "block_idx");
  if (a.values != nullptr) check_memory(a.values, SPARSEK_DEVICE, device_, "values");
  const auto stream = static_cast<cudaStream_t>(a.stream);
  const bool captured = memory_.releases().use(uses_, stream);
  made_.order(stream, captured);
  std::get<DeviceIndex>(index_).copy(a, stream);
  is_good_ = false;
  if (captured) {
    is_replayed_ = true;
  } else {
    made_.record(memory_.events(), stream);
  }
  if (a.values != nullptr) values_ = a.values;
  return captured;
}

bool CudaMatrix::check_index(bool wait) {
  if (!is_async_ || (is_good_ && !is_replayed_)) return true;
  DeviceScope scope(device_);
  if (wait) made_.wait();
  if (!made_.is_done()) return false;
  std::get<DeviceIndex>(index_).require_good(memory_);
  is_good_ = true;
  return true;
}

void CudaMatrix::end_in(sparsek_stream stream) {
  const auto order = static_cast<cudaStream_t>(stream);
  if (!is_captured(order)) uses_.end_in(order);
}

const BsrShape& CudaMatrix::shape() const {
  return std::visit([](const auto& index) -> const BsrShape& { return index; }, index_);
}

const PatternStats& CudaMatrix::stats() const {
  return stats_.get(
      [this] { return orders_ != nullptr ? pattern_stats(*orders_) : expected_stats(shape(), longest_row(index_)); });
}

std::shared_ptr<CudaMatrix> CudaMatrix::transposed() const {
  const auto* const host = std::get_if<BsrIndex>(&index_);
  if (host == nullptr) return nullptr;
  const std::lock_guard lock(transposing_);
  if (transposed_ == nullptr) {
    const BsrIndex index = transpose_index(*host);
    sparsek_bsr bsr = {};
    bsr.abi_size = sizeof(bsr);
    bsr.rows = index.rows;
    bsr.cols = index.cols;
    bsr.block_m = index.block_m;
    bsr.block_k = index.block_k;
    bsr.nnzb = index.nnzb;
    bsr.dtype = dtype;
    bsr.index_type = SPARSEK_INT32;
    bsr.memory = SPARSEK_HOST;
    bsr.row_ptr = index.row_ptr.data();
    bsr.col_idx = index.col_idx.data();
    bsr.block_idx = index.block_idx.data();
    transposed_ = std::make_shared<CudaMatrix>(bsr, device_, memory_);
  }
  return transposed_;
}

size_t CudaMatrix::value_bytes() const {
  return static_cast<size_t>(shape().nnzb) * shape().block_m * shape().block_k * dtype_bytes(dtype);
}

void CudaMatrix::set_values(const void* values, sparsek_memory memory, sparsek_stream stream) {
  if (shape().nnzb == 0) return;
  DeviceScope scope(device_);
  check_memory(values, memory, device_, "values");
  if (memory == SPARSEK_DEVICE && !is_frozen_) {
    values_ = values;
    return;
  }
  const auto order = static_cast<cudaStream_t>(stream);
  const bool captured = memory_.releases().use(uses_, order);
  const std::lock_guard lock(owning_);
  if (memory == SPARSEK_HOST) {
    copy_values(values, order);
    values = owned_values_.data();
  }
  for (const auto& place : expanded_) {
    if (const auto used = place.lock()) used->fill(values, order);
  }
  {
    const std::lock_guard listing(listing_);
    for (const auto& layout : layouts_) layout->fill(values, order);
  }
  // Nothing outside of a graph can wait for a part of it.
  if (captured) {
    is_set_by_graph_ = true;
  } else {
    if (copied_ == nullptr) copied_ = std::make_unique<Event>();
    copied_->record(order);
  }
  values_ = values;
}

void CudaMatrix::wait_for_copy() {
  const std::lock_guard lock(owning_);
  wait_for_copied();
}

void CudaMatrix::wait_for_copied() const {
  if (copied_ != nullptr) copied_->wait();
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

KeptLayout* CudaMatrix::join_layout(LayoutKind kind, size_t bytes, LayoutWriter& plan) {
  const std::lock_guard lock(owning_);
  if (!lets_plans_keep_values()) return nullptr;
  wait_for_copied();
  const std::lock_guard listing(listing_);
  size_t all = bytes;
  for (const auto& layout : layouts_) {
    all += layout->bytes();
    if (!layout->is_shared_as(kind, bytes)) continue;
    layout->add(plan);
    return layout.get();
  }
  if (all > kMostKeptOfMatrix) return nullptr;
  try {
    auto layout = std::make_unique<KeptLayout>(memory_, kind, bytes);
    layout->add(plan);
    layout->fill(values_, memory_.stream());
    check(cudaStreamSynchronize(memory_.stream()), "cudaStreamSynchronize");
    layouts_.push_back(std::move(layout));
    return layouts_.back().get();
  } catch (const Error& error) {
    if (error.status() != SPARSEK_OUT_OF_MEMORY) throw;
    return nullptr;
  }
}

void CudaMatrix::leave_layout(KeptLayout& layout, const LayoutWriter& plan, const StreamUses& uses) noexcept {
  std::unique_ptr<KeptLayout> last;  // given back without the lock
  const std::lock_guard listing(listing_);
  if (layout.remove(plan, uses)) return;
  const auto is_it = [&](const auto& kept) { return kept.get() == &layout; };
  const auto place = std::find_if(layouts_.begin(), layouts_.end(), is_it);
  last = std::move(*place);
  layouts_.erase(place);
}

std::shared_ptr<const ExpandedValues> CudaMatrix::expanded(Expansion expansion) {
  const std::lock_guard lock(owning_);
  auto& place = expanded_[static_cast<int>(expansion)];
  if (auto used = place.lock()) return used;
  const auto made = std::make_shared<const ExpandedValues>(index_, dtype, expansion, memory_, uses_);
  if (values_ != nullptr && is_settled(values_)) {
    wait_for_copied();
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
  wait_for_copied();
  constexpr int kWarmup = 1, kRepeats = 5;
  double seconds[kRepeats];
  const Stream stream;
  time_runs(stream, kWarmup, kRepeats, [&] { expanded.fill(values_, stream); }, seconds);
  std::sort(seconds, seconds + kRepeats);
  return seconds[kRepeats / 2];
}

}  // namespace sparsek::cuda
