// SPDX-License-Identifier: Apache-2.0
#include "plan/column_bits.h"

// SPARSEK_PORTABLE leaves out what is for one kind of processor, for a test of the rest.
#if defined(__x86_64__) && !defined(SPARSEK_PORTABLE)
#define SPARSEK_X86
#include <immintrin.h>
#endif

#include <algorithm>
#include <limits>
#include <utility>

namespace sparsek {
namespace {

// Vectors of GCC and Clang: each instruction set makes of them what it has.
constexpr size_t kLanes = 16;
using Words [[gnu::vector_size(64), gnu::may_alias]] = uint32_t;
using LooseWords [[gnu::vector_size(64), gnu::may_alias, gnu::aligned(4)]] = uint32_t;  // anywhere in memory
using LooseInts [[gnu::vector_size(64), gnu::may_alias, gnu::aligned(4)]] = int32_t;
constexpr size_t kVectorsAtOnce = 2;

constexpr int32_t kGone = std::numeric_limits<int32_t>::max();

// What is compared: row `at` of `columns` with all others.
struct Comparison {
  const uint32_t* columns;  // (words, stride)
  size_t words, stride;
  const int32_t* number;  // (stride)
  const int32_t* blocks;  // (stride)
  size_t at;
  int32_t most_blocks;  // of a partner
};

// How the bits of vectors are counted. count() makes of each lane a value that can be summed up kMostSums times, and
// sum() makes of such a sum the number of bits.
struct CountInBytes {
  static constexpr size_t kMostSums = 31;
  [[gnu::always_inline]] static void count(Words& v) {
    v -= v >> 1 & 0x55555555u;
    v = (v & 0x33333333u) + (v >> 2 & 0x33333333u);
    v = (v + (v >> 4)) & 0x0f0f0f0fu;
  }
  [[gnu::always_inline]] static void sum(Words& v) {
    v = (v & 0x00ff00ffu) + (v >> 8 & 0x00ff00ffu);
    v = (v & 0xffffu) + (v >> 16);
  }
};

template <class Count>
[[gnu::always_inline]] inline Merit best_merit(const Comparison& all) {
  const auto self = static_cast<uint32_t>(all.number[all.at]);
  Words best = {};
  for (size_t first = 0; first < all.stride; first += kVectorsAtOnce * kLanes) {
    Words common[kVectorsAtOnce] = {};
    for (size_t begin = 0; begin < all.words; begin += Count::kMostSums) {
      const size_t end = std::min(begin + Count::kMostSums, all.words);
      Words sums[kVectorsAtOnce] = {};
      for (size_t w = begin; w < end; ++w) {
        const uint32_t* const word = all.columns + w * all.stride;
        for (size_t v = 0; v < kVectorsAtOnce; ++v) {
          Words both = *reinterpret_cast<const Words*>(word + first + v * kLanes) & word[all.at];
          Count::count(both);
          sums[v] += both;
        }
      }
      for (size_t v = 0; v < kVectorsAtOnce; ++v) {
        Count::sum(sums[v]);
        common[v] += sums[v];
      }
    }
    for (size_t v = 0; v < kVectorsAtOnce; ++v) {
      const size_t lane = first + v * kLanes;
      const Words near = kMostMatched - (*reinterpret_cast<const LooseWords*>(all.number + lane) ^ self);
      const Words counted = common[v] < kMostCommon ? common[v] : Words{} + kMostCommon;
      const Words merit = counted * kMostMatched + near;
      const auto fits = static_cast<Words>(*reinterpret_cast<const LooseInts*>(all.blocks + lane) <= all.most_blocks);
      const Words allowed = merit & fits;
      best = allowed > best ? allowed : best;
    }
  }
  Merit most = kNoMerit;
  for (size_t lane = 0; lane < kLanes; ++lane) most = std::max<Merit>(most, best[lane]);
  return most;
}

template <class Count>
[[gnu::always_inline]] inline int64_t count_bits(const uint32_t* words, size_t count) {
  int64_t bits = 0;
  for (size_t i = 0; i < count; i += kLanes) {
    Words sum = *reinterpret_cast<const Words*>(words + i);
    Count::count(sum);
    Count::sum(sum);
    for (size_t lane = 0; lane < kLanes; ++lane) bits += sum[lane];
  }
  return bits;
}

struct Functions {
  Merit (*best_merit)(const Comparison&);
  int64_t (*count_bits)(const uint32_t*, size_t);
};

#ifdef SPARSEK_X86
#define SPARSEK_AVX512 "avx512f,avx512bw,avx512vl,avx512dq,avx512vpopcntdq,prefer-vector-width=512"

struct CountByInstruction {
  static constexpr size_t kMostSums = std::numeric_limits<uint32_t>::max() / 32;
  [[gnu::target(SPARSEK_AVX512)]] static inline void count(Words& v) {
    v = reinterpret_cast<Words>(_mm512_popcnt_epi32(reinterpret_cast<__m512i>(v)));
  }
  static void sum(Words&) {}
};

[[gnu::target(SPARSEK_AVX512)]] Merit best_merit_avx512(const Comparison& all) {
  return best_merit<CountByInstruction>(all);
}
[[gnu::target(SPARSEK_AVX512)]] int64_t count_bits_avx512(const uint32_t* words, size_t count) {
  return count_bits<CountByInstruction>(words, count);
}
[[gnu::target("avx2")]] Merit best_merit_avx2(const Comparison& all) { return best_merit<CountInBytes>(all); }
[[gnu::target("avx2")]] int64_t count_bits_avx2(const uint32_t* words, size_t count) {
  return count_bits<CountInBytes>(words, count);
}
#endif

Merit best_merit_plain(const Comparison& all) { return best_merit<CountInBytes>(all); }
int64_t count_bits_plain(const uint32_t* words, size_t count) { return count_bits<CountInBytes>(words, count); }

Functions choose_functions() {
#ifdef SPARSEK_X86
  if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512vpopcntdq")) {
    return {best_merit_avx512, count_bits_avx512};
  }
  if (__builtin_cpu_supports("avx2")) return {best_merit_avx2, count_bits_avx2};
#endif
  return {best_merit_plain, count_bits_plain};
}

const Functions functions = choose_functions();

constexpr size_t stride_of(int32_t bundles) {
  constexpr size_t kStep = kVectorsAtOnce * kLanes;
  return (static_cast<size_t>(bundles) + kStep - 1) / kStep * kStep;
}

}  // namespace

