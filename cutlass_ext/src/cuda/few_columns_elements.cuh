// SPDX-License-Identifier: Apache-2.0
// Elements and loads of them, for the few_columns family.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "cuda/operand_types.h"
#include "cutlass/bfloat16.h"
#include "cutlass/half.h"

namespace sparsek::cuda::few_columns {

constexpr unsigned kAllLanes = ~0u;

__device__ inline uint32_t load_word(uint32_t from) {
  uint32_t word;
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(word) : "r"(from));
  return word;
}

// In the type of sums, which for fp64 is that.
__device__ inline double to_float(double x) { return x; }
__device__ inline float to_float(float x) { return x; }
__device__ inline float to_float(cutlass::bfloat16_t x) { return __uint_as_float(uint32_t(x.storage) << 16); }
__device__ inline float to_float(cutlass::half_t x) { return __half2float(x.to_half()); }

template <int kCount, class Element>
struct alignas(kCount * sizeof(Element)) Vector {
  Element of[kCount];
};

// kCount consecutive elements, by one load where they are aligned and a load takes so many.
template <int kCount, class Element>
__device__ inline void load(const Element* from, bool aligned, Sum<Element> (&to)[kCount]) {
  constexpr bool kOneLoad = kCount != 3;
  if (kOneLoad && aligned) {
    using Loaded = Vector<kOneLoad ? kCount : 1, Element>;
    const Loaded loaded = *reinterpret_cast<const Loaded*>(from);
#pragma unroll
    for (int i = 0; i < kCount; ++i) to[i] = to_float(loaded.of[kOneLoad ? i : 0]);
  } else {
#pragma unroll
    for (int i = 0; i < kCount; ++i) to[i] = to_float(from[i]);
  }
}

template <class Element>
__device__ inline Sum<Element> load_one(uint32_t from) {
  if constexpr (sizeof(Element) == 8) {
    double whole;
    asm volatile("ld.shared.f64 %0, [%1];" : "=d"(whole) : "r"(from));
    return whole;
  } else if constexpr (sizeof(Element) == 4) {
    return __uint_as_float(load_word(from));
  } else {
    uint16_t half;
    asm volatile("ld.shared.u16 %0, [%1];" : "=h"(half) : "r"(from));
    return to_float(Element::bitcast(half));
  }
}

// The elements in consecutive words.
template <class Element, int kWords, int kCount, class Number>
__device__ inline void unpack(const uint32_t (&words)[kWords], Number (&to)[kCount]) {
#pragma unroll
  for (int i = 0; i < kWords; ++i) {
    if constexpr (sizeof(Element) == 4) {
      to[i] = __uint_as_float(words[i]);
    } else {
      to[2 * i] = to_float(Element::bitcast(uint16_t(words[i])));
      to[2 * i + 1] = to_float(Element::bitcast(uint16_t(words[i] >> 16)));
    }
  }
}

// kCount consecutive elements of A in shared memory, as numbers of the type of sums.
template <class Element, int kCount, class Number>
__device__ inline void load_shared(uint32_t from, Number (&to)[kCount]) {
  if constexpr (sizeof(Element) == 8 && kCount % 2 == 0) {
#pragma unroll
    for (int i = 0; i < kCount; i += 2) {
      asm volatile("ld.shared.v2.f64 {%0, %1}, [%2];" : "=d"(to[i]), "=d"(to[i + 1]) : "r"(from + i * 8));
    }
  } else if constexpr (sizeof(Element) < 8 && kCount * sizeof(Element) == 16) {
    uint32_t words[4];
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                 : "r"(from));
    unpack<Element>(words, to);
  } else if constexpr (sizeof(Element) < 8 && kCount * sizeof(Element) == 8) {
    uint32_t words[2];
    asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(words[0]), "=r"(words[1]) : "r"(from));
    unpack<Element>(words, to);
  } else if constexpr (kCount * sizeof(Element) == 4) {
    const uint32_t words[1] = {load_word(from)};
    unpack<Element>(words, to);
  } else {
#pragma unroll
    for (int i = 0; i < kCount; ++i) to[i] = load_one<Element>(from + i * sizeof(Element));
  }
}

}  // namespace sparsek::cuda::few_columns
