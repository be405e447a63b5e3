// SPDX-License-Identifier: Apache-2.0
// Products of the maps of an H100 and an H200 (docs/map.md) whose faster kernel the cost model must prefer: each was
// once predicted the other way round, or at a third of its time. Prints the first that is wrong.
#include <cstdio>
#include <cstring>

#include "cost_model_kernels.h"
#include "cuda/cost_model.h"

namespace {

using namespace sparsek;
using namespace sparsek::cuda;

constexpr DeviceRates kH100 = {132, 1.98e9, 3.35232e12, 52428800}, kH200 = {132, 1.98e9, 4.814304e12, 62914560};

struct Measured {
  const char* name;
  double us;
};

struct Product {
  int64_t m, n;
  int32_t block;
  int64_t bytes, blocks, longest;
  GroupLoads rows64, rows128;
  int64_t ordered;
  Measured faster, slower;
  const DeviceRates& device = kH100;
};

constexpr Product kProducts[] = {
    // Blocks of 8: half of each stage of dmma is empty.
    {8192, 64, 8, 8, 10240, 10, {9884, 80}, {9499, 156}, 9499, {"few_columns_fp64", 20.6}, {"dmma_fp64_64_32", 41.6}},
    {4096, 8, 8, 8, 32224, 65, {4448, 72}, {2464, 80}, 2464, {"few_columns_fp64", 36.1}, {"dmma_fp64_64_32", 50.3}},
    // A CTA that has an SM to itself.
    {4096, 256, 16, 8, 8192, 32, {6757, 115}, {5382, 179}, 5382, {"dmma_fp64_64_128", 64.4}, {"dmma_fp64_64_32", 94.5}},
    // Libraries in fp64, and rows that cuSPARSE does not share out.
    {4096, 8, 64, 8, 820, 64, {820, 64}, {736, 64}, 736, {"cublas_dense", 55.6}, {"dmma_fp64_64_32", 109.8}},
    {4096, 8, 64, 8, 820, 64, {820, 64}, {736, 64}, 736, {"dmma_fp64_64_32", 109.8}, {"cusparse_csr", 360.8}},
    {16000,
     128,
     16,
     4,
     14767,
     1000,
     {14357, 1000},
     {14048, 1000},
     10969,
     {"few_columns_fp32", 133.4},
     {"cusparse_csr", 1198.3},
     kH200},
    // Few blocks in all, no row of which is cut.
    {8192,
     256,
     16,
     4,
     2560,
     5,
     {2515, 20},
     {2461, 40},
     1878,
     {"few_columns_fp32", 42.9},
     {"planes16_fp32_128_128", 76.5}},
    // Whole rows in fewer chunks than there are: most warps of a CTA have none.
    {8208, 256, 24, 4, 1026, 3, {1265, 12}, {1127, 18}, 1127, {"simt_fp32", 62.6}, {"few_columns_fp32", 98.9}},
    {8196, 1024, 12, 8, 4781, 7, {5228, 42}, {4818, 83}, 4818, {"simt_fp64", 469.5}, {"few_columns_fp64", 673.6}},
    {4096, 1024, 32, 4, 2048, 16, {1923, 32}, {1691, 57}, 1414, {"simt_fp32", 625.3}, {"few_columns_fp32", 1061.7}},
    {8192, 1, 32, 2, 768, 3, {761, 6}, {752, 12}, 570, {"few_columns_bf16", 7.8}, {"skinny_bf16_64_16", 11.5}},
};

double microseconds(const char* name, Work work) {
  if (std::strcmp(name, "cublas_dense") == 0) return 1e6 * predict(LibraryFormat::kDense, work);
  if (std::strcmp(name, "cusparse_csr") == 0) return 1e6 * predict(LibraryFormat::kCsr, work);
  for (const KernelDesc& kernel : kModelledSmall) {
    if (std::strcmp(name, kernel.name) == 0) return 1e6 * predict(kernel, work);
  }
  work.packs_b = work.n * work.element_bytes % 16 != 0;  // for bulk copies
  for (const KernelDesc& kernel : kModelled) {
    if (std::strcmp(name, kernel.name) == 0) return 1e6 * predict(kernel, work);
  }
  return -1;
}

bool is_near(double predicted, const Measured& measured) {
  return predicted > 0.5 * measured.us && predicted < 1.5 * measured.us;
}

}  // namespace

int main() {
  for (const Product& p : kProducts) {
    BsrShape shape;
    shape.rows = shape.cols = p.m;
    shape.block_m = shape.block_k = p.block;
    shape.block_rows = shape.block_cols = static_cast<int32_t>(p.m / p.block);
    shape.nnzb = p.blocks;
    PatternStats stats;
    stats.longest_row = p.longest;
    stats.rows64 = p.rows64;
    stats.rows128 = p.rows128;
    stats.ordered_loads = p.ordered;
    const Work work = {shape, stats, p.n, p.bytes, p.bytes, p.bytes, p.device, false};
    const double faster = microseconds(p.faster.name, work), slower = microseconds(p.slower.name, work);
    if (faster < slower && is_near(faster, p.faster) && is_near(slower, p.slower)) continue;
    std::printf("%d x %d blocks by %d columns: %s is predicted to take %.1f us (measured: %.1f), %s %.1f (%.1f)\n",
                p.block, p.block, static_cast<int>(p.n), p.faster.name, faster, p.faster.us, p.slower.name, slower,
                p.slower.us);
    return 1;
  }
}
