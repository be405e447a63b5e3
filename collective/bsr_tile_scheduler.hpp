// SPDX-License-Identifier: Apache-2.0
// Tile scheduler that gives the CTAs of a persistent grid the tiles of a plan, each the next one when it needs one:
// collective/tile_queue.hpp. For each tile it gives the kernel the coordinates in C and the entries of the sparse outer
// loop.
//
// CUTLASS's cooperative kernel has the roles for it: the second warp of the producer's warpgroup takes tiles, and all
// other warps that work on tiles read the queue. The mainloop's load() signals when the next tile is to be taken. The
// throttle pipeline, by which the kernel would have it taken when the loads of a tile begin, does nothing.
#pragma once

#include <cstdint>

#include "collective/tile_queue.hpp"
#include "cutlass/gemm/kernel/tile_scheduler.hpp"
#include "cutlass/pipeline/pipeline.hpp"
#include "plan/work_tile.h"

namespace sparsek {

struct BsrScheduler {};  // the tag by which the kernel layer selects this scheduler

// The queue in the form of a pipeline of CUTLASS, whose kernel counts the threads that read it.
template <int Depth>
class TileQueuePipeline {
 public:
  static constexpr uint32_t Stages = Depth;
  using SharedStorage = TileQueue<Depth>;
  using PipelineState = cutlass::PipelineState<Depth>;
  enum class ThreadCategory { Consumer, ProducerConsumer };
  struct Params {
    ThreadCategory role = ThreadCategory::Consumer;
    uint32_t producer_blockid = 0;
    uint32_t producer_arv_count = 1;
    uint32_t consumer_arv_count = 0;
    uint32_t transaction_bytes = 0;
  };

  CUTLASS_DEVICE TileQueuePipeline(SharedStorage& queue, Params const& params) : queue_(queue) {
    if (threadIdx.x == 0) {
      queue.init(params.consumer_arv_count / cutlass::NumThreadsPerWarp);
      cutlass::arch::fence_barrier_init();
    }
  }

  // state: CUTLASS's of a producer, which begins with phase 1.
  CUTLASS_DEVICE void publish(TileList const& list, PipelineState const& state) {
    queue_.publish(list, claim_tile(list), {static_cast<int>(state.index()), state.phase() ^ 1});
  }
  CUTLASS_DEVICE WorkTile next(PipelineState const& state) {
    return queue_.next({static_cast<int>(state.index()), state.phase()}, cutlass::canonical_lane_idx());
  }

  // Every tile that was published is read.
  CUTLASS_DEVICE void producer_tail(PipelineState) {}

 private:
  SharedStorage& queue_;
};

struct NoThrottle {
  using SharedStorage = cutlass::PipelineEmpty::SharedStorage;
  static constexpr uint32_t Stages = 1;
  using PipelineState = cutlass::PipelineState<Stages>;
  enum class ThreadCategory { Producer, Consumer };
  struct Params {
    ThreadCategory role = ThreadCategory::Consumer;
    uint32_t producer_arv_count = 0;
    uint32_t consumer_arv_count = 0;
    uint32_t dst_blockid = 0;
    int initializing_warp = 0;
  };

  CUTLASS_DEVICE NoThrottle(SharedStorage&, Params const&) {}
  CUTLASS_DEVICE void producer_acquire(PipelineState) {}
  CUTLASS_DEVICE void producer_commit(PipelineState) {}
  CUTLASS_DEVICE void consumer_wait(PipelineState) {}
  CUTLASS_DEVICE void consumer_release(PipelineState) {}
};

template <int Depth, int TileN>
class PlanTileScheduler {
 public:
  struct Arguments {
    TileList list;
    int64_t n = 0;                // columns of the product: tiles beyond them have nothing to sum up
    int32_t steps_per_entry = 1;  // k tiles of a block: bk / BLK_K
  };
  using Params = Arguments;

  struct WorkTileInfo {
    int32_t M_idx = kNoTile;   // row group
    int32_t N_idx = 0;         // panel of columns
    int32_t L_idx = 0;         // always 0: there is no batch
    int32_t entry_begin = 0;   // first entry of the row group
    int32_t k_tile_count = 0;  // entries x steps_per_entry

    CUTLASS_DEVICE bool is_valid() const { return M_idx != kNoTile; }
    CUTLASS_DEVICE int32_t reduction_subtile_idx() const { return -1; }
  };

  static constexpr bool IsDynamicPersistent = true;
  using Pipeline = TileQueuePipeline<Depth>;
  using ThrottlePipeline = NoThrottle;
  using PipelineState = typename Pipeline::PipelineState;
  struct CLCResponse {};
  class SharedStorage {
   public:
    CUTLASS_DEVICE typename Pipeline::SharedStorage& pipeline() { return queue_; }
    CUTLASS_DEVICE typename ThrottlePipeline::SharedStorage& throttle_pipeline() { return throttle_; }
    CUTLASS_DEVICE CLCResponse* data() { return nullptr; }

   private:
    typename Pipeline::SharedStorage queue_;
    typename ThrottlePipeline::SharedStorage throttle_;
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

  CUTLASS_DEVICE explicit PlanTileScheduler(Params const& params) : params_(params) {}
  CUTLASS_DEVICE void set_data_ptr(CLCResponse*) {}

  // The CTA's first tile is the one of its number, without columns in C where it has none.
  template <class ClusterShape>
  CUTLASS_DEVICE WorkTileInfo initial_work_tile_info(ClusterShape) {
    int4 const words = __ldg(reinterpret_cast<int4 const*>(params_.list.tiles) + blockIdx.x);
    bool const is_own = blockIdx.x + params_.list.late < gridDim.x;
    return describe({words.x, is_own ? words.y : int32_t((params_.n + TileN - 1) / TileN), words.z, words.w});
  }

  CUTLASS_DEVICE PipelineState advance_to_next_work(Pipeline& pipeline, PipelineState state) {
    NextTileSignal::wait();
    if (cute::elect_one_sync()) pipeline.publish(params_.list, state);
    __syncwarp();
    ++state;
    return state;
  }

  CUTLASS_DEVICE auto fetch_next_work(WorkTileInfo, Pipeline& pipeline, PipelineState const& state) {
    return cute::make_tuple(describe(pipeline.next(state)), true);
  }
  // For kernels that give warpgroups no tile, which is not the case here.
  CUTLASS_DEVICE auto fetch_next_work(WorkTileInfo info) { return cute::make_tuple(info, true); }

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
  CUTLASS_DEVICE WorkTileInfo describe(WorkTile const& tile) const {
    bool const in_c = int64_t(tile.n_tile) * TileN < params_.n;
    return {tile.m_tile, tile.n_tile, 0, tile.entry_begin, in_c ? tile.entry_count * params_.steps_per_entry : 0};
  }

  Params const& params_;
};

}  // namespace sparsek

namespace cutlass::gemm::kernel::detail {

template <class ArchTag, class TileShape, class ClusterShape, uint32_t SchedulerPipelineStageCount>
struct TileSchedulerSelector<sparsek::BsrScheduler, ArchTag, TileShape, ClusterShape, SchedulerPipelineStageCount> {
  static_assert(cute::size(ClusterShape{}) == 1, "tiles are taken by single CTAs");
  using Scheduler = sparsek::PlanTileScheduler<4, cute::size<1>(TileShape{})>;
};

}  // namespace cutlass::gemm::kernel::detail
