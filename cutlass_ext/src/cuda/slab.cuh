// SPDX-License-Identifier: Apache-2.0
// Kernel family "slab": tensor cores and TMA for every block whose height and width are multiples of 16.
//
// A CTA computes 128 x 256 elements of C. Each of its 8 consumer warps owns a slab of 16 rows, which lies in one block
// row whatever the block height is, and multiplies by mma.sync m16n8k16 only where its own block row has a block: so
// nothing is padded, and an absent block never reaches C, also where block rows are as low as 16.
//
//   B   the producer warp loads the union of the block columns of the tile's rows by TMA, BoxK rows at a time (a
//       "unit"), several units a stage:  stage (units, chunks of 64 columns, BoxK, 64), 128-byte swizzle
//   A   goes from L2 to registers, a unit ahead: the blocks of a block row lie one after the other in storage, so the
//       next address is known without the index
//   C   from registers: any M, N, pitch and alignment
#pragma once

#include <cuda.h>

#include "cuda/kernel.h"
#include "cuda/tensor_map.h"
#include "cute/arch/copy_sm90_tma.hpp"
#include "cutlass/arch/barrier.h"
#include "cutlass/arch/reg_reconfig.h"
#include "cutlass/bfloat16.h"
#include "cutlass/half.h"
#include "cutlass/numeric_conversion.h"

