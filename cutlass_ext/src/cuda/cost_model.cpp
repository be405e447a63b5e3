// SPDX-License-Identifier: Apache-2.0
#include "cuda/cost_model.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "cuda/choose_cluster.h"
#include "cuda/lane_layout.h"
#include "cuda/planes.h"
#include "cuda/window_layout.h"
#include "plan/schedule.h"

namespace sparsek::cuda {
namespace {

// Times are microseconds, rates are by the microsecond.
constexpr double kMicrosecond = 1e-6;
constexpr double kElementBytes = 2;  // of a plane of A or B
// Work is counted in steps: 64 columns of A by one tile.
constexpr double kStepColumns = 64;

// Of two times that overlap for the most part, somewhat more than the longer.
double together(double a, double b, double power) {
  return std::pow(std::pow(a, power) + std::pow(b, power), 1 / power);
}
constexpr double kOnChip = 3;      // computing, copies and L2
constexpr double kWithMemory = 2;  // all that, and device memory

double ceil_div(double a, double b) { return std::ceil(a / b); }

double values_of(const Work& work) {
  return static_cast<double>(work.shape.nnzb) * work.shape.block_m * work.shape.block_k;
}

// A and B once.
double bytes_of_operands(const Work& work) {
  return static_cast<double>(work.element_bytes) * values_of(work) +
         static_cast<double>(work.element_bytes_b) * static_cast<double>(work.shape.cols) * static_cast<double>(work.n);
}

double bytes_of_c(const Work& work) {
  return static_cast<double>(work.element_bytes_c) * static_cast<double>(work.shape.rows) * static_cast<double>(work.n);
}

// Time on the SMs here, of what takes `fitted` on the SMs that the coefficients were fitted on.
double on_sms(double fitted, const Work& work) { return fitted * kFittedClock / work.device.sm_clock; }

// What all SMs do together here, by a rate that was fitted on kFittedSms SMs.
double by_all_sms(double rate, const Work& work) {
  return rate * work.device.sm_count / kFittedSms * work.device.sm_clock / kFittedClock;
}

double memory_rate(double share, const Work& work) { return share * work.device.memory_rate * kMicrosecond; }

// A kernel of its own that reads B and writes it.
double pack_b(const Work& work) {
  constexpr double kLaunch = 2.5, kShare = 0.85;
  return kLaunch + 2 * static_cast<double>(work.element_bytes * work.shape.cols * work.n) / memory_rate(kShare, work);
}

struct Family {
  const char* name;
  int block_m;  // of the kernel; 0: of any
  int tile_n;
  TiledCost CostCoefficients::* cost;
  bool gathers;  // looks every slot up, whether it has a block or not
  // What the coefficients, which are another family's, are to be multiplied by; l2_rate where the rows of a tile have
  // few columns in common.
  double mma = 1, l2_rate = 1;
  int planes = 0;      // above 0: A and B are copied as so many planes of 16-bit elements
  int tile_k = 0;      // of the kernel; 0: of any
  bool packs = false;  // A is copied into tiles with all columns of a row group
};

constexpr Family kFamilies[] = {
    {"skinny", 0, 16, &CostCoefficients::skinny_16, false},
    {"skinny", 0, 64, &CostCoefficients::skinny_64, false},
    // Measured against `collective` one after the other: docs/notes/blocks-kernel.md.
    {"wgmma_blocks", 64, 256, &CostCoefficients::collective_64, false, /*mma=*/1.012, /*l2_rate=*/1.05},
    {"wgmma_blocks", 128, 256, &CostCoefficients::collective_128, false},
    {"collective", 64, 256, &CostCoefficients::collective_64, false},
    {"collective", 128, 256, &CostCoefficients::collective_128, false},
    // The same instructions, for half of the columns each.
    {"wgmma_tf32", 64, 256, &CostCoefficients::collective_64, false, /*mma=*/2.024, /*l2_rate=*/1.05},
    {"wgmma_tf32", 128, 256, &CostCoefficients::collective_128, false, /*mma=*/2},
    {"wgmma_gather", 0, 256, &CostCoefficients::gather, true},
    // Six products of planes, by tiles half as wide: docs/notes/planes-kernel.md.
    {"wgmma_planes", 0, 128, &CostCoefficients::planes, false, /*mma=*/3, /*l2_rate=*/1, kPlanes, /*tile_k=*/32},
    {"wgmma_planes", 0, 128, &CostCoefficients::planes, false, /*mma=*/3.9, /*l2_rate=*/1, kPlanes,
     /*tile_k=*/16},
    // Measured on blocks of 4 to 64 of three densities: docs/notes/packed-kernel.md.
    {"wgmma_packed", 0, 256, &CostCoefficients::collective_64, false, /*mma=*/0.88, /*l2_rate=*/1, /*planes=*/0,
     /*tile_k=*/0, /*packs=*/true},
    // 64 x 64 products by 128 columns take 4096 cycles of the tensor cores that the CTAs of an SM share:
    // docs/notes/dmma-kernel.md.
    {"dmma", 0, 128, &CostCoefficients::collective_64, false, /*mma=*/8},
    {"dmma", 0, 64, &CostCoefficients::collective_64, false, /*mma=*/7},
    {"dmma", 0, 32, &CostCoefficients::collective_64, false, /*mma=*/3.8},
};

const Family* find_family(const KernelDesc& kernel) {
  for (const Family& family : kFamilies) {
    const bool same = std::strcmp(family.name, kernel.family) == 0 && family.tile_n == kernel.tile_n;
    const bool fits = (family.block_m == 0 || family.block_m == kernel.block_m) &&
                      (family.tile_k == 0 || family.tile_k == kernel.tile_k);
    if (same && fits) return &family;
  }
  return nullptr;
}

// Loads of row groups of 64 rows in the order that the planner gives the block rows. Only that for 128 rows is known:
// of what it saves there, groups half as high have a part.
double ordered_loads_of_64(const Work& work) {
  constexpr double kPart = 0.6;
  const PatternStats& stats = work.stats;
  if (work.shape.block_m >= 64 || stats.rows128.loads == 0) return static_cast<double>(stats.rows64.loads);
  const double saved = 1 - static_cast<double>(stats.ordered_loads) / static_cast<double>(stats.rows128.loads);
  return static_cast<double>(stats.rows64.loads) * (1 - kPart * saved);
}

// Columns of A, and rows of B, that one copy brings.
int32_t unit_of(const BsrShape& shape, int32_t most) {
  int32_t unit = most;
  while (unit > 8 && shape.block_k % unit != 0) unit /= 2;
  return unit;
}

// What a product consists of for a kernel on tensor cores.
struct Tiles {
  double loads;    // entries of all row groups together
  double longest;  // steps of the longest tile
  double panels, count;
  double steps;  // of all tiles together
  double width;  // columns of B and C that a tile has on average
  int32_t slots;
  double cluster, ctas;

