// SPDX-License-Identifier: Apache-2.0
// Block-sparse CollectiveMma for Hopper: C tile = sum over the entries of the tile's row group of A block x B block.
//
// The producer warp walks the entries: it loads a block row of B, and a block of A for each slot that has one there.
// Consumer warpgroups multiply from shared memory; where a tile holds several block rows (Slots = 2) each warpgroup has
// one of them and skips the entries in which that has no block, so an absent block costs no arithmetic and never
// reaches C.
//
//   A   values (bm, bk, nnzb):(bk, 1, bm bk): by TMA into stages (BLK_M, BLK_K), a box (BLK_M / Slots, BLK_K) a slot
//   B   (N, K):(1, ldb): by TMA into stages (BLK_N, BLK_K)
//
// The interface is the one that CUTLASS's cooperative kernel expects of a mainloop, with two differences: the k tile
// iterator counts entries, and mma() releases every stage itself, so that mma_tail is empty.
#pragma once

#include <cuda.h>

#include "collective/sm90_bsr_dispatch_policy.hpp"
#include "collective/tile_queue.hpp"
#include "cute/algorithm/functional.hpp"
#include "cute/algorithm/gemm.hpp"
#include "cute/arch/cluster_sm90.hpp"
#include "cute/arch/copy_sm90.hpp"
#include "cute/atom/mma_atom.hpp"
#include "cutlass/arch/barrier.h"
#include "cutlass/cutlass.h"
#include "cutlass/gemm/collective/collective_mma_decl.hpp"
#include "cutlass/pipeline/pipeline.hpp"
#include "plan/work_tile.h"

