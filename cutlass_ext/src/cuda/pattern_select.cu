// SPDX-License-Identifier: Apache-2.0
// Blocks that an array of a place for each block tells: a mask, or scores.
#include <cub/block/block_scan.cuh>

#include <limits>
#include <type_traits>

#include "cuda/dependent_launch.cuh"
#include "cuda/elements.cuh"
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

struct Bytes {
  const uint8_t* mask;
  int64_t ld;
  __device__ bool operator()(int64_t row, int32_t col) const { return mask[row * ld + col] != 0; }
};
struct Bits {
  const uint8_t* mask;
  int64_t ld;
  __device__ bool operator()(int64_t row, int32_t col) const {
    return (mask[(row * ld + col) / 8] >> (col % 8) & 1) != 0;
  }
};
template <class T>
struct Above {
  const T* scores;
  int64_t ld;
  double threshold;
  __device__ bool operator()(int64_t row, int32_t col) const {
    return !(static_cast<double>(load(scores[row * ld + col])) <= threshold);
  }
};

// Scores as numbers without a sign that have their order: NaN is the highest, and -0 is 0.
template <class T>
struct Keys {
  using Key = std::conditional_t<std::is_same_v<T, double>, uint64_t, uint32_t>;
  static constexpr int kBits = 8 * static_cast<int>(sizeof(Key));
  // That of -Inf.
  static constexpr Key kNever = std::is_same_v<T, double> ? Key(0x000fffffffffffffu) : Key(0x007fffffu);
  const T* scores;
  int64_t ld;

  __device__ Key key(int64_t row, int32_t col) const {
    const Wide<T> x = load(scores[row * ld + col]);
    if (x != x) return ~Key{0};
    const Wide<T> positive_zero = plus(x, Wide<T>{0});
    Key bits;
    memcpy(&bits, &positive_zero, sizeof(bits));
    constexpr Key kSign = Key{1} << (kBits - 1);
    return (bits & kSign) != 0 ? ~bits : bits | kSign;
  }
  __device__ bool operator()(int64_t row, int32_t col) const { return key(row, col) > kNever; }
};

// row_ptr[row + 1] = the blocks of a row, at most `most`. A warp a row.
template <class Present>
__global__ void __launch_bounds__(kThreads) count_present(Present present, Made to, int64_t most) {
  start_dependent();
  const int lane = threadIdx.x % kWarp;
  const int64_t warps = int64_t(gridDim.x) * (kThreads / kWarp);
  for (int64_t row = (blockIdx.x * int64_t{kThreads} + threadIdx.x) / kWarp; row < to.shape.block_rows; row += warps) {
    int32_t count = 0;
#pragma unroll 8
    for (int32_t col = lane; col < to.shape.block_cols; col += kWarp) count += present(row, col) ? 1 : 0;
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
    const int64_t end = to.row_ptr.get(row + 1);
    for (int64_t base = 0; base < to.shape.block_cols && at < end; base += kAtOnce * kWarp) {
      bool is_there[kAtOnce];
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        const int64_t col = base + i * kWarp + lane;
        is_there[i] = col < to.shape.block_cols && present(row, static_cast<int32_t>(col));
      }
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        const unsigned which = __ballot_sync(kAllLanes, is_there[i]);
        const int64_t place = at + __popc(which & ((1u << lane) - 1));
        if (is_there[i] && place < end) to.col_idx.set(place, base + i * kWarp + lane);
        at += __popc(which);
      }
    }
  }
}

// A CTA a row: finds the lowest of its `count` highest keys digit by digit, then writes all that are above it, and of
// the equal ones as many as are wanted, in the order of columns.
template <class T>
__global__ void __launch_bounds__(kThreads) write_highest(Keys<T> keys, Made to, int64_t count) {
  using Key = typename Keys<T>::Key;
  using BlockScan = cub::BlockScan<int32_t, kThreads>;
  constexpr int kDigits = 256;
  static_assert(kDigits == kThreads, "a thread has a digit");
  __shared__ typename BlockScan::TempStorage storage;
  __shared__ int32_t histogram[kDigits];
  __shared__ int32_t digit, above, all;
  start_dependent();
  const int32_t cols = to.shape.block_cols;
  for (int64_t row = blockIdx.x; row < to.shape.block_rows; row += gridDim.x) {
    const int64_t begin = to.row_ptr.get(row), end = to.row_ptr.get(row + 1);
    if (begin == end) continue;
    Key lowest = 0, known = 0;  // its digits that are found, and their bits
    int64_t wanted = count;     // of those that have these digits
    for (int shift = Keys<T>::kBits - 8; shift >= 0; shift -= 8) {
      histogram[threadIdx.x] = 0;
      __syncthreads();
      for (int32_t col = threadIdx.x; col < cols; col += kThreads) {
        const Key key = keys.key(row, col);
        if (key > Keys<T>::kNever && (key & known) == lowest) atomicAdd(&histogram[key >> shift & (kDigits - 1)], 1);
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
    for (int32_t base = 0; base < cols && at < end; base += kThreads) {
      const int32_t col = base + static_cast<int32_t>(threadIdx.x);
      const Key key = col < cols ? keys.key(row, col) : 0;
      const bool may_be = key > Keys<T>::kNever;
      const bool is_equal = may_be && (key & known) == lowest, is_above = may_be && (key & known) > lowest;
      int32_t before, total;
      BlockScan(storage).ExclusiveSum((is_above ? 1 : 0) | (is_equal ? 1 << 16 : 0), before, total);
      __syncthreads();
      const int64_t equal = min(equal_before + (before >> 16), wanted);
      const int64_t place = at + (before & 0xffff) + equal - min(equal_before, wanted);
      const bool is_taken = is_above || (is_equal && equal_before + (before >> 16) < wanted);
      if (is_taken && place < end) to.col_idx.set(place, col);
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

}  // namespace pattern_select

void make_from_mask(const pattern::MakeJob& job) {
  namespace k = pattern_select;
  const auto* const mask = static_cast<const uint8_t*>(job.source);
  if (job.what == pattern::Make::kScores) {
    with_element(job.dtype, [&](auto* element) {
      using T = std::remove_pointer_t<decltype(element)>;
      k::make(k::Above<T>{static_cast<const T*>(job.source), job.ld, job.threshold}, job);
    });
  } else if (job.bits) {
    k::make(k::Bits{mask, job.ld}, job);
  } else {
    k::make(k::Bytes{mask, job.ld}, job);
  }
}

void make_from_scores(const pattern::MakeJob& job) {
  namespace k = pattern_select;
  with_element(job.dtype, [&](auto* element) {
    using T = std::remove_pointer_t<decltype(element)>;
    const k::Keys<T> keys{static_cast<const T*>(job.source), job.ld};
    const int64_t rows = job.to.shape.block_rows;
    launch_pattern("count of scores", pattern_ctas(rows * k::kWarp), k::kThreads, job.stream,
                   k::count_present<k::Keys<T>>, keys, job.to, job.count);
    enqueue_scan(job.to, {}, job.stream);
    launch_pattern("choice of scores", static_cast<unsigned>(std::clamp<int64_t>(rows, 1, kMostPatternCtas)),
                   k::kThreads, job.stream, k::write_highest<T>, keys, job.to, job.count);
  });
}

}  // namespace sparsek::cuda
