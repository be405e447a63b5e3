// SPDX-License-Identifier: Apache-2.0
// Blocks that an array of a place for each block tells: a mask, or scores.
#include <cub/block/block_scan.cuh>

#include <limits>
#include <type_traits>

#include "cuda/dependent_launch.cuh"
#include "cuda/elements.cuh"
#include "cuda/pattern_highest.cuh"
#include "cuda/pattern_launch.h"
#include "cuda/pattern_parts.h"

namespace sparsek::cuda {
// Named, since the symbols of kernels in an unnamed namespace depend on the path of the checkout.
namespace pattern_select {

using pattern::Made;

constexpr int kWarp = 32;
constexpr int kThreads = kPatternThreads;
constexpr int kAtOnce = 8;  // loads of a lane in flight
constexpr unsigned kAllLanes = ~0u;

// Of each kind: where the places of a row begin and how many it has; whether there is a block at one, of which `at` is
// counted from the first row's begin and i from this row's; and what the index gets there.

// A place for each block.
struct InGrid {
  int64_t ld;
  int32_t cols;

  __device__ int64_t length(int64_t) const { return cols; }
  __device__ int64_t begin(int64_t row) const { return row * ld; }
  __device__ void write(const Made& to, int64_t place, int64_t, int64_t i) const { to.col_idx.set(place, i); }
};
// A place for each entry of a matrix.
struct InEntries {
  pattern::Given a;

  __device__ int64_t length(int64_t row) const { return a.row_ptr.get(row + 1) - a.row_ptr.get(row); }
  __device__ int64_t begin(int64_t row) const { return a.row_ptr.get(row); }
  __device__ void write(const Made& to, int64_t place, int64_t entry, int64_t) const {
    to.col_idx.set(place, a.col_idx.get(entry));
    to.block_idx.set(place, a.block(entry));
  }
};

struct Bytes : InGrid {
  const uint8_t* mask;
  __device__ bool operator()(int64_t at, int64_t) const { return mask[at] != 0; }
};
struct Bits : InGrid {
  const uint8_t* mask;
  __device__ bool operator()(int64_t at, int64_t i) const { return (mask[at / 8] >> (i % 8) & 1) != 0; }
};
template <class T, class Places>
struct Above : Places {
  const T* scores;
  double threshold;
  __device__ bool operator()(int64_t at, int64_t) const {
    return !(static_cast<double>(load(scores[at])) <= threshold);
  }
};

// Scores as numbers without a sign that have their order: NaN is the highest, and -0 is 0.
template <class T, class Places>
struct Keys : Places {
  using Key = std::conditional_t<std::is_same_v<T, double>, uint64_t, uint32_t>;
  static constexpr int kBits = 8 * static_cast<int>(sizeof(Key));
  // That of -Inf.
  static constexpr Key kNever = std::is_same_v<T, double> ? Key(0x000fffffffffffffu) : Key(0x007fffffu);
  const T* scores;