namespace cutlass::gemm::collective {
using namespace cute;

template <int Stages, int Slots, class ClusterShape, class Schedule, class TileShape_, class ElementA_, class StrideA_,
          class ElementB_, class StrideB_, class TiledMma_, class GmemTiledCopyA_, class SmemLayoutAtomA_,
          class SmemCopyAtomA_, class TransformA_, class GmemTiledCopyB_, class SmemLayoutAtomB_, class SmemCopyAtomB_,
          class TransformB_>
struct CollectiveMma<sparsek::MainloopSm90TmaGmmaBsr<Stages, Slots, ClusterShape, Schedule>, TileShape_, ElementA_,
                     StrideA_, ElementB_, StrideB_, TiledMma_, GmemTiledCopyA_, SmemLayoutAtomA_, SmemCopyAtomA_,
                     TransformA_, GmemTiledCopyB_, SmemLayoutAtomB_, SmemCopyAtomB_, TransformB_> {
  using DispatchPolicy = sparsek::MainloopSm90TmaGmmaBsr<Stages, Slots, ClusterShape, Schedule>;
  using TileShape = TileShape_;
  using ElementA = ElementA_;
  using StrideA = StrideA_;  // values as (bm, bk, nnzb), row-major blocks
  using ElementB = ElementB_;
  using StrideB = StrideB_;  // (N, K, 1), N contiguous
  using TiledMma = TiledMma_;
  using ElementAccumulator = typename TiledMma::ValTypeC;
  using GmemTiledCopyA = GmemTiledCopyA_;
  using GmemTiledCopyB = GmemTiledCopyB_;
  using SmemLayoutAtomA = SmemLayoutAtomA_;
  using SmemLayoutAtomB = SmemLayoutAtomB_;
  using SmemCopyAtomA = SmemCopyAtomA_;
  using SmemCopyAtomB = SmemCopyAtomB_;
  using TransformA = TransformA_;
  using TransformB = TransformB_;
  using ArchTag = typename DispatchPolicy::ArchTag;

  using MainloopPipeline = cutlass::PipelineTmaAsync<Stages>;
  using PipelineState = cutlass::PipelineState<Stages>;
  static constexpr int NumProducerThreadEvents = 1;

  static constexpr int kBlkM = size<0>(TileShape{});
  static constexpr int kBlkN = size<1>(TileShape{});
  static constexpr int kBlkK = size<2>(TileShape{});
  static constexpr int kMmaWarpGroups = size(TiledMma{}) / NumThreadsPerWarpGroup;
  static constexpr int kSlotRows = kBlkM / Slots;

  static_assert(Stages >= 2, "the ring needs two stages or more");
  static_assert(Slots == 1 || Slots == kMmaWarpGroups, "one warpgroup computes one slot");
  static_assert(size(ClusterShape{}) == 1, "CTAs of a cluster would need a common entry list");
  static_assert(kBlkK == size<1>(SmemLayoutAtomA{}), "slots lie one after the other in shared memory");
  static_assert(is_base_of<GMMA::DescriptorIterator, typename TiledMma::FrgTypeA>::value &&
                    is_base_of<GMMA::DescriptorIterator, typename TiledMma::FrgTypeB>::value,
                "both operands come from shared memory");
  static_assert(is_same_v<GmemTiledCopyA, SM90_TMA_LOAD> && is_same_v<GmemTiledCopyB, SM90_TMA_LOAD>);

  // Two views of the same bytes: for the copies (rows of a slot, BLK_K, slot, stage), for the MMA (BLK_M, BLK_K,
  // stage).
  using SmemLayoutSlotsA = decltype(tile_to_shape(
      SmemLayoutAtomA{}, make_shape(Int<kSlotRows>{}, Int<kBlkK>{}, Int<Slots>{}, Int<Stages>{})));
  using SmemLayoutA = decltype(tile_to_shape(SmemLayoutAtomA{}, make_shape(Int<kBlkM>{}, Int<kBlkK>{}, Int<Stages>{})));
  // (BLK_N, BLK_K, stage), atoms ordered along K first, so that a TMA box is as tall as the k tile.
  using SmemLayoutB = decltype(tile_to_shape(SmemLayoutAtomB{}, make_shape(Int<kBlkN>{}, Int<kBlkK>{}, Int<Stages>{}),
                                             Step<_2, _1, _3>{}));
  static_assert(cosize_v<SmemLayoutSlotsA> == cosize_v<SmemLayoutA>);

  struct SharedStorage {
    struct TensorStorage : aligned_struct<128, _0> {
      array_aligned<typename TiledMma::ValTypeA, cosize_v<SmemLayoutA>> smem_A;
      array_aligned<typename TiledMma::ValTypeB, cosize_v<SmemLayoutB>> smem_B;
      // (Stages). Bit s of present[stage]: slot s has a block in the entry of the stage.
      cute::array<uint32_t, Stages> present;
    } tensors;
    using PipelineStorage = typename MainloopPipeline::SharedStorage;
    PipelineStorage pipeline;
  };
  using TensorStorage = typename SharedStorage::TensorStorage;
  using PipelineStorage = typename SharedStorage::PipelineStorage;

  struct Arguments {
    CUtensorMap map_a;  // of A's values (bk, bm, nnzb), innermost first, in boxes kMapBoxA
    CUtensorMap map_b;  // of B (N, K, 1), in boxes kMapBoxB
    int32_t block_m, block_k;
    int32_t nnzb;                // at least 1: an empty matrix passes any readable block
    int32_t const* entry_k;      // (entries): first row of B
    int32_t const* entry_block;  // (entries, Slots):(Slots, 1): storage index or kNoBlock
  };

  struct Params {
    using TMA_A = decltype(make_tma_copy(
        GmemTiledCopyA{},
        make_tensor(static_cast<ElementA const*>(nullptr), repeat_like(StrideA{}, int32_t(0)), StrideA{}),
        SmemLayoutSlotsA{}(_, _, Int<0>{}, Int<0>{}), make_shape(Int<kSlotRows>{}, Int<kBlkK>{}), Int<1>{}));
    using TMA_B = decltype(make_tma_copy(
        GmemTiledCopyB{},
        make_tensor(static_cast<ElementB const*>(nullptr), repeat_like(StrideB{}, int32_t(0)), StrideB{}),
        SmemLayoutB{}(_, _, Int<0>{}), make_shape(Int<kBlkN>{}, Int<kBlkK>{}), Int<1>{}));
    // The host makes the descriptors by itself (cuda/tensor_map.h), which takes less time than make_tma_copy: these
    // types hold nothing else.
    static_assert(is_static<typename TMA_A::AuxParams::GmemStrides>::value &&
                  is_static<typename TMA_B::AuxParams::GmemStrides>::value);
    TMA_A tma_load_a;
    TMA_B tma_load_b;
    int32_t block_m;
    int32_t steps_per_entry;  // k tiles of a block: bk / BLK_K
    int32_t row_parts;        // tiles in a block row: bm / BLK_M where a block row is taller than a tile, else 1
    int32_t nnzb;
    int32_t const* entry_k;
    int32_t const* entry_block;
    uint32_t tma_transaction_bytes = kBytesB;  // of each entry, without A, whose bytes are added as it is loaded
  };

  template <class ProblemShape>
  static Params to_underlying_arguments(ProblemShape const&, Arguments const& args, void* /*workspace*/) {
    Params params = {{},
                     {},
                     args.block_m,
                     args.block_k / kBlkK,
                     args.block_m > kBlkM ? args.block_m / kBlkM : 1,
                     args.nnzb,
                     args.entry_k,
                     args.entry_block,
                     kBytesB};
    params.tma_load_a.tma_desc_ = args.map_a;
    params.tma_load_b.tma_desc_ = args.map_b;
    return params;
  }

  static constexpr int kSwizzleElements = 128 / sizeof(ElementA);  // the inner extent of both operands' boxes
  static constexpr int kMapBoxA[3] = {kSwizzleElements, kSlotRows, 1};
  static constexpr int kMapBoxB[3] = {kSwizzleElements, kBlkK, 1};
  static constexpr uint32_t kBytesSlotA = kSlotRows * kBlkK * sizeof(ElementA);
  static constexpr uint32_t kBytesB = kBlkN * kBlkK * sizeof(ElementB);

  CUTLASS_DEVICE static void prefetch_tma_descriptors(Params const& params) {
    cute::prefetch_tma_descriptor(params.tma_load_a.get_tma_descriptor());
    cute::prefetch_tma_descriptor(params.tma_load_b.get_tma_descriptor());
  }

  // Returns (gA, gB):
  //   gA (BLK_M / Slots, BLK_K, m, k, l): m counts parts of a block, k the k tiles of a block, l is the storage index
  //   gB (BLK_N, BLK_K, n, k, l)
  template <class ProblemShape_MNKL>
  CUTLASS_DEVICE auto load_init(ProblemShape_MNKL const& problem_shape_MNKL, Params const& params) const {
    auto [M, N, K, L] = problem_shape_MNKL;
    Tensor mA = params.tma_load_a.get_tma_tensor(
        make_shape(params.block_m, params.steps_per_entry * kBlkK, params.nnzb));  // (m,k,l)
    Tensor mB = params.tma_load_b.get_tma_tensor(make_shape(N, K, L));             // (n,k,l)
    Tensor gA = local_tile(mA, make_shape(Int<kSlotRows>{}, Int<kBlkK>{}), make_coord(_, _));
    Tensor gB = local_tile(mB, make_shape(Int<kBlkN>{}, Int<kBlkK>{}), make_coord(_, _));
    return cute::make_tuple(gA, gB);
  }

  // Producer: the warp reads 32 entries at a time, one by each lane; one lane waits for stages and issues the copies.
  template <class TensorA, class TensorB, class EntryIterator, class BlockCoord>
  CUTLASS_DEVICE void load(Params const& params, MainloopPipeline pipeline, PipelineState smem_pipe_write,
                           cute::tuple<TensorA, TensorB> const& load_inputs, BlockCoord const& blk_coord,
                           EntryIterator entry_iter, int k_tile_count, int lane, uint32_t /*block_rank_in_cluster*/,
                           TensorStorage& shared_tensors) {
    bool const issues = cute::elect_one_sync();
    auto [m_coord, n_coord, k_coord, l_coord] = blk_coord;

    Tensor sA = make_tensor(make_smem_ptr(shared_tensors.smem_A.data()), SmemLayoutSlotsA{});  // (ROWS,BLK_K,SLOT,PIPE)
    Tensor sB = make_tensor(make_smem_ptr(shared_tensors.smem_B.data()), SmemLayoutB{});       // (BLK_N,BLK_K,PIPE)
    auto tma_a = params.tma_load_a.get_slice(Int<0>{});
    auto tma_b = params.tma_load_b.get_slice(Int<0>{});
    Tensor tAgA = tma_a.partition_S(get<0>(load_inputs)(_, _, m_coord % params.row_parts, _, _));  // (TMA,_,_,k,l)
    Tensor tAsA = tma_a.partition_D(sA);                                               // (TMA,_,_,SLOT,PIPE)
    Tensor tBgB = tma_b.partition_S(get<1>(load_inputs)(_, _, n_coord, _, Int<0>{}));  // (TMA,_,_,k)
    Tensor tBsB = tma_b.partition_D(sB);                                               // (TMA,_,_,PIPE)

    int const steps = params.steps_per_entry;
    int const entries = k_tile_count / steps;
    int const first = *entry_iter;
    // The ring holds the loads of Stages further steps back, and they take longer than the next tile's arrival.
    constexpr int kStepsAhead = 2;
    int const take_next = max(entries - (kStepsAhead + steps - 1) / steps, 0);

    int32_t first_k = 0;
    int32_t block[Slots];
    CUTLASS_PRAGMA_NO_UNROLL
    for (int e = 0; e < entries; ++e) {
      if (e == take_next) sparsek::NextTileSignal::give();
      if (e % NumThreadsPerWarp == 0 && e + lane < entries) {
        first_k = __ldg(params.entry_k + first + e + lane);
        CUTLASS_PRAGMA_UNROLL
        for (int s = 0; s < Slots; ++s) {
          block[s] = __ldg(params.entry_block + int64_t(first + e + lane) * Slots + s);
        }
      }
      int32_t const entry_k = __shfl_sync(0xffffffffu, first_k, e % NumThreadsPerWarp);
      int32_t entry_block[Slots];
      CUTLASS_PRAGMA_UNROLL
      for (int s = 0; s < Slots; ++s) {
        entry_block[s] = __shfl_sync(0xffffffffu, block[s], e % NumThreadsPerWarp);
      }

      if (issues) {
        CUTLASS_PRAGMA_NO_UNROLL
        for (int k = 0; k < steps; ++k) {
          load_step(params, pipeline, smem_pipe_write, shared_tensors, tAgA, tAsA, tBgB, tBsB, entry_k / kBlkK + k, k,
                    entry_block);
          ++smem_pipe_write;
        }
      }
      __syncwarp();
    }
    if (entries == 0) sparsek::NextTileSignal::give();
  }

  CUTLASS_DEVICE void load_tail(MainloopPipeline pipeline, PipelineState smem_pipe_write) {
    if (cute::elect_one_sync()) pipeline.producer_tail(smem_pipe_write);
  }

  // Consumer: accum = sum over the tile's entries; zero where there are none.
  template <class FrgTensorC>
  CUTLASS_DEVICE void mma(MainloopPipeline pipeline, PipelineState smem_pipe_read, FrgTensorC& accum, int k_tile_count,
                          int thread_idx, TensorStorage& shared_tensors, Params const&) {
    static_assert(is_rmem<FrgTensorC>::value);
    Tensor sA = make_tensor(make_smem_ptr(shared_tensors.smem_A.data()), SmemLayoutA{});  // (BLK_M,BLK_K,PIPE)
    Tensor sB = make_tensor(make_smem_ptr(shared_tensors.smem_B.data()), SmemLayoutB{});  // (BLK_N,BLK_K,PIPE)

    int const warp_group = __shfl_sync(0xffffffffu, thread_idx / NumThreadsPerWarpGroup, 0);
    Layout warp_group_threads = make_layout(Int<kMmaWarpGroups>{}, Int<NumThreadsPerWarpGroup>{});
    TiledMma tiled_mma;
    auto thread_mma = tiled_mma.get_slice(warp_group_threads(warp_group));
    Tensor tCrA = thread_mma.make_fragment_A(thread_mma.partition_A(sA));  // (MMA,MMA_M,MMA_K,PIPE)
    Tensor tCrB = thread_mma.make_fragment_B(thread_mma.partition_B(sB));  // (MMA,MMA_N,MMA_K,PIPE)

    // Cleared here rather than by the first WGMMA: a slot may have no block in any of the tile's entries, and clearing
    // after the loop makes the compiler copy (and spill) the accumulators.
    if (Slots > 1 || k_tile_count == 0) clear(accum);
    tiled_mma.accumulate_ = Slots > 1 ? GMMA::ScaleOut::One : GMMA::ScaleOut::Zero;
    PipelineState in_flight = smem_pipe_read;  // the stage that the newest WGMMA reads, if pending
    bool pending = false;

    CUTLASS_PRAGMA_NO_UNROLL
    for (; k_tile_count > 0; --k_tile_count) {
      pipeline.consumer_wait(smem_pipe_read, pipeline.consumer_try_wait(smem_pipe_read));
      int const stage = smem_pipe_read.index();

      if (Slots == 1 || (shared_tensors.present[stage] >> warp_group & 1u)) {
        warpgroup_fence_operand(accum);
        warpgroup_arrive();
        CUTLASS_PRAGMA_UNROLL
        for (int k_block = 0; k_block < size<2>(tCrA); ++k_block) {
          cute::gemm(tiled_mma, tCrA(_, _, k_block, stage), tCrB(_, _, k_block, stage), accum);
          tiled_mma.accumulate_ = GMMA::ScaleOut::One;
        }
        warpgroup_commit_batch();
        warpgroup_wait<1>();  // all but the newest have read their operands
        warpgroup_fence_operand(accum);
        if (pending) pipeline.consumer_release(in_flight);
        in_flight = smem_pipe_read;
        pending = true;
      } else {
        // No WGMMA may stay in flight during a skip: a run of skips as long as the ring would wait for the stage that
        // the last WGMMA holds. And without a WGMMA nothing synchronises the four warps: a late warp could miss the
        // phase of this stage if another warp released it. Hence the barrier.
        warpgroup_wait<0>();
        if (pending) pipeline.consumer_release(in_flight);
        pending = false;
        arch::NamedBarrier::sync(NumThreadsPerWarpGroup, uint32_t(warp_group));
        pipeline.consumer_release(smem_pipe_read);
      }
      ++smem_pipe_read;
    }

    warpgroup_wait<0>();
    warpgroup_fence_operand(accum);
    if (pending) pipeline.consumer_release(in_flight);
  }

  CUTLASS_DEVICE void mma_tail(MainloopPipeline, PipelineState, int) {}

 private:
  // Fills one stage: B, and A for each slot that has a block. tAgA (TMA, _, _, k, l), tAsA (TMA, _, _, SLOT, PIPE),
  // tBgB (TMA, _, _, k), tBsB (TMA, _, _, PIPE).
  template <class TAgA, class TAsA, class TBgB, class TBsB>
  CUTLASS_DEVICE static void load_step(Params const& params, MainloopPipeline& pipeline, PipelineState const& write,
                                       TensorStorage& shared_tensors, TAgA const& tAgA, TAsA const& tAsA,
                                       TBgB const& tBgB, TBsB const& tBsB, int k_tile_b, int k_tile_a,
                                       int32_t const (&block)[Slots]) {
    int const stage = write.index();
    if constexpr (Slots > 1) {
      // The mask is written before the arrival in producer_acquire, so that consumers see it with the stage.
      auto token = pipeline.producer_try_acquire(write);
      while (token != BarrierStatus::WaitDone) token = pipeline.producer_try_acquire(write);
      uint32_t mask = 0;
      CUTLASS_PRAGMA_UNROLL
      for (int s = 0; s < Slots; ++s) mask |= uint32_t(block[s] != sparsek::kNoBlock) << s;
      shared_tensors.present[stage] = mask;
      pipeline.producer_acquire(write, token);
      pipeline.producer_expect_transaction(write, __popc(mask) * kBytesSlotA);
    } else {
      pipeline.producer_acquire(write);
      pipeline.producer_expect_transaction(write, kBytesSlotA);
    }

    auto& barrier = *pipeline.producer_get_barrier(write);
    CUTLASS_PRAGMA_UNROLL
    for (int s = 0; s < Slots; ++s) {
      if (Slots == 1 || block[s] != sparsek::kNoBlock) {
        copy(params.tma_load_a.with(barrier), tAgA(_, _, _, k_tile_a, block[s]), tAsA(_, _, _, s, stage));
      }
    }
    copy(params.tma_load_b.with(barrier), tBgB(_, _, _, k_tile_b), tBsB(_, _, _, stage));
  }
};

}  // namespace cutlass::gemm::collective
