// SPDX-License-Identifier: Apache-2.0
// The kernels of this build and the devices of this machine.
#include "abi/abi_size.h"
#include "abi/backend.h"
#include "abi/entry.h"
#include "abi/guard.h"

namespace sparsek::entry {

int32_t kernel_count() noexcept { return cuda_kernel_count() + cpu_kernel_count(); }

sparsek_status kernel_info(int32_t index, sparsek_kernel_info* out) noexcept {
  return guard([&] {
    checked_abi_size(out, "out");
    if (index < 0 || index >= kernel_count()) {
      fail(SPARSEK_BAD_ARGUMENT, "kernel index %d is not in [0, %d)", index, kernel_count());
    }
    sparsek_kernel_info info{};
    info.library = "";
    if (index < cuda_kernel_count()) {
      cuda_kernel_info(index, info);
    } else {
      cpu_kernel_info(index - cuda_kernel_count(), info);
    }
    write_struct(out, info, "out");
  });
}

int32_t device_count() noexcept {
  try {
    return cuda_device_count(nullptr);
  } catch (...) {
    return 0;
  }
}

sparsek_status device_info(int32_t device, sparsek_device_info* out) noexcept {
  return guard([&] {
    checked_abi_size(out, "out");
    NoDevice none;
    const int count = cuda_device_count(&none);
    if (count == 0) fail(SPARSEK_NO_DEVICE, "device %d does not exist: %s", device, none.why.c_str());
    if (device < 0 || device >= count) fail(SPARSEK_NO_DEVICE, "device %d is not in [0, %d)", device, count);
    sparsek_device_info info{};
    cuda_device_info(device, info);
    write_struct(out, info, "out");
  });
}

}  // namespace sparsek::entry
