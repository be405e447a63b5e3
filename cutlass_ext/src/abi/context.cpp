// SPDX-License-Identifier: Apache-2.0
// Contexts: chooses the back-end and gives the reason.
#include "abi/abi_size.h"
#include "abi/entry.h"
#include "abi/guard.h"
#include "abi/handles.h"
#include "abi/require.h"

namespace sparsek::entry {
namespace {

constexpr int32_t kMaxThreads = 4096;

std::string device_text(int device) {
  sparsek_device_info info{};
  cuda_device_info(device, info);
  return "GPU " + std::to_string(device) + ", " + info.name + ", compute capability " +
         std::to_string(info.compute_major) + "." + std::to_string(info.compute_minor);
}

// The preferred device if it is usable, else the first usable one; -1, with the reason in `none`, where there is none.
int usable_device(int preferred, NoDevice& none) {
  const int count = cuda_device_count(&none);
  if (count == 0) return -1;
  int first = -1;
  for (int device = 0; device < count; ++device) {
    sparsek_device_info info{};
    try {
      cuda_device_info(device, info);
    } catch (const Error& error) {  // a broken device does not prevent the use of the others
      none = {"GPU " + std::to_string(device) + " does not answer: " + error.what(), true};
      continue;
    }
    if (info.usable == 0) continue;
    if (device == preferred) return device;
    if (first < 0) first = device;
  }
  if (first < 0 && none.why.empty())
    none.why = "no GPU of compute capability 9.0: " + device_text(preferred < count ? preferred : 0);
  return first;
}

void choose_backend(const sparsek_context_options& options, sparsek_context& context) {
  const DeviceAllocator allocator = {options.allocate, options.release, options.user};
  if (options.backend == SPARSEK_CPU) {
    context.backend = make_cpu_backend(options.threads);
    context.reason = "the CPU was asked for";
    return;
  }
  if (options.backend == SPARSEK_CUDA) {
    context.backend = make_cuda_backend(options.device, allocator);
    context.reason = "asked for: " + device_text(options.device);
    return;
  }
  NoDevice none;
  const int device = usable_device(options.device, none);
  if (device >= 0) {
    context.backend = make_cuda_backend(device, allocator);
    context.reason = device_text(device);
  } else {
    context.backend = make_cpu_backend(options.threads);
    context.reason = none.why;
    context.gpu_fault = none.fault;
  }
}

}  // namespace

sparsek_status context_create(const sparsek_context_options* options, sparsek_context** out) noexcept {
  return guard([&] {
    require_not_null(out, "out");
    *out = nullptr;
    const sparsek_context_options known = read_struct(options, "options");
    if (known.backend < SPARSEK_AUTO || known.backend > SPARSEK_CUDA) {
      fail(SPARSEK_BAD_ARGUMENT, "options->backend = %d is none of SPARSEK_AUTO (0), SPARSEK_CPU (1), SPARSEK_CUDA (2)",
           known.backend);
    }
    if (known.device < 0) fail(SPARSEK_BAD_ARGUMENT, "options->device = %d is negative", known.device);
    if (known.threads < 0 || known.threads > kMaxThreads) {
      fail(SPARSEK_BAD_ARGUMENT, "options->threads = %d is not in [0, %d]", known.threads, kMaxThreads);
    }
    if ((known.allocate == nullptr) != (known.release == nullptr)) {
      fail(SPARSEK_NULL_POINTER, "options->%s is null and options->%s is not: give both or none",
           known.allocate == nullptr ? "allocate" : "release", known.allocate == nullptr ? "release" : "allocate");
    }
    auto context = std::make_unique<sparsek_context>();
    choose_backend(known, *context);
    *out = context.release();
  });
}

sparsek_status context_info(const sparsek_context* context, sparsek_context_info* out) noexcept {
  return guard([&] {
    require_not_null(context, "context");
    sparsek_context_info info{};
    info.backend = context->backend->kind();
    info.device = context->backend->device();
    info.threads = context->backend->threads();
    info.reason = context->reason.c_str();
    info.gpu_fault = context->gpu_fault ? 1 : 0;
    info.isa = context->backend->isa();
    write_struct(out, info, "out");
  });
}

void context_destroy(sparsek_context* context) noexcept { destroy(context); }

}  // namespace sparsek::entry
