// SPDX-License-Identifier: Apache-2.0
// A random matrix of blocks, and its lists of stages, made as on the GPU. Include it behind lanes_on_host.h.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "cuda/row_bounds.cuh"
#include "cuda/stage_lists.cuh"

// Of any extents and densities, with empty and full rows, and blocks of values that lie in any order.
struct RandomMatrix {
  int64_t rows, cols;
  int32_t block_m, block_k;
  std::vector<int32_t> row_ptr{0}, entry_k, entry_block;
  bool in_place;

  explicit RandomMatrix(std::mt19937& random) {
    const auto below = [&](uint32_t limit) { return int32_t(random() % limit); };
    block_m = below(3) == 0 ? 1 : 1 + below(64);
    block_k = below(3) == 0 ? 1 : 1 + below(64);
    rows = 1 + below(400);
    cols = 1 + below(below(4) == 0 ? 4000 : 400);
    in_place = below(2) == 0;
    const int density = below(3) == 0 ? 100 : below(20);
    for (int64_t row = 0; row < rows; row += block_m) {
      const bool empty = below(5) == 0;
      for (int64_t col = 0; col < cols; col += block_k) {
        if (!empty && below(100) < density) entry_k.push_back(int32_t(col));
      }
      row_ptr.push_back(int32_t(entry_k.size()));
    }
    for (int32_t e = 0; e < int32_t(entry_k.size()); ++e) entry_block.push_back(e);
    if (!in_place) std::shuffle(entry_block.begin(), entry_block.end(), random);
  }

  // Of each element the place of its value + 1; 0: none.
  std::vector<uint32_t> dense_sources() const {
    std::vector<uint32_t> dense(size_t(rows * cols));
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t block_row = row / block_m;
      for (int32_t e = row_ptr[size_t(block_row)]; e < row_ptr[size_t(block_row) + 1]; ++e) {
        for (int64_t j = 0; j < block_k; ++j) {
          const int64_t col = entry_k[size_t(e)] + j;
          const int64_t source = (entry_block[size_t(e)] * int64_t{block_m} + row % block_m) * block_k + j;
          if (col < cols) dense[size_t(row * cols + col)] = uint32_t(source) + 1;
        }
      }
    }
    return dense;
  }
};

struct MadeLists {
  sparsek::cuda::ListSizes sizes;
  std::vector<char> memory;
  sparsek::cuda::StageLists to;

  explicit MadeLists(const RandomMatrix& m)
      : sizes(sparsek::cuda::list_sizes(m.rows, m.cols, int64_t(m.entry_k.size()), m.block_m, m.block_k)),
        memory(size_t(sizes.bytes()), char(0x7f)),
        to(sizes, memory.data()) {
    using namespace sparsek::cuda;
    const int32_t entry_end = m.in_place ? 0 : -1;
    const ListedIndex index = {
        m.rows, m.cols, m.block_m, m.block_k, m.row_ptr.data(), m.entry_k.data(), m.entry_block.data(), &entry_end};
    std::vector<int32_t> bounds(size_t(sizes.bound_bytes()) / sizeof(int32_t));
    const BoundedRows rows = {index.row_ptr, index.entry_k, sizes.block_rows, uint32_t(sizes.columns), sizes.stages};
    const int turns = 1 << m.rows % 3;
    on_host::run(1, [&](int, int lane) {
      for (int64_t row = 0; row < sizes.block_rows; ++row) {
        for (int turn = turns; turn-- > 0;) {  // none may write what is another's, even last
          bounds_rows::find_bounds(rows, bounds.data(), row, turn, turns, lane);
        }
      }
    });
    on_host::run(1, [&](int, int lane) {
      for (int64_t at = 0; at < sizes.groups * kQuarters; ++at) {
        for (int stage = 0; stage < sizes.stages; ++stage) {
          lists_stages::make_list(index, sizes, bounds.data(), to, reciprocal_of(m.block_k), at, stage, lane);
        }
      }
    });
    on_host::run(1, [&](int, int lane) {
      for (int64_t group = 0; group < sizes.groups; ++group) lists_stages::leave_out_empty(sizes, to, group, lane);
    });
    elements_ = int64_t(m.entry_k.size()) * m.block_m * m.block_k;
  }

  // All units that products copy are written, and lie in the memory.
  bool all_sources_are_known() const {
    using namespace sparsek::cuda;
    const int64_t units = to.counts[sizes.groups];
    if (units < 0 || units > sizes.units()) return false;
    for (int64_t i = 0; i < units * kUnit; ++i) {
      if (to.sources[i] != kNoSource && to.sources[i] >= elements_) return false;
    }
    return true;
  }

 private:
  int64_t elements_;
};
