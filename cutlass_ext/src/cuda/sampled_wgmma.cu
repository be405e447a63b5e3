// SPDX-License-Identifier: Apache-2.0
// SPARSEK_SDD by wgmma. One warp copies stages by TMA, two warpgroups multiply them. Of 128 rows, each has half; of 64,
// both compute all sums, each from half of a stage's depth, so that both have the same work however few columns there
// are.
//
//   stage   x (Rows, 64), y (256, 64), K-major, 128-byte swizzle
#include <cuda.h>

#include <algorithm>

#include "cuda/launch.cuh"
#include "cuda/ring.cuh"
#include "cuda/sampled_tiles.cuh"
#include "cuda/shared_address.cuh"
#include "cuda/tensor_map.h"
#include "cuda/wgmma.cuh"
#include "cutlass/arch/barrier.h"

namespace sparsek::cuda {
// Named, since the symbols that nvcc makes for an unnamed namespace differ from build to build.
namespace sampled_wgmma_kernel {

using sampled::kColumns;
using sampled::Segment;

constexpr int kDepth = 64, kRowBytes = kDepth * 2, kMmaDepth = 16;
constexpr int kConsumers = 256, kThreads = kConsumers + 32;
constexpr int kGroups = kColumns / 8;  // of 8 columns, of a thread's sums
constexpr int kWarpgroupRows = 64;

template <int Rows>
struct Shared {
  static constexpr int kStageBytes = (Rows + kColumns) * kRowBytes;
  static constexpr int kStages = 200 * 1024 / kStageBytes;
  static constexpr bool kSharesDepth = Rows == kWarpgroupRows;  // and not rows
  static_assert(sampled::kSumsBytes<Rows> <= kStages * kStageBytes);

  alignas(1024) uint8_t stages[kStages][kStageBytes];  // then the segment's sums
  cutlass::arch::ClusterTransactionBarrier full[kStages];
  cutlass::arch::ClusterBarrier empty[kStages];
  cutlass::arch::ClusterBarrier stored;  // the stages are free again
};

struct Params {
  CUtensorMap map_x, map_y;  // (n, rows, 1)
  SampledArgs args;
};

__device__ inline int turns_of(const SampledArgs& p) { return static_cast<int>((p.n + kDepth - 1) / kDepth); }

// By one warp. Lane i copies the rows of y of the segment's entry i.
template <int Rows>
__device__ void produce(const Params& params, Shared<Rows>& shared, int lane) {
  constexpr auto kHint = uint64_t(cute::TMA::CacheHintSm90::EVICT_NORMAL);
  const SampledArgs& p = params.args;
  const uint32_t first_full = shared_address(shared.full), first_empty = shared_address(shared.empty);
  const uint32_t first_stage = shared_address(shared.stages), stored = shared_address(&shared.stored);
  const int turns = turns_of(p);
  RingState<Shared<Rows>::kStages> state;
  uint32_t segments = 0;
  sampled::for_each_segment<Rows>(p, [&](const Segment& segment) {
    if (segments > 0) wait_for_phase(stored, (segments - 1) & 1);
    ++segments;
    const int x_row = segment.block_row * p.block_m + segment.part * Rows;
    const int y_row = lane < segment.count ? p.index.col_idx[segment.first + lane] * p.block_k : 0;
    const uint32_t bytes = (Rows + segment.columns(p)) * kRowBytes;
#pragma unroll 1
    for (int turn = 0; turn < turns; ++turn, ++state) {
      const uint32_t full = first_full + state.stage * kBarrierBytes;
      const uint32_t to = first_stage + state.stage * Shared<Rows>::kStageBytes;
      wait_for_phase(first_empty + state.stage * kBarrierBytes, state.phase ^ 1);
      if (lane == 0) {
        arrive_and_expect(full, bytes);
        load_box(params.map_x, full, kHint, to, {turn * kDepth, x_row, 0});
      }
      __syncwarp();
      if (lane < segment.count) {
        load_box(params.map_y, full, kHint, to + (Rows + lane * p.block_k) * kRowBytes, {turn * kDepth, y_row, 0});
      }
    }
  });
}

// Adds the first 8 Groups columns of a segment's stages to a warpgroup's sums.
template <class Element, int Groups, int Rows>
__device__ void add_stages(float (&acc)[kGroups][4], Shared<Rows>& shared, RingState<Shared<Rows>::kStages>& state,
                           int turns, int warpgroup, int lane) {
  using Of = Shared<Rows>;
  constexpr int kSteps = kDepth / kMmaDepth / (Of::kSharesDepth ? 2 : 1);
  const uint32_t own_x = warpgroup * (Of::kSharesDepth ? kSteps * kMmaDepth * 2 : kWarpgroupRows * kRowBytes);
  const uint32_t own_y = Rows * kRowBytes + warpgroup * (Of::kSharesDepth ? kSteps * kMmaDepth * 2 : 0);
  const uint32_t first_full = shared_address(shared.full), first_empty = shared_address(shared.empty);
  const uint32_t first_stage = shared_address(shared.stages);
  auto& sums = reinterpret_cast<float(&)[Groups][4]>(acc);
  const auto release = [&](int stage) {
    __syncwarp();
    if (lane == 0) arrive_in_cluster<1>(first_empty + stage * kBarrierBytes);
  };
#pragma unroll 1
  for (int turn = 0; turn < turns; ++turn, ++state) {
    wait_for_phase(first_full + state.stage * kBarrierBytes, state.phase);
    const uint32_t stage = first_stage + state.stage * Of::kStageBytes;
    const uint64_t x = wgmma_descriptor_a(stage + own_x), y = wgmma_descriptor_a(stage + own_y);
    wgmma_fence(sums);
    cute::warpgroup_arrive();
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      wgmma_ss<Element, cute::SM90::GMMA::Major::K>(sums, advanced(x, step * kMmaDepth * 2),
                                                    advanced(y, step * kMmaDepth * 2));
    }
    cute::warpgroup_commit_batch();
    wgmma_fence(sums);
    cute::warpgroup_wait<1>();
    if (turn > 0) release(state.previous());
  }
  cute::warpgroup_wait<0>();
  wgmma_fence(sums);
  if (turns > 0) release(state.previous());
}

__device__ inline void synchronize_consumers() { cutlass::arch::NamedBarrier::sync(kConsumers, 0); }

// Writes a thread's sums to those of the segment, or adds them.
__device__ inline void leave_sums(float* sums, const float (&acc)[kGroups][4], int columns, int first_row, int lane,
                                  bool adds) {
#pragma unroll
  for (int g = 0; g < kGroups; ++g) {
    if (g * 8 >= columns) break;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      auto* const to = reinterpret_cast<float2*>(sums + (first_row + lane / 4 + half * 8) * sampled::kPitch + g * 8 +
                                                 lane % 4 * 2);
      float2 value = {acc[g][half * 2], acc[g][half * 2 + 1]};
      if (adds) value = {to->x + value.x, to->y + value.y};
      *to = value;
    }
  }
}

