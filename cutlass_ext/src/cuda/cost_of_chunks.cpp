// SPDX-License-Identifier: Apache-2.0
#include "cuda/cost_of_chunks.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "cuda/chunk_sizes.h"
#include "cuda/cost_parts.h"
#include "cuda/lane_layout.h"
#include "cuda/pack_fp64.h"
#include "cuda/pack_planes.h"
#include "cuda/stage_lists.h"
#include "cuda/stage_parts.h"
#include "cuda/stage_tiles.h"
#include "cuda/window_layout.h"

namespace sparsek::cuda {
namespace {

// What chunks of few_columns consist of. Of a row that is in several, sums are added up by another kernel.
struct Chunks {
  double count;
  double longest;  // blocks that a lane has one after the other, of the chunk that has the most
  double mean;     // and of others
  double turns;    // of warps, each with a chunk and a panel of columns
  bool cut;

  Chunks(const Work& work, const LaneLayout& lanes) {
    // Warps of an SM, of ways that have as many as there is room for: by registers, and by shared memory.
    const BsrShape& shape = work.shape;
    const ChunkSizes sizes = chunk_sizes(shape, lanes, work.element_bytes, work.device.sm_count);
    const double blocks = static_cast<double>(shape.nnzb), of_chunk = blocks / sizes.count;
    count = sizes.count;
    cut = sizes.count > 1 && work.stats.longest_row > sizes.longest_whole;
    const double longest_row = static_cast<double>(work.stats.longest_row);
    longest = std::max(of_chunk / lanes.rows, cut ? std::min(longest_row, of_chunk + 1) : longest_row) / lanes.shares;
    const double at_once = lanes.ctas * lanes.warps;
    const double workers = cut ? count : std::min<double>(count, shape.block_rows);
    mean = std::min(longest, blocks / workers / (lanes.rows * lanes.shares));
    // Rows that are whole have a chunk each, and lie apart where there are more chunks. The warps between them have no
    // blocks, and keep their places until the others of their CTA end.
    const double busy = std::clamp(workers / count, 1.0 / lanes.warps, 1.0);
    turns = std::max(1.0, workers * lanes.panels / (busy * at_once * work.device.sm_count));
  }
};

// The bytes of B's rows that are read for each block, at least a sector of each, and A again for each panel of columns.
double bytes_of_l2(const Work& work, const LaneLayout& lanes) {
  constexpr double kSector = 32;
  const double rows = lanes.way == LaneWay::kSingles ? 1 : work.shape.block_k;
  const double columns = std::min(static_cast<double>(work.n), static_cast<double>(lanes.columns));
  const double of_row = std::max(kSector, static_cast<double>(work.element_bytes_b) * columns);
  return static_cast<double>(work.shape.nnzb) * lanes.panels * rows * of_row +
         (lanes.panels - 1) * static_cast<double>(work.element_bytes) * values_of(work);
}

double predict_way(const Work& work, const LaneLayout& lanes, const LaneCost& cost) {
  const BsrShape& shape = work.shape;
  const Chunks chunks(work, lanes);
  int by_type = work.element_bytes_b == 2 ? 0 : work.element_bytes_b == 4 ? 1 : 2;
  if (lanes.way == LaneWay::kTensor) by_type = work.n == 1 ? 1 : 0;
  const double wait = cost.wait[by_type], issue = cost.issue[by_type];
  const double blocks = static_cast<double>(shape.nnzb) * lanes.panels;
  // What a lane waits for, block by block, and what all blocks take of an SM.
  double of_block = wait + cost.wait_cost * lanes.cost * lanes.rows * lanes.shares;
  double computing = blocks * lanes.cost * issue;
  if (lanes.way == LaneWay::kTensor) {
    const double tiles = lanes.tile_m * lanes.tile_n;
    of_block = shape.block_k / 8. * (wait + cost.wait_cost * tiles);
    computing = blocks * shape.block_k / 8. * tiles * issue;
  }
  computing = on_sms(computing * kFittedSms / work.device.sm_count, work);
  const double steps = chunks.longest + (chunks.turns - 1) * chunks.mean;
  const double waiting = on_sms(steps * of_block + chunks.turns * cost.turn, work);
  const double moved =
      bytes_of_operands(work) + 4 * static_cast<double>(shape.nnzb + shape.block_rows) + bytes_of_c(work);
  const double moving = moved / memory_rate(cost.memory, work) +
                        bytes_missed(work, cost.missed, cost.l2_share, work.stats.rows64.loads) / memory_rate(1, work);
  const double reading = bytes_of_l2(work, lanes) / by_all_sms(cost.l2_rate, work);
  double joining = 0;
  if (chunks.cut) {
    const double sums = 2 * chunks.count * shape.block_m * lanes.panels * lanes.columns *
                        static_cast<double>(std::max<int64_t>(4, work.element_bytes_b));
    joining = cost.join + sums / by_all_sms(cost.join_rate, work);
  }
  const double longest = std::max({computing, moving, reading, waiting});
  // Where a block is a group of its own, a warp waits for each block.
  constexpr double kAlone = 1.9;
  const bool for_all = lanes.way == LaneWay::kStream || lanes.way == LaneWay::kBundles;
  const double alone = for_all && lanes.group == 1 ? kAlone : 1;
  // Two columns of large blocks, and eights of fp32 whose rows have columns in common, take longer than these say.
  constexpr double kTwoOfLarge = 1.8, kEights = 1.9, kCommon = 0.4;
  constexpr int kLarge = 24, kFewColumns = 32;
  const double common =
      1 - static_cast<double>(work.stats.rows64.loads) / std::max(1.0, static_cast<double>(shape.nnzb));
  const bool eights = by_type == 1 && shape.block_m == 8 && shape.block_k == 8 && work.n > 1 && work.n <= kFewColumns &&
                      common > kCommon;
  const bool two = by_type > 0 && work.n == 2 && shape.block_m >= kLarge && lanes.way != LaneWay::kTensor;
  const double factor = alone * (eights ? kEights : 1) * (two ? kTwoOfLarge : 1);
  return cost.launch + factor * longest + cost.others * (computing + moving + reading + waiting - longest) + joining;
}

// kLines: what a team waits for, for so many lines together, and what an instruction takes. kTeams: the same of a step.
struct LineCost {
  double issue, wait, at_once;
};

LineCost line_cost(const LaneLayout& lanes) {
  if (lanes.way == LaneWay::kLines) return {1.7e-6, 1.2, kLanesOfLine};
  return {1.5e-6, 0.8, static_cast<double>(lines_of_team(lanes.column_lanes) * lanes.shares)};
}

// Lines of B, of which L2 holds a panel or a part of it; A, once for each panel, B and C; instructions. Teams have some
// lines at once, and wait for these together: kLines whatever rows they are of, kTeams those of a row. A row that is
// cut is added up by another kernel.
double predict_lines(const Work& work, const LaneLayout& lanes) {
  constexpr double kLaunch = 6, kMemory = 0.8, kL2Rate = 7.2e6, kOthers = 0.1, kBegin = 2;
  constexpr double kShareOfL2 = 0.6, kJoin = 4, kJoinRate = 4.5e6, kSector = 32;
  constexpr double kL1 = 0.45;  // of lines that rows close to each other have in common, the share that an SM has
  // Of lines of 64 bytes and less, in 16 bits, that teams read; in addition those that rows have in common.
  constexpr double kNarrow = 1.5, kNarrowInCommon = 0.35;
  const LineCost cost = line_cost(lanes);
  const double line = std::max(kSector, static_cast<double>(kBytesOfLane) * lanes.column_lanes);
  const BsrShape& shape = work.shape;
  const ChunkSizes sizes = chunk_sizes(shape, lanes, work.element_bytes, work.device.sm_count);
  const bool cut = sizes.count > 1 && work.stats.longest_row > sizes.longest_whole;
  const double panels = lanes.panels, nonzeros = static_cast<double>(shape.nnzb), lines = nonzeros * panels;
  const double panel_bytes = line * static_cast<double>(shape.cols);
  const double missed = std::max(0.0, 1 - kShareOfL2 * work.device.l2_bytes / std::max(1.0, panel_bytes));
  const double a = (static_cast<double>(work.element_bytes) + 4) * nonzeros + 4 * static_cast<double>(shape.rows);
  const double b = std::min(panel_bytes, line * nonzeros) * panels;
  const double again = missed * static_cast<double>(work.stats.rows64.loads) * line * panels;
  const double moving = (a * panels + b + again + bytes_of_c(work)) / memory_rate(kMemory, work);
  const double common = 1 - std::min(1.0, static_cast<double>(work.stats.rows64.loads) / std::max(1.0, nonzeros));
  const double reading = (1 - kL1 * common) * lines * line / by_all_sms(kL2Rate, work);
  const double computing = on_sms(lines * lanes.cost * cost.issue * kFittedSms / work.device.sm_count, work);
  const double at_once = static_cast<double>(lanes.ctas) * lanes.warps * lanes.teams * work.device.sm_count;
  const double turns = std::max(1.0, sizes.count * panels / at_once);
  double steps = ceil_div(nonzeros / sizes.count, cost.at_once), begin = 0;
  if (lanes.way == LaneWay::kTeams) {
    const double rows = static_cast<double>(shape.block_rows) / sizes.count;
    if (!cut) steps = std::max(1.0, rows) * ceil_div(nonzeros / shape.block_rows, cost.at_once);
    begin = kBegin;
  }
  const double waiting = on_sms(turns * (begin + cost.wait * steps), work);
  double joining = 0;
  if (cut) {
    const double sums =
        2. * sizes.count * panels * lanes.columns * static_cast<double>(std::max<int64_t>(4, work.element_bytes_b));
    joining = kJoin + sums / by_all_sms(kJoinRate, work);
  }
  const double longest = std::max({computing, moving, reading, waiting});
  const double all = longest + kOthers * (computing + moving + reading + waiting - longest);
  const bool narrow = lanes.way == LaneWay::kTeams && work.element_bytes_b == 2 && lanes.column_lanes < kLanesOfLine;
  return kLaunch + (narrow ? kNarrow + kNarrowInCommon * common : 1) * all + joining;
}

const LaneCost& cost_of(LaneWay way, const CostCoefficients& costs) {
  switch (way) {
    case LaneWay::kStream:
      return costs.stream;
    case LaneWay::kSingles:
      return costs.singles;
    case LaneWay::kFixed:
      return costs.fixed;
    case LaneWay::kTensor:
      return costs.tensor;
    default:
      return costs.bundles;
  }
}

// How many of the columns of A a row group has: of rows that know nothing of each other, or that have columns in common
// with their neighbours, as a window has.
struct ColumnShares {
  double of_64, of_128;  // rows
  double alike;          // 0: rows know nothing of each other; 1: twice as many have no more columns

