// SPDX-License-Identifier: Apache-2.0
#include <mutex>
#include <optional>

#include "abi/error.h"
#include "cuda/attention_list.h"
#include "cuda/attention_ops.h"
#include "cuda/attention_work.h"
#include "cuda/device_scope.h"
#include "plan/attention_gradient_steps.h"
#include "plan/attention_parts.h"
#include "plan/attention_pieces.h"

namespace sparsek::cuda {
namespace {

int32_t tiles_of(int64_t heads, int64_t rows) {
  return static_cast<int32_t>(heads * ((rows + kAttentionTile - 1) / kAttentionTile));
}

class HostWork final : public AttentionWorkLists {
 public:
  HostWork(const AttentionShape& shape, const AttentionLayout& layout, const AttentionWorkPlace& place)
      : shape_(shape), in_units_(attention_in_units(shape)), place_(place), lists_(list_blocks(shape, layout)) {
    AttentionSteps steps =
        in_units_ ? make_attention_steps(shape, lists_, place.read_again_bytes)
                  : make_query_pieces(shape, lists_, place.read_again_bytes, 2 * gradient_step_rows(shape));
    mostly_alone_ = sparsek::mostly_alone(steps);
    keys_mostly_alone_ = shape.any_order && in_units_ && sparsek::keys_mostly_alone(shape, lists_);
    parts_ = attention_parts(steps, place.sm_count, shape.seq_q);
    if (parts_ > 1) split_tiles(steps, parts_, shape.batch * shape.heads_q);
    forward_.emplace(place.memory, steps, &place.uses);
  }

  bool mostly_alone() const override { return mostly_alone_; }
  bool keys_mostly_alone() const override { return keys_mostly_alone_; }
  int32_t parts() const override { return parts_; }
  int32_t query_tiles() const override { return tiles_of(shape_.batch * shape_.heads_q, shape_.seq_q); }
  int32_t key_tiles() const override { return tiles_of(shape_.batch * shape_.heads_k, shape_.seq_k); }
  size_t scratch_bytes() const override { return 0; }

  AttentionListView forward(cudaStream_t /*stream*/, bool /*captured*/) override { return forward_->view(); }
  AttentionListView queries(std::byte* /*scratch*/, cudaStream_t /*stream*/, bool /*captured*/) override {
    return made(queries_, [this] { return query_steps(); });
  }
  AttentionListView keys(std::byte* /*scratch*/, cudaStream_t /*stream*/, bool /*captured*/) override {
    return made(keys_, [this] { return key_steps(); });
  }

  void update(const sparsek_bsr& /*layout*/) override {
    fail(SPARSEK_BAD_ARGUMENT,
         "only attention that was made with a layout in device memory and SPARSEK_BSR_ASYNC gets another one");
  }
  bool check_index(bool /*wait*/) override { return true; }

 private:
  AttentionSteps query_steps() const {
    const int64_t bytes = place_.read_again_bytes;
    if (in_units_) return make_query_gradient_steps(shape_, lists_, bytes);
    return make_query_pieces(shape_, lists_, bytes, gradient_step_rows(shape_));
  }
  AttentionSteps key_steps() const {
    const int64_t bytes = place_.read_again_bytes;
    if (in_units_) return make_key_gradient_steps(shape_, lists_, bytes);
    return make_key_pieces(shape_, lists_, bytes, gradient_step_rows(shape_));
  }

  // Waits for its own copies alone, also where the caller's stream is being captured.
  template <class Steps>
  AttentionListView made(std::optional<AttentionList>& list, const Steps& steps) {
    const std::lock_guard lock(making_);
    if (!list.has_value()) {
      const RelaxedCapture relaxed;
      list.emplace(place_.memory, steps(), &place_.uses);
      if (queries_.has_value() && keys_.has_value()) lists_ = {};
    }
    return list->view();
  }

  const AttentionShape shape_;
  const bool in_units_;
  const AttentionWorkPlace place_;
  bool mostly_alone_ = false, keys_mostly_alone_ = false;
  int32_t parts_ = 1;
  std::optional<AttentionList> forward_;
  std::mutex making_;     // of what follows
  AttentionLists lists_;  // until the next two are made
  std::optional<AttentionList> queries_, keys_;
};

}  // namespace

std::unique_ptr<AttentionWorkLists> make_host_work(const AttentionShape& shape, const AttentionLayout& layout,
                                                   const AttentionWorkPlace& place) {
  return std::make_unique<HostWork>(shape, layout, place);
}

}  // namespace sparsek::cuda