template <class Element, int Rows>
__device__ void consume(const SampledArgs& p, Shared<Rows>& shared, int thread) {
  using Of = Shared<Rows>;
  constexpr int kVariant = 64;  // columns; of wgmma's widths, those that differ by as many
  const int warp = thread / 32, lane = thread % 32, warpgroup = warp / 4;
  const int turns = turns_of(p);
  RingState<Of::kStages> state;
  sampled::for_each_segment<Rows>(p, [&](const Segment& segment) {
    const int columns = segment.columns(p);
    float acc[kGroups][4] = {};
    switch ((columns + kVariant - 1) / kVariant) {
      case 1:
        add_stages<Element, 8>(acc, shared, state, turns, warpgroup, lane);
        break;
      case 2:
        add_stages<Element, 16>(acc, shared, state, turns, warpgroup, lane);
        break;
      case 3:
        add_stages<Element, 24>(acc, shared, state, turns, warpgroup, lane);
        break;
      default:
        add_stages<Element, 32>(acc, shared, state, turns, warpgroup, lane);
    }
    auto* const sums = reinterpret_cast<float*>(shared.stages);
    synchronize_consumers();  // all stages have been read
    if constexpr (Of::kSharesDepth) {
      if (warpgroup == 0) leave_sums(sums, acc, columns, warp * 16, lane, false);
      synchronize_consumers();
      if (warpgroup == 1) leave_sums(sums, acc, columns, (warp - 4) * 16, lane, true);
    } else {
      leave_sums(sums, acc, columns, warp * 16, lane, false);
    }
    synchronize_consumers();
    sampled::store_blocks<Rows, kConsumers>(p, segment, sums, thread);
    cutlass::arch::fence_view_async_shared();  // the sums are overwritten by TMA
    __syncwarp();
    if (lane == 0) shared.stored.arrive();
  });
}

template <class Element, int Rows>
__global__ void __launch_bounds__(kThreads, 1) kernel(const __grid_constant__ Params params) {
  extern __shared__ __align__(1024) uint8_t memory[];
  if (!is_good(params.args.index)) return;
  auto& shared = *reinterpret_cast<Shared<Rows>*>(memory);
  if (threadIdx.x == 0) {
    for (int s = 0; s < Shared<Rows>::kStages; ++s) {
      shared.full[s].init(1);
      shared.empty[s].init(kConsumers / 32);
    }
    shared.stored.init(kConsumers / 32);
    cutlass::arch::fence_barrier_init();
  }
  __syncthreads();
  if (threadIdx.x < kConsumers) {
    consume<Element>(params.args, shared, threadIdx.x);
  } else {
    produce(params, shared, threadIdx.x % 32);
  }
}

template <class Element, int Rows>
cudaError_t prepare() {
  return cudaFuncSetAttribute(kernel<Element, Rows>, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Shared<Rows>));
}

template <class Element, int Rows>
cudaError_t launch(const SampledArgs& args, cudaStream_t stream) {
  Params p = {};
  p.args = args;
  if (args.n > 0) {
    const auto make = [&](CUtensorMap* map, const void* of, int64_t rows, int64_t ld, int box_rows) {
      return make_tensor_map(map, of, {{args.n, rows, 1}, {ld * 2, ld * 2 * rows}}, {kDepth, box_rows, 1}, kRowBytes);
    };
    cudaError_t error = make(&p.map_x, args.x, args.rows, args.ldx, Rows);
    if (error == cudaSuccess) error = make(&p.map_y, args.y, args.cols, args.ldy, args.block_k);
    if (error != cudaSuccess) return error;
  }
  return launch_kernel(kernel<Element, Rows>, static_cast<int>(sampled::tiles_of<Rows>(args)), kThreads,
                       sizeof(Shared<Rows>), stream, {}, p);
}

// That for as many rows as divide the height of blocks.
template <class Element>
SampledOps ops(int32_t block_m) {
  if (block_m % 128 == 0) return {prepare<Element, 128>, launch<Element, 128>};
  return {prepare<Element, 64>, launch<Element, 64>};
}

}  // namespace sampled_wgmma_kernel

SampledOps sampled_wgmma(sparsek_dtype dtype, int32_t block_m) {
  namespace k = sampled_wgmma_kernel;
  return dtype == SPARSEK_BF16 ? k::ops<cutlass::bfloat16_t>(block_m) : k::ops<cutlass::half_t>(block_m);
}

}  // namespace sparsek::cuda
