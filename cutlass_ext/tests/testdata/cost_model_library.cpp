// SPDX-License-Identifier: Apache-2.0
// The cost model for scripts/fit_cost_model.py, as a library with a C interface: predictions of measured products by
// whatever coefficients.
#include <cstring>

#include "cost_model_kernels.h"
#include "cuda/cost_model.h"
#include "cuda/pack_a.h"
#include "cuda/pack_fp64.h"
#include "cuda/pack_planes.h"
#include "cuda/stage_tiles.h"
#include "cuda/value_layout.h"

using namespace sparsek;
using namespace sparsek::cuda;

// Of A as a kernel reads it, where the sizes alone say how much that is.
static int64_t layout_bytes(const KernelDesc& kernel, const BsrShape& shape) {
  if (scatters(kernel)) {
    return bytes_of_kept(list_sizes(shape.rows, shape.cols, shape.nnzb, shape.block_m, shape.block_k), kernel.tile_n);
  }
  if (packs_fp64(kernel)) return strip_sizes(shape.rows, shape.cols, shape.block_m).bytes();
  if (packs_planes(kernel)) return PlaneStripSizes(shape.rows, shape.cols, shape.block_m).bytes();
  if (std::strcmp(kernel.family, "wgmma_planes") == 0) {  // without the zeros of gathered blocks
    return shape.nnzb * shape.block_m * shape.block_k * int64_t{kPlanes * 2};
  }
  if (std::strcmp(kernel.family, "wgmma_packed") != 0) return 0;
  LaunchArgs args = {};
  args.rows = shape.rows;
  args.cols = shape.cols;
  args.block_k = shape.block_k;
  return pack_sizes(args).bytes();
}

