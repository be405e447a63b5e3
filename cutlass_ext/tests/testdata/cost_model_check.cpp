// SPDX-License-Identifier: Apache-2.0
// What the cost model must predict whatever its coefficients are. Prints the first thing that is wrong.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "cost_model_kernels.h"
#include "cuda/cost_model.h"

namespace {

using namespace sparsek;
using namespace sparsek::cuda;

constexpr DeviceRates kH200 = {132, 1.98e9, 4.8e12, 63e6};

// The same kernel where it shares no tile, with `ops` for its own.
KernelDesc alone(KernelDesc kernel, KernelOps& ops) {
  ops = *kernel.ops;
  ops.most_cluster = 1;
  ops.may_split = false;
  kernel.ops = &ops;
  return kernel;
}

BsrShape shape_of(int64_t m, int64_t k, int32_t block, double density) {
  BsrShape shape;
  shape.rows = m;
  shape.cols = k;
  shape.block_m = shape.block_k = block;
  shape.block_rows = static_cast<int32_t>((m + block - 1) / block);
  shape.block_cols = static_cast<int32_t>((k + block - 1) / block);
  shape.nnzb = static_cast<int64_t>(density * shape.block_rows * shape.block_cols);
  return shape;
}

double predicted(const KernelDesc& kernel, const BsrShape& shape, int64_t n, const DeviceRates& device = kH200) {
  const PatternStats stats = expected_stats(shape, shape.block_rows > 0 ? shape.nnzb / shape.block_rows : 0);
  return predict(kernel, {shape, stats, n, 2, 2, 2, device, false});
}

void expect(bool holds, const char* what, const KernelDesc& kernel) {
  if (holds) return;
  std::printf("wrong of %s: %s\n", kernel.family, what);
  std::exit(1);
}

// Plans that must not share tiles, or have CTAs for no more than one each.
void expect_tiles_alone() {
  const auto time = [](const KernelDesc& kernel, const BsrShape& shape, bool shares, int32_t workers) {
    const PatternStats stats = expected_stats(shape, shape.nnzb / shape.block_rows);
    return predict(kernel, {shape, stats, 64, 4, 4, 4, kH200, false, shares, workers});
  };
  // Eight tiles, each of many steps.
  const BsrShape singles = shape_of(1024, 8192, 1, 0.1), blocks = shape_of(1024, 8192, 64, 0.5);
  for (const KernelDesc& kernel : {kModelledScatter[0], kModelledScatter[1], kModelledPlanes}) {
    const double own = time(kernel, singles, false, 0);
    expect(time(kernel, singles, true, 0) < 0.7 * own, "eight tiles are shared by all CTAs", kernel);
    expect(time(kernel, singles, true, 8) == own, "eight CTAs have a tile each", kernel);
    expect(time(kernel, singles, false, 8) == own, "whether they may share or not", kernel);
  }
  for (const KernelDesc& modelled : kModelled) {
    KernelOps ops;
    expect(time(modelled, blocks, false, 0) == time(alone(modelled, ops), blocks, true, 0),
           "it shares no tile where that is forbidden", modelled);
  }
}

// Of products by plans that keep A's values as the kernel reads them.
void expect_laid_out_faster() {
  // One column of tiles, which reads all that is packed before.
  const BsrShape singles = shape_of(4096, 4096, 1, 0.125), fours = shape_of(4096, 4096, 4, 0.125);
  const auto time = [](const KernelDesc& kernel, const BsrShape& shape, int64_t bytes, bool laid_out) {
    const PatternStats stats = expected_stats(shape, shape.nnzb / shape.block_rows);
    Work work = {shape, stats, 64, bytes, bytes, bytes, kH200, false};
    work.is_laid_out = laid_out;
    return predict(kernel, work);
  };
  const auto is_faster = [&](const KernelDesc& kernel, const BsrShape& shape, int64_t bytes) {
    expect(time(kernel, shape, bytes, true) < 0.9 * time(kernel, shape, bytes, false), "it packs nothing", kernel);
  };
  for (const KernelDesc& kernel : kModelledScatter) is_faster(kernel, singles, kernel.dtype == SPARSEK_FP64 ? 8 : 2);
  is_faster(kModelledPlanes, singles, 4);
  for (const KernelDesc& kernel : kModelled) {
    const bool packs = std::strcmp(kernel.family, "wgmma_packed") == 0;
    if (packs || std::strcmp(kernel.family, "wgmma_planes") == 0) is_faster(kernel, fours, packs ? 2 : 4);
    if (packs || std::strcmp(kernel.family, "wgmma_gather") != 0) continue;
    expect(time(kernel, fours, 2, true) == time(kernel, fours, 2, false), "it reads A as it is", kernel);
  }
}

}  // namespace