  Tiles(const KernelDesc& kernel, const Work& work) {
    const BsrShape& shape = work.shape;
    const bool low = kernel.tile_m <= 64;
    const GroupLoads& group = low ? work.stats.rows64 : work.stats.rows128;
    loads = low ? ordered_loads_of_64(work) : static_cast<double>(std::min(group.loads, work.stats.ordered_loads));
    if (!kernel.ops->any_rows) loads = static_cast<double>(group.loads);
    const double steps_of_entry = shape.block_k / kStepColumns;
    longest = static_cast<double>(group.longest) * steps_of_entry;
    panels = ceil_div(static_cast<double>(work.n), kernel.tile_n);
    const double groups = ceil_div(static_cast<double>(shape.rows), kernel.tile_m);
    count = groups * panels;
    steps = loads * panels * steps_of_entry;
    width = 8 * ceil_div(static_cast<double>(work.n) / panels, 8);
    slots = kernel.tile_m / std::gcd(kernel.tile_m, shape.block_m);
    ctas = static_cast<double>(work.device.sm_count) * kernel.ops->ctas_per_sm;
    const SharedTiles shared = {count, values_of(work) / groups, unevenness(shape, work.stats.longest_row),
                                kernel.tile_n};
    cluster = cluster_for(shared, kernel.ops->most_cluster, static_cast<int32_t>(ctas));
  }
};

// One step of a CTA while `active` CTAs work.
double step_time(const Family& family, const TiledCost& cost, const KernelDesc& kernel, const Tiles& tiles,
                 const Work& work, double active) {
  if (tiles.steps == 0) return 0;
  const BsrShape& shape = work.shape;
  const double units =
      family.gathers ? ceil_div(shape.block_k, 16) : static_cast<double>(shape.block_k) / unit_of(shape, 64);
  const double pieces = static_cast<double>(shape.block_m) / std::gcd(kernel.tile_m, shape.block_m);
  const double boxes_a = family.gathers ? tiles.loads * tiles.slots : static_cast<double>(shape.nnzb) * pieces;
  const double copies = (cost.entry * tiles.loads + cost.box_b * tiles.loads * units + cost.box_a * boxes_a * units) *
                        tiles.panels / tiles.steps;
  // Of the two halves of a tile of 128 rows, one that has no block is left out.
  double busy = 1;
  if (kernel.tile_m > 64) busy = std::min(1.0, ordered_loads_of_64(work) / (2 * std::max(1.0, tiles.loads)));
  const double bytes = (family.planes > 0 ? family.planes * kElementBytes : static_cast<double>(work.element_bytes)) *
                       (kStepColumns * tiles.width +
                        (family.packs ? kernel.tile_m * kStepColumns : values_of(work) * tiles.panels / tiles.steps));
  const bool share = static_cast<double>(shape.nnzb) * 5 >= tiles.loads * tiles.slots * 4;
  const double l2_rate = cost.l2_rate * (share ? 1 : family.l2_rate);
  const double computing = on_sms(together(copies, cost.mma * family.mma * busy, kOnChip), work);
  return together(computing, bytes * active / by_all_sms(l2_rate, work), kOnChip);
}

// The worker that ends last: it has a fair share, or the longest tile, or, of few tiles, one more than others.
double critical_time(const Family& family, const TiledCost& cost, const KernelDesc& kernel, const Tiles& tiles,
                     const Work& work) {
  constexpr double kWholeTile = 128.0 * 256, kEvenedOut = 4;  // so many tiles a worker differ little in sum
  const double workers = tiles.ctas / tiles.cluster;
  const double tile = on_sms(cost.tile + cost.epilogue * kernel.tile_m * tiles.width / kWholeTile, work);
  const double step = step_time(family, cost, kernel, tiles, work, std::min(tiles.ctas, tiles.count * tiles.cluster));
  // The CTAs of a cluster have a part of each tile each.
  const double all = tiles.steps / tiles.cluster * step + tile * tiles.count;
  double critical = std::max(all / workers, tiles.longest / tiles.cluster * step + tile);
  const double waves = ceil_div(tiles.count, workers);
  if (waves < kEvenedOut) critical = std::max(critical, waves * all / tiles.count);
  if (tiles.cluster > 1) critical += on_sms(cost.cluster, work);
  if (kernel.ops->may_split) {
    // In parts, each worker has about the same; and there is a second kernel.
    const double busy_step = step_time(family, cost, kernel, tiles, work, tiles.ctas);
    const double shared = (tiles.steps * busy_step + tile * tiles.count) / workers + tile + cost.join +
                          on_sms(cost.part, work) * tiles.width / kernel.tile_n;
    critical = std::min(critical, shared);
  }
  return critical;
}

// What a kernel has to move: the rows of B that the blocks meet once, C once, and A once for the panels of columns that
// are computed at the same time; what of A stays in L2 is not read again.
double bytes_moved(const Family& family, const Tiles& tiles, const Work& work) {
  constexpr double kShareOfL2 = 0.5;
  const double element = family.planes > 0 ? family.planes * kElementBytes : static_cast<double>(work.element_bytes);
  const double a = element * values_of(work);
  const int32_t at_once =
      choose_panels(share_columns(tiles.slots, static_cast<int64_t>(tiles.loads), work.shape.nnzb), false, 256);
  const double passes = std::max(1.0, tiles.panels / at_once);
  const double missed = a > 0 ? std::max(0.0, 1 - kShareOfL2 * work.device.l2_bytes / a) : 0;
  const double rows_of_b = std::min(static_cast<double>(work.shape.cols), tiles.loads * work.shape.block_k);
  return a * (1 + (passes - 1) * missed) + element * rows_of_b * static_cast<double>(work.n) + bytes_of_c(work);
}

// The kernels that read A and B and write their planes. Low blocks are gathered into whole tiles, which takes longer.
double make_planes(const Family& family, const KernelDesc& kernel, const Tiles& tiles, const Work& work) {
  constexpr double kLaunch = 2.5, kShare = 0.9, kGathered = 5.3e-6, kGathered16 = 8e-6;
  const double of_b = static_cast<double>(work.shape.cols) * static_cast<double>(work.n);
  const bool gathers = work.shape.block_m % (kernel.tile_m / 2) != 0;
  const double gathered = gathers ? tiles.loads * kernel.tile_m * work.shape.block_k : 0;
  const double bytes = static_cast<double>(work.element_bytes) + family.planes * kElementBytes;
  return kLaunch + (of_b + (gathers ? 0 : values_of(work))) * bytes / memory_rate(kShare, work) +
         gathered * (kernel.tile_k == 16 ? kGathered16 : kGathered) + (gathers ? kLaunch : 0);
}

// The kernel that packs A.
double pack_a(const KernelDesc& kernel, const Tiles& tiles, const Work& work) {
  constexpr double kLaunch = 8, kShare = 0.6;
  const double packed = tiles.loads * kernel.tile_m * work.shape.block_k;
  return kLaunch + static_cast<double>(work.element_bytes) * (values_of(work) + packed) / memory_rate(kShare, work);
}

double predict_tiled(const Family& family, const KernelDesc& kernel, const Work& work, const CostCoefficients& costs) {
  const TiledCost& cost = costs.*family.cost;
  if (work.shape.rows == 0 || work.n == 0) return cost.launch;
  const Tiles tiles(kernel, work);
  const double critical = critical_time(family, cost, kernel, tiles, work);
  const double moving = bytes_moved(family, tiles, work) / memory_rate(cost.memory, work);
  double copying = family.planes > 0 ? make_planes(family, kernel, tiles, work) : work.packs_b ? pack_b(work) : 0;
  if (family.packs) copying += pack_a(kernel, tiles, work);
  return cost.launch + together(critical, moving, kWithMemory) + copying;
}

// A tile is a block row by 64 columns. What a column of a block takes is latency: of the loads that a warp waits for,
// and of the other warps'.
double predict_simt(const Work& work, const SimtCost& cost) {
  constexpr double kColumns = 64, kWarpColumns = 32, kRowsAtOnce = 32, kRowsOfWarp = 8, kCtasPerSm = 2;
  const BsrShape& shape = work.shape;
  const double n = static_cast<double>(work.n);
  const double turns = ceil_div(shape.block_m, kRowsAtOnce), panels = ceil_div(n, kColumns);
  const double warps = ceil_div(std::min<double>(shape.block_m, kRowsAtOnce), kRowsOfWarp) *
                       ceil_div(std::min(n, kColumns), kWarpColumns);
  const double columns = shape.block_k * turns;  // of a block
  const double workers = work.device.sm_count * kCtasPerSm;
  const double lone =
      static_cast<double>(work.stats.longest_row) * columns * (cost.column + cost.warp * warps / 2) + cost.tile;
  double critical = lone;
  if (shape.block_rows * panels > work.device.sm_count) {
    const double all =
        (static_cast<double>(shape.nnzb) * columns * (cost.column + cost.warp * warps) + cost.tile * shape.block_rows) *
        panels;
    critical = std::max(critical, all / workers);
  }
  return cost.launch + on_sms(critical, work);
}

// A way of few_columns that serves some blocks only, by tensor cores: what a warp waits for, for each 8 columns of a
// block one after the other. Of long rows the warps take parts, of kWhole blocks or more. Where warps have many blocks,
// their waits overlap with each other, with what is moved and with what is read from L2, but a product on cold caches
// begins slowly.
double predict_tensor_way(const Work& work, const LaneLayout& lanes) {
  constexpr double kLaunch = 6.9, kUnit = 0.106, kTile = 0.0062, kOfAll = 5.16, kMemory = 0.59, kWhole = 16;
  constexpr double kBegin = 20, kOfMany = 1.3, kMemoryOfMany = 0.95, kL2Rate = 6.5e6, kOverlap = 3;
  const BsrShape& shape = work.shape;
  const auto blocks = static_cast<double>(shape.nnzb);
  const double of_warp = blocks * lanes.panels / (work.device.sm_count * lanes.ctas * lanes.warps);
  const double longest = std::min(static_cast<double>(work.stats.longest_row), kWhole);
  const double of_block = on_sms(shape.block_k / 8. * (kUnit + kTile * lanes.tile_m * lanes.tile_n), work);
  const double moved = bytes_of_operands(work) + 4 * (blocks + shape.block_rows) + bytes_of_c(work);
  const double one_by_one = (kOfAll * of_warp + longest) * of_block + moved / memory_rate(kMemory, work);
  const double read = static_cast<double>(work.element_bytes_b) * blocks * shape.block_k * static_cast<double>(work.n);
  const double moving = together(moved / memory_rate(kMemoryOfMany, work), read / by_all_sms(kL2Rate, work), kOverlap);
  const double overlapped = kBegin + longest * of_block + together(kOfMany * of_warp * of_block, moving, kOverlap);
  return kLaunch + std::min(one_by_one, overlapped);
}

// A way of few_columns that serves some blocks only: instructions, what is moved, and B read for each block, of which
// the longest counts whole, the others in part.
double predict_way(const Work& work, const LaneLayout& lanes) {
  if (lanes.way == LaneWay::kTensor) return predict_tensor_way(work, lanes);
  constexpr double kLaunch = 9.5, kIssue = 3.6e-6, kMemory = 1.1, kL2Rate = 7.5e6, kOthers = 0.3, kRandom = 32;
  const BsrShape& shape = work.shape;
  const auto blocks = static_cast<double>(shape.nnzb), n = static_cast<double>(work.n);
  const auto bytes = static_cast<double>(work.element_bytes_b);
  const double computing =
      on_sms(lanes.panels * blocks * lanes.cost * kIssue * kFittedSms / work.device.sm_count, work);
  const double moved = bytes_of_operands(work) + 4 * (blocks + shape.block_rows) + bytes_of_c(work);
  // A sector for each row of B at least.
  const double rows = lanes.way == LaneWay::kSingles ? 1 : shape.block_k;
  const double reading = blocks * std::max(kRandom, rows * bytes * n) / by_all_sms(kL2Rate, work);
  const double moving = moved / memory_rate(kMemory, work);
  const double longest = std::max({computing, moving, reading});
  return kLaunch + longest + kOthers * (computing + moving + reading - longest);
}

double predict_few_columns(const Work& work, const FewCost& cost) {
  constexpr double kLargeBlock = 256;
  const BsrShape& shape = work.shape;
  if (shape.rows == 0 || work.n == 0) return cost.launch;
  const auto blocks = static_cast<double>(shape.nnzb), n = static_cast<double>(work.n);
  const auto bytes = static_cast<double>(work.element_bytes_b);
  const ElementBytes elements = {static_cast<int>(work.element_bytes), static_cast<int>(work.element_bytes_b)};
  const LaneLayout lanes = lane_layout(shape.block_m, shape.block_k, work.n, elements, blocks / shape.block_rows);
  if (lanes.way != LaneWay::kStream && lanes.way != LaneWay::kBundles) return predict_way(work, lanes);
  const double of_block = lanes.cost * (lanes.tile_n == 1 ? cost.streamed : cost.bundled) + cost.group / lanes.group;
  const double computing = on_sms(lanes.panels * blocks * of_block * kFittedSms / work.device.sm_count, work);
  const double moved = bytes_of_operands(work) + 4 * (blocks + shape.block_rows) + bytes_of_c(work);
  const double reading = bytes * blocks * shape.block_k * n / by_all_sms(cost.l2_rate, work);
  const bool large = static_cast<double>(shape.block_m) * shape.block_k >= kLargeBlock;
  const double again = (1 + cost.panel * (lanes.panels - 1)) * (large ? cost.large : 1);
  return cost.launch + (computing + moved / memory_rate(cost.memory, work) + reading) * again;
}

// Instructions, what is moved, and what comes from L2: B once for neighbouring rows, and A for each panel of columns.
// Warps have some rows at a time, which take as long as a block of each lane after the other; a row that is longer than
// others is cut in halves of chunks.
double predict_window(const Work& work) {
  constexpr double kLaunch = 9.5, kIssue = 1.45e-6, kMemory = 0.9, kL2Rate = 5.5e6, kOthers = 0.3, kWait = 1.8e-3;
  constexpr double kHalves = 8;  // of chunks of an SM
  // Fewer columns, and those that are read one by one, were not measured.
  constexpr int64_t kLeastOfSmallest = 8, kLeast = 32;
  constexpr double kUnknown = 2;
  const BsrShape& shape = work.shape;
  if (shape.rows == 0 || work.n == 0) return kLaunch;
  const auto blocks = static_cast<double>(shape.nnzb), of_row = blocks / shape.block_rows;
  const LaneLayout lanes = window_layout(shape.block_m, work.n, static_cast<int>(work.element_bytes), of_row);
  const double sms = work.device.sm_count, entries = lanes.rows * lanes.shares;
  const int pieces = lanes.tile_n * static_cast<int>(work.element_bytes) / kPieceBytes;
  const int warps = warps_of_window(shape.block_m, pieces, static_cast<int>(work.element_bytes));
  const double turns = ceil_div(static_cast<double>(shape.block_rows) * lanes.panels, lanes.rows * sms * warps);
  const double longest_row = std::min(static_cast<double>(work.stats.longest_row), blocks / (sms * kHalves) + of_row);
  const double steps = ((turns - 1) * of_row + std::max(of_row, longest_row)) / lanes.shares;
  const double computing = on_sms(
      std::max(kWait * steps * lanes.cost * entries, lanes.panels * blocks * lanes.cost * kIssue * kFittedSms / sms),
      work);
  const double reading = static_cast<double>(work.element_bytes) *
                         (static_cast<double>(work.stats.rows128.loads) * shape.block_k * lanes.panels * lanes.columns +
                          (lanes.panels - 1) * values_of(work)) /
                         by_all_sms(kL2Rate, work);
  const double moved = bytes_of_operands(work) + 4 * (blocks + shape.block_rows) + bytes_of_c(work);
  const double moving = moved / memory_rate(kMemory, work);
  const double longest = std::max({computing, moving, reading});
  const bool known =
      work.n % (lanes.tile_n / pieces) == 0 && work.n >= (shape.block_m == 3 ? kLeastOfSmallest : kLeast);
  return kLaunch + (longest + kOthers * (computing + moving + reading - longest)) * (known ? 1 : kUnknown);
}

// How well cuBLAS uses the device memory where it has few columns and wider types, as a share of what it reaches else:
// by products on an H200 (docs/notes/cost-model.md).
double share_of_memory(const Work& work) {
  if (work.element_bytes > 2) return work.n == 1 ? 0.65 : work.n == 2 ? 0.28 : 0.45;
  return work.n == 2 || work.n == 4 ? 0.7 : 1;
}

// And how many times as long it takes in 16 bits where K is no multiple of 16 bytes.
double unaligned_depth(const Work& work) {
  if (work.element_bytes > 2 || work.n == 1 || work.shape.cols % 8 == 0) return 1;
  return work.shape.cols % 4 == 0 ? 3 : 6.5;
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
  constexpr double kFp32Rate = 51e6;  // operations a microsecond of the ordinary cores, which fp32 is multiplied by
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
  if (work.element_bytes > 2) best = 2 * m * n * k / kFp32Rate;
  const double moving = bytes / memory_rate(cost.memory * share_of_memory(work), work);
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

// What rows of 64 have in common is read once; what L2 does not hold comes from memory.
double predict_csr(const Work& work, const CsrCost& cost, bool by_vector) {
  constexpr double kColumnIndex = 4;  // bytes
  constexpr double kShortElements = 15, kVectorMemory = 0.6;
  const double elements = values_of(work), n = static_cast<double>(work.n);
  const auto size = static_cast<double>(work.element_bytes);
  const double of_element = by_vector ? cost.vector : cost.element + cost.byte * size * n;
  const double all = elements * of_element * kFittedSms / work.device.sm_count;
  // A vector's rows are shared out, matrices' are not, and take long in 16 bits.
  const double of_row = by_vector ? 0 : work.element_bytes == 2 ? kShortElements * cost.row : cost.row;
  const double row = static_cast<double>(work.stats.longest_row) * work.shape.block_k * of_row;
  const double b = size * static_cast<double>(work.shape.cols) * n;
  const double missed = std::max(0.0, 1 - work.device.l2_bytes / std::max(1.0, b));
  const double read = size * n * static_cast<double>(work.stats.rows64.loads) * work.shape.block_k;
  const double bytes = elements * (size + kColumnIndex) + std::max(b, missed * read) + bytes_of_c(work);
  return cost.launch + together(on_sms(all + row, work),
                                bytes / memory_rate(by_vector ? kVectorMemory : cost.memory, work), kWithMemory);
}

}  // namespace

double predict(const KernelDesc& kernel, const Work& work, const CostCoefficients& costs) {
  if (has_window(kernel)) return kMicrosecond * predict_window(work);
  if (kernel.ops->takes_chunks) return kMicrosecond * predict_few_columns(work, costs.few);
  const Family* const family = find_family(kernel);
  return kMicrosecond *
         (family == nullptr ? predict_simt(work, costs.simt) : predict_tiled(*family, kernel, work, costs));
}

double predict_copies(const FormCopies& copies, const Work& work) {
  constexpr double kLaunch = 2.5, kShare = 0.8;  // of the bandwidth: docs/notes/training-products.md
  const auto n = static_cast<double>(work.n);
  double time = 0;
  const auto add = [&](bool copied, double bytes) {
    if (copied) time += kLaunch + 2 * bytes / memory_rate(kShare, work);
  };
  add(copies.a, static_cast<double>(work.element_bytes) * values_of(work));
  add(copies.b, static_cast<double>(work.element_bytes_b * work.shape.cols) * n);
  add(copies.c, bytes_of_c(work));
  return kMicrosecond * time;
}

double predict(LibraryFormat format, const Work& work, const CostCoefficients& costs) {
  switch (format) {
    case LibraryFormat::kDense:
      return kMicrosecond * predict_dense(work, costs.dense);
    case LibraryFormat::kBsr:
      return kMicrosecond * predict_bsr(work, costs.bsr);
    case LibraryFormat::kBlockedEll:
      return kMicrosecond * predict_bell(work, costs.bell);
    case LibraryFormat::kCsr:
    case LibraryFormat::kCsrByVector:
      return kMicrosecond * predict_csr(work, costs.csr, format == LibraryFormat::kCsrByVector);
  }
  return 0;
}

}  // namespace sparsek::cuda