  __device__ Key key(int64_t at) const {
    const Wide<T> x = load(scores[at]);
    if (x != x) return ~Key{0};
    const Wide<T> positive_zero = plus(x, Wide<T>{0});
    Key bits;
    memcpy(&bits, &positive_zero, sizeof(bits));
    constexpr Key kSign = Key{1} << (kBits - 1);
    return (bits & kSign) != 0 ? ~bits : bits | kSign;
  }
  __device__ bool operator()(int64_t at, int64_t) const { return key(at) > kNever; }
};

// row_ptr[row + 1] = the blocks of a row, at most `most`. A warp a row.
template <class Present>
__global__ void __launch_bounds__(kThreads) count_present(Present present, Made to, int64_t most) {
  start_dependent();
  const int lane = threadIdx.x % kWarp;
  const int64_t warps = int64_t(gridDim.x) * (kThreads / kWarp);
  for (int64_t row = (blockIdx.x * int64_t{kThreads} + threadIdx.x) / kWarp; row < to.shape.block_rows; row += warps) {
    int32_t count = 0;
    const int64_t length = present.length(row), first = present.begin(row);
#pragma unroll 8
    for (int64_t i = lane; i < length; i += kWarp) count += present(first + i, i) ? 1 : 0;
    count = __reduce_add_sync(kAllLanes, count);
    if (lane == 0) to.row_ptr.set(row + 1, min(int64_t{count}, most));
  }
}

// A warp a row.
template <class Present>
__global__ void __launch_bounds__(kThreads) write_present(Present present, Made to) {
  start_dependent();
  const int lane = threadIdx.x % kWarp;
  const int64_t warps = int64_t(gridDim.x) * (kThreads / kWarp);
  for (int64_t row = (blockIdx.x * int64_t{kThreads} + threadIdx.x) / kWarp; row < to.shape.block_rows; row += warps) {
    int64_t at = to.row_ptr.get(row);
    const int64_t end = to.row_ptr.get(row + 1), length = present.length(row), first = present.begin(row);
    for (int64_t base = 0; base < length && at < end; base += kAtOnce * kWarp) {
      bool is_there[kAtOnce];
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        const int64_t mine = base + i * kWarp + lane;
        is_there[i] = mine < length && present(first + mine, mine);
      }
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        const unsigned which = __ballot_sync(kAllLanes, is_there[i]);
        const int64_t place = at + __popc(which & ((1u << lane) - 1));
        const int64_t mine = base + i * kWarp + lane;
        if (is_there[i] && place < end) present.write(to, place, first + mine, mine);
        at += __popc(which);
      }
    }
  }
}

// A CTA a row: finds the lowest of its `count` highest keys digit by digit, then writes all that are above it, and of
// the equal ones as many as are wanted, in the order of columns.
template <class Keys>
__global__ void __launch_bounds__(kThreads) write_highest(Keys keys, Made to, int64_t count) {
  using Key = typename Keys::Key;
  using BlockScan = cub::BlockScan<int32_t, kThreads>;
  constexpr int kDigits = 256;
  static_assert(kDigits == kThreads, "a thread has a digit");
  __shared__ typename BlockScan::TempStorage storage;
  __shared__ int32_t histogram[kDigits];
  __shared__ int32_t digit, above, all;
  start_dependent();
  for (int64_t row = blockIdx.x; row < to.shape.block_rows; row += gridDim.x) {
    const int64_t begin = to.row_ptr.get(row), end = to.row_ptr.get(row + 1);
    if (begin == end) continue;
    const int64_t length = keys.length(row), first = keys.begin(row);
    Key lowest = 0, known = 0;  // its digits that are found, and their bits
    int64_t wanted = count;     // of those that have these digits
    for (int shift = Keys::kBits - 8; shift >= 0; shift -= 8) {
      histogram[threadIdx.x] = 0;
      __syncthreads();
      for (int64_t i = threadIdx.x; i < length; i += kThreads) {
        const Key key = keys.key(first + i);
        if (key > Keys::kNever && (key & known) == lowest) atomicAdd(&histogram[key >> shift & (kDigits - 1)], 1);
      }
      __syncthreads();
      const int mine = kDigits - 1 - static_cast<int>(threadIdx.x);  // from the highest digit down
      int32_t before, total;
      BlockScan(storage).ExclusiveSum(histogram[mine], before, total);
      if (before < wanted && wanted <= before + histogram[mine]) {
        digit = mine;
        above = before;
      }
      if (threadIdx.x == 0) all = total;
      __syncthreads();
      if (all <= wanted) break;  // all that have the digits; only of the first digit may there be fewer
      lowest |= static_cast<Key>(digit) << shift;
      known |= static_cast<Key>(kDigits - 1) << shift;
      wanted -= above;
      __syncthreads();
    }
    // A key that has the known digits is one of the equal ones. Where no digit is known, all are.
    int64_t at = begin, equal_before = 0;
    for (int64_t base = 0; base < length && at < end; base += kThreads) {
      const int64_t mine = base + threadIdx.x;
      const Key key = mine < length ? keys.key(first + mine) : 0;
      const bool may_be = key > Keys::kNever;
      const bool is_equal = may_be && (key & known) == lowest, is_above = may_be && (key & known) > lowest;
      int32_t before, total;
      BlockScan(storage).ExclusiveSum((is_above ? 1 : 0) | (is_equal ? 1 << 16 : 0), before, total);
      __syncthreads();
      const int64_t equal = min(equal_before + (before >> 16), wanted);
      const int64_t place = at + (before & 0xffff) + equal - min(equal_before, wanted);
      const bool is_taken = is_above || (is_equal && equal_before + (before >> 16) < wanted);
      if (is_taken && place < end) keys.write(to, place, first + mine, mine);
      const int64_t equal_after = equal_before + (total >> 16);
      at += (total & 0xffff) + min(equal_after, wanted) - min(equal_before, wanted);
      equal_before = equal_after;
    }
    __syncthreads();
  }
}

