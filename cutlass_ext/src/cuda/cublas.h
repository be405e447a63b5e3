// SPDX-License-Identifier: Apache-2.0
// Dense products by cuBLAS, which is opened at run time: only to compare with.
#pragma once

#include <memory>

#include "cuda/device_array.h"
#include "sparsek.h"

namespace sparsek::cuda {

class CublasLibrary;

// A cuBLAS handle on one device. Not for several threads at once.
class Cublas {
 public:
  // The current device must be `device`. Throws SPARSEK_NO_LIBRARY where there is no cuBLAS.
  explicit Cublas(int device);
  ~Cublas();
  Cublas(const Cublas&) = delete;
  Cublas& operator=(const Cublas&) = delete;

  // As sparsek.h says of dense_time; the arguments were checked at the edge.
  void time(const sparsek_dense_time_args& args, double* seconds);

 private:
  void multiply(const sparsek_dense_time_args& args, int set);

  const int device_;
  const CublasLibrary& library_;
  void* handle_ = nullptr;
  DeviceArray<char> workspace_;
};

}  // namespace sparsek::cuda
