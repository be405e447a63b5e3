// SPDX-License-Identifier: Apache-2.0
// Tile scheduler that gives CTA i of a persistent grid every gridDim-th tile of the plan, from tile i on. For each tile
// it gives the kernel the coordinates in C and the entries of the sparse outer loop.
#pragma once

#include <cstdint>

#include "cutlass/gemm/kernel/tile_scheduler.hpp"
#include "plan/plan.h"

namespace sparsek {

struct BsrScheduler {};  // the tag by which the kernel layer selects this scheduler

class PlanTileScheduler {
 public:
  struct Arguments {
    WorkTile const* tiles = nullptr;  // (tiles_count)
    int32_t tiles_count = 0;
    int32_t steps_per_entry = 1;  // k tiles of a block: bk / BLK_K
  };
  using Params = Arguments;

  struct WorkTileInfo {
    int32_t M_idx = 0;         // row group
    int32_t N_idx = 0;         // panel of columns
    int32_t L_idx = 0;         // always 0: there is no batch
    int32_t entry_begin = 0;   // first entry of the row group
    int32_t k_tile_count = 0;  // entries x steps_per_entry
    bool valid = false;

    CUTLASS_DEVICE bool is_valid() const { return valid; }
    CUTLASS_DEVICE int32_t reduction_subtile_idx() const { return -1; }
  };

  static constexpr bool IsDynamicPersistent = false;
  using Pipeline = cutlass::PipelineEmpty;
  using ThrottlePipeline = cutlass::PipelineEmpty;
  struct CLCResponse {};
  class SharedStorage {
   public:
    CUTLASS_DEVICE typename Pipeline::SharedStorage pipeline() { return {}; }
    CUTLASS_DEVICE typename ThrottlePipeline::SharedStorage throttle_pipeline() { return {}; }
    CUTLASS_DEVICE CLCResponse* data() { return nullptr; }
  };

  template <class ProblemShape, class TileShape, class ClusterShape>
  static Params to_underlying_arguments(ProblemShape, TileShape, ClusterShape, cutlass::KernelHardwareInfo const&,
                                        Arguments const& arguments, void* = nullptr, uint32_t = 1) {
    return arguments;
  }
  static bool can_implement(Arguments const&) { return true; }
  template <class ProblemShape, class ElementAccumulator>
  static size_t get_workspace_size(Arguments const&, ProblemShape, cutlass::KernelHardwareInfo const&, uint32_t,
                                   uint32_t = 1) {
    return 0;
  }

  CUTLASS_DEVICE explicit PlanTileScheduler(Params const& params) : params_(params) {
    next_ = blockIdx.x;
    end_ = params.tiles_count;
    fetch();
  }

  template <class ClusterShape>
  CUTLASS_DEVICE WorkTileInfo initial_work_tile_info(ClusterShape) {
    return take();
  }

  CUTLASS_DEVICE auto fetch_next_work(WorkTileInfo) { return cute::make_tuple(take(), true); }
  template <class TileSchedulerPipeline, class TileSchedulerPipelineState>
  CUTLASS_DEVICE auto fetch_next_work(WorkTileInfo info, TileSchedulerPipeline&, TileSchedulerPipelineState) {
    return fetch_next_work(info);
  }

  // The collective reads the entries itself, so this is the first entry and not a k tile.
  CUTLASS_DEVICE static uint32_t get_work_k_tile_start(WorkTileInfo const& info) { return info.entry_begin; }
  template <class ProblemShape, class TileShape>
  CUTLASS_DEVICE static int get_work_k_tile_count(WorkTileInfo const& info, ProblemShape, TileShape) {
    return info.k_tile_count;
  }

  // Each tile is computed by one CTA, without a reduction.
  CUTLASS_DEVICE static bool valid_warpgroup_in_work_tile(WorkTileInfo const&) { return true; }
  CUTLASS_DEVICE static bool compute_epilogue(WorkTileInfo const&, Params const&) { return true; }
  CUTLASS_DEVICE static bool requires_separate_reduction(Params const&) { return false; }
  template <class FrgTensorC>
  CUTLASS_DEVICE static void fixup(Params const&, WorkTileInfo const&, FrgTensorC&, uint32_t, uint32_t) {}

 private:
  // Reads one tile ahead, so that the current tile hides the latency of the work list.
  CUTLASS_DEVICE void fetch() {
    if (next_ < end_) ahead_ = __ldg(reinterpret_cast<int4 const*>(params_.tiles) + next_);
  }

  CUTLASS_DEVICE WorkTileInfo take() {
    WorkTileInfo info;
    info.valid = next_ < end_;
    if (info.valid) {
      info.M_idx = ahead_.x;
      info.N_idx = ahead_.y;
      info.entry_begin = ahead_.z;
      info.k_tile_count = ahead_.w * params_.steps_per_entry;
      next_ += gridDim.x;
      fetch();
    }
    return info;
  }

  Params const& params_;
  int32_t next_, end_;
  int4 ahead_ = {};
};

static_assert(sizeof(WorkTile) == sizeof(int4), "a work tile is read as one int4");

}  // namespace sparsek

namespace cutlass::gemm::kernel::detail {

template <class ArchTag, class TileShape, class ClusterShape, uint32_t SchedulerPipelineStageCount>
struct TileSchedulerSelector<sparsek::BsrScheduler, ArchTag, TileShape, ClusterShape, SchedulerPipelineStageCount> {
  static_assert(cute::size(ClusterShape{}) == 1, "work lists are made for single CTAs");
  using Scheduler = sparsek::PlanTileScheduler;
};

}  // namespace cutlass::gemm::kernel::detail
