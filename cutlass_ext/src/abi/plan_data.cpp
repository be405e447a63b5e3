// SPDX-License-Identifier: Apache-2.0
// Plans as plain data: sparsek_plan_layout, and the memory that it describes.
#include "abi/plan_data.h"

#include <cstddef>
#include <cstring>

#include "abi/abi_size.h"
#include "abi/entry.h"
#include "abi/guard.h"
#include "abi/plan_options.h"
#include "abi/require.h"
#include "abi/served.h"
#include "plan/digest.h"
#include "tune/build_id.h"

namespace sparsek {
namespace {

constexpr uint64_t kMark = 0x6e616c70'6b737273;  // "rsskplan"
constexpr size_t kKernelName = 64;

// What a layout's header holds.
struct PlanHeader {
  uint64_t mark;
  uint64_t build;                // of the library
  sparsek_plan_options options;  // as they were given, but for the kernel
  int64_t rows, cols, block_m, block_k, nnzb;
  int32_t dtype, backend, units, reserved;
  char kernel[kKernelName];
  uint64_t sum;  // of all before it
};
static_assert(sizeof(PlanHeader) <= sizeof(sparsek_plan_layout::header), "it fits");

template <class T>
uint64_t hash(const T* values, size_t count) {
  Digest digest;
  digest.add(values, count);
  return digest.value();
}

uint64_t build_hash() {
  const std::string& build = tune::library_build();
  return hash(build.data(), build.size());
}

uint64_t sum_of(const PlanHeader& header) {
  return hash(reinterpret_cast<const unsigned char*>(&header), offsetof(PlanHeader, sum));
}

// Of a pattern without an index.
std::shared_ptr<Matrix> make_pattern(const std::shared_ptr<Backend>& backend, const BsrShape& shape,
                                     sparsek_dtype dtype) {
  auto matrix = std::make_shared<Matrix>();
  matrix->backend = backend;
  matrix->state = backend->make_pattern(shape, dtype);
  return matrix;
}

PlanHeader read_header(const Backend& backend, const sparsek_plan_layout& layout) {
  PlanHeader header;
  std::memcpy(&header, layout.header, sizeof(header));
  if (header.mark != kMark || header.sum != sum_of(header)) {
    fail(SPARSEK_BAD_ARGUMENT, "the layout is not one that plan_measure wrote");
  }
  if (header.build != build_hash()) {
    fail(SPARSEK_BAD_ARGUMENT, "the layout is of another build of the library: measure again");
  }
  if (header.backend != backend.kind() || (header.backend == SPARSEK_CUDA && header.units != backend.units())) {
    fail(SPARSEK_BAD_ARGUMENT, "the layout is for a %s of %d %s, and this context has another: measure again",
         header.backend == SPARSEK_CUDA ? "GPU" : "CPU", header.units,
         header.backend == SPARSEK_CUDA ? "SMs" : "threads");
  }
  return header;
}

sparsek_bsr sizes_of(const PlanHeader& header) {
  sparsek_bsr bsr = {};
  bsr.abi_size = sizeof(bsr);
  bsr.rows = header.rows;
  bsr.cols = header.cols;
  bsr.block_m = header.block_m;
  bsr.block_k = header.block_k;
  bsr.nnzb = header.nnzb;
  bsr.dtype = header.dtype;
  bsr.index_type = SPARSEK_INT32;
  bsr.memory = SPARSEK_HOST;
  return bsr;
}

// The pattern and the options of a layout.
struct Described {
  std::shared_ptr<Matrix> matrix;
  PlanOptions options;
};

Described describe(const std::shared_ptr<Backend>& backend, const sparsek_plan_layout& layout) {
  const PlanHeader header = read_header(*backend, layout);
  Described described;
  described.matrix = make_pattern(backend, make_bsr_shape(sizes_of(header)), static_cast<sparsek_dtype>(header.dtype));
  described.options = resolve_plan_options(header.options, *described.matrix->state);
  described.options.kernel = header.kernel;
  return described;
}

void require_memory_of(const sparsek_plan_layout& layout, const void* memory) {
  require_not_null(memory, "memory");
  require_aligned(memory, layout.alignment, "memory");
}

void measure(sparsek_context& context, const sparsek_bsr& given, const sparsek_plan_options& options,
             sparsek_plan_layout& layout) {
  if (options.tuning_seconds != 0) {
    fail(SPARSEK_BAD_ARGUMENT, "options->tuning_seconds = %g: a pattern without an index cannot be measured",
         options.tuning_seconds);
  }
  const std::shared_ptr<Backend>& backend = context.backend;
  const std::shared_ptr<Matrix> matrix =
      make_pattern(backend, make_bsr_shape(given), static_cast<sparsek_dtype>(given.dtype));
  PlanOptions resolved = resolve_plan_options(options, *matrix->state);
  resolved.kernel = tune::choose(*backend, *matrix->state, resolved, tune::TuningMemory::process()).kernel;
  const PlanDataSize size = backend->plan_data_size(*matrix->state, resolved);
  layout.bytes = static_cast<int64_t>(size.plan);
  layout.workspace_bytes = static_cast<int64_t>(size.product);
  layout.alignment = backend->kind() == SPARSEK_CUDA ? 256 : 64;  // that of buffer_create

  PlanHeader header = {};
  header.mark = kMark;
  header.build = build_hash();
  header.options = options;
  header.options.kernel = nullptr;
  header.rows = given.rows;
  header.cols = given.cols;
  header.block_m = given.block_m;
  header.block_k = given.block_k;
  header.nnzb = given.nnzb;
  header.dtype = given.dtype;
  header.backend = backend->kind();
  header.units = backend->units();
  if (resolved.kernel.size() >= kKernelName) fail(SPARSEK_INTERNAL, "a kernel's name is too long");
  std::memcpy(header.kernel, resolved.kernel.data(), resolved.kernel.size());
  header.sum = sum_of(header);
  std::memcpy(layout.header, &header, sizeof(header));
}

void require_sizes(const sparsek_bsr& index, const BsrShape& shape, sparsek_dtype dtype) {
  if (index.rows == shape.rows && index.cols == shape.cols && index.block_m == shape.block_m &&
      index.block_k == shape.block_k && index.dtype == dtype && index.nnzb <= shape.nnzb) {
    return;
  }
  fail(SPARSEK_BAD_SIZE, "the plan was measured for %lld x %lld in blocks of %d x %d, at most %lld, of dtype %d",
       static_cast<long long>(shape.rows), static_cast<long long>(shape.cols), shape.block_m, shape.block_k,
       static_cast<long long>(shape.nnzb), static_cast<int>(dtype));
}

}  // namespace

sparsek_plan open_plan_data(sparsek_context& context, const sparsek_plan_layout& layout, const void* memory) {
  Described described = describe(context.backend, layout);
  require_memory_of(layout, memory);
  sparsek_plan plan;
  plan.options = described.options;
  plan.state = context.backend->open_plan_data(*described.matrix->state, described.options, memory);
  plan.matrix = std::move(described.matrix);
  return plan;
}

namespace entry {

sparsek_status plan_measure(sparsek_context* context, const sparsek_bsr* shape, const sparsek_plan_options* options,
                            sparsek_plan_layout* out) noexcept {
  return guard_enqueue([&] {
    require_not_null(context, "context");
    checked_abi_size(out, "out");
    sparsek_plan_layout layout = {};
    measure(*context, read_struct(shape, "shape"), read_struct(options, "options"), layout);
    write_struct(out, layout, "out");
  });
}

sparsek_status plan_write(sparsek_context* context, const sparsek_bsr* index, const sparsek_plan_layout* layout,
                          void* memory, int64_t* fault) noexcept {
  return guard_enqueue([&] {
    require_not_null(context, "context");
    sparsek_bsr known = read_struct(index, "index");
    require_served(known);
    require_bsr(known);
    const sparsek_plan_layout described_by = read_struct(layout, "layout");
    const Described described = describe(context->backend, described_by);
    require_memory_of(described_by, memory);
    require_aligned(fault, sizeof(*fault), "fault");
    MatrixState& state = *described.matrix->state;
    require_sizes(known, state.shape(), state.dtype);
    context->backend->write_plan_data(state, described.options, known, memory, fault);
  });
}

}  // namespace entry
}  // namespace sparsek
