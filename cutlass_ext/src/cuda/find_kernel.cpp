// SPDX-License-Identifier: Apache-2.0
#include "cuda/find_kernel.h"

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstring>

#include "abi/dtype.h"
#include "abi/error.h"
#include "cuda/pack_a.h"
#include "cuda/pack_fp64.h"
#include "cuda/pack_planes.h"
#include "cuda/planes.h"
#include "cuda/stage_lists.h"

namespace sparsek::cuda {
namespace {

// Bulk tensor copies take pitches below 2^40 bytes.
constexpr int64_t kMaxTmaPitch = (int64_t{1} << 38) - 1, kMaxTmaPitchFp64 = (int64_t{1} << 37) - 1;
// They count columns of fp64 as four each, and of fp32 as two.
constexpr int64_t kMostWords = int64_t{1} << 30;
constexpr int64_t kMaxTmaExtent = (int64_t{1} << 30) - 1;
// Kernels compute offsets within a block in 32 bits.
constexpr int64_t kMaxBlock = (int64_t{1} << 31) - 1;

// Bytes of the copies of A and B that a kernel works on.
constexpr int64_t kMostCopies = int64_t{4} << 30;
// They also count entries in 32 bits, and some beyond the last one.
constexpr int64_t kMostEntries = (int64_t{1} << 31) - 1024;
// Kernels with chunks count the bytes of a row of B in 32 bits, and have CTAs for all columns of a chunk.
constexpr int64_t kMostColumns = int64_t{1} << 16;
// Kernels with a block row for each CTA count its columns, and some beyond the last one, in 32 bits.
constexpr int64_t kMostDepth = (int64_t{1} << 31) - 1024;
int64_t most_pitch(sparsek_dtype dtype) { return int64_t{1} << (dtype == SPARSEK_FP64 ? 28 : 29); }
std::string beyond_pitch(sparsek_dtype dtype) { return dtype == SPARSEK_FP64 ? "2^28" : "2^29"; }

bool beyond_tma(int64_t pitch, sparsek_dtype dtype) {
  return pitch > (dtype == SPARSEK_FP64 ? kMaxTmaPitchFp64 : kMaxTmaPitch);
}
const char* tma_pitch(sparsek_dtype dtype) { return dtype == SPARSEK_FP64 ? "2^37" : "2^38"; }

// Whether a kernel splits fp32 into planes, of A and of B; else it packs A alone.
bool has_planes(const KernelDesc& kernel) { return kernel.dtype == SPARSEK_FP32; }

// Also where sizes are beyond what integers hold. Of planes, lower blocks are gathered: each may lie in a row group by
// itself, or in two if groups cut block rows.
bool copies_fit(const KernelDesc& kernel, const BsrShape& matrix, int64_t n) {
  if (!has_planes(kernel)) {
    const double groups = std::ceil(static_cast<double>(matrix.rows) / kPackRows);
    const double stages = std::ceil(static_cast<double>(matrix.block_cols) / entries_of_stage(matrix.block_k));
    return groups * stages * kPackStageBytes <= static_cast<double>(kMostCopies);
  }
  const double gathered = kernel.tile_m % matrix.block_m == 0 ? kernel.tile_m : 2 * kernel.tile_m;
  const double rows = matrix.block_m % (kernel.tile_m / 2) == 0 ? matrix.block_m : gathered;
  const double elements = static_cast<double>(matrix.nnzb) * rows * matrix.block_k +
                          static_cast<double>(matrix.cols + matrix.block_k) * static_cast<double>(n + kPieceColumns);
  return elements * kPlanes * sizeof(uint16_t) <= static_cast<double>(kMostCopies);
}

// At least.
double bytes_of_planes_b(int64_t cols, int64_t n) {
  return static_cast<double>(cols + kPlaneStripColumns) * static_cast<double>(n + kPieceColumns) * kPlanes *
         sizeof(uint16_t);
}

// Whether a kernel counts entries and the bytes of a row of B in 32 bits, and has CTAs for all columns of a chunk.
bool walks_chunks(const KernelDesc& kernel) { return kernel.ops->takes_chunks && !reads_rows(kernel); }

// Elements of 16 bytes.
int64_t vector(const KernelDesc& kernel) { return 16 / dtype_bytes(kernel.dtype); }

}  // namespace

std::string obstacle(const KernelDesc& kernel, const BsrShape& matrix, sparsek_dtype dtype,
                     const PlanOptions& options) {
  if (kernel.dtype != dtype || kernel.dtype_b != options.dtype_b) return "another type";
  if (cuts_to_tf32(kernel) && !options.tf32) return "it rounds to TF32, which options->compute does not allow";
  if (cuts_to_tf32(kernel) && options.order_b == SPARSEK_COLUMN_MAJOR && packs_b(kernel, options)) {
    return "the columns of its B must be aligned to 16 bytes";
  }
  const bool height_fits =
      kernel.block_m_multiple ? matrix.block_m % kernel.block_m == 0 : matrix.block_m == kernel.block_m;
  if (!height_fits) return "another block height";
  if (matrix.block_k % kernel.block_k_multiple != 0) return "another block width";
  if (std::max(matrix.block_m, matrix.block_k) > kernel.ops->most_block) return "larger blocks than it serves";
  const bool plain_epilogue = options.dtype_c == options.dtype_b && options.bias == SPARSEK_BIAS_NONE &&
                              options.activation == SPARSEK_ACTIVATION_NONE;
  if (!kernel.ops->any_epilogue && !plain_epilogue) {
    return "it writes C in the type of A, with neither a bias nor an activation";
  }
  if (walks_chunks(kernel) && options.n > kMostColumns) return "more columns than it serves";
  if (kernel.ops->takes_chunks && matrix.nnzb > kMostEntries) return "more blocks than it serves";
  if (has_block_row(kernel) && matrix.cols > kMostDepth) return "a wider matrix than it serves";
  if (walks_chunks(kernel) && options.ldb > most_pitch(options.dtype_b)) {
    return "its ldb must be at most " + beyond_pitch(options.dtype_b);
  }
  if (kernel.ops->tma_b && (beyond_tma(options.ldb, dtype) || beyond_tma(options.ldc, dtype))) {
    return "its leading dimensions must be below " + std::string(tma_pitch(dtype));
  }
  const int64_t words = dtype_bytes(dtype) / 2;
  if (kernel.ops->tma_b && words > 1 && std::max<int64_t>(options.n, matrix.block_k) > kMostWords / words) {
    return "more columns than it serves";
  }
  if (kernel.ops->tma_b && (matrix.block_k > kMaxBlock / matrix.block_m || matrix.block_k > kMaxTmaExtent)) {
    return "its blocks must be below 2^31 elements, and below 2^30 wide";
  }
  if (scatters(kernel)) {
    const ListSizes sizes = list_sizes(matrix.rows, matrix.cols, matrix.nnzb, matrix.block_m, matrix.block_k);
    const int64_t panels = (options.n + kernel.tile_n - 1) / kernel.tile_n;
    if (sizes.stages > kMostStages || sizes.bound_bytes() > kMostBoundBytes ||
        sizes.bytes() + sizes.value_bytes() > kMostListBytes || sizes.groups * panels > kMostTiles) {
      return "a larger matrix than it serves";
    }
    if (sizes.are_sparse()) return "a sparser matrix than it serves: its lists would take over 16 times A's values";
  } else if (packs_fp64(kernel)) {
    const StripSizes sizes = strip_sizes(matrix.rows, matrix.cols, matrix.block_m);
    const int64_t panels = (options.n + kernel.tile_n - 1) / kernel.tile_n;
    if (sizes.strips >= int64_t{1} << kStripBits || sizes.groups * panels > kMostTiles) {
      return "a larger matrix than it serves";
    }
    if (sizes.groups * sizes.strips > kMostStripBytes / kStripBytes) return "A would take more than 1 GiB";
  } else if (packs_planes(kernel)) {
    const PlaneStripSizes sizes(matrix.rows, matrix.cols, matrix.block_m);
    const int64_t panels = (options.n + kernel.tile_n - 1) / kernel.tile_n;
    if (sizes.groups * panels > kMostTiles) return "a larger matrix than it serves";
    if (sizes.groups * sizes.strips > kMostPlaneStripBytes / kPlaneStripBytes) return "A would take more than 1 GiB";
    if (bytes_of_planes_b(matrix.cols, options.n) > static_cast<double>(kMostCopies)) {
      return "its copy of B would take more than 4 GiB";
    }
  } else if (kernel.ops->workspace_bytes != nullptr) {
    if (has_planes(kernel) && matrix.block_m >= kernel.tile_m && matrix.block_m % (kernel.tile_m / 2) != 0) {
      return "its blocks of " + std::to_string(kernel.tile_m) + " rows and more must be multiples of " +
             std::to_string(kernel.tile_m / 2) + " high";
    }
    if (!copies_fit(kernel, matrix, options.n)) return "its copies of A and B would take more than 4 GiB";
  }
  return "";
}

std::string left_to_another(const KernelDesc& kernel, const BsrShape& matrix) {
  const bool eights = matrix.block_m % 8 == 0 && matrix.block_k % 8 == 0;
  // NaN and Inf in B cost wgmma_packed up to 14 times the time, and wgmma_gather at most four
  // (docs/notes/packed-kernel.md).
  if (eights && std::strcmp(kernel.family, "wgmma_packed") == 0) {
    return "wgmma_gather serves these blocks, and is faster where B has NaN or Inf";
  }
  // It leaves out columns in which a tile has no block; of higher blocks there are enough of these (docs/notes/
  // scatter-kernel.md).
  if (eights && matrix.block_m > 8 && scatters(kernel)) return "wgmma_gather serves these blocks, and is faster";
  // Which multiplies no zeros where blocks are none.
  if (eights && packs_fp64(kernel)) return "dmma serves these blocks, and is faster";
  // Which multiplies no zeros where entries of a row group have no blocks, and takes less for NaN.
  if (packs_planes(kernel) && matrix.block_m % 8 == 0 && matrix.block_k % 16 == 0) {
    return "wgmma_planes serves these blocks, and is faster";
  }
  return "";
}

bool packs_b(const KernelDesc& kernel, const PlanOptions& options) {
  constexpr int64_t kManyPieces = 32;  // columns
  const bool unaligned = options.alignment % 16 != 0 || options.ldb % vector(kernel) != 0;
  if (!has_block_row(kernel)) return kernel.ops->tma_b && unaligned;
  // It reads smaller pieces of a row too, which takes less time than a copy if there are few.
  return options.n >= kManyPieces && (unaligned || options.n % vector(kernel) != 0);
}

void require_strides(const KernelDesc& kernel, bool packs, int64_t ldb, int64_t ldc) {
  if (walks_chunks(kernel) && ldb > most_pitch(kernel.dtype_b)) {
    fail(SPARSEK_BAD_LEADING_DIMENSION, "args->ldb = %" PRId64 " must be at most %s for kernel %s", ldb,
         beyond_pitch(kernel.dtype_b).c_str(), kernel.name);
  }
  if (!kernel.ops->tma_b) return;
  if (!packs && ldb % vector(kernel) != 0) {
    fail(SPARSEK_BAD_LEADING_DIMENSION,
         "args->ldb = %" PRId64 " is not a multiple of %" PRId64
         " elements, 16 bytes, as it was planned: plan for a stride like that, or for a smaller alignment",
         ldb, vector(kernel));
  }
  if (beyond_tma(ldb, kernel.dtype) || beyond_tma(ldc, kernel.dtype)) {
    fail(SPARSEK_BAD_LEADING_DIMENSION,
         "args->ldb = %" PRId64 " and args->ldc = %" PRId64 " must be below %s for kernel %s", ldb, ldc,
         tma_pitch(kernel.dtype), kernel.name);
  }
}

const KernelDesc* find_kernel(const std::string& name) {
  for (int i = 0; i < kKernelCount; ++i) {
    if (name == kKernels[i].name) return &kKernels[i];
  }
  return nullptr;
}

const KernelDesc& kernel_named(const BsrShape& matrix, sparsek_dtype dtype, const PlanOptions& options) {
  const KernelDesc* const kernel = find_kernel(options.kernel);
  if (kernel == nullptr) fail(SPARSEK_NO_SUCH_KERNEL, "there is no CUDA kernel %s", options.kernel.c_str());
  const std::string why_not = obstacle(*kernel, matrix, dtype, options);
  if (why_not.empty()) return *kernel;
  fail(SPARSEK_NO_SUCH_KERNEL, "kernel %s does not serve blocks of %dx%d here: %s", kernel->name, matrix.block_m,
       matrix.block_k, why_not.c_str());
}

}  // namespace sparsek::cuda
