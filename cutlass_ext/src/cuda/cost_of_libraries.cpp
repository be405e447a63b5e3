// SPDX-License-Identifier: Apache-2.0
// The cost model of the products of other libraries.
#include <algorithm>

#include "cuda/cost_model.h"
#include "cuda/cost_parts.h"

namespace sparsek::cuda {
namespace {

constexpr double kElementBytes = 2;  // in the tiles of a dense product

// How well cuBLAS uses the device memory where it has few columns, as a share of what it reaches else: by products on
// an H200 and an H100 (docs/notes/cost-model.md).
double share_of_memory(const Work& work) {
  if (work.element_bytes == 8) return work.n == 1 ? 0.96 : 0.87;
  if (work.element_bytes == 4) return 0.8;
  return work.n == 2 || work.n == 4 ? 0.7 : 1;
}

// In fp32 it reads A no faster than this by few columns, whatever the memory: bytes a microsecond of all SMs.
double rate_of_few(const Work& work) {
  if (work.element_bytes != 4 || work.n == 1) return INFINITY;
  return work.n == 4 ? 1.4e6 : 1.8e6;
}

// And how many times as long it takes in 16 bits where K is no multiple of 16 bytes: more where it is odd.
double unaligned_depth(const Work& work) {
  if (work.element_bytes > 2 || work.n == 1 || work.shape.cols % 8 == 0) return 1;
  return work.shape.cols % 2 == 0 ? 3 : 6.5;
}

double predict_dense(const Work& work, const DenseCost& cost) {
  struct Tile {
    double m, n;
  };
  constexpr Tile kTiles[] = {{256, 128}, {256, 64},  {192, 128}, {192, 64}, {128, 256}, {128, 224},
                             {128, 192}, {128, 160}, {128, 128}, {128, 96}, {128, 64},  {128, 32},
                             {128, 16},  {64, 256},  {64, 224},  {64, 192}, {64, 160},  {64, 128},
                             {64, 96},   {64, 64},   {64, 32},   {64, 16}};
  constexpr double kWholeTile = 128.0 * 256, kMillion = 1e6;
  // Operations a microsecond of the ordinary cores, which fp32 is multiplied by, and of the tensor cores for fp64.
  constexpr double kFp32Rate = 51e6, kFp64Rate = 64e6;
  const double m = static_cast<double>(work.shape.rows), n = static_cast<double>(work.n);
  const double k = static_cast<double>(work.shape.cols);
  double best = INFINITY;
  for (const Tile& tile : kTiles) {
    const double computing = 2 * tile.m * tile.n * kStepColumns / (cost.mma_rate / kFittedSms);
    const double reading = (tile.m + tile.n) * kStepColumns * kElementBytes / (cost.l2_rate / kFittedSms);
    const double step = together(together(computing, reading, kOnChip), cost.step, kOnChip);
    const double end = cost.tile * std::sqrt(tile.m * tile.n / kWholeTile);
    const double count = ceil_div(m, tile.m) * ceil_div(n, tile.n);
    for (const double parts : {1., 2., 4.}) {  // of K
      const double waves = ceil_div(count * parts, work.device.sm_count);
      const double adding = parts > 1 ? parts * (cost.split + cost.sums * m * n / kMillion) : 0;
      best = std::min(best, waves * (ceil_div(k / parts, kStepColumns) * step + end) + adding);
    }
  }
  const double bytes = static_cast<double>(work.element_bytes) * (m * k + k * n) + bytes_of_c(work);
  if (work.element_bytes > 2) best = 2 * m * n * k / (work.element_bytes == 4 ? kFp32Rate : kFp64Rate);
  const double moving = std::max(bytes / memory_rate(cost.memory * share_of_memory(work), work),
                                 bytes / by_all_sms(rate_of_few(work), work));
  return cost.launch + together(on_sms(best * unaligned_depth(work), work), moving, kWithMemory);
}

double predict_bsr(const Work& work, const BsrCost& cost) {
  constexpr double kColumns = 16;  // at once
  const double elements = static_cast<double>(work.shape.block_m) * work.shape.block_k;
  const double row = static_cast<double>(work.stats.longest_row) * (cost.block + cost.area * elements);
  const double n = std::max(kColumns, static_cast<double>(work.n));
  const double entries =
      on_sms(static_cast<double>(work.shape.nnzb) * n * cost.entry * kFittedSms / work.device.sm_count, work);
  const double all = entries + 2 * values_of(work) * static_cast<double>(work.n) / by_all_sms(cost.rate, work);
  return cost.launch + together(all, on_sms(row, work), kWithMemory);
}

double predict_bell(const Work& work, const BellCost& cost) {
  constexpr double kColumns = 128, kOddBlock = 5;  // it is made for multiples of 8
  const BsrShape& shape = work.shape;
  const double n = static_cast<double>(work.n), longest = static_cast<double>(work.stats.longest_row);
  const double tiles = shape.block_rows * ceil_div(n, kColumns) * std::max(1.0, shape.block_m / kColumns);
  const double waves = std::max(1.0, tiles / (work.device.sm_count * cost.tiles));
  const double tile = cost.tile + longest * (cost.block + cost.column * shape.block_k);
  const double padded = longest * shape.block_rows * shape.block_m * shape.block_k;
  const double bytes =
      static_cast<double>(work.element_bytes) * (padded + static_cast<double>(shape.cols) * n) + bytes_of_c(work);
  const double computing =
      together(on_sms(waves * tile, work), 2 * padded * n / by_all_sms(cost.rate, work), kWithMemory);
  const double odd = shape.block_m % 8 == 0 ? 1 : kOddBlock;
  return cost.launch + together(computing * odd, bytes / memory_rate(cost.memory, work), kWithMemory);
}

// By several columns it takes panels of 128 bytes of B's rows, twice that in fp64 where rows are long, and has another
// kernel where rows have many elements, in 16 bits always, that does not share out a long row.
double predict_csr_by_columns(const Work& work, const CsrCost& cost) {
  constexpr double kColumnIndex = 4, kPanelBytes = 128, kLongRows = 200, kLongestRows = 320;
  const double elements = values_of(work), n = static_cast<double>(work.n);
  const double of_row = elements / static_cast<double>(work.shape.rows);
  const auto size = static_cast<double>(work.element_bytes);
  const int by_type = work.element_bytes == 2 ? 0 : work.element_bytes == 4 ? 1 : 2;
  const bool whole_rows = by_type == 0 || of_row > kLongRows;
  const double wide = by_type == 2 && of_row > kLongRows ? 2 : 1;
  const double panels = ceil_div(size * n, wide * kPanelBytes) * wide;
  const double all =
      panels * (elements * cost.element[by_type] + static_cast<double>(work.shape.rows) * cost.row[by_type]);
  const double of_longest = !whole_rows             ? cost.shared
                            : of_row > kLongestRows ? cost.wide[by_type]
                                                    : cost.whole[by_type];
  const double longest =
      static_cast<double>(work.stats.longest_row) * work.shape.block_k * of_longest * (whole_rows ? 1 : panels);
  const double b = size * static_cast<double>(work.shape.cols) * n;
  const double of_panel = static_cast<double>(work.shape.cols) * std::min(size * n, kPanelBytes);
  const double missed = std::max(0.0, 1 - work.device.l2_bytes / std::max(1.0, of_panel));
  const double read = size * n * static_cast<double>(work.stats.rows64.loads) * work.shape.block_k;
  const double bytes = elements * (size + kColumnIndex) + std::max(b, missed * read) + bytes_of_c(work);
  const double computing = on_sms(all * kFittedSms / work.device.sm_count, work);
  return cost.launch + together(together(computing, on_sms(longest, work), kWithMemory),
                                bytes / memory_rate(cost.memory, work), kWithMemory);
}

// A vector's rows are shared out.
double predict_csr_by_vector(const Work& work, const CsrCost& cost) {
  constexpr double kColumnIndex = 4, kMemory = 0.6;
  const double elements = values_of(work);
  const auto size = static_cast<double>(work.element_bytes);
  const double bytes =
      elements * (size + kColumnIndex) + size * static_cast<double>(work.shape.cols) + bytes_of_c(work);
  return cost.launch_of_vector + together(on_sms(elements * cost.vector * kFittedSms / work.device.sm_count, work),
                                          bytes / memory_rate(kMemory, work), kWithMemory);
}

}  // namespace

double predict(LibraryFormat format, const Work& work, const CostCoefficients& costs) {
  switch (format) {
    case LibraryFormat::kDense:
      return kMicrosecond * predict_dense(work, costs.dense);
    case LibraryFormat::kBsr:
      return kMicrosecond * predict_bsr(work, costs.bsr);
    case LibraryFormat::kBlockedEll:
      return kMicrosecond * predict_bell(work, costs.bell);
    case LibraryFormat::kCsr:
      return kMicrosecond * predict_csr_by_columns(work, costs.csr);
    case LibraryFormat::kCsrByVector:
      return kMicrosecond * predict_csr_by_vector(work, costs.csr);
  }
  return 0;
}

}  // namespace sparsek::cuda
