// SPDX-License-Identifier: Apache-2.0
// The lists of one attention's kernels: of a layout on the host, or of one in device memory.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "cuda/plan_memory.h"
#include "cuda/stream_uses.h"
#include "plan/attention.h"
#include "plan/attention_step.h"
#include "plan/work_tile.h"

namespace sparsek::cuda {

// Rows of a step of the backward pass, whose lists are in pieces.
inline int32_t gradient_step_rows(const AttentionShape& shape) { return shape.head_size > 128 ? 32 : 64; }

// A list in device memory.
struct AttentionListView {
  const AttentionStep* steps;
  const WorkTile* tiles;
  int32_t tile_count;
  const AttentionPieces* pieces = nullptr;  // in place of steps
  int32_t box = kAttentionUnit;             // see AttentionSteps

  // Sets what a kernel knows of its work.
  template <class Args>
  void give(Args& args) const {
    args.steps = steps;
    args.tiles = tiles;
    args.tile_count = tile_count;
    args.general.pieces = pieces;
    args.general.box = box;
  }
};

// For several threads at once, but for update.
class AttentionWorkLists {
 public:
  virtual ~AttentionWorkLists() = default;
  // Whether most steps of the forward pass are expected to be used by one warpgroup alone.
  virtual bool mostly_alone() const = 0;
  // The same of more than three of four steps of the tiles of keys, of shapes that ask for any order.
  virtual bool keys_mostly_alone() const = 0;
  virtual int32_t query_tiles() const = 0;
  // Into how many parts the tiles of the forward pass are split, see plan/attention_parts.h.
  virtual int32_t parts() const { return 1; }
  virtual int32_t key_tiles() const = 0;
  // Device memory of one backward pass.
  virtual size_t scratch_bytes() const = 0;

  // For kernels that are put into the stream behind the call; scratch: of a backward pass.
  virtual AttentionListView forward(cudaStream_t stream, bool captured) = 0;
  virtual AttentionListView queries(std::byte* scratch, cudaStream_t stream, bool captured) = 0;
  virtual AttentionListView keys(std::byte* scratch, cudaStream_t stream, bool captured) = 0;

  // As of AttentionState.
  virtual void update(const sparsek_bsr& layout) = 0;
  virtual bool check_index(bool wait) = 0;
  virtual void end_in(cudaStream_t /*stream*/) {}
};

// What both kinds need. uses: of the attention, which must outlive its lists. read_again_bytes: of keys and values, as
// much as stays in the second-level cache.
struct AttentionWorkPlace {
  PlanMemory& memory;
  StreamUses& uses;
  int device;
  int64_t read_again_bytes;
  int32_t sm_count;
};

// The lists of the backward pass are made when they are first asked for.
std::unique_ptr<AttentionWorkLists> make_host_work(const AttentionShape& shape, const AttentionLayout& layout,
                                                   const AttentionWorkPlace& place);
// Those of the backward pass are made with each one, in its stream and its scratch memory.
std::unique_ptr<AttentionWorkLists> make_device_work(const AttentionShape& shape, const sparsek_bsr& layout,
                                                     const AttentionWorkPlace& place);

}  // namespace sparsek::cuda
