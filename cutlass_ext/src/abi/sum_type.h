// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace sparsek {

// In which products of elements of A and B are summed, and the epilogue is computed.
template <class Element>
struct SumOf {
  using Type = float;
};
template <>
struct SumOf<double> {
  using Type = double;
};
template <class Element>
using Sum = typename SumOf<Element>::Type;

}  // namespace sparsek
