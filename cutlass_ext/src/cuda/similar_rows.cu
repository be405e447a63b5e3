// SPDX-License-Identifier: Apache-2.0
#include "cuda/similar_rows.h"

#include <cub/device/device_radix_sort.cuh>

#include "cuda/cuda_error.h"
#include "cuda/layout.h"
#include "plan/pairing.h"

namespace sparsek::cuda {
// Named, since the symbols of kernels in an unnamed namespace depend on the path of the checkout.
namespace similarity {

constexpr int kThreads = 128;
constexpr unsigned kAllLanes = ~0u;

using Key = unsigned long long;

struct Scratch {
  Key *keys, *sorted_keys;   // (block_rows)
  Key* first_minima;         // (block_rows): the first two min-hashes, the first in the upper half
  uint32_t* third_minimum;   // (block_rows)
  int32_t *natural, *again;  // (block_rows): orders
  void* sort;
  size_t sort_bytes;
};

size_t place_scratch(int32_t rows, std::byte* memory, Scratch& scratch) {
  Layout layout;
  const size_t keys = layout.place<Key>(rows), sorted_keys = layout.place<Key>(rows);
  const size_t first_minima = layout.place<Key>(rows), third_minimum = layout.place<uint32_t>(rows);
  const size_t natural = layout.place<int32_t>(rows), again = layout.place<int32_t>(rows);
  check(cub::DeviceRadixSort::SortPairs(nullptr, scratch.sort_bytes, scratch.keys, scratch.sorted_keys, scratch.natural,
                                        scratch.again, rows),
        "sort of the block rows");
  const size_t sort = layout.place<std::byte>(scratch.sort_bytes);
  scratch.keys = reinterpret_cast<Key*>(memory + keys);
  scratch.sorted_keys = reinterpret_cast<Key*>(memory + sorted_keys);
  scratch.first_minima = reinterpret_cast<Key*>(memory + first_minima);
  scratch.third_minimum = reinterpret_cast<uint32_t*>(memory + third_minimum);
  scratch.natural = reinterpret_cast<int32_t*>(memory + natural);
  scratch.again = reinterpret_cast<int32_t*>(memory + again);
  scratch.sort = memory + sort;
  return layout.bytes();
}

// One warp a block row. Means are not negative: as numbers of their bits they have the same order.
__global__ void __launch_bounds__(kThreads) describe_rows(RowPattern pattern, Scratch scratch) {
  const bool good = is_good(pattern.index);
  const int64_t row = (int64_t(blockIdx.x) * kThreads + threadIdx.x) / 32;
  if (row >= pattern.block_rows) return;
  const int lane = threadIdx.x % 32;
  const EntryRange blocks = blocks_of(pattern, good, static_cast<int32_t>(row));
  Key sum = 0;
  uint32_t minima[kMinHashes];
  for (uint32_t& minimum : minima) minimum = UINT32_MAX;
  for (int32_t b = lane; b < blocks.count; b += 32) {
    const auto col = static_cast<uint32_t>(pattern.index.col_idx[blocks.begin + b]);
    sum += col;
    uint32_t hash = col;
    for (uint32_t& minimum : minima) {
      hash = next_hash(hash);
      minimum = min(minimum, well_mixed(hash));
    }
  }
  for (int other = 16; other > 0; other /= 2) sum += __shfl_xor_sync(kAllLanes, sum, other);
  for (uint32_t& minimum : minima) minimum = __reduce_min_sync(kAllLanes, minimum);
  if (lane != 0) return;
  const double mean = blocks.count > 0 ? static_cast<double>(sum) / blocks.count : 0;
  scratch.keys[row] = static_cast<Key>(__double_as_longlong(mean));
  scratch.first_minima[row] = Key{minima[0]} << 32 | minima[1];
  scratch.third_minimum[row] = minima[2];
  scratch.natural[row] = static_cast<int32_t>(row);
}

// Keys of the rows in an order.
template <class From>
__global__ void __launch_bounds__(kThreads)
    gather_keys(Key* keys, const From* from, const int32_t* order, int32_t rows) {
  const int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x;
  if (i < rows) keys[i] = from[order[i]];
}

}  // namespace similarity

size_t sort_scratch_bytes(int32_t block_rows) {
  similarity::Scratch scratch = {};
  return similarity::place_scratch(block_rows, nullptr, scratch);
}

void sort_rows(const RowPattern& pattern, int32_t* by_middle, int32_t* by_hash, void* memory, cudaStream_t stream) {
  using namespace similarity;
  const int32_t rows = pattern.block_rows;
  Scratch scratch = {};
  place_scratch(rows, static_cast<std::byte*>(memory), scratch);
  const auto ctas = [](int64_t threads) { return static_cast<unsigned>((threads + kThreads - 1) / kThreads); };
  // Stable.
  const auto sort = [&](const int32_t* from, int32_t* to, int bits) {
    check(cub::DeviceRadixSort::SortPairs(scratch.sort, scratch.sort_bytes, scratch.keys, scratch.sorted_keys, from, to,
                                          rows, 0, bits, stream),
          "sort of the block rows");
  };
  describe_rows<<<ctas(int64_t{rows} * 32), kThreads, 0, stream>>>(pattern, scratch);
  check(cudaGetLastError(), "description of the block rows");
  sort(scratch.natural, by_middle, 64);
  // By the last hash first: rows that agree in the others stay in that order.
  gather_keys<<<ctas(rows), kThreads, 0, stream>>>(scratch.keys, scratch.third_minimum, by_middle, rows);
  check(cudaGetLastError(), "keys of the block rows");
  sort(by_middle, scratch.again, 32);
  gather_keys<<<ctas(rows), kThreads, 0, stream>>>(scratch.keys, scratch.first_minima, scratch.again, rows);
  check(cudaGetLastError(), "keys of the block rows");
  sort(scratch.again, by_hash, 64);
}

}  // namespace sparsek::cuda
