// SPDX-License-Identifier: Apache-2.0
// The sums of the check for every x86-64: SSE2.
#include <emmintrin.h>

namespace sparsek::cpu {
namespace {

struct Lanes {
  using Vector = __m128d;
  static constexpr int kCount = 2;
  static Vector load(const double* p) { return _mm_loadu_pd(p); }
  static void store(double* p, Vector v) { _mm_storeu_pd(p, v); }
  static Vector broadcast(double x) { return _mm_set1_pd(x); }
  static Vector absolute(Vector v) { return _mm_andnot_pd(_mm_set1_pd(-0.0), v); }
  static Vector multiply_add(Vector a, Vector b, Vector c) { return _mm_add_pd(_mm_mul_pd(a, b), c); }
};

}  // namespace
}  // namespace sparsek::cpu

#include "cpu/check_sums_panel.h"

namespace sparsek::cpu {

void sum_panel_generic(const sparsek_bsr& a, const DenseB& b, const Panel& panel, const PanelBuffers& buffers) {
  sum_panel_of_any(a, b, panel, buffers);
}

}  // namespace sparsek::cpu
