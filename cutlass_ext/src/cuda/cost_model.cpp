// SPDX-License-Identifier: Apache-2.0
#include "cuda/cost_model.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "cuda/choose_cluster.h"
#include "cuda/cost_of_chunks.h"
#include "cuda/cost_of_rows.h"
#include "cuda/cost_parts.h"
#include "cuda/planes.h"
#include "cuda/window_layout.h"
#include "plan/schedule.h"

namespace sparsek::cuda {
namespace {

constexpr double kElementBytes = 2;  // of a plane of A or B

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
  double alone = 1;    // mma of a CTA that has an SM to itself, as a share
  int dtype = 0;       // sparsek_dtype of the kernel; 0: any
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
    {"wgmma_packed", 0, 256, &CostCoefficients::packed, false, /*mma=*/1, /*l2_rate=*/1, /*planes=*/0, /*tile_k=*/0,
     /*packs=*/true},
    // 64 x 64 products by 128 columns take 4096 cycles of the tensor cores that the CTAs of an SM share:
    // docs/notes/dmma-kernel.md. One that is alone on an SM takes less.
    {"dmma", 0, 128, &CostCoefficients::dmma, false, /*mma=*/1, /*l2_rate=*/1, /*planes=*/0, /*tile_k=*/0,
     /*packs=*/false, /*alone=*/0.65},
    {"dmma", 0, 64, &CostCoefficients::dmma, false, /*mma=*/0.8, /*l2_rate=*/1, /*planes=*/0, /*tile_k=*/0,
     /*packs=*/false, /*alone=*/0.65, SPARSEK_FP64},
    {"dmma", 0, 32, &CostCoefficients::dmma, false, /*mma=*/0.42, /*l2_rate=*/1, /*planes=*/0, /*tile_k=*/0,
     /*packs=*/false, /*alone=*/0.95, SPARSEK_FP64},
    {"dmma", 0, 64, &CostCoefficients::dmma_fp32, false, /*mma=*/1, /*l2_rate=*/1, /*planes=*/0, /*tile_k=*/0,
     /*packs=*/false, /*alone=*/0.65, SPARSEK_FP32},
    {"dmma", 0, 32, &CostCoefficients::dmma_fp32, false, /*mma=*/0.42, /*l2_rate=*/1, /*planes=*/0, /*tile_k=*/0,
     /*packs=*/false, /*alone=*/1.0, SPARSEK_FP32},
};

const Family* find_family(const KernelDesc& kernel) {
  for (const Family& family : kFamilies) {
    const bool same = std::strcmp(family.name, kernel.family) == 0 && family.tile_n == kernel.tile_n;
    const bool fits = (family.block_m == 0 || family.block_m == kernel.block_m) &&
                      (family.tile_k == 0 || family.tile_k == kernel.tile_k) &&
                      (family.dtype == 0 || family.dtype == kernel.dtype);
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
    ctas = ctas_of(kernel, work);
    const SharedTiles shared = {count, values_of(work) / groups, unevenness(shape, work.stats.longest_row),
                                kernel.tile_n};
    cluster = work.shares_tiles ? cluster_for(shared, kernel.ops->most_cluster, static_cast<int32_t>(ctas)) : 1;
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
  const double mma = cost.mma * family.mma * (active <= work.device.sm_count ? family.alone : 1);
  const double computing = on_sms(together(copies, mma * busy, kOnChip), work);
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
  if (kernel.ops->may_split && work.shares_tiles) {
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
      choose_panels(share_columns(tiles.slots, static_cast<int64_t>(tiles.loads), work.shape.nnzb), false, 512);
  const double passes = std::max(1.0, tiles.panels / at_once);
  const double missed = a > 0 ? std::max(0.0, 1 - kShareOfL2 * work.device.l2_bytes / a) : 0;
  const double rows_of_b = std::min(static_cast<double>(work.shape.cols), tiles.loads * work.shape.block_k);
  return a * (1 + (passes - 1) * missed) + element * rows_of_b * static_cast<double>(work.n) + bytes_of_c(work);
}

// The kernels that read A and B and write their planes. Low blocks are gathered into whole tiles, which takes longer.
double make_planes(const Family& family, const KernelDesc& kernel, const Tiles& tiles, const Work& work) {
  constexpr double kLaunch = 2.5, kShare = 0.9, kGathered = 5.3e-6, kGathered16 = 8e-6;
  const double of_b = static_cast<double>(work.shape.cols) * static_cast<double>(work.n);
  const bool gathers = work.shape.block_m % (kernel.tile_m / 2) != 0 && !work.is_laid_out;
  const double gathered = gathers ? tiles.loads * kernel.tile_m * work.shape.block_k : 0;
  const double bytes = static_cast<double>(work.element_bytes) + family.planes * kElementBytes;
  return kLaunch + (of_b + (gathers || work.is_laid_out ? 0 : values_of(work))) * bytes / memory_rate(kShare, work) +
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
  if (family.packs && !work.is_laid_out) copying += pack_a(kernel, tiles, work);
  return cost.launch + together(critical, moving, kWithMemory) + copying;
}

// A tile is a block row by 64 columns, and has a CTA of its own. What a column of a block takes is latency, of the
// loads that a warp waits for, which the tiles of an SM overlap; or where these are many, what their warps issue.
double predict_simt(const Work& work, const SimtCost& cost) {
  constexpr double kColumns = 64, kWarpColumns = 32, kRowsAtOnce = 32, kRowsOfWarp = 8;
  const BsrShape& shape = work.shape;
  const int by_type = work.element_bytes_b == 2 ? 0 : work.element_bytes_b == 4 ? 1 : 2;
  const double n = static_cast<double>(work.n), blocks = static_cast<double>(shape.nnzb);
  const double panels = ceil_div(n, kColumns);
  const double columns = shape.block_k * ceil_div(shape.block_m, kRowsAtOnce);  // of a block
  const double warps = ceil_div(shape.block_m, kRowsOfWarp) * ceil_div(std::min(n, kColumns), kWarpColumns);
  const double longest = static_cast<double>(work.stats.longest_row) * columns * cost.column[by_type] + cost.tile;
  const double all = (blocks * columns * cost.column[by_type] + cost.tile * shape.block_rows) * panels;
  const double waiting = std::max(longest, all / (work.device.sm_count * cost.tiles[by_type]));
  const double issuing = blocks * shape.block_k * warps * panels * cost.issue[by_type] / work.device.sm_count;
  return cost.launch + on_sms(together(waiting, issuing, kOnChip), work);
}

// What the SMs issue, or what the tiles wait for, whose units the warps of a CTA share; A is read for each panel of
// columns, from L2 where it stays there.
double predict_skinny_fma(const KernelDesc& kernel, const Work& work, const SkinnyFmaCost& cost) {
  constexpr double kUnitBytes = 128, kWarps = 8, kShareOfL2 = 0.5;
  const BsrShape& shape = work.shape;
  const auto element = static_cast<double>(work.element_bytes);
  if (shape.rows == 0 || work.n == 0) return cost.launch;
  const double columns = work.n == 1 ? 1 : work.n <= 4 ? 4 : work.n <= 8 ? 8 : kernel.tile_n;
  const double panels = ceil_div(static_cast<double>(work.n), kernel.tile_n);
  const double parts = ceil_div(shape.block_k * element, kUnitBytes);
  const double of_block = shape.block_m / std::gcd(kernel.tile_m, shape.block_m) * parts;
  const double units = static_cast<double>(shape.nnzb) * of_block * panels;
  const double tiles = ceil_div(static_cast<double>(shape.rows), kernel.tile_m) * panels;
  const double ctas = static_cast<double>(work.device.sm_count) * kernel.ops->ctas_per_sm;
  const double issuing = units * cost.column[element == 8] * columns / work.device.sm_count;
  const double longest = std::max(static_cast<double>(work.stats.longest_row) * parts, units / ctas);
  const double waiting =
      cost.tile * std::max(1.0, tiles / ctas) + (cost.step + cost.width * columns * element / 4) * longest / kWarps;
  const double a = element * values_of(work);
  const double missed = a > 0 ? std::max(0.0, 1 - kShareOfL2 * work.device.l2_bytes / a) : 0;
  const double moved = bytes_of_operands(work) + bytes_of_c(work) + a * (panels - 1) * missed;
  return cost.launch +
         together(on_sms(together(issuing, waiting, kOnChip), work), moved / memory_rate(cost.memory, work), kOnChip);
}

}  // namespace

double predict(const KernelDesc& kernel, const Work& work, const CostCoefficients& costs) {
  if (std::strcmp(kernel.family, "skinny_fma") == 0)
    return kMicrosecond * predict_skinny_fma(kernel, work, costs.skinny_fma);
  if (has_block_row(kernel)) return kMicrosecond * predict_row_mma(kernel, work);
  if (has_window(kernel)) return kMicrosecond * predict_window(work, costs);
  if (scatters(kernel)) return kMicrosecond * predict_scatter(kernel, work);
  if (packs_fp64(kernel)) return kMicrosecond * predict_packed_fp64(kernel, work);
  if (packs_planes(kernel)) return kMicrosecond * predict_packed_planes(kernel, work);
  if (kernel.ops->takes_chunks) return kMicrosecond * predict_few_columns(work, costs);
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

}  // namespace sparsek::cuda
