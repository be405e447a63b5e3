// SPDX-License-Identifier: Apache-2.0
#include "cuda/plan_arrays.h"

#include <map>
#include <type_traits>
#include <vector>

#include "cuda/layout.h"
#include "cuda/stream.h"

namespace sparsek::cuda {
namespace {

PlanSizes sizes_of(const Plan& plan, const ListSizes& lists) {
  PlanSizes sizes;
  sizes.lists = lists;
  sizes.tiles = static_cast<int64_t>(plan.tiles.size());
  sizes.entries = plan.entries();
  sizes.groups = static_cast<int64_t>(plan.slot_row.size()) / plan.slots;
  sizes.slots = plan.slots;
  sizes.split_tiles = static_cast<int32_t>(plan.split_tiles.size());
  sizes.parts = plan.parts;
  sizes.chunks = static_cast<int32_t>(plan.chunks.size());
  if (sizes.chunks > 0) sizes.block_rows = static_cast<int64_t>(plan.row_ptr.size()) - 1;
  return sizes;
}

template <class T>
HostPart part(const std::vector<T>& from, size_t at) {
  return {from.data(), from.size() * sizeof(T), at};
}

struct Lists {
  std::vector<WorkTile> tiles;
  std::vector<int32_t> entry_k, entry_block;
};

// The same plan, its entries one after the other in the order of the row groups.
Lists without_gaps(const Lists& from, const PlanSizes& sizes) {
  std::vector<EntryRange> ranges(static_cast<size_t>(sizes.groups));
  for (const WorkTile& tile : from.tiles) ranges[tile.m_tile] = {tile.entry_begin, tile.entry_count};
  Lists to = {from.tiles, {}, {}};
  std::vector<int32_t> begins;
  std::map<int32_t, int32_t> moved;  // of groups with entries: from where to where
  for (const EntryRange& range : ranges) {
    const auto end = static_cast<int32_t>(to.entry_k.size());
    begins.push_back(range.count == 0 ? end : moved.try_emplace(range.begin, end).first->second);
    if (begins.back() != end || range.count == 0) continue;
    const auto entries = from.entry_k.begin() + range.begin;
    to.entry_k.insert(to.entry_k.end(), entries, entries + range.count);
    const auto blocks = from.entry_block.begin() + int64_t{range.begin} * sizes.slots;
    to.entry_block.insert(to.entry_block.end(), blocks, blocks + int64_t{range.count} * sizes.slots);
  }
  for (WorkTile& tile : to.tiles) tile.entry_begin = begins[tile.m_tile];
  return to;
}

}  // namespace

PlanLayout::PlanLayout(const PlanSizes& sizes, Layout& layout) {
  begin_[kTiles] = layout.place<WorkTile>(sizes.tiles);
  begin_[kEntryK] = layout.place<int32_t>(sizes.entries);
  begin_[kEntryBlock] = layout.place<int32_t>(sizes.entries * sizes.slots);
  begin_[kSlotRow] = layout.place<int64_t>(sizes.groups * sizes.slots);
  begin_[kSplitTiles] = layout.place<SplitTile>(sizes.split_tiles);
  if (sizes.chunks > 0) {
    begin_[kChunks] = layout.place<RowChunk>(sizes.chunks);
    begin_[kRowPtr] = layout.place<int32_t>(sizes.block_rows + 1);
    begin_[kLists] = layout.place<std::byte>(static_cast<size_t>(sizes.lists.bytes()));
  }
  begin_[kRecomputed] = layout.place<unsigned long long>(1);
  begin_[kEntries] = begin_[kRecomputed];
  if (sizes.ranges == 0 && sizes.chunks == 0) return;
  begin_[kEntries] = layout.place<unsigned long long>(1);
  begin_[kRanges] = layout.place<EntryRange>(sizes.ranges);
  begin_[kScratch] = layout.place<std::byte>(sizes.scratch);
}

PlanArrays::Views PlanArrays::views_of(const PlanLayout& layout, std::byte* memory) {
  const auto at = [&](auto* array, PlanLayout::Part part) {
    return reinterpret_cast<decltype(array)>(memory + layout.begin_[part]);
  };
  Views views = {};
  views.tiles = at(views.tiles, PlanLayout::kTiles);
  views.entry_k = at(views.entry_k, PlanLayout::kEntryK);
  views.entry_block = at(views.entry_block, PlanLayout::kEntryBlock);
  views.slot_row = at(views.slot_row, PlanLayout::kSlotRow);
  views.split_tiles = at(views.split_tiles, PlanLayout::kSplitTiles);
  views.chunks = at(views.chunks, PlanLayout::kChunks);
  views.row_ptr = at(views.row_ptr, PlanLayout::kRowPtr);
  views.lists = at(views.lists, PlanLayout::kLists);
  views.recomputed = at(views.recomputed, PlanLayout::kRecomputed);
  views.entries = at(views.entries, PlanLayout::kEntries);
  views.ranges = at(views.ranges, PlanLayout::kRanges);
  views.scratch = at(views.scratch, PlanLayout::kScratch);
  return views;
}

PlanArrays::PlanArrays(const PlanSizes& sizes, const PlanLayout& layout, std::byte* memory)
    : sizes_(sizes), views_(views_of(layout, memory)) {}

PlanArrays::PlanArrays(PlanMemory& memory, const PlanSizes& sizes, const StreamUses& uses, cudaStream_t stream)
    : sizes_(sizes) {
  Layout layout;
  const PlanLayout places(sizes, layout);
  block_ = memory.allocate(layout.bytes(), &uses, stream);
  views_ = views_of(places, block_.data());
}

PlanArrays::PlanArrays(PlanMemory& memory, const Plan& plan, const StreamUses& uses, const ListSizes& lists)
    : PlanArrays(memory, sizes_of(plan, lists), uses, memory.stream()) {
  const unsigned long long none = 0;
  const auto at = [&](const void* array) {
    return static_cast<size_t>(static_cast<const std::byte*>(array) - block_.data());
  };
  memory.write(block_, {part(plan.tiles, at(tiles())),
                        part(plan.entry_k, at(entry_k())),
                        part(plan.entry_block, at(entry_block())),
                        part(plan.slot_row, at(slot_row())),
                        part(plan.split_tiles, at(split_tiles())),
                        part(plan.chunks, at(chunks())),
                        part(plan.row_ptr, at(row_ptr())),
                        {&none, sizeof(none), at(recomputed())}});
}

void PlanArrays::add_to(Digest& digest) const {
  const Stream stream;
  const auto read = [&](const auto* from, int64_t count) {
    std::vector<std::remove_const_t<std::remove_pointer_t<decltype(from)>>> host(static_cast<size_t>(count));
    if (count > 0) {
      check(cudaMemcpyAsync(host.data(), from, host.size() * sizeof(host[0]), cudaMemcpyDeviceToHost, stream),
            "cudaMemcpyAsync");
      stream.wait();
    }
    return host;
  };
  if (sizes_.chunks > 0) {
    const std::vector<RowChunk> chunks = read(this->chunks(), sizes_.chunks);
    const std::vector<int32_t> row_ptr = read(this->row_ptr(), sizes_.block_rows + 1);
    digest.add(chunks);
    digest.add(row_ptr);
    digest.add(read(entry_k(), row_ptr.back()));
    if (chunks.back().entry_end < 0) digest.add(read(entry_block(), row_ptr.back()));
    return;
  }
  digest.add(sizes_.slots);
  digest.add(sizes_.parts);
  if (sizes_.tiles == 0) return;
  Lists lists = {read(tiles(), sizes_.tiles), read(entry_k(), sizes_.entries),
                 read(entry_block(), sizes_.entries * sizes_.slots)};
  if (sizes_.ranges > 0) lists = without_gaps(lists, sizes_);
  digest.add(lists.tiles);
  digest.add(lists.entry_k);
  digest.add(lists.entry_block);
  digest.add(read(slot_row(), sizes_.groups * sizes_.slots));
  digest.add(read(split_tiles(), sizes_.split_tiles));
}

}  // namespace sparsek::cuda