extern "C" {

// All members are double, so that the script needs no layout.
struct Case {
  double m, n, k, block_m, block_k, blocks, longest_row;
  double loads_64, longest_64, loads_128, longest_128, ordered_loads;  // as in PatternStats
  double sm_count, sm_clock, memory_rate, l2_bytes;                    // as in DeviceRates
  double element_bytes;                                                // of A, B and C
  double is_laid_out;                                                  // 1: of kernels whose plans keep a layout of A
};

int coefficient_count() { return sizeof(CostCoefficients) / sizeof(double); }
void coefficients_of_source(double* out) { std::memcpy(out, &kCostCoefficients, sizeof(kCostCoefficients)); }

// Where in CostCoefficients those of a kernel begin, and how many they are.
int coefficient_range(const char* kernel, int* count) {
  const CostCoefficients c = {};
  const auto range = [&](const auto& part) {
    *count = sizeof(part) / sizeof(double);
    return static_cast<int>(reinterpret_cast<const double*>(&part) - reinterpret_cast<const double*>(&c));
  };
  const auto is = [&](const char* name) { return std::strcmp(kernel, name) == 0; };
  const auto begins = [&](const char* name) { return std::strncmp(kernel, name, std::strlen(name)) == 0; };
  if (is("skinny_bf16_64_16")) return range(c.skinny_16);
  if (is("skinny_bf16_64_64")) return range(c.skinny_64);
  if (is("tma_bf16_64x2_256")) return range(c.collective_64);
  if (is("tma_bf16_128_256")) return range(c.collective_128);
  if (is("gather_bf16_128_256")) return range(c.gather);
  if (begins("planes")) return range(c.planes);
  if (begins("simt_")) return range(c.simt);
  if (begins("few_columns_")) {
    const int begin = range(c.stream);
    *count = 5 * sizeof(LaneCost) / sizeof(double);
    return begin;
  }
  if (is("stream")) return range(c.stream);
  if (is("bundles")) return range(c.bundles);
  if (is("singles")) return range(c.singles);
  if (is("fixed")) return range(c.fixed);
  if (is("tensor")) return range(c.tensor);
  if (begins("dmma_fp32")) return range(c.dmma_fp32);
  if (begins("dmma_")) return range(c.dmma);
  if (begins("packed_")) return range(c.packed);
  if (begins("window_")) return range(c.window);
  if (begins("skinny_fp32") || begins("skinny_fp64")) return range(c.skinny_fma);
  if (is("cublas_dense")) return range(c.dense);
  if (is("cusparse_bsr")) return range(c.bsr);
  if (is("cusparse_bell")) return range(c.bell);
  if (begins("cusparse_csr")) return range(c.csr);
  return -1;
}

// Microseconds of each case by a kernel.
void predict_cases(const char* kernel, const Case* cases, int count, const double* coefficients, double* out) {
  CostCoefficients costs;
  std::memcpy(&costs, coefficients, sizeof(costs));
  const auto is = [&](const char* name) { return std::strcmp(kernel, name) == 0; };
  for (int i = 0; i < count; ++i) {
    const Case& c = cases[i];
    BsrShape shape;
    shape.rows = static_cast<int64_t>(c.m);
    shape.cols = static_cast<int64_t>(c.k);
    shape.block_m = static_cast<int32_t>(c.block_m);
    shape.block_k = static_cast<int32_t>(c.block_k);
    shape.block_rows = static_cast<int32_t>((shape.rows + shape.block_m - 1) / shape.block_m);
    shape.block_cols = static_cast<int32_t>((shape.cols + shape.block_k - 1) / shape.block_k);
    shape.nnzb = static_cast<int64_t>(c.blocks);
    PatternStats stats;
    stats.longest_row = static_cast<int64_t>(c.longest_row);
    stats.rows64 = {static_cast<int64_t>(c.loads_64), static_cast<int64_t>(c.longest_64)};
    stats.rows128 = {static_cast<int64_t>(c.loads_128), static_cast<int64_t>(c.longest_128)};
    stats.ordered_loads = static_cast<int64_t>(c.ordered_loads);
    const auto n = static_cast<int64_t>(c.n);
    const auto bytes = static_cast<int64_t>(c.element_bytes);
    const auto begins = [&](const char* name) { return std::strncmp(kernel, name, std::strlen(name)) == 0; };
    const bool bulk = !begins("simt") && !begins("few_columns") && !begins("skinny_fp32") && !begins("skinny_fp64");
    const bool packs = n * bytes % 16 != 0 && bulk && (n >= 32 || !begins("row_mma"));  // as packs_b does
    const Work work = {
        shape, stats, n, bytes, bytes, bytes, {static_cast<int>(c.sm_count), c.sm_clock, c.memory_rate, c.l2_bytes},
        packs};
    const auto predict_by = [&](const KernelDesc& one, Work of) {
      of.is_laid_out = c.is_laid_out != 0 && layout_bytes(one, shape) <= static_cast<int64_t>(kMostKeptBytes);
      return predict(one, of, costs);
    };
    double seconds = 0;
    if (is("cublas_dense")) seconds = predict(LibraryFormat::kDense, work, costs);
    if (is("cusparse_bsr")) seconds = predict(LibraryFormat::kBsr, work, costs);
    if (is("cusparse_bell")) seconds = predict(LibraryFormat::kBlockedEll, work, costs);
    if (is("cusparse_csr")) seconds = predict(LibraryFormat::kCsr, work, costs);
    if (is("cusparse_csr_vector")) seconds = predict(LibraryFormat::kCsrByVector, work, costs);
    for (const KernelDesc& one : kModelled) {
      if (is(one.name)) seconds = predict_by(one, work);
    }
    for (const KernelDesc& one : kModelledSmall) {
      if (is(one.name)) seconds = predict_by(one, work);
    }
    for (const KernelDesc& one : kModelledRows) {
      if (is(one.name)) seconds = predict_by(one, work);
    }
    for (const KernelDesc& one : kModelledScatter) {
      if (is(one.name)) seconds = predict_by(one, work);
    }
    if (is(kModelledPlanes.name)) seconds = predict_by(kModelledPlanes, work);
    // A window's blocks are those of the case.
    if (std::strncmp(kernel, "window_", 7) == 0) seconds = predict(kModelledWindow, work, costs);
    out[i] = seconds * 1e6;
  }
}

}  // extern "C"
