// SPDX-License-Identifier: Apache-2.0
// Epilogue of the block-sparse cooperative kernel: each warp stores its own 16 rows of the tile, and waits for no other
// warp. So the two warpgroups of a CTA run independently: while one stores, the other uses the tensor cores. And the
// rows of a tile need not be neighbours, since each warp reads the place of its rows from the plan.
//
//   C (M, N):(ldc, 1)
//     in A's type, alpha only   through shared memory, 64 columns at a time, by bulk tensor stores that continue while
//                               the warp multiplies again
//     otherwise                 from registers (cuda/row_store.cuh): bias, activation, beta, any type and alignment
#pragma once

#include <cuda.h>

#include "cuda/launch_args.h"
#include "cuda/row_store.cuh"
#include "cuda/tma_store.cuh"
#include "cutlass/arch/barrier.h"
#include "cutlass/epilogue/collective/detail.hpp"
#include "cutlass/gemm/gemm.h"

namespace sparsek {

// Slots  block rows that share a tile, as in the mainloop
template <class Element_, int Slots>
class BsrEpilogueOp {
 public:
  using ElementC = Element_;
  using ElementD = Element_;
  using ElementAccumulator = float;
  using StrideC = cute::Stride<int64_t, cute::_1, int64_t>;
  using StrideD = StrideC;
  using DispatchPolicy = void;

  static constexpr int kWarps = 8;

  struct SharedStorage {
    alignas(1024) cuda::StoreBuffers buffers[kWarps];
  };

  struct Arguments {
    cuda::LaunchArgs launch;
    bool by_tma;        // cuda::can_store_by_tma
    CUtensorMap map_c;  // cuda::make_store_map; set if by_tma
  };
  using Params = Arguments;

  template <class ProblemShape>
  static Params to_underlying_arguments(ProblemShape const&, Arguments const& arguments, void*) {
    return arguments;
  }
  template <class ProblemShape>
  static size_t get_workspace_size(ProblemShape const&, Arguments const&) {
    return 0;
  }
  template <class ProblemShape>
  static bool can_implement(ProblemShape const&, Arguments const&) {
    return true;
  }

  CUTLASS_HOST_DEVICE explicit BsrEpilogueOp(Params const& params) : params_(params) {}

  // sums: a thread's accumulators of m64n256, (256 / 8, 4): sums(4 g) and the next are neighbours in columns 8 g to
  // 8 g + 7 of the warp's row lane / 4, sums(4 g + 2) and the next are below them in row lane / 4 + 8.
  template <class ProblemShape, class TileShape, class TileCoord, class Sums, class TiledMma, class Residue>
  CUTLASS_DEVICE void operator()(ProblemShape, TileShape, TileCoord tile, Sums& sums, TiledMma, Residue, int thread_idx,
                                 char* shared) const {
    constexpr int kGroups = cute::size(Sums{}) / 4;
    constexpr int kSlotWarps = kWarps / Slots;
    cuda::LaunchArgs const& args = params_.launch;
    int const lane = thread_idx % 32, warp = __shfl_sync(0xffffffffu, thread_idx / 32, 0);
    int64_t const slot = int64_t(cute::get<0>(tile)) * Slots + warp / kSlotWarps;
    uint32_t const first_row = uint32_t(__ldg(args.slot_row + slot)) + warp % kSlotWarps * cuda::kStoreRows;
    uint32_t const first_col = uint32_t(cute::get<1>(tile)) * (kGroups * 8);
    auto& acc = reinterpret_cast<float(&)[kGroups][4]>(sums(0));
    if (params_.by_tma) {
      cuda::store_rows_by_tma<Element_>(params_.map_c, cuda::alpha_of(args.epilogue), acc,
                                        reinterpret_cast<SharedStorage*>(shared)->buffers[warp], first_row, first_col,
                                        lane);
    } else {
      cuda::store_rows<Element_>(args, acc, {first_row + lane / 4, first_row + lane / 4 + 8}, first_col, lane);
    }
  }

 private:
  Params const& params_;
};

// Adapts the epilogue to the interface of the cooperative kernel.
template <class Element, int Slots>
class BsrEpilogue
    : public cutlass::epilogue::collective::detail::Sm90TmaWarpSpecializedAdapter<BsrEpilogueOp<Element, Slots>> {
 public:
  using Adapter = cutlass::epilogue::collective::detail::Sm90TmaWarpSpecializedAdapter<BsrEpilogueOp<Element, Slots>>;
  using Adapter::Adapter;

  template <class... State>
  CUTLASS_DEVICE auto store_tail(State&&... state) {
    cuda::wait_for_stores();
    return Adapter::store_tail(state...);
  }
};

}  // namespace sparsek
