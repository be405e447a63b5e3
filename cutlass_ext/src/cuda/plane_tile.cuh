// SPDX-License-Identifier: Apache-2.0
// What kernels that multiply planes (planes.h) share: a tile of C is 128 rows by 128 columns, of which two warpgroups
// have 64 rows each. Planes of B that are not there when the kernel begins are made by warps that have nothing else to
// do.
//
// Of the nine products of planes six are computed, into three kinds of sums by their factor:
//
//   1       h h
//   2^-8    h m + m h
//   2^-16   m m + h l + l h
//
// What is left out is below 2^-24 of a product. The kinds are added up at the end of a tile.
#pragma once

#include <algorithm>

#include "cuda/launch_args.h"
#include "cuda/plane_nan.cuh"
#include "cuda/plane_sums.cuh"
#include "cuda/planes.h"
#include "cuda/read_here.cuh"
#include "cuda/ring.cuh"
#include "cuda/row_store.cuh"
#include "cuda/shared_address.cuh"
#include "cuda/wgmma.cuh"

namespace sparsek::cuda {
namespace planes_kernel {

constexpr int kTileM = kPlaneTileM;
constexpr int kPanelN = kPieceColumns;
constexpr int kUnitK = 16;             // columns of A of one wgmma instruction
constexpr int kHalves = kPlaneHalves;  // of the rows of a tile: one for each consumer warpgroup
constexpr int kGroups = kPanelN / 8;   // sums of a thread and kind: (kGroups, 4)
constexpr int kConsumerWarps = kPlaneConsumers / 32;
constexpr int kThreads = 128 + kConsumerWarps * 32;
constexpr int kProducerRegisters = 56, kConsumerRegisters = 224;

// Makes the planes of the panels of B that are not there yet, while the other warps compute. By several warps of each
// CTA: which of them makes a piece does not matter.
template <int K, class Params>
__device__ void make_rest(const Params& p, int lane) {
  constexpr int kEights = kPieceColumns / kPlaneVector, kRows = 32 / kEights, kTogether = 2;
  const int64_t first = p.ready * p.steps_b, pieces = p.sizes.pieces_b();
  const auto* const b = static_cast<const float*>(p.args.b);
  const int row = lane / kEights, eight = lane % kEights;
  while (true) {
    int64_t piece = 0;
    if (lane == 0) piece = first + atomicAdd(p.planes.progress, 1u);
    piece = __shfl_sync(0xffffffffu, piece, 0);
    if (piece >= pieces) return;
    const int64_t panel = piece / p.steps_b, k = piece % p.steps_b * K;
    const int64_t column = panel * kPieceColumns + eight * kPlaneVector;
    char* const to = p.planes.b + piece * PieceBytes<K>::kB;
#pragma unroll 1
    for (int i = row; i < K; i += kTogether * kRows) {
      float x[kTogether][kPlaneVector];
#pragma unroll
      for (int j = 0; j < kTogether; ++j) {
        const int64_t at = k + i + j * kRows;
        read_vector(x[j], b + at * p.args.ldb + column, at < p.sizes.cols ? p.sizes.n - column : 0, p.aligned_b);
      }
#pragma unroll
      for (int j = 0; j < kTogether; ++j) {
        write_planes(to + place_in_plane_b<K>(i + j * kRows, eight), PieceBytes<K>::kPlaneB, x[j]);
      }
    }
    // The copy engine reads what the threads have written.
    asm volatile("fence.proxy.async;" ::: "memory");
    __syncwarp();
    if (lane == 0) {
      __threadfence();  // behind all lanes' writes
      atomicAdd(p.planes.progress + 1 + panel, 1u);
    }
  }
}

// By the thread that copies them.
template <class Params>
__device__ void wait_for_planes(const Params& p, int64_t panel) {
  const uint32_t* const made = p.planes.progress + 1 + panel;
  uint32_t pieces;
  do {
    asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(pieces) : "l"(made) : "memory");
  } while (pieces < p.steps_b);
  asm volatile("fence.proxy.async;" ::: "memory");
}

// Where a thread of the consumers sets its sums aside.
template <class Params>
__device__ float4* own_sums(const Params& p, int thread) {
  thread -= kThreads - kPlaneConsumers;
  return p.planes.sums + int64_t(blockIdx.x) * p.most_aside * (kPlaneSums / 4 * kPlaneConsumers) + thread;
}

// Adds up a tile's next stages, of which a consumer warp has 16 rows: `whole`. Returns whether all of the warp's sums
// are finite; where they are not, `whole` has what h h alone says.
template <int K, class Params, class Storage, int Stages>
__device__ __forceinline__ bool sum_stages(const Params& p, Storage& shared, RingState<Stages>& state, int stages,
                                           int warp, int lane, PlaneSums& whole) {
  constexpr int kStagesOfSum = kColumnsOfSum / K;
  const int half = warp / 4;
  const uint64_t first_a = wgmma_descriptor_plane_a<K>(cute::cast_smem_ptr_to_uint(shared.a[0][half]));
  const uint64_t first_b = wgmma_descriptor_b(cute::cast_smem_ptr_to_uint(shared.b), PieceBytes<K>::kChunk);
  const uint32_t first_full = shared_address(shared.full), first_empty = shared_address(shared.empty);
  const auto release = [&](int stage) {  // after every lane has read it
    __syncwarp();
    if (lane == 0) arrive_in_cluster<1>(first_empty + stage * kBarrierBytes);
  };
  PlaneSums sums = {}, sums16 = {};  // times 1, 2^-16
  PlaneSums& sums8 = whole;          // times 2^-8
#pragma unroll
  for (int i = 0; i < kPlaneSums; ++i) whole[i / 4][i % 4] = 0.f;
  bool pending = false;  // wgmma may still read the previous stage
  int added = 0;         // stages
#pragma unroll 1
  for (; stages > 0; --stages, ++state) {
    wait_for_phase(first_full + state.stage * kBarrierBytes, state.phase);
    if (read_by_one(&shared.present[state.stage], lane) >> half & 1) {
      if (added > 0 && added % kStagesOfSum == 0) {
        cute::warpgroup_wait<0>();
        fence_sums(sums);
        if (pending) release(state.previous());
        pending = false;
        set_aside(own_sums(p, threadIdx.x), added / kStagesOfSum - 1, p.most_aside, sums);
      }
      const uint64_t a = advanced(first_a, state.stage * (kHalves * PieceBytes<K>::kA));
      const uint64_t b = advanced(first_b, state.stage * PieceBytes<K>::kB);
      fence_sums(sums);
      fence_sums(sums8);
      fence_sums(sums16);
      cute::warpgroup_arrive();
#pragma unroll
      for (int u = 0; u < K / kUnitK; ++u) {
        const auto multiply = [&](PlaneSums& to, int plane_a, int plane_b) {
          wgmma_n128(to, advanced(a, plane_a * PieceBytes<K>::kPlaneA + u * kUnitK * 2),
                     advanced(b, plane_b * PieceBytes<K>::kPlaneB + u * kUnitK * kPlaneChunkColumns * 2));
        };
        multiply(sums, 0, 0);
        multiply(sums8, 0, 1);
        multiply(sums16, 1, 1);
        multiply(sums8, 1, 0);
        multiply(sums16, 0, 2);
        multiply(sums16, 2, 0);
      }
      cute::warpgroup_commit_batch();
      cute::warpgroup_wait<1>();
      fence_sums(sums);
      fence_sums(sums8);
      fence_sums(sums16);
      if (pending) release(state.previous());
      pending = true;
      ++added;
    } else {
      // Stages are given back at once: the ring is what limits the copies under way.
      cute::warpgroup_wait<0>();
      if (pending) release(state.previous());
      release(state.stage);
      pending = false;
    }
  }
  cute::warpgroup_wait<0>();
  fence_sums(sums);
  fence_sums(sums8);
  fence_sums(sums16);
  if (pending) release(state.previous());

#pragma unroll
  for (int i = 0; i < kGroups * 4; ++i) {
    float& sum = whole[i / 4][i % 4];
    sum = fmaf(fmaf(sums16[i / 4][i % 4], 0x1p-8f, sum), 0x1p-8f, sums[i / 4][i % 4]);
  }
  const int parts = min((added - 1) / kStagesOfSum, p.most_aside);
  bool finite = all_finite(whole);
  if (finite) {
#pragma unroll 1
    for (int part = 0; part < parts; ++part) add_part(own_sums(p, read_thread()), part, whole);
    if (parts > 0) finite = all_finite(whole);
  } else {
#pragma unroll 1
    for (int part = 0; part < parts; ++part) {
      add_part(own_sums(p, read_thread()), part, sums);
      add_part(own_sums(p, read_thread()), part, whole);
    }
    keep_high(sums, whole);
  }
  return finite;
}

// Panels of B whose planes are made before the kernel. The others are made while it computes, where that takes longer
// than making them, and where tiles need the panels one after the other.
inline int64_t panels_before(const LaunchArgs& args, int64_t panels) {
  constexpr int64_t kFirst = 8;        // two batches of panels in flight: plan/schedule.h
  constexpr int64_t kLeastRows = 512;  // of A, that a row of B is multiplied by on average
  const int64_t block_cols = (args.cols + args.block_k - 1) / args.block_k;
  const bool long_enough = args.nnzb * args.block_m >= kLeastRows * block_cols;
  return args.nnzb == 0 || args.uneven || !long_enough ? panels : std::min(kFirst, panels);
}

}  // namespace planes_kernel
}  // namespace sparsek::cuda