namespace sparsek::cuda {
namespace slab {

constexpr int kWarps = 8;
constexpr int kSlabRows = 16;
constexpr int kTileM = kWarps * kSlabRows;
constexpr int kChunkColumns = 64;  // the inner extent of a 128-byte swizzle
constexpr int kChunks = 4;
constexpr int kTileN = kChunks * kChunkColumns;
constexpr int kStageK = 64;  // rows of B in a stage
constexpr int kStageBytes = kStageK * kTileN * 2;
constexpr int kThreads = kWarps * 32 + 128;  // the producer is a warp of a warpgroup of its own, for setmaxnreg
constexpr int kFragment = kTileN / 8;        // m16n8 accumulators of a warp

struct Params {
  CUtensorMap map_b;
  LaunchArgs args;
  int box_chunks;         // chunks of 64 columns that one TMA box covers
  bool chunks_are_outer;  // map (64, K, N / 64) where N is a multiple of 64, else (N, K, 1)
};

template <int Stages>
struct SharedStorage {
  alignas(1024) uint8_t ring[Stages][kStageBytes];
  cutlass::arch::ClusterTransactionBarrier full[Stages];
  cutlass::arch::ClusterBarrier empty[Stages];
};

// A place in the ring. Producer and consumers step through it alike.
template <int Stages>
struct RingState {
  int stage = 0;
  uint32_t phase = 0;
  __device__ void operator++() {
    if (++stage == Stages) {
      stage = 0;
      phase ^= 1;
    }
  }
};

// The units of a tile: entry by entry, BoxK rows of B at a time. BoxK is 16, 32 or 64 and divides bk; a constant, so
// that addresses in shared memory are.
template <int BoxK>
struct TileUnits {
  static constexpr int kPerStage = kStageK / BoxK;
  static constexpr int kBytes = kChunks * BoxK * kChunkColumns * 2;
  int total, per_entry, chunks, boxes;
  __device__ TileUnits(const Params& p, const WorkTile& tile) {
    per_entry = p.args.block_k / BoxK;
    total = tile.entry_count * per_entry;
    const int64_t columns = p.args.n - int64_t(tile.n_tile) * kTileN;
    chunks = int(min(int64_t(kChunks), (columns + kChunkColumns - 1) / kChunkColumns));
    boxes = (chunks + p.box_chunks - 1) / p.box_chunks;
  }
};

template <int BoxK, int Stages>
__device__ void produce(const Params& p, SharedStorage<Stages>& shared, int lane) {
  const LaunchArgs& args = p.args;
  RingState<Stages> state;
  const int box_bytes = p.box_chunks * BoxK * kChunkColumns * 2;
  for (int t = args.worker_begin[blockIdx.x]; t < args.worker_begin[blockIdx.x + 1]; ++t) {
    const WorkTile tile = args.tiles[t];
    const TileUnits<BoxK> units(p, tile);
    int cols = 0, entry = 0, k = 0;  // the next unit: columns of 32 entries, a lane each; entry; k within the block
    for (int first = 0; first < units.total; first += units.kPerStage, ++state) {
      const int count = min(units.kPerStage, units.total - first);
      if (lane == 0) {
        shared.empty[state.stage].wait(state.phase ^ 1);
        shared.full[state.stage].arrive_and_expect_tx(count * units.boxes * box_bytes);
      }
      for (int u = 0; u < count; ++u) {
        if (k == 0 && entry % 32 == 0 && entry + lane < tile.entry_count) {
          cols = __ldg(args.entry_col + tile.entry_begin + entry + lane);
        }
        const int row = __shfl_sync(0xffffffffu, cols, entry % 32) * args.block_k + k;
        if (lane == 0) {
          uint8_t* const to = shared.ring[state.stage] + u * units.kBytes;
          for (int box = 0; box < units.boxes; ++box) {
            const int chunk = tile.n_tile * kChunks + box * p.box_chunks;
            cute::SM90_TMA_LOAD_3D::copy(&p.map_b, reinterpret_cast<uint64_t*>(&shared.full[state.stage]),
                                         uint64_t(cute::TMA::CacheHintSm90::EVICT_NORMAL), to + box * box_bytes,
                                         p.chunks_are_outer ? 0 : chunk * kChunkColumns, row,
                                         p.chunks_are_outer ? chunk : 0);
          }
        }
        k += BoxK;
        if (k == args.block_k) {
          k = 0;
          ++entry;
        }
      }
      __syncwarp();
    }
  }
}

template <class Element>
__device__ void mma(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1);
template <>
__device__ inline void mma<cutlass::bfloat16_t>(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
template <>
__device__ inline void mma<cutlass::half_t>(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ inline void load_matrices_transposed(uint32_t (&r)[4], uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address));
}

// The fragments of A of one unit: 16 rows, 16 columns a slice. ld elements from row to row.
template <class Element, int Slices>
__device__ void load_a(uint32_t (&a)[Slices][4], const Element* from, int ld) {
#pragma unroll
  for (int s = 0; s < Slices; ++s) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {  // rows r and r + 8, then the same 8 columns on
      a[s][i] = __ldg(reinterpret_cast<const uint32_t*>(from + s * 16 + i % 2 * 8 * ld + i / 2 * 8));
    }
  }
}

// acc(16, 256) += A(16, 16 slices) B(16 slices, 256), B in shared memory. lane_addresses: where the lane reads, for
// each of the four groups of 16 columns of a chunk, from the start of a unit.
template <class Element, int Slices>
__device__ void multiply_unit(float (&acc)[kFragment][4], const uint32_t (&a)[Slices][4],
                              const uint32_t (&lane_addresses)[4], uint32_t unit, int chunks) {
#pragma unroll
  for (int c = 0; c < kChunks; ++c) {
    if (c >= chunks) break;
#pragma unroll
    for (int s = 0; s < Slices; ++s) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        uint32_t b[4];
        load_matrices_transposed(b, unit + lane_addresses[j] + (c * Slices + s) * 16 * 128);
        mma<Element>(acc[c * 8 + j * 2], a[s], b[0], b[1]);
        mma<Element>(acc[c * 8 + j * 2 + 1], a[s], b[2], b[3]);
      }
    }
  }
}

template <class Element>
__device__ uint32_t pack(float x, float y) {
  const cutlass::Array<float, 2> from = {x, y};
  const auto to = cutlass::NumericArrayConverter<Element, float, 2>::convert(from);
  return reinterpret_cast<const uint32_t&>(to);
}

