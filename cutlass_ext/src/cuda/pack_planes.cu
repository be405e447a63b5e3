// SPDX-License-Identifier: Apache-2.0
// A CTA writes a part of the strips of a row group: it assembles them in shared memory, where each element of a block
// becomes three numbers of 16 bits, and copies the halves that have a block to their places.
#include "cuda/pack_planes.h"

#include "cuda/dependent_launch.cuh"
#include "cuda/launch.cuh"
#include "cuda/part_elements.cuh"
#include "cuda/planes.cuh"
#include "cuda/shared_address.cuh"
#include "cuda/shared_store.cuh"

namespace sparsek::cuda {

// Named, since the symbols that nvcc makes for an unnamed namespace differ from build to build.
namespace packs_planes {

constexpr int kThreads = 512, kWarps = kThreads / 32, kCtasPerSm = 2;
constexpr int kRowsAtOnce = 4;  // of a warp
static_assert(kMostPlaneStripBlock <= kPartColumns && kPlaneTileM <= kThreads);

struct Shared {
  alignas(128) uint8_t strips[kPartStrips * kPlaneStripBytes];
  int2 entries[kPlaneTileM];  // of each block row
  uint32_t halves;
};

__device__ void write_elements(const LaunchArgs& args, const PartOfRows& part, bool in_place, Shared& shared) {
  const uint32_t strips = shared_address(shared.strips);
  uint32_t halves = 0;
  each_element<kWarps, kRowsAtOnce, float>(args, part, in_place, shared.entries, [&](int row, int column, float value) {
    const int half = column / kPlaneStripColumns * kPlaneHalves + row / kPieceRows, c = column % kPlaneStripColumns;
    const uint32_t to = strips + half * kHalfStripBytes + c % kPlaneVector * 2 +
                        place_in_plane_a<kPlaneStripColumns>(row % kPieceRows, c / kPlaneVector);
    const PlanePair planes = split(value, 0.f);
#pragma unroll
    for (int p = 0; p < kPlanes; ++p) store_half(to + p * PieceBytes<kPlaneStripColumns>::kPlaneA, planes.plane[p]);
    halves |= 1u << half;
  });
  halves = __reduce_or_sync(0xffffffffu, halves);
  if (threadIdx.x % 32 == 0 && halves != 0) atomicOr(&shared.halves, halves);
}

__global__ void __launch_bounds__(kThreads, kCtasPerSm)
    kernel(LaunchArgs args, RowChunks rows, PlaneStripSizes sizes, PlaneStripMemory to) {
  extern __shared__ __align__(128) uint8_t memory[];
  auto& shared = *reinterpret_cast<Shared*>(memory);
  const PartOfRows part(args, uint32_t(sizes.parts), kPlaneTileM, kPartColumns);
  const uint32_t strips = shared_address(shared.strips);
  wait_for_previous_launch();
  if (threadIdx.x == 0) shared.halves = 0;
  bool any = false;
  if (int(threadIdx.x) < part.block_rows) {
    const int2 own = part.entries(args, to.bounds, sizes.parts, threadIdx.x);
    shared.entries[threadIdx.x] = own;
    any = own.x < own.y;
  }
  any = __syncthreads_or(any);
  if (any) {
    for (int i = threadIdx.x; i < int(sizeof(shared.strips)) / 16; i += kThreads) clear_vector(strips + i * 16);
    __syncthreads();
    // Entries of blocks whose values are in their places name no blocks.
    write_elements(args, part, __ldg(&rows.chunks->entry_end) >= 0, shared);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");  // the copies read what threads have written
    __syncthreads();
  }
  const uint32_t halves = shared.halves;
  if (threadIdx.x == 0) to.halves[blockIdx.x] = uint16_t(halves);
  const int half = threadIdx.x;
  if (half < kPartStrips * kPlaneHalves && (halves >> half & 1) != 0) {
    char* const tile =
        to.tiles + ((part.group * sizes.strips + part.part * kPartStrips) * kPlaneHalves + half) * kHalfStripBytes;
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(tile),
                 "r"(strips + half * kHalfStripBytes), "r"(kHalfStripBytes)
                 : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
  }
}

}  // namespace packs_planes

cudaError_t prepare_pack_planes() {
  const cudaError_t error = cudaFuncSetAttribute(packs_planes::kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                                 sizeof(packs_planes::Shared));
  return error == cudaSuccess ? prepare_row_bounds() : error;
}

cudaError_t pack_planes(const LaunchArgs& args, const PlaneStripSizes& sizes, const PlaneStripMemory& to) {
  const RowChunks& rows = *args.rows_in_chunks;
  const cudaError_t error =
      bound_rows({rows.row_ptr, args.entry_k, sizes.block_rows, uint32_t{kPartColumns}, sizes.parts}, args.nnzb,
                 to.bounds, args.stream);
  if (error != cudaSuccess) return error;
  return launch_kernel(packs_planes::kernel, static_cast<int>(sizes.groups * sizes.parts), packs_planes::kThreads,
                       sizeof(packs_planes::Shared), args.stream, {/*overlap=*/true}, args, rows, sizes, to);
}

}  // namespace sparsek::cuda
