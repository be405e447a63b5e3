// SPDX-License-Identifier: Apache-2.0
// How a warpgroup of cuda/attention_forward.cuh and cuda/attention_forward_e4m3.cuh goes through the steps of a tile.
#pragma once

#include "cuda/attention_pieces.cuh"
#include "cuda/attention_shared.cuh"

namespace sparsek::cuda {
namespace attention_forward {

// Step i of a tile, of units. Its words are the same in all lanes, and the compiler knows it.
template <class C>
__device__ AttentionStep read_units(const Params& p, const WorkTile& tile, int i, const TileLimits& limits) {
  const uint2 words = __ldg(reinterpret_cast<const uint2*>(p.args.steps + tile.entry_begin + i));
  const uint32_t unit[2] = {__shfl_sync(0xffffffffu, words.x, 0), __shfl_sync(0xffffffffu, words.y, 0)};
  if constexpr (!C::kGeneral) return {{unit[0], unit[1]}};
  return {{cut_unit(unit[0], limits), cut_unit(unit[1], limits)}};
}

// Goes from step i on to one that the consumer's warpgroup uses, or to the end, and through the stages of the others.
template <class Consumer, class Step>
__device__ void find_used(Consumer& consumer, const WorkTile& tile, int& i, int count, const TileLimits& limits,
                          Step& step) {
  for (; i < count; ++i) {
    step = consumer.read_step(tile, i, limits);
    if (consumer.is_cut_off(step)) continue;
    if (consumer.uses(step)) break;
    ++consumer.ring;
  }
}

// Waits for the keys of a step. Returns the parity of the phase, which is that of its values too.
template <class C, class Step>
__device__ uint32_t wait_for_keys(const Addresses<C>& at, StageReader<C::kStages>& ring, const Step& step) {
  const int place = full_place<C::kStages>(uses_of(step), ring.stage);
  const uint32_t phase = ring.take_phase(place);
  wait_for_phase(at.k_full(place), phase);
  return phase;
}

}  // namespace attention_forward
}  // namespace sparsek::cuda