  // The share of strips of so many columns, which meet blocks in whole and in part, in which a row group has a block.
  // Where rows are alike, so are columns next to each other: a strip of a window has little more blocks than one of its
  // columns.
  double of_strips(int rows, int columns, int32_t block_k) const {
    return of_strips(rows == 64 ? of_64 : of_128, columns, block_k);
  }
  // Likewise, where a row group has this share of the columns.
  double of_strips(double share, int columns, int32_t block_k) const {
    const double met = static_cast<double>(columns + block_k - std::gcd(columns, block_k)) / block_k;
    return 1 - std::pow(1 - share, std::max(1.0, std::pow(met, (1 - alike) * (1 - alike))));
  }
};

ColumnShares shares_of(const Work& work) {
  const BsrShape& shape = work.shape;
  const auto share = [&](int64_t loads, double rows) {
    const double groups = ceil_div(static_cast<double>(shape.rows), rows);
    return std::min(1.0, static_cast<double>(loads) / (groups * static_cast<double>(shape.block_cols)));
  };
  ColumnShares shares = {share(work.stats.rows64.loads, 64), share(work.stats.rows128.loads, 128), 0};
  const double apart = 2 - shares.of_64, seen = shares.of_64 > 0 ? shares.of_128 / shares.of_64 : apart;
  if (apart > 1) shares.alike = std::clamp((apart - seen) / (apart - 1), 0.0, 1.0);
  return shares;
}

}  // namespace

double predict_few_columns(const Work& work, const CostCoefficients& costs) {
  const BsrShape& shape = work.shape;
  if (shape.rows == 0 || work.n == 0) return costs.bundles.launch;
  const ElementBytes elements = {static_cast<int>(work.element_bytes), static_cast<int>(work.element_bytes_b)};
  const double blocks_of_row = static_cast<double>(shape.nnzb) / shape.block_rows;
  const LaneLayout lanes = lane_layout(shape.block_m, shape.block_k, work.n, elements, blocks_of_row);
  if (lanes.way == LaneWay::kLines || lanes.way == LaneWay::kTeams) return predict_lines(work, lanes);
  return predict_way(work, lanes, cost_of(lanes.way, costs));
}

// Instructions, what is moved, and what comes from L2: B once for neighbouring rows, and A for each panel of columns.
// Warps have some rows at a time, which take as long as a block of each lane after the other; a row that is longer than
// others is cut in halves of chunks.
double predict_window(const Work& work, const CostCoefficients& costs) {
  const WindowCost& cost = costs.window;
  constexpr double kHalves = 8;  // of chunks of an SM
  // Where factors apply.
  constexpr int64_t kLeast = 8, kMany = 32, kVeryMany = 1024;
  constexpr double kApart = 0.9, kLong = 48, kUneven = 3, kApartByMany = 1.25;
  const BsrShape& shape = work.shape;
  if (shape.rows == 0 || work.n == 0) return cost.launch;
  const auto blocks = static_cast<double>(shape.nnzb), of_row = blocks / shape.block_rows;
  const LaneLayout lanes = window_layout(shape.block_m, work.n, static_cast<int>(work.element_bytes), of_row);
  const double sms = work.device.sm_count, entries = lanes.rows * lanes.shares;
  const int pieces = lanes.tile_n * static_cast<int>(work.element_bytes) / kPieceBytes;
  const int warps = warps_of_window(shape.block_m, pieces, static_cast<int>(work.element_bytes));
  const double turns = ceil_div(static_cast<double>(shape.block_rows) * lanes.panels, lanes.rows * sms * warps);
  const double longest_row = std::min(static_cast<double>(work.stats.longest_row), blocks / (sms * kHalves) + of_row);
  const double steps = ((turns - 1) * of_row + std::max(of_row, longest_row)) / lanes.shares;
  const double computing = on_sms(std::max(cost.wait * steps * lanes.cost * entries,
                                           lanes.panels * blocks * lanes.cost * cost.issue * kFittedSms / sms),
                                  work);
  const double reading = static_cast<double>(work.element_bytes) *
                         (static_cast<double>(work.stats.rows128.loads) * shape.block_k * lanes.panels * lanes.columns +
                          (lanes.panels - 1) * values_of(work)) /
                         by_all_sms(cost.l2_rate, work);
  const double moved = bytes_of_operands(work) + 4 * (blocks + shape.block_rows) + bytes_of_c(work);
  const double moving = moved / memory_rate(cost.memory, work) +
                        bytes_missed(work, cost.missed, 1, work.stats.rows128.loads) / memory_rate(1, work);
  const double longest = std::max({computing, moving, reading});
  const int by_type = work.element_bytes == 4 ? 0 : 1;
  double factor = shape.block_m > 3 && work.n < kMany ? cost.few : 1;
  if (by_type == 0 && static_cast<double>(work.stats.rows128.loads) > kApart * blocks) {
    factor *= cost.apart * (work.n >= kVeryMany ? kApartByMany : 1);
  }
  const bool uneven = of_row > kLong || static_cast<double>(work.stats.longest_row) > kUneven * of_row;
  if (uneven) factor = cost.uneven[by_type];
  if (work.n < kLeast) factor = cost.narrow[by_type];
  const double single = work.n % (lanes.tile_n / pieces) != 0 ? cost.single[by_type] : 0;
  return cost.launch + single + (longest + cost.others * (computing + moving + reading - longest)) * factor;
}

// Stages of 64 columns of 128 rows: those that have a block. A stage takes what its producers do, or what waits for the
// stages before it, or its multiplications. Before that values are copied; behind it sums of tiles that are shared are
// added up. Where A is laid out, nothing is copied before, and its stages are read dense, or their lists
// (docs/notes/cost-model.md).
double predict_scatter(const KernelDesc& kernel, const Work& work) {
  struct Cost {
    double launch, copy, tile, memory, join, join_rate;
  };
  constexpr Cost kFromLists = {9.5, 2e-6, 2, 0.85, 3, 4.5e6}, kFromKeptLists = {5.5, 0, 2, 0.85, 3.1, 9e6},
                 kFromStages = {6.9, 0, 1.5, 1.1, 3.1, 9e6};
  constexpr double kWide = 0.6, kNarrow = 0.655, kColumn = 3e-4, kElement = 3e-5;  // of a stage
  constexpr double kProduce = 0.55, kPut = 1.4e-4, kMma = 0.56;                    // of its producers, and of wgmma
  constexpr double kKept = 1.08;  // of a stage from lists without a kernel before
  constexpr double kStagesWide = 0.442, kStagesColumns = 0.148, kStagesNarrow = 0.553, kAlone = 0.7;
  const BsrShape& shape = work.shape;
  if (shape.rows == 0 || work.n == 0) return kFromStages.launch;
  const ListSizes sizes = list_sizes(shape.rows, shape.cols, shape.nnzb, shape.block_m, shape.block_k);
  const bool from_stages = work.is_laid_out && keeps_stages(sizes, kernel.tile_n);
  const Cost& cost = from_stages ? kFromStages : work.is_laid_out ? kFromKeptLists : kFromLists;
  const double groups = static_cast<double>(sizes.groups), all_stages = static_cast<double>(sizes.stages);
  const ColumnShares shares = shares_of(work);
  const double stages =
      std::max(1.0, all_stages * shares.of_strips(/*rows=*/128, sizes.columns, shape.block_k));  // of a row group
  const double panels = ceil_div(static_cast<double>(work.n), kernel.tile_n);
  const int ctas = ctas_of(kernel, work);
  const int32_t parts = work.shares_tiles ? parts_of_tiles(sizes, shape.nnzb, static_cast<int64_t>(panels), ctas) : 1;
  const double elements = values_of(work) / (groups * stages);
  const double columns = std::min(static_cast<double>(work.n), static_cast<double>(kernel.tile_n));
  const bool wide = kernel.tile_n > 64;
  double stage = 0;
  if (from_stages) {
    const bool alone = groups * panels * parts <= work.device.sm_count;
    stage = wide ? kStagesWide + kStagesColumns * columns / kernel.tile_n : kStagesNarrow * (alone ? kAlone : 1);
  } else {
    stage = std::max({kMma * kernel.tile_n / 256, kProduce + kPut * elements,
                      (wide ? kWide : kNarrow) + kColumn * columns + kElement * elements}) *
            (work.is_laid_out ? kKept : 1);
  }
  const double turns = ceil_div(groups * panels, ctas);
  const double sums = 2. * parts * static_cast<double>(shape.rows * work.n) * sizeof(float);
  const double joining = parts > 1 ? cost.join + sums / by_all_sms(cost.join_rate, work) : 0;
  // The row group that has the most columns ends last.
  const double of_longest =
      std::min(1.0, static_cast<double>(work.stats.rows128.longest) / static_cast<double>(shape.block_cols));
  const double longest = all_stages * shares.of_strips(of_longest, sizes.columns, shape.block_k);
  const double busy = cost.copy * kUnit * static_cast<double>(sizes.units()) +
                      turns * (stages / parts * stage + cost.tile) + std::max(0.0, longest - stages) / parts * stage;
  const double of_b = static_cast<double>(work.element_bytes_b * shape.cols * work.n);
  const double of_operands = from_stages ? groups * stages * kStageTileBytes + of_b : bytes_of_operands(work);
  const double moving = (of_operands + bytes_of_c(work)) / memory_rate(cost.memory, work);
  const double copying = work.packs_b ? pack_b(work) : 0;
  return cost.launch + copying + joining + together(on_sms(busy, work), moving, kWithMemory);
}

// Strips of 16 columns of 64 rows that have a block, which are read, and before that written where A is not laid out;
// of these, units of 8 rows that have one, which are multiplied. The sums of tiles that are shared are added up.
double predict_packed_fp64(const KernelDesc& kernel, const Work& work) {
  constexpr double kLaunch = 4, kTile = 8, kMemory = 1.1, kJoinRate = 3.1e6, kUnitRows = 8;
  constexpr double kPack = 28, kElement = 4e-6, kPackMemory = 0.6;
  // Of a strip, where an SM has as many CTAs as it holds: its units, and its copies; and the share of one that is
  // alone.
  struct Stage {
    double units, copies, alone;
  };
  constexpr Stage kWide = {1.12, 0.71, 0.85}, kNarrow = {0.895, 0.68, 0.58};
  const BsrShape& shape = work.shape;
  if (shape.rows == 0 || work.n == 0) return kLaunch;
  const StripSizes sizes = strip_sizes(shape.rows, shape.cols, shape.block_m);
  const double blocks = static_cast<double>(shape.nnzb), bm = shape.block_m, bk = shape.block_k;
  const double groups = static_cast<double>(sizes.groups);
  const ColumnShares shares = shares_of(work);
  const double of_strips = std::max(shares.of_strips(/*rows=*/64, kStripColumns, shape.block_k), 1e-6);
  const double strips = std::max(1.0, static_cast<double>(sizes.strips) * of_strips);
  const double density =
      std::min(1.0, blocks / (static_cast<double>(shape.block_rows) * static_cast<double>(shape.block_cols)));
  const double blocks_of_unit = (kUnitRows + bm - 1) / bm * (kStripColumns + bk - 1) / bk;
  const double apart = std::min(1.0, (1 - std::pow(1 - density, blocks_of_unit)) / of_strips);
  const double units = shares.alike + (1 - shares.alike) * apart;  // of a strip that has a block
  const double panels = ceil_div(static_cast<double>(work.n), kernel.tile_n), tiles = groups * panels;
  const int ctas = ctas_of(kernel, work);
  const int32_t parts = work.shares_tiles ? parts_of_tiles(sizes, shape.nnzb, static_cast<int64_t>(panels), ctas) : 1;
  const double most = kernel.ops->ctas_per_sm, sms = work.device.sm_count;
  const double of_sm = std::clamp(std::min(tiles * parts, static_cast<double>(ctas)) / sms, 1.0, most);
  const Stage& cost = kernel.tile_n > 64 ? kWide : kNarrow;
  const double stage =
      std::max(cost.copies, cost.units * units) * (cost.alone + (1 - cost.alone) * (of_sm - 1) / (most - 1));
  const double turns = tiles / ctas > 4 ? tiles / ctas : ceil_div(tiles, ctas);
  const double tile_bytes = groups * strips * kStripBytes;
  const double packing =
      work.is_laid_out ? 0 : kPack + kElement * values_of(work) + tile_bytes / memory_rate(kPackMemory, work);
  const double of_b = static_cast<double>(work.element_bytes_b * shape.cols * work.n);
  const double moving = (tile_bytes + of_b + bytes_of_c(work)) / memory_rate(kMemory, work);
  const double sums = 2. * parts * static_cast<double>(shape.rows * work.n) * sizeof(double);
  const double joining = parts > 1 ? sums / by_all_sms(kJoinRate, work) : 0;
  const double copying = work.packs_b ? pack_b(work) : 0;
  return kLaunch + copying + packing + joining +
         together(on_sms(turns * (strips / parts * stage + kTile), work), moving, kWithMemory);
}

// Strips of 16 columns of 128 rows that have a block, of which A's planes are written and read; of these, halves of 64
// rows that have one, which are multiplied. B's planes are made before.
double predict_packed_planes(const KernelDesc& kernel, const Work& work) {
  constexpr double kLaunch = 12, kMemory = 0.6, kPart = 2.2, kElement = 1.2e-5;
  constexpr double kHalf = 0.235, kStage = 0.3, kTile = 2.5;
  constexpr double kJoin = 3, kJoinRate = 4.5e6;
  const BsrShape& shape = work.shape;
  if (shape.rows == 0 || work.n == 0) return kLaunch;
  const PlaneStripSizes sizes(shape.rows, shape.cols, shape.block_m);
  const double groups = static_cast<double>(sizes.groups);
  const double all_strips = static_cast<double>(sizes.strips);
  const ColumnShares shares = shares_of(work);
  const double strips = std::max(1.0, all_strips * shares.of_strips(/*rows=*/128, kPlaneStripColumns, shape.block_k));
  const double halves = std::max(1.0, all_strips * shares.of_strips(/*rows=*/64, kPlaneStripColumns, shape.block_k));
  const double panels = ceil_div(static_cast<double>(work.n), kernel.tile_n);
  // Strips in which both halves have a block, and those in which one has.
  const double both = std::max(0.0, 2 * halves - strips), one = strips - both;
  const double tile = both * kPlaneHalves * kHalf + one * kStage + kTile;
  // The row group that has the most columns ends last.
  const double of_longest =
      std::min(1.0, static_cast<double>(work.stats.rows128.longest) / static_cast<double>(shape.block_cols));
  const double longest = all_strips * shares.of_strips(of_longest, kPlaneStripColumns, shape.block_k);
  const int32_t parts =
      work.shares_tiles ? parts_of_tiles(sizes, shape.nnzb, static_cast<int64_t>(panels), ctas_of(kernel, work)) : 1;
  const double sums = 2. * parts * static_cast<double>(shape.rows * work.n) * sizeof(float);
  const double joining = parts > 1 ? kJoin + sums / by_all_sms(kJoinRate, work) : 0;
  const double busy = (ceil_div(groups * panels, ctas_of(kernel, work)) * tile +
                       std::max(0.0, longest - strips) * kPlaneHalves * kHalf) /
                      parts;
  const double plane_bytes = kPlanes * 2, of_b = static_cast<double>(shape.cols) * panels * kernel.tile_n;
  const double of_a = work.is_laid_out ? 0 : groups * strips * kPlaneStripBytes;
  const double writing_a = ceil_div(groups * static_cast<double>(sizes.parts), 2. * work.device.sm_count) * kPart +
                           kElement * values_of(work);
  const double packing =
      (work.is_laid_out ? 0 : writing_a) + (of_a + of_b * (sizeof(float) + plane_bytes)) / memory_rate(kMemory, work);
  const double moving = bytes_of_c(work) / memory_rate(kMemory, work);
  return kLaunch + packing + joining + together(on_sms(busy, work), moving, kWithMemory);
}

}  // namespace sparsek::cuda
