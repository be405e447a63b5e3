// SPDX-License-Identifier: Apache-2.0
#include "cuda/row_matching.h"

#include <algorithm>
#include <type_traits>

#include "cuda/bundle_levels.cuh"
#include "cuda/cuda_error.h"
#include "cuda/dependent_launch.cuh"
#include "cuda/launch_dependent.h"
#include "cuda/layout.h"
#include "cuda/match_few.cuh"
#include "cuda/matching_work.cuh"
#include "cuda/prepared.h"
#include "cuda/similar_rows.h"
#include "plan/pairing.h"

namespace sparsek::cuda {
// Named, since the symbols of kernels in an unnamed namespace depend on the path of the checkout.
namespace matching {

constexpr int32_t kMostColumns = 1 << 16;

// For the bundles that are compared at once, at most so much, unless those of one chunk need more.
constexpr size_t kBatchBytes = size_t{32} << 20;

constexpr int kScanThreads = 256;
constexpr int32_t kScanWords = 8192;  // of the rows that a CTA reads at once

__host__ __device__ int32_t scanned_at_once(int32_t group, int32_t words) {
  int32_t rows = group;
  while (rows > 1 && int64_t{rows} * words > kScanWords) rows /= 2;
  return rows;
}

// One CTA for each group of consecutive rows, from chunk first_chunk on, of order blockIdx.y: adds its costs up, and
// makes its rows bundles. Without costs, it is the best order for which they are known.
template <bool kCosts, bool kBundles>
__global__ void __launch_bounds__(kScanThreads) scan_groups(Work work, int32_t first_chunk) {
  extern __shared__ uint32_t shared[];
  __shared__ int32_t loads;
  start_dependent();
  const RowPattern& pattern = work.pattern;
  const int32_t words = work.words, at_once = scanned_at_once(work.group, words);
  uint32_t* const united = shared;       // (words)
  uint32_t* const own = shared + words;  // (at_once, words)
  const bool good = is_good(pattern.index);
  const Order order = kCosts ? static_cast<Order>(blockIdx.y) : best_order(work, kByHash);
  const int32_t first = first_chunk * work.together + int32_t(blockIdx.x) * work.group;
  for (int32_t w = threadIdx.x; w < words; w += kScanThreads) united[w] = 0;
  if (threadIdx.x == 0) loads = 0;
  if (kBundles && threadIdx.x == 0 && first % work.together == 0) work.arrived[first / work.together - first_chunk] = 0;
  int32_t blocks = 0;  // of the group, in thread 0
  for (int32_t begin = 0; begin < work.group; begin += at_once) {
    for (int32_t i = threadIdx.x; i < at_once * words; i += kScanThreads) own[i] = 0;
    __syncthreads();
    for (int32_t r = threadIdx.x / 32; r < at_once; r += kScanThreads / 32) {
      const EntryRange row = blocks_of(pattern, good, row_at(work, order, first + begin + r));
      for (int32_t b = threadIdx.x % 32; b < row.count; b += 32) {
        const int32_t col = pattern.index.col_idx[row.begin + b];
        atomicOr(&own[r * words + col / 32], 1u << col % 32);
      }
    }
    __syncthreads();
    for (int32_t i = threadIdx.x; i < at_once * words; i += kScanThreads) {
      const int32_t r = i % at_once, w = i / at_once;
      const uint32_t word = own[r * words + w];
      if (kCosts && word != 0) atomicOr(&united[w], word);
      if (kBundles) {
        const int32_t place = first + begin + r, chunk = place / work.together - first_chunk;
        work.columns[0][(int64_t(chunk) * words + w) * work.together + place % work.together] = word;
      }
    }
    for (int32_t r = threadIdx.x; r < at_once; r += kScanThreads) {
      const int32_t place = first + begin + r, row = row_at(work, order, place);
      const int32_t count = blocks_of(pattern, good, row).count;
      if (kBundles) {
        work.rows[0][place] = row;
        work.blocks[0][place] = work.loads[0][place] = count;
      }
    }
    if (kCosts && threadIdx.x == 0) {
      for (int32_t r = 0; r < at_once; ++r) {
        blocks += blocks_of(pattern, good, row_at(work, order, first + begin + r)).count;
      }
    }
    __syncthreads();
  }
  if (!kCosts) return;
  int32_t found = 0;
  for (int32_t w = threadIdx.x; w < words; w += kScanThreads) found += __popc(united[w]);
  found = __reduce_add_sync(kAllLanes, found);
  if (threadIdx.x % 32 == 0 && found > 0) atomicAdd(&loads, found);
  if (order == kNatural && good) {
    for (int32_t size = 2, level = 0; size <= work.group; size *= 2, ++level) {
      for (int32_t i = threadIdx.x; i < work.group / size; i += kScanThreads) {
        const int32_t from = first + i * size, to = min(from + size, pattern.block_rows);
        if (from >= to) continue;
        atomicMax(&work.costs->longest_neighbours[level], pattern.index.row_ptr[to] - pattern.index.row_ptr[from]);
      }
    }
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  atomicAdd(&work.costs->loads[order], static_cast<unsigned long long>(loads));
  atomicMax(&work.costs->longest[order], blocks);
}

constexpr int kWriteThreads = 256;

// One thread a row.
__global__ void __launch_bounds__(kWriteThreads) write_orders(Work work, const int32_t* matched) {
  start_dependent();
  write_order(work, matched, blockIdx.x * kWriteThreads + threadIdx.x);
}

int32_t padded(int32_t block_rows, int32_t group) { return (block_rows + group - 1) / group * group; }

int levels_of(int32_t group) {
  int levels = 0;
  while (1 << levels < group) ++levels;
  return levels;
}

// Sets all of `work` but the pattern's arrays, and returns the bytes of its own arrays and of the sort's scratch.
size_t place_work(const RowPattern& pattern, int32_t group, std::byte* memory, Work& work, void** sort) {
  work.pattern = pattern;
  work.group = group;
  work.padded_rows = padded(pattern.block_rows, group);
  work.together = rows_matched_together(pattern.block_cols, group);
  work.words = (pattern.block_cols + 31) / 32;
  work.sorted = pattern.block_rows > work.together;
  while (work.together / 2 >= work.padded_rows) work.together /= 2;  // no places for rows that there are not
  const int32_t chunks = work.chunks();
  const auto places = static_cast<size_t>(work.together), all = chunks * places;
  const size_t columns = places * work.words, pairs = places * places;
  const size_t listed = places * list_places(work.together);
  const size_t of_chunk = (columns + columns / 2 + pairs) * sizeof(uint32_t) + listed * sizeof(uint16_t);
  work.batch = static_cast<int32_t>(std::min<size_t>(chunks, std::max<size_t>(1, kBatchBytes / of_chunk)));

  Layout layout;
  const auto place = [&](auto*& array, size_t count) {
    using T = std::remove_reference_t<decltype(*array)>;
    array = reinterpret_cast<T*>(memory + layout.place<T>(count));
  };
  place(work.costs, 1);
  place(work.arrived, work.batch);
  place(work.common, work.batch * pairs);
  place(work.partners, work.batch * listed);
  for (int i = 0; i < 2; ++i) {
    place(work.columns[i], work.batch * columns / (i + 1));
    place(work.rows[i], all);
    place(work.blocks[i], all);
    place(work.loads[i], all);
  }
  if (work.sorted) {
    place(work.by_middle, pattern.block_rows);
    place(work.by_hash, pattern.block_rows);
    std::byte* scratch = nullptr;
    place(scratch, sort_scratch_bytes(pattern.block_rows));
    *sort = scratch;
  }
  return layout.bytes();
}

bool is_few(const Work& work) { return work.padded_rows <= kFewRows && work.words <= kFewWords; }

void match_at_once(const Work& work, cudaStream_t stream) {
  static Prepared few;
  int device = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  few.on(device, [] {
    const auto most = static_cast<int>(few_rows_bytes(kFewWords));
    check(cudaFuncSetAttribute(match_few, cudaFuncAttributeMaxDynamicSharedMemorySize, most), "cudaFuncSetAttribute");
  });
  launch_dependent("matching of few block rows", match_few, dim3(1), kPairThreads, few_rows_bytes(work.words), stream,
                   work, levels_of(work.group));
}

template <bool kCosts, bool kBundles>
void scan(const Work& work, int orders, int32_t first_chunk, int32_t chunks, cudaStream_t stream) {
  const int32_t rows = std::min(chunks * work.together, work.padded_rows - first_chunk * work.together);
  const dim3 grid(static_cast<unsigned>(rows / work.group), orders);
  const size_t bytes = sizeof(uint32_t) * work.words * (1 + scanned_at_once(work.group, work.words));
  launch_dependent("costs of the row groups", scan_groups<kCosts, kBundles>, grid, kScanThreads, bytes, stream, work,
                   first_chunk);
}

void match(const Work& work, int level, int32_t first_chunk, int32_t chunks, cudaStream_t stream) {
  const int32_t places = work.together >> level;
  const auto kernel = places > 256   ? match_level<16>
                      : places > 128 ? match_level<8>
                      : places > 64  ? match_level<4>
                      : places > 32  ? match_level<2>
                                     : match_level<1>;
  launch_dependent("matching of the block rows", kernel, dim3((places + kOwn - 1) / kOwn, chunks), kPairThreads, 0,
                   stream, work, level, first_chunk);
}

}  // namespace matching

bool may_match_rows(int32_t block_rows, int32_t block_cols, int32_t group) {
  return group > 1 && group < block_rows && block_cols <= matching::kMostColumns;
}

size_t match_scratch_bytes(int32_t block_rows, int32_t block_cols, int32_t group) {
  matching::Work work = {};
  void* sort = nullptr;
  const size_t bytes = matching::place_work({block_rows, block_cols, {}}, group, nullptr, work, &sort);
  return matching::is_few(work) ? 0 : bytes;
}

double match_seconds(int32_t block_rows, int32_t block_cols, int32_t group) {
  struct Cost {
    double once, level, place;
  };
  constexpr Cost kFew = {2e-6, 0.3e-6, 0.09e-6}, kMany = {8e-6, 5e-6, 0.07e-6};  // H200: docs/notes/planning.md
  matching::Work work = {};
  void* sort = nullptr;
  matching::place_work({block_rows, block_cols, {}}, group, nullptr, work, &sort);
  const Cost& cost = matching::is_few(work) ? kFew : kMany;
  double batch = 0;
  for (int level = 0; work.matches() && level < matching::levels_of(group); ++level) {
    batch += cost.level + cost.place * (work.together >> level);
  }
  return cost.once + batch * ((work.chunks() + work.batch - 1) / work.batch);
}

void match_rows(const RowPattern& pattern, int32_t group, int32_t* order, int32_t* zero, void* scratch,
                cudaStream_t stream) {
  using namespace matching;
  Work work = {};
  void* sort = nullptr;
  place_work(pattern, group, static_cast<std::byte*>(scratch), work, &sort);
  work.order = order;
  work.zero = zero;
  if (is_few(work)) return match_at_once(work, stream);
  check(cudaMemsetAsync(work.costs, 0, sizeof(*work.costs), stream), "cudaMemsetAsync");
  const int32_t chunks = work.chunks();
  if (work.sorted) sort_rows(pattern, work.by_middle, work.by_hash, sort, stream);
  const bool at_once = !work.sorted && work.batch == chunks;
  if (at_once) {
    scan<true, true>(work, 1, 0, chunks, stream);
  } else {
    scan<true, false>(work, work.sorted ? kByHash + 1 : 1, 0, chunks, stream);
  }
  const int levels = work.matches() ? levels_of(group) : 0;
  for (int32_t first = 0; levels > 0 && first < chunks; first += work.batch) {
    const int32_t now = std::min(work.batch, chunks - first);
    if (!at_once) scan<false, true>(work, 1, first, now, stream);
    for (int level = 0; level < levels; ++level) match(work, level, first, now, stream);
  }
  if (levels > 0 && chunks == 1) return;
  const dim3 ctas((work.padded_rows + kWriteThreads - 1) / kWriteThreads);
  launch_dependent("order of the block rows", write_orders, ctas, kWriteThreads, 0, stream, work,
                   static_cast<const int32_t*>(work.rows[levels % 2]));
}

}  // namespace sparsek::cuda