int main() {
  expect_tiles_alone();
  expect_laid_out_faster();
  for (const KernelDesc& modelled : kModelled) {
    KernelOps ops;
    const KernelDesc kernel = alone(modelled, ops);
    const BsrShape half = shape_of(4096, 4096, 64, 0.5), few = shape_of(4096, 4096, 64, 0.05);
    const double time = predicted(kernel, half, 4096);
    expect(time > 2e-6 && time < 1, "a product takes from microseconds to a second", kernel);
    expect(predicted(kernel, few, 4096) < time / 2, "fewer blocks take less", kernel);
    expect(predicted(kernel, half, 8192) > 1.5 * time, "twice the columns take more", kernel);
    for (const BsrShape& empty : {shape_of(4096, 4096, 64, 0), shape_of(0, 0, 64, 0)}) {
      const double nothing = predicted(kernel, empty, 256);
      expect(std::isfinite(nothing) && nothing > 0, "a product without blocks takes the time of its launch", kernel);
    }
    expect(std::isfinite(predicted(kernel, half, 0)), "so does one without columns", kernel);

    // The same blocks, one row with as many as all others together: a worker has them to itself.
    PatternStats even = expected_stats(half, half.nnzb / half.block_rows), uneven = even;
    uneven.longest_row = uneven.rows64.longest = uneven.rows128.longest = 64 * 64;
    expect(predict(kernel, {half, uneven, 64, 2, 2, 2, kH200, false}) >
               2 * predict(kernel, {half, even, 64, 2, 2, 2, kH200, false}),
           "one long row takes more", kernel);
  }
  // The copies that docs/notes/training-products.md measured on an H100: 97 us for 128 MiB, 15 us for an eighth of
  // that.
  {
    constexpr DeviceRates kH100 = {132, 1.98e9, 3.35e12, 52e6};
    const BsrShape shape = shape_of(8192, 8192, 64, 0.125);
    const PatternStats stats = expected_stats(shape, shape.nnzb / shape.block_rows);
    const Work work = {shape, stats, 8192, 2, 2, 2, kH100, false};
    const auto copying = [&](bool a, bool b, bool c) {
      FormCopies copies;
      copies.a = a, copies.b = b, copies.c = c;
      return 1e6 * predict_copies(copies, work);
    };
    const double a = copying(true, false, false), b = copying(false, true, false), all = copying(true, true, true);
    expect(a > 12 && a < 18 && b > 85 && b < 110 && all > 1.99 * b + a && copying(false, false, false) == 0,
           "copies take as long as they did", kModelled[0]);
  }
  // Few long rows: sharing them pays.
  const BsrShape few_rows = shape_of(256, 8192, 64, 0.9), many_rows = shape_of(65536, 4096, 64, 0.1);
  for (const KernelDesc& kernel : kModelled) {
    if (kernel.ops->most_cluster == 1 && !kernel.ops->may_split) continue;
    KernelOps ops;
    const KernelDesc lone = alone(kernel, ops);
    expect(predicted(kernel, few_rows, 16) < 0.8 * predicted(lone, few_rows, 16), "long rows in parts take less",
           kernel);
    expect(predicted(kernel, many_rows, 4096) == predicted(lone, many_rows, 4096), "tiles enough are not cut", kernel);
  }
  // Other devices. The clock and the SMs count where a product is bound by them, the memory where it reads A once.
  const BsrShape large = shape_of(8192, 8192, 64, 0.5);
  for (const KernelDesc& kernel : kModelled) {
    DeviceRates slow = kH200, small = kH200, far = kH200;
    slow.sm_clock /= 2;
    small.sm_count /= 2;
    far.memory_rate /= 4;
    const double time = predicted(kernel, large, 8192);
    expect(predicted(kernel, large, 8192, slow) > 1.8 * time, "half the clock takes twice the time", kernel);
    expect(predicted(kernel, large, 8192, small) > 1.8 * time, "so do half the SMs", kernel);
    const bool is_fma = std::strcmp(kernel.family, "skinny_fma") == 0;
    if (is_fma || kernel.tile_n == 16) {
      const int64_t n = is_fma ? 1 : 16;  // FMAs take longer than tensor cores
      expect(predicted(kernel, large, n, far) > 2 * predicted(kernel, large, n), "slow memory takes more", kernel);
    }
  }
  // Many short rows and one column: the ordinary cores are far slower. Of a stencil of 22^3 nodes 99 us and 26.
  const BsrShape thin = shape_of(221184, 221184, 16, 7. / 13824);
  expect(predicted(kModelled[5], thin, 1) > 3 * predicted(kModelled[4], thin, 1), "latency bounds it", kModelled[5]);
  // Single nonzeros: of 12.5 % of 4096 x 4096 few_columns takes 19, 113 and 1609 us by 8, 256 and 4096 columns, narrow
  // tiles 25, 44 and 406, wide ones 37 and 209 by the last two (docs/performance/h200-map.jsonl).
  const BsrShape singles = shape_of(4096, 4096, 1, 0.125);
  const KernelDesc &few = kModelledSmall[0], &narrow = kModelledScatter[0], &wide = kModelledScatter[1];
  expect(predicted(few, singles, 8) < predicted(narrow, singles, 8), "few columns are not worth dense tiles", narrow);
  expect(predicted(wide, singles, 4096) < 0.75 * predicted(narrow, singles, 4096), "many are for wide ones", wide);
  expect(predicted(wide, singles, 4096) < 0.5 * predicted(few, singles, 4096), "and for dense tiles", wide);
  // Small blocks and few columns.
  const BsrShape stencil = shape_of(331776, 331776, 3, 27. / 110592);
  for (const KernelDesc& kernel : kModelledSmall) {
    const double one = predicted(kernel, stencil, 1), many = predicted(kernel, stencil, 128);
    expect(one > 20e-6 && one < 200e-6, "it reads A in about the time of memory", kernel);
    expect(many > 3 * one && many < 200 * one, "more columns take more", kernel);
    expect(predicted(kernel, shape_of(331776, 331776, 3, 13. / 110592), 128) < 0.7 * many, "fewer blocks take less",
           kernel);
    for (const BsrShape& empty : {shape_of(4096, 4096, 3, 0), shape_of(0, 0, 3, 0)}) {
      expect(std::isfinite(predicted(kernel, empty, 8)), "a product without blocks takes the time of its launch",
             kernel);
    }
  }
  // By tensor cores, whose columns cost more than the first, which reads A.
  const BsrShape large_blocks = shape_of(4096, 4096, 32, 0.125);
  expect(predicted(kModelledSmall[0], large_blocks, 64) > 1.5 * predicted(kModelledSmall[0], large_blocks, 1),
         "64 columns take more than one", kModelledSmall[0]);
  // Of many blocks the waits overlap: 16 x 16 stencils of 24^3 nodes took 69 to 99 us by up to 32 columns, 281 by 128.
  const BsrShape nodes = shape_of(221184, 221184, 16, 24.8 / 13824);
  PatternStats of_nodes = expected_stats(nodes, 27);
  of_nodes.rows128.loads = of_nodes.ordered_loads = nodes.nnzb * 42 / 100;
  const auto of_stencil = [&](const KernelDesc& kernel, int64_t n) {
    return predict(kernel, {nodes, of_nodes, n, 2, 2, 2, kH200, false});
  };
  for (const int64_t n : {1, 8, 32}) {
    expect(of_stencil(kModelledSmall[0], n) < 0.8 * of_stencil(kModelled[4], n), "few columns are for few_columns",
           kModelledSmall[0]);
  }
  expect(of_stencil(kModelledSmall[0], 128) > of_stencil(kModelled[4], 128), "many are not", kModelled[4]);
  const PatternStats rows = expected_stats(stencil, 27);
  PatternStats long_row = rows;
  long_row.longest_row = 110592;
  const auto small = [&](const KernelDesc& kernel, const PatternStats& stats, int64_t n) {
    return predict(kernel, {stencil, stats, n, 4, 4, 4, kH200, false});
  };
  PatternStats shared = rows;
  shared.rows128.loads = stencil.nnzb * 36 / 100;
  expect(small(kModelledWindow, shared, 128) < 0.7 * small(kModelledSmall[2], shared, 128),
         "rows that share columns are for a window", kModelledWindow);
  expect(small(kModelledWindow, shared, 128) < 0.8 * small(kModelledWindow, rows, 128), "others take longer",
         kModelledWindow);
  expect(small(kModelledWindow, shared, 1) > small(kModelledSmall[2], shared, 1), "a vector is not", kModelledWindow);
  expect(small(kModelledWindow, long_row, 8) > 1.3 * small(kModelledWindow, rows, 8), "a long row takes longer",
         kModelledWindow);
  expect(std::isfinite(predicted(kModelledWindow, shape_of(4096, 4096, 3, 0), 8)), "nothing takes a launch",
         kModelledWindow);
  // Of what was measured where all rows are long: 3072 x 3072 of blocks of 3 x 3, 12.5 %, 512 columns, 142 us
  // and 120.
  const BsrShape even = shape_of(3072, 3072, 3, 0.125);
  const PatternStats of_even = expected_stats(even, 170);
  const auto long_rows = [&](const KernelDesc& kernel) {
    return predict(kernel, {even, of_even, 512, 4, 4, 4, kH200, false});
  };
  expect(long_rows(kModelledWindow) > long_rows(kModelledSmall[2]), "long rows are not", kModelledWindow);
  // Small blocks by tens of columns: 12 x 12, 1 % of 8196 x 8196 by 64 columns took 28 us by few_columns and 10 by
  // row_mma, and a power law of 4 x 4 65 us and 1224 (docs/notes/row-mma-kernel.md).
  const KernelDesc& row_mma = kModelledRows[0];
  const BsrShape few_blocks = shape_of(8196, 8196, 12, 0.01), law = shape_of(62500, 62500, 4, 0.0005);
  expect(predicted(row_mma, few_blocks, 64) < 0.6 * predicted(few, few_blocks, 64), "its warps share a row", row_mma);
  for (const KernelDesc& kernel : kModelledRows) {
    const double some = predicted(kernel, shape_of(4096, 4096, 12, 0.125), 32);
    expect(some > 5e-6 && some < 50e-6, "it takes some microseconds", kernel);
    expect(predicted(kernel, shape_of(4096, 4096, 12, 0.125), 512) > 3 * some, "more columns take more", kernel);
    for (const BsrShape& empty : {shape_of(4096, 4096, 12, 0), shape_of(0, 0, 12, 0)}) {
      expect(std::isfinite(predicted(kernel, empty, 32)), "a product without blocks takes the time of its launch",
             kernel);
    }
  }
  PatternStats of_law = expected_stats(law, law.nnzb / law.block_rows), of_long = of_law;
  of_long.longest_row = law.block_cols / 3;
  const auto by_law = [&](const PatternStats& stats, bool knows_rows) {
    return predict(row_mma, {law, stats, 64, 2, 2, 2, kH200, false, true, 0, knows_rows});
  };
  expect(by_law(of_long, true) > 5 * by_law(of_law, true), "a long row has a CTA to itself", row_mma);
  expect(by_law(of_law, false) > 5 * by_law(of_law, true), "and may be there if nobody knows", row_mma);
  const auto csr = [&](LibraryFormat format, const PatternStats& stats, int64_t n, int64_t bytes) {
    return predict(format, {stencil, stats, n, bytes, bytes, bytes, kH200, false});
  };
  const double vector = csr(LibraryFormat::kCsrByVector, rows, 1, 4);
  expect(vector > 40e-6 && vector < 200e-6, "CSR by a vector takes somewhat longer than memory", kModelledSmall[0]);
  expect(csr(LibraryFormat::kCsrByVector, long_row, 1, 4) < 1.1 * vector, "whatever its rows", kModelledSmall[0]);
  expect(csr(LibraryFormat::kCsr, long_row, 8, 2) > 10 * csr(LibraryFormat::kCsr, rows, 8, 2),
         "CSR in 16 bits is slow with a long row", kModelledSmall[0]);
  expect(csr(LibraryFormat::kBsr, rows, 128, 4) > 2 * csr(LibraryFormat::kBsr, rows, 8, 4),
         "BSR takes its time by blocks and columns", kModelledSmall[0]);
  const BsrShape shape = shape_of(4096, 4096, 64, 0.1);
  const PatternStats stats = expected_stats(shape, shape.block_rows > 0 ? shape.nnzb / shape.block_rows : 0);
  const Work work = {shape, stats, 4096, 2, 2, 2, kH200, false};
  expect(predict(LibraryFormat::kDense, work) > 140e-6, "the dense product is bound by the tensor cores", kModelled[0]);
  expect(predict(LibraryFormat::kBsr, work) > 10 * predict(kModelled[2], work), "cuSPARSE is slow", kModelled[0]);
  expect(predict(LibraryFormat::kBlockedEll, work) > predict(kModelled[2], work), "so is Blocked-ELL", kModelled[0]);
  const Work fp32 = {shape, stats, 4096, 4, 4, 4, kH200, false};
  expect(predict(LibraryFormat::kDense, fp32) > 10 * predict(LibraryFormat::kDense, work), "fp32 is slow",
         kModelled[0]);
}