// C = alpha acc + beta C for rows row and row + 8 of the lane. Where rows are aligned, neighbouring lanes swap halves
// so that each group of four stores a full 32-byte sector.
template <class Element>
__device__ void store(const LaunchArgs& args, float (&acc)[kFragment][4], int64_t row, int64_t first_col, int lane) {
  auto* const c = static_cast<Element*>(args.c);
  const bool vectors = first_col + kTileN <= args.n && (args.ldc % 4 | reinterpret_cast<uintptr_t>(c) % 8) == 0;
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const bool inside = row + 8 * h < args.rows;
    Element* const out = c + (row + 8 * h) * args.ldc + first_col;
    const int col = lane % 4 * 2;
    const auto within = [&](int at) { return inside && first_col + at < args.n; };
#pragma unroll
    for (int g = 0; g < kFragment; ++g) {
      acc[g][h * 2] *= args.alpha;
      acc[g][h * 2 + 1] *= args.alpha;
    }
    if (args.beta != 0) {
#pragma unroll
      for (int i = 0; i < kFragment * 2; ++i) {
        const int at = i / 2 * 8 + col + i % 2;
        if (within(at)) acc[i / 2][h * 2 + i % 2] += args.beta * float(out[at]);
      }
    }
    if (!vectors) {
#pragma unroll
      for (int i = 0; i < kFragment * 2; ++i) {
        const int at = i / 2 * 8 + col + i % 2;
        if (within(at)) out[at] = Element(acc[i / 2][h * 2 + i % 2]);
      }
      continue;
    }
    const bool odd = lane % 2;
    const int quad_col = odd ? 8 + (lane % 4 - 1) * 2 : col;
#pragma unroll
    for (int g = 0; g < kFragment; g += 2) {
      const uint32_t first = pack<Element>(acc[g][h * 2], acc[g][h * 2 + 1]);
      const uint32_t second = pack<Element>(acc[g + 1][h * 2], acc[g + 1][h * 2 + 1]);
      const uint32_t other = __shfl_xor_sync(0xffffffffu, odd ? first : second, 1);
      if (inside) {
        // C is not read again: it should not displace A and B from L2.
        __stcs(reinterpret_cast<uint2*>(out + g * 8 + quad_col), odd ? uint2{other, second} : uint2{first, other});
      }
    }
  }
}

template <class Element, int BoxK, int Stages>
__device__ void consume(const Params& p, SharedStorage<Stages>& shared, int warp, int lane) {
  const LaunchArgs& args = p.args;
  const auto* const values = static_cast<const Element*>(args.values);
  const int64_t block_rows = (args.rows + args.block_m - 1) / args.block_m;
  constexpr int kSlices = BoxK / 16;
  // Lanes 0 to 15 address the 16 rows of the first 8 columns, the others those of the next; the swizzle permutes the
  // 16-byte units of each row.
  uint32_t lane_addresses[4];
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    lane_addresses[j] = (lane % 8 + lane / 8 % 2 * 8) * 128 + ((j * 2 + lane / 16) ^ lane % 8) * 16;
  }
  RingState<Stages> state;

  for (int t = args.worker_begin[blockIdx.x]; t < args.worker_begin[blockIdx.x + 1]; ++t) {
    const WorkTile tile = args.tiles[t];
    const TileUnits<BoxK> units(p, tile);
    const int64_t first_row = int64_t(tile.m_tile) * kTileM;
    const int64_t slab_row = first_row + warp * kSlabRows;
    const int64_t block_row = slab_row / args.block_m;
    const int slot = int(block_row - first_row / args.block_m);
    const bool exists = block_row < block_rows;
    const int64_t begin = exists ? args.row_ptr[block_row] : 0, end = exists ? args.row_ptr[block_row + 1] : 0;
    const int64_t block_size = int64_t(args.block_m) * args.block_k;
    // The lane's first element of the slab in block `block`, then on from unit to unit.
    const Element* a_from =
        values + begin * block_size + (slab_row % args.block_m + lane / 4) * args.block_k + lane % 4 * 2;
    int64_t units_left = (end - begin) * units.per_entry;
    uint32_t a_next[kSlices][4] = {};
    if (units_left > 0) load_a(a_next, a_from, args.block_k);

    float acc[kFragment][4] = {};
    uint32_t present = 0;
    int entry = 0, k = 0;
    for (int first = 0; first < units.total; first += units.kPerStage, ++state) {
      const int count = min(units.kPerStage, units.total - first);
      shared.full[state.stage].wait(state.phase);
      for (int u = 0; u < count; ++u) {
        if (k == 0 && entry % 32 == 0) {
          const bool inside = exists && entry + lane < tile.entry_count;
          const uint32_t mask = inside ? __ldg(args.entry_mask + tile.entry_begin + entry + lane) : 0;
          present = __ballot_sync(0xffffffffu, mask >> slot & 1);
        }
        if (present >> entry % 32 & 1) {
          uint32_t a[kSlices][4];
#pragma unroll
          for (int s = 0; s < kSlices; ++s) {
#pragma unroll
            for (int i = 0; i < 4; ++i) a[s][i] = a_next[s][i];
          }
          a_from += BoxK;
          if (k + BoxK == args.block_k) a_from += block_size - args.block_k;
          if (--units_left > 0) load_a(a_next, a_from, args.block_k);
          const uint32_t unit = cute::cast_smem_ptr_to_uint(shared.ring[state.stage] + u * units.kBytes);
          multiply_unit<Element>(acc, a, lane_addresses, unit, units.chunks);
        }
        k += BoxK;
        if (k == args.block_k) {
          k = 0;
          ++entry;
        }
      }
      __syncwarp();
      if (lane == 0) shared.empty[state.stage].arrive();
    }
    store<Element>(args, acc, slab_row + lane / 4, int64_t(tile.n_tile) * kTileN, lane);
  }
}

