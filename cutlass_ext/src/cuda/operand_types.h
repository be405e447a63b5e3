// SPDX-License-Identifier: Apache-2.0
// The types of A and B, of which a kernel has one parameter, Element: a type that both have, or Mixed.
#pragma once

#include "abi/sum_type.h"

namespace sparsek {
namespace cuda {

// A is of a narrower type than B.
template <class A, class B>
struct Mixed {};

template <class Element>
struct TypesOf {
  using A = Element;
  using B = Element;
  static constexpr bool kMixed = false;
};
template <class A_, class B_>
struct TypesOf<Mixed<A_, B_>> {
  using A = A_;
  using B = B_;
  static constexpr bool kMixed = true;
};

// An element of A, and one of B, in whose type C is where it is not of another.
template <class Element>
using TypeOfA = typename TypesOf<Element>::A;
template <class Element>
using TypeOfB = typename TypesOf<Element>::B;
template <class Element>
constexpr bool kIsMixed = TypesOf<Element>::kMixed;

}  // namespace cuda

template <class A, class B>
struct SumOf<cuda::Mixed<A, B>> : SumOf<B> {};

}  // namespace sparsek
