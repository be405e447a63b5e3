// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <variant>

#include "abi/backend.h"
#include "cuda/device_array.h"
#include "cuda/device_index.h"
#include "plan/row_order.h"

namespace sparsek::cuda {

class CudaMatrix final : public MatrixState {
 public:
  // The current device must be `device`.
  CudaMatrix(const sparsek_bsr& a, int device);

  const BsrShape& shape() const override;
  const PatternStats& stats() const override;
  void set_values(const void* values, sparsek_memory memory, sparsek_stream stream) override;

  // Where the caller's was, there it stays.
  const std::variant<BsrIndex, DeviceIndex>& index() const { return index_; }
  RowOrders* orders() const { return orders_.get(); }  // of an index on the host, else null
  int device() const { return device_; }
  const void* values() const { return values_; }  // in device memory; null until they are set
  size_t value_bytes() const;

 private:
  int device_;
  std::variant<BsrIndex, DeviceIndex> index_;
  std::atomic<const void*> values_ = nullptr;
  std::unique_ptr<RowOrders> orders_;
  mutable std::once_flag stats_once_;
  mutable PatternStats stats_;
  std::mutex owning_;               // held while owned_values_ is made
  DeviceArray<char> owned_values_;  // where the values came from the host
};

// Throws SPARSEK_WRONG_MEMORY where a pointer is not of the memory it is said to be of, or of another device.
void check_memory(const void* pointer, sparsek_memory memory, int device, const char* name);

}  // namespace sparsek::cuda
