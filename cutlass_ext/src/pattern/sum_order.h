// SPDX-License-Identifier: Apache-2.0
// The order in which sums over values are taken. It depends on sizes and types alone, so that the host and a GPU get
// the same bits.
//
// Elements are read in vectors of 16 bytes by a power of two of lanes. Element e of a sequence is added to sum
// e % (lanes * vector), in the order of e. Then each lane adds its sums up, the upper half to the lower one until one
// is left, and the lanes do the same.
#pragma once

#include <cstdint>

#include "pattern/index_array.h"

namespace sparsek::pattern {

constexpr int kVectorBytes = 16;
constexpr int kMostLanes = 32;

// Lanes whose vectors hold `length` elements, or all there are.
constexpr int lanes_for(int64_t length, int vector) {
  int lanes = 1;
  while (lanes < kMostLanes && int64_t{lanes} * vector < length) lanes *= 2;
  return lanes;
}

// Sums over blocks that lie transposed: columns of the stored blocks are summed, each by so many sums, of which sum g
// has those rows s of the sequence of all blocks with s % kColumnGroups == g. They are added up like those of lanes.
constexpr int kColumnGroups = 64;
constexpr int kMostColumnLanes = 8;
constexpr int column_lanes_for(int64_t width, int vector) {
  const int lanes = lanes_for(width, vector);
  return lanes < kMostColumnLanes ? lanes : kMostColumnLanes;
}

// Adds count sums up, the upper half to the lower one; the result is sums[0]. count: a power of two.
template <class Sum, class Add>
SPARSEK_ANYWHERE void fold(Sum* sums, int count, Add add) {
  for (int half = count / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) sums[i] = add(sums[i], sums[i + half]);
  }
}

}  // namespace sparsek::pattern
