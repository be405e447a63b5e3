// SPDX-License-Identifier: Apache-2.0
#include "cuda/copy_input.h"

#include <cuda_runtime_api.h>

#include <algorithm>

#include "abi/dtype.h"
#include "abi/error.h"
#include "cuda/cuda_error.h"

namespace sparsek::cuda {

MultiplyArgs with_input_in_c(MultiplyArgs args, int64_t rows, sparsek_dtype dtype_c) {
  if (args.c_in != args.c && args.beta != 0 && rows > 0) {
    if (args.ldc_in == 0 && rows > 1) {
      fail(SPARSEK_BAD_ARGUMENT, "args->ldc_in = -1: this kernel takes no c_in of one row for all rows of C");
    }
    const auto bytes = [&](int64_t elements) { return static_cast<size_t>(elements * dtype_bytes(dtype_c)); };
    check(
        cudaMemcpy2DAsync(args.c, bytes(args.ldc), args.c_in, bytes(std::max(args.ldc_in, args.n)), bytes(args.n),
                          static_cast<size_t>(rows), cudaMemcpyDeviceToDevice, static_cast<cudaStream_t>(args.stream)),
        "cudaMemcpy2DAsync");
  }
  args.c_in = args.c;
  args.ldc_in = args.ldc;
  return args;
}

}  // namespace sparsek::cuda
