// SPDX-License-Identifier: Apache-2.0
// Keys and values in pages of a cache (AttentionPages): how a step of cuda/attention_forward.cuh is loaded out of them,
// and how keys of pages that are not there are hidden.
//
// A box of a load lies in one page: it has as many rows as divide those of a page, and of the list's boxes. The maps of
// keys and values have the pages in place of batches, so that a page which is none of the cache is outside of the map,
// and TMA writes zeros without reading.
#pragma once

#include "cuda/attention_pieces.cuh"
#include "cuda/attention_shared.cuh"
#include "cute/arch/copy_sm90_tma.hpp"

namespace sparsek::cuda {
namespace attention_forward {

// Copies a box of a 4-D tensor, and signals the barrier.
__device__ inline void load_head_box(const CUtensorMap& map, uint32_t barrier, uint64_t cache_hint, uint32_t to,
                                     int column, int row, int head, int batch) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
      "[%0], [%1, {%4, %5, %6, %7}], [%2], %3;" ::"r"(to),
      "l"(&map), "r"(barrier), "l"(cache_hint), "r"(column), "r"(row), "r"(head), "r"(batch)
      : "memory");
}

// Has the barrier's phase wait for so many bytes more.
__device__ inline void expect(uint32_t barrier, uint32_t bytes) {
  asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

// Whether something of `count` pieces is used.
__device__ inline bool is_used(const AttentionStep& step, int piece, int /*count*/) {
  return (step.unit[piece * kAttentionPiece / kAttentionUnit] & kEitherUses) != 0;
}
template <int Pieces>
__device__ bool is_used(const PieceStep<Pieces>& step, int piece, int count) {
  return ((step.used | step.used >> 8) >> piece & ((1 << count) - 1)) != 0;
}

// Loads the boxes of a step of which something is used, but for those behind the end of the keys. It calls tell(bits of
// its pieces) for each whose page is not there, before the barrier can complete.
template <class C, class Step, class Tell>
__device__ void load_pages(const Params& p, const CUtensorMap& map, uint32_t to, uint32_t full, const Step& step,
                           const Head& head, const Tell& tell) {
  constexpr int kNoPage = -1;  // none of the cache
  const int box = p.args.general.box / kAttentionPiece;
  const int keys_end = length_of(p.args.general.lengths_k, head.batch, p.args.seq_k);
  const int32_t* const table = p.pages.table + head.batch * p.pages.stride;
#pragma unroll
  for (int i = 0; i < C::kStepRows / kAttentionPiece; ++i) {
    const int first = met_row(step, i);
    if (i % box != 0 || first >= keys_end || !is_used(step, i, box)) continue;
    const int in_table = first / p.pages.rows;
    int page = __ldg(table + in_table);
    if (uint32_t(page) >= uint32_t(p.pages.count)) {
      page = kNoPage;
      tell(((1u << box) - 1) << i);
    }
    expect(full, box * C::kChunks * kAttentionPiece * kRowBytes);
    for (int chunk = 0; chunk < C::kChunks; ++chunk) {
      load_head_box(map, full, uint64_t(cute::TMA::CacheHintSm90::EVICT_LAST),
                    to + chunk * C::kStepChunkBytes + i * kAttentionPiece * kRowBytes, chunk * kChunkColumns,
                    first - in_table * p.pages.rows, head.k, page);
    }
  }
  arrive_in_cluster<1>(full);
}

// Sets scores of the pieces that are missing to -inf.
template <int Groups>
__device__ void hide_missing(float (&s)[Groups][4], uint32_t missing) {
  if (missing == 0) return;
#pragma unroll
  for (int g = 0; g < Groups; ++g) {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      if ((missing >> g / 2 & 1) != 0) s[g][e] = -INFINITY;
    }
  }
}

}  // namespace attention_forward
}  // namespace sparsek::cuda