ColumnBits::ColumnBits(size_t words, int32_t bundles)
    : words_(words), stride_(stride_of(bundles)), lanes_(words * stride_ / kLanes) {}

int64_t ColumnBits::count() const { return functions.count_bits(word(0), words_ * stride_); }

Unpaired::Unpaired(const ColumnBits& columns, const std::vector<int32_t>& blocks)
    : columns_(columns),
      number_(columns.stride()),
      blocks_(columns.stride(), kGone),
      place_(blocks.size()),
      width_(static_cast<int32_t>(blocks.size())),
      left_(width_) {
  std::copy(blocks.begin(), blocks.end(), blocks_.begin());
  for (int32_t i = 0; i < width_; ++i) number_[i] = place_[i] = i;
}

Merit Unpaired::best(int32_t i, int64_t most) {
  const int32_t at = place_[i], own = blocks_[at];
  const int64_t others = std::min<int64_t>(most - own, kGone - 1);
  if (others < 0) return kNoMerit;
  blocks_[at] = kGone;
  const Merit merit = functions.best_merit({columns_.word(0), columns_.words(), columns_.stride(), number_.data(),
                                            blocks_.data(), static_cast<size_t>(at), static_cast<int32_t>(others)});
  blocks_[at] = own;
  return merit;
}

void Unpaired::remove(int32_t i) {
  blocks_[place_[i]] = kGone;
  --left_;
  // Comparing with what is gone takes time as well.
  if (stride_of(left_) * 4 <= columns_.stride() * 3) pack();
}

void Unpaired::pack() {
  int32_t to = 0;
  for (int32_t from = 0; from < width_; ++from) {
    if (blocks_[from] == kGone) continue;
    blocks_[to] = blocks_[from];
    number_[to] = number_[from];
    place_[number_[to++]] = from;  // for now
  }
  ColumnBits packed(columns_.words(), to);
  for (size_t w = 0; w < columns_.words(); ++w) {
    const uint32_t* const all = columns_.word(w);
    uint32_t* const kept = packed.word(w);
    for (int32_t i = 0; i < to; ++i) kept[i] = all[place_[number_[i]]];
  }
  for (int32_t i = 0; i < to; ++i) place_[number_[i]] = i;
  columns_ = std::move(packed);
  number_.resize(columns_.stride());
  blocks_.resize(to);
  blocks_.resize(columns_.stride(), kGone);
  width_ = to;
}

}  // namespace sparsek