template <class Element, int BoxK, int Stages>
__global__ void __launch_bounds__(kThreads, 1) slab_kernel(const __grid_constant__ Params p) {
  extern __shared__ uint8_t memory[];
  auto& shared = *reinterpret_cast<SharedStorage<Stages>*>((reinterpret_cast<uintptr_t>(memory) + 1023) / 1024 * 1024);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (threadIdx.x == 0) {
    for (int s = 0; s < Stages; ++s) {
      shared.full[s].init(1);
      shared.empty[s].init(kWarps);
    }
    cutlass::arch::fence_barrier_init();
  }
  __syncthreads();
  // The accumulators alone take 128 registers of a consumer thread.
  if (warp >= kWarps) {
    cutlass::arch::warpgroup_reg_dealloc<40>();
    if (warp == kWarps) produce<BoxK>(p, shared, lane);
  } else {
    cutlass::arch::warpgroup_reg_alloc<232>();
    consume<Element, BoxK>(p, shared, warp, lane);
  }
}

}  // namespace slab

template <class Config>
struct SlabKernel {
  static_assert(Config::kTileM == slab::kTileM && Config::kTileN == slab::kTileN && Config::kTileK == slab::kStageK);
  using Storage = slab::SharedStorage<Config::kStages>;
  static constexpr int kSharedBytes = sizeof(Storage) + 1024;  // room to align the ring

  template <int BoxK>
  static constexpr auto kKernel = slab::slab_kernel<typename Config::Element, BoxK, Config::kStages>;

  static cudaError_t prepare() {
    for (const auto kernel : {kKernel<16>, kKernel<32>, kKernel<64>}) {
      const cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
      if (error != cudaSuccess) return error;
    }
    return cudaSuccess;
  }

  static cudaError_t launch(const LaunchArgs& args) {
    const int box_k = args.block_k % 64 == 0 ? 64 : args.block_k % 32 == 0 ? 32 : 16;
    const auto kernel = box_k == 64 ? kKernel<64> : box_k == 32 ? kKernel<32> : kKernel<16>;
    slab::Params p;
    p.args = args;
    p.chunks_are_outer = args.n % slab::kChunkColumns == 0;
    const int64_t all_chunks = args.n / slab::kChunkColumns;
    p.box_chunks = !p.chunks_are_outer ? 1 : int(all_chunks < slab::kChunks ? all_chunks : slab::kChunks);
    const int64_t row_bytes = args.ldb * 2;
    const TensorMapShape shape = p.chunks_are_outer ? TensorMapShape{{slab::kChunkColumns, args.cols, all_chunks},
                                                                     {row_bytes, slab::kChunkColumns * 2}}
                                                    : TensorMapShape{{args.n, args.cols, 1}, {row_bytes, row_bytes}};
    const cudaError_t error = make_tensor_map(&p.map_b, args.b, shape, {slab::kChunkColumns, box_k, p.box_chunks});
    if (error != cudaSuccess) return error;
    kernel<<<args.workers, slab::kThreads, kSharedBytes, args.stream>>>(p);
    return cudaGetLastError();
  }
};

template <class Config>
constexpr KernelOps slab_ops() {
  using K = SlabKernel<Config>;
  return {&K::prepare,       &K::launch, /*ctas_per_sm=*/1, /*tensor_cores=*/true, /*tma_b=*/true, /*tma_c=*/false,
          /*align_values=*/4};
}

}  // namespace sparsek::cuda
