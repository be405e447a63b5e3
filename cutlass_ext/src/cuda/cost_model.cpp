// SPDX-License-Identifier: Apache-2.0
#include "cuda/cost_model.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "cuda/choose_cluster.h"

namespace sparsek::cuda {
namespace {

constexpr double kMicrosecond = 1e-6;
// H200: device memory as copies reach it, and the number of its SMs, by which the rates below scale.
constexpr double kDramRate = 4.0e12, kSms = 132;
constexpr double kElementBytes = 2;  // of A and B: what is fast is 16 bits wide
// Work is counted in steps: 64 columns of A by one tile.
constexpr double kStepColumns = 64;

// What a family of kernels takes, fitted to measured products by scripts/fit_cost_model.py (docs/notes/cost-model.md).
struct Cost {
  const char* family;
  int block_m;  // of the kernel; 0: of any
  int tile_n;
  double factor;   // of all: near 1, with which the choice is right most often
  double launch;   // microseconds: the launch, the way in and the way out
  double tile;     // steps: what a tile costs beside its steps (epilogue, refill of the ring)
  double step;     // microseconds of one step of a CTA that waits for nobody
  double l2_rate;  // bytes a second that all SMs draw out of L2
  double join;     // steps: what it costs that tiles are split
  // Microseconds of a bulk copy of one box; of wgmma_gather, whose copies are others, what fits best.
  double copy_a, copy_b;
  int ctas_per_sm;
};

constexpr Cost kCosts[] = {
    {"skinny", 0, 16, 0.97, 5.366, 1.834, 0.0727, 8.59e12, 0, 0.0341, 0.303, 2},
    {"skinny", 0, 64, 1.05, 5.841, 1.858, 0.0785, 8.71e12, 0, 0.0280, 0.343, 2},
    {"collective", 64, 256, 0.87, 6.245, 3.38, 0.0873, 9.15e12, 0, 0.236, 0.0002, 1},
    {"collective", 128, 256, 1.01, 5.541, 3.718, 0.587, 11.2e12, 0, 0, 0, 1},
    {"wgmma_gather", 0, 256, 1.01, 6.068, 2.915, 0.709, 8.82e12, 10.3, 0.0012, 0.0188, 1},
};

const Cost* find_cost(const KernelDesc& kernel) {
  for (const Cost& cost : kCosts) {
    const bool same = std::strcmp(cost.family, kernel.family) == 0 && cost.tile_n == kernel.tile_n;
    if (same && (cost.block_m == 0 || cost.block_m == kernel.block_m)) return &cost;
  }
  return nullptr;
}

// Of two times that overlap for the most part, a little more than the longer.
double together(double a, double b) {
  constexpr double kPower = 4;
  return std::pow(std::pow(a, kPower) + std::pow(b, kPower), 1 / kPower);
}

double ceil_div(double a, double b) { return std::ceil(a / b); }

double values_of(const Work& work) {
  return static_cast<double>(work.shape.nnzb) * work.shape.block_m * work.shape.block_k;
}

// What every kernel has to move: A's values and the rows of B that they meet once, and C once.
double dram_seconds(const Work& work, double loads) {
  const double columns = static_cast<double>(work.n);
  const double rows_of_b = std::min(static_cast<double>(work.shape.cols), loads * work.shape.block_k);
  const double bytes = kElementBytes * (values_of(work) + rows_of_b * columns) +
                       static_cast<double>(work.element_bytes_c * work.shape.rows) * columns;
  return bytes / kDramRate;
}

// Columns of A, and rows of B, that one bulk copy brings.
int32_t unit_of(const BsrShape& shape) {
  for (const int32_t unit : {64, 32, 16}) {
    if (shape.block_k % unit == 0) return unit;
  }
  return 8;
}

// A kernel of its own that reads B and writes it.
double pack_seconds(const Work& work) {
  constexpr double kLaunch = 2.5 * kMicrosecond;
  return kLaunch + 2 * kElementBytes * static_cast<double>(work.shape.cols) * static_cast<double>(work.n) / kDramRate;
}

// The ordinary cores, one product after the other.
double predict_simt(const Work& work) {
  constexpr double kRate = 8e12;  // operations a second
  constexpr double kLaunch = 6 * kMicrosecond;
  const double longest = static_cast<double>(work.stats.longest_row) * work.shape.block_m * work.shape.block_k * 64;
  const double busy = values_of(work) * static_cast<double>(work.n) / work.sm_count;
  return kLaunch + 2 * std::max(busy, longest) / (kRate / kSms);
}

double predict_dense(const Work& work) {
  constexpr double kFactor = 0.98, kLaunch = 7.19 * kMicrosecond, kRate = 855e12, kMemoryRate = 4.1e12;
  // Tiles that cuBLAS has, and the share of the tensor cores' rate that such a tile can reach.
  struct Tile {
    double m, n, share;
  };
  constexpr Tile kTiles[] = {{128, 256, 1}, {256, 128, 1}, {128, 128, .85}, {64, 256, .85}, {64, 128, .7},
                             {128, 64, .7}, {64, 64, .5},  {64, 32, .25},   {64, 16, .125}};
  const double m = static_cast<double>(work.shape.rows), n = static_cast<double>(work.n);
  const double k = static_cast<double>(work.shape.cols);
  double best = INFINITY;
  for (const Tile& tile : kTiles) {
    for (const double split : {1., 2., 4., 8.}) {  // of K
      const double waves = ceil_div(ceil_div(m, tile.m) * ceil_div(n, tile.n) * split, work.sm_count);
      best = std::min(best, waves * 2 * tile.m * tile.n * k / split / (kRate / kSms * tile.share));
    }
  }
  const double bytes = kElementBytes * (m * k + k * n) + static_cast<double>(work.element_bytes_c) * m * n;
  return kFactor * (kLaunch + together(best, bytes / kMemoryRate));
}

// Ordinary cores, or the longest row.
double predict_cusparse_bsr(const Work& work) {
  constexpr double kFactor = 1.24, kRate = 9.57e12, kLaunch = 4.51 * kMicrosecond, kColumn = 0.207 * kMicrosecond;
  const double row = static_cast<double>(work.stats.longest_row) * kColumn * work.shape.block_k;
  const double all = 2 * values_of(work) * static_cast<double>(work.n) / (kRate * work.sm_count / kSms);
  return kFactor * (kLaunch + together(all, row));
}

// A tile is a block row by 128 columns, and as long as the longest row.
double predict_cusparse_bell(const Work& work) {
  constexpr double kFactor = 0.97, kLaunch = 6.71 * kMicrosecond, kPerSm = 0.296, kColumn = 0.00337 * kMicrosecond;
  constexpr double kMemoryRate = 2.47e12;
  const BsrShape& shape = work.shape;
  const double n = static_cast<double>(work.n), longest = static_cast<double>(work.stats.longest_row);
  const double waves = std::max(1.0, shape.block_rows * ceil_div(n, 128) / (work.sm_count * kPerSm));
  const double padded = longest * shape.block_rows * shape.block_m * shape.block_k;
  const double bytes = kElementBytes * (padded + static_cast<double>(shape.cols) * n) +
                       static_cast<double>(work.element_bytes_c * shape.rows) * n;
  const double block = kColumn * shape.block_k * std::max(1.0, shape.block_m / 64.0);
  return kFactor * (kLaunch + together(waves * longest * block, bytes / kMemoryRate));
}

}  // namespace

double predict(const KernelDesc& kernel, const Work& work) {
  const Cost* const cost = find_cost(kernel);
  if (cost == nullptr) return predict_simt(work);
  const BsrShape& shape = work.shape;
  if (shape.rows == 0 || work.n == 0) return cost->launch * kMicrosecond;

  GroupLoads group = work.stats.of_height(kernel.tile_m);
  if (kernel.ops->any_rows && kernel.tile_m > 64) group.loads = std::min(group.loads, work.stats.ordered_loads);
  // Tiles that are parts of one block row each load all of its entries.
  const double parts = std::max(1.0, static_cast<double>(shape.block_m) / kernel.tile_m);
  const double steps_per_load = shape.block_k / kStepColumns;
  const double panels = ceil_div(static_cast<double>(work.n), kernel.tile_n);
  const double tiles = ceil_div(static_cast<double>(shape.rows), kernel.tile_m) * panels;
  const double steps = static_cast<double>(group.loads) * parts * panels * steps_per_load;
  const double longest = static_cast<double>(group.longest) * steps_per_load;
  // The CTAs of a cluster have a part of each tile each.
  const double ctas = static_cast<double>(work.sm_count) * cost->ctas_per_sm;
  const double elements = values_of(work) / ceil_div(static_cast<double>(shape.rows), kernel.tile_m);
  const double cluster =
      cluster_for(tiles, elements, kernel.ops->most_cluster, static_cast<int32_t>(ctas), kernel.tile_n);
  const double workers = ctas / cluster;

  // The worker that ends last: it has a fair share, or the longest tile, or, of a few even tiles, one more than others.
  double critical = std::max((steps / cluster + cost->tile * tiles) / workers, longest / cluster + cost->tile);
  const double waves = ceil_div(tiles, workers);
  constexpr double kEvenedOut = 4;  // so many tiles a worker differ little in sum
  if (waves < kEvenedOut) critical = std::max(critical, waves * (steps / tiles / cluster + cost->tile));
  if (kernel.ops->may_split) {
    // In parts, each worker has about the same; and there is a second kernel.
    const double shared = (steps + cost->tile * (tiles + workers)) / workers + cost->join;
    critical = std::min(critical, shared);
  }

  double step = cost->step * kMicrosecond;
  if (steps > 0) {
    const double bytes = kElementBytes * (steps * kStepColumns * kernel.tile_n + values_of(work) * panels);
    const double l2_rate = cost->l2_rate * work.sm_count / kSms;
    const double boxes = parts * panels * shape.block_k / unit_of(shape) / steps;
    const double copying =
        (cost->copy_a * static_cast<double>(shape.nnzb) + cost->copy_b * static_cast<double>(group.loads)) * boxes;
    step = together(step + copying * kMicrosecond, bytes / steps * std::min(ctas, tiles * cluster) / l2_rate);
  }
  const double packing = work.packs_b ? pack_seconds(work) : 0;
  const double working = together(critical * step, dram_seconds(work, static_cast<double>(group.loads)));
  return packing + cost->factor * (cost->launch * kMicrosecond + working);
}

double predict(LibraryFormat format, const Work& work) {
  switch (format) {
    case LibraryFormat::kDense:
      return predict_dense(work);
    case LibraryFormat::kBsr:
      return predict_cusparse_bsr(work);
    case LibraryFormat::kBlockedEll:
      return predict_cusparse_bell(work);
  }
  return 0;
}

}  // namespace sparsek::cuda
