// SPDX-License-Identifier: Apache-2.0
// All lists of one attention.
#pragma once

#include <memory>
#include <mutex>
#include <optional>

#include "abi/error.h"
#include "cuda/attention_ops.h"
#include "cuda/attention_work.h"
#include "cuda/device_scope.h"

namespace sparsek::cuda {

// Whether lengths move what rules show.
inline bool lengths_move(const AttentionShape& shape) { return shape.align_ends && (shape.left || shape.right); }

inline AttentionShape without_rules(AttentionShape shape) {
  shape.left = shape.right = shape.align_ends = false;
  shape.window_left = shape.window_right = 0;
  return shape;
}

// Whether the query heads of a key head can be the queries of one, which then reads keys and values once: where each
// has one query, they have one layout, and no rule hides a key, with any lengths of keys.
inline bool packs_heads(const AttentionShape& shape) {
  const int64_t group = shape.heads_q / shape.heads_k;
  const AttentionBand band = shape.band(1, shape.seq_k);
  return shape.seq_q == 1 && group > 1 && group <= shape.block_q && shape.heads_k % shape.layout_heads == 0 &&
         band.low <= 0 && band.high >= shape.seq_k - 1;
}
inline AttentionShape packed(const AttentionShape& shape) {
  AttentionShape own = without_rules(shape);
  own.seq_q = shape.heads_q / shape.heads_k;
  own.heads_q = shape.heads_k;
  return own;
}

// The lists of an attention: those of its rules; where lengths move what these show, also those without rules, of which
// kernels cut off what is not seen, made for the first call with lengths; and where heads are packed, those of the
// forward pass of that.
class Works {
 public:
  Works(const AttentionShape& shape, const AttentionLayout& layout, const AttentionWorkPlace& place)
      : shape_(shape), place_(place), work_(make_host_work(shape, layout, place)) {
    if (lengths_move(shape)) layout_ = layout;
    if (packs_heads(shape)) packed_ = make_host_work(sparsek::cuda::packed(shape), layout, place);
  }
  Works(const AttentionShape& shape, const sparsek_bsr& layout, const AttentionWorkPlace& place)
      : shape_(shape), place_(place), work_(make_device_work(shape, layout, place)) {}

  AttentionWorkLists& operator*() const { return *work_; }
  AttentionWorkLists* operator->() const { return work_.get(); }
  AttentionWorkLists* packed() const { return packed_.get(); }  // null: heads are not packed

  // moves: of a call whose lengths move what rules show. For several threads at once.
  AttentionWorkLists& of(bool moves) {
    if (!moves) return *work_;
    const std::lock_guard lock(making_);
    if (without_rules_ == nullptr) {
      if (!layout_.has_value()) {
        fail(
            SPARSEK_NO_SUCH_KERNEL,
            "kernel %s does not serve lengths where rules align ends, and the layout lies in device memory: give it in "
            "host memory",
            attention_kernel_name(shape_.dtype));
      }
      const RelaxedCapture relaxed;
      without_rules_ = make_host_work(without_rules(shape_), *layout_, place_);
      layout_.reset();
    }
    return *without_rules_;
  }

 private:
  const AttentionShape shape_;
  const AttentionWorkPlace place_;
  const std::unique_ptr<AttentionWorkLists> work_;
  std::unique_ptr<AttentionWorkLists> packed_;
  std::mutex making_;                      // of what follows
  std::optional<AttentionLayout> layout_;  // until the lists are made
  std::unique_ptr<AttentionWorkLists> without_rules_;
};

}  // namespace sparsek::cuda
