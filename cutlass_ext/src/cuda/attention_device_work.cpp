// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <variant>

#include "abi/error.h"
#include "cuda/attention_device_lists.h"
#include "cuda/attention_work.h"
#include "cuda/cuda_matrix.h"
#include "cuda/made_mark.h"
#include "plan/attention_steps.h"

namespace sparsek::cuda {
namespace {

class DeviceWork final : public AttentionWorkLists {
 public:
  DeviceWork(const AttentionShape& shape, const sparsek_bsr& layout, const AttentionWorkPlace& place)
      : place_(place),
        layout_(layout, place.device, place.memory),
        maker_(shape, layout.nnzb, place.read_again_bytes),
        mostly_alone_(expects_alone(shape.block_q, density(shape, layout.nnzb), 1. / 2)),
        keys_mostly_alone_(expects_alone(shape.block_k, density(shape, layout.nnzb), 3. / 4)),
        forward_at_(maker_.forward_layout(forward_size_)),
        queries_at_(maker_.queries_layout(scratch_size_)),
        keys_at_(maker_.keys_layout(scratch_size_)) {
    place.uses.begin_as(layout_.uses());
    const cudaStream_t stream = layout_.is_async() ? layout_.stream() : place.memory.stream();
    forward_ = PoolArray<std::byte>(place.memory, forward_size_.bytes(), &place.uses, stream);
    maker_.make_forward(index(), forward_at_.within(forward_.data()), stream);
    if (layout_.is_async()) {
      made_.record(place.memory.events(), stream);
    } else {
      check(cudaStreamSynchronize(stream), "lists of attention");
    }
  }
  ~DeviceWork() override { layout_.add_uses(place_.uses); }

  bool mostly_alone() const override { return mostly_alone_; }
  bool keys_mostly_alone() const override { return keys_mostly_alone_; }
  int32_t query_tiles() const override { return maker_.query_tiles(); }
  int32_t key_tiles() const override { return maker_.key_tiles(); }
  size_t scratch_bytes() const override { return scratch_size_.bytes(); }

  AttentionListView forward(cudaStream_t stream, bool captured) override {
    made_.order(stream, captured);
    return view(forward_at_.within(forward_.data()), maker_.query_tiles());
  }
  AttentionListView queries(std::byte* scratch, cudaStream_t stream, bool captured) override {
    made_.order(stream, captured);
    const ListArrays to = queries_at_.within(scratch);
    maker_.make_queries(index(), to, stream);
    return view(to, maker_.query_tiles());
  }
  AttentionListView keys(std::byte* scratch, cudaStream_t stream, bool captured) override {
    made_.order(stream, captured);
    const ListArrays to = keys_at_.within(scratch);
    maker_.make_keys(index(), to, stream);
    return view(to, maker_.key_tiles());
  }

  void update(const sparsek_bsr& layout) override {
    const auto stream = static_cast<cudaStream_t>(layout.stream);
    const bool captured = layout_.update(layout);
    place_.memory.releases().use(place_.uses, stream);
    made_.order(stream, captured);
    maker_.make_forward(index(), forward_at_.within(forward_.data()), stream);
    if (!captured) made_.record(place_.memory.events(), stream);
  }
  bool check_index(bool wait) override { return layout_.check_index(wait); }
  void end_in(cudaStream_t stream) override { layout_.end_in(stream); }

 private:
  // What a layout of that many random blocks has.
  static double density(const AttentionShape& shape, int64_t nnzb) {
    const double every = static_cast<double>(shape.layout_rows()) * static_cast<double>(shape.key_blocks());
    return every == 0 ? 1. : std::min(1., static_cast<double>(nnzb) / every);
  }
  // Whether more than a share of the steps are expected to be used by one warpgroup alone; extent: of blocks in the
  // direction of tiles. Of two neighbouring rows of blocks of 64 that have a random share d of the blocks, (1 - d) d
  // are the first's alone, as many the second's, and d d both's.
  static bool expects_alone(int64_t extent, double d, double share) {
    if (extent % kAttentionTile == 0) return false;
    return 2 * (1 - d) > share * (2 - d);
  }

  static AttentionListView view(const ListArrays& list, int32_t tiles) { return {list.steps, list.tiles, tiles}; }
  const CheckedIndex& index() const { return std::get<DeviceIndex>(layout_.index()).arrays(); }

  const AttentionWorkPlace place_;
  CudaMatrix layout_;
  const DeviceLists maker_;
  const bool mostly_alone_, keys_mostly_alone_;
  Layout forward_size_, scratch_size_;
  const ListLayout forward_at_, queries_at_, keys_at_;
  PoolArray<std::byte> forward_;
  MadeMark made_;  // behind the list of the forward pass
};

}  // namespace

std::unique_ptr<AttentionWorkLists> make_device_work(const AttentionShape& shape, const sparsek_bsr& layout,
                                                     const AttentionWorkPlace& place) {
  if (shape.head_size > 128) {
    fail(SPARSEK_NO_SUCH_KERNEL,
         "head_size = %lld is above 128, and served only where the layout lies in host memory: give it there",
         static_cast<long long>(shape.head_size));
  }
  if (!has_attention_steps(shape)) {
    fail(SPARSEK_NO_SUCH_KERNEL,
         "blocks of %lld x %lld are no multiples of 64 x 64, and no others are served where the layout lies in device "
         "memory: give it in host memory",
         static_cast<long long>(shape.block_q), static_cast<long long>(shape.block_k));
  }
  return std::make_unique<DeviceWork>(shape, layout, place);
}

}  // namespace sparsek::cuda