template <class Present>
void make(const Present& present, const pattern::MakeJob& job) {
  const unsigned ctas = pattern_ctas(int64_t{job.to.shape.block_rows} * kWarp);
  launch_pattern("count of blocks", ctas, kThreads, job.stream, count_present<Present>, present, job.to,
                 std::numeric_limits<int64_t>::max());
  enqueue_scan(job.to, {}, job.stream);
  launch_pattern("list of blocks", ctas, kThreads, job.stream, write_present<Present>, present, job.to);
}

// Of rows so short that a warp holds one. Returns whether they are.
template <class Keys>
bool enqueue_highest_of_few(const Keys& keys, const pattern::MakeJob& job) {
  constexpr int kFew = 8, kMore = 32;  // scores of a lane
  const auto launch = [&](auto kernel) {
    launch_pattern("choice of few scores", pattern_ctas(int64_t{job.to.shape.block_rows} * kWarp), kHighestThreads,
                   job.stream, kernel, keys, job.to, job.count);
    return true;
  };
  const int64_t length = job.to.shape.block_cols;
  if (length <= kFew * kWarp) return launch(write_highest_of_few<Keys, kFew>);
  return length <= kMore * kWarp && launch(write_highest_of_few<Keys, kMore>);
}

template <class Keys>
void make_highest(const Keys& keys, const pattern::MakeJob& job) {
  const int64_t rows = job.to.shape.block_rows;
  launch_pattern("count of scores", pattern_ctas(rows * kWarp), kThreads, job.stream, count_present<Keys>, keys, job.to,
                 job.count);
  enqueue_scan(job.to, {}, job.stream);
  if constexpr (std::is_base_of_v<InGrid, Keys>) {
    if (enqueue_highest_of_few(keys, job)) return;
  }
  launch_pattern("choice of scores", static_cast<unsigned>(std::clamp<int64_t>(rows, 1, kMostPatternCtas)), kThreads,
                 job.stream, write_highest<Keys>, keys, job.to, job.count);
}

// Calls work with the scores and the places that they have.
template <class Work>
void with_scores(const pattern::MakeJob& job, Work work) {
  with_element(job.dtype, [&](auto* element) {
    using T = std::remove_pointer_t<decltype(element)>;
    const auto* const scores = static_cast<const T*>(job.source);
    if (job.from.empty()) {
      work(scores, InGrid{job.ld, job.to.shape.block_cols});
    } else {
      work(scores, InEntries{job.from[0]});
      copy_named_blocks(job);
    }
  });
}

}  // namespace pattern_select

void make_from_mask(const pattern::MakeJob& job) {
  namespace k = pattern_select;
  const auto* const mask = static_cast<const uint8_t*>(job.source);
  const k::InGrid grid{job.ld, job.to.shape.block_cols};
  if (job.what == pattern::Make::kMask) {
    return job.bits ? k::make(k::Bits{grid, mask}, job) : k::make(k::Bytes{grid, mask}, job);
  }
  k::with_scores(job, [&](const auto* scores, const auto& places) {
    using T = std::remove_const_t<std::remove_pointer_t<decltype(scores)>>;
    k::make(k::Above<T, std::decay_t<decltype(places)>>{places, scores, job.threshold}, job);
  });
}

void make_from_scores(const pattern::MakeJob& job) {
  namespace k = pattern_select;
  k::with_scores(job, [&](const auto* scores, const auto& places) {
    using T = std::remove_const_t<std::remove_pointer_t<decltype(scores)>>;
    k::make_highest(k::Keys<T, std::decay_t<decltype(places)>>{places, scores}, job);
  });
}

}  // namespace sparsek::cuda
