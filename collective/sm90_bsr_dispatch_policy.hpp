// SPDX-License-Identifier: Apache-2.0
// Dispatch policy of the block-sparse mainloop: a warp-specialised TMA + WGMMA mainloop whose outer loop walks a plan
// instead of the K extent, in CUTLASS's kernel.
#pragma once

#include "cutlass/arch/arch.h"
#include "cutlass/gemm/dispatch_policy.hpp"

namespace sparsek {

// Stages_  depth of the shared-memory ring
// Slots_   block rows of A that share a CTA tile, one for each consumer warpgroup; 1 where a block row fills the tile
template <int Stages_, int Slots_, class ClusterShape_ = cute::Shape<cute::_1, cute::_1, cute::_1>,
          class Schedule_ = cutlass::gemm::KernelTmaWarpSpecializedCooperative>
struct MainloopSm90TmaGmmaBsr {
  static constexpr int Stages = Stages_;
  static constexpr int Slots = Slots_;
  using ClusterShape = ClusterShape_;
  using ArchTag = cutlass::arch::Sm90;
  using Schedule = Schedule_;
};

}  // namespace sparsek
