// SPDX-License-Identifier: Apache-2.0
// The sums of the check for AVX-512 (F, DQ).
#include <immintrin.h>

namespace sparsek::cpu {
namespace {

struct Lanes {
  using Vector = __m512d;
  static constexpr int kCount = 8;
  static Vector load(const double* p) { return _mm512_loadu_pd(p); }
  static void store(double* p, Vector v) { _mm512_storeu_pd(p, v); }
  static Vector broadcast(double x) { return _mm512_set1_pd(x); }
  static Vector absolute(Vector v) { return _mm512_andnot_pd(_mm512_set1_pd(-0.0), v); }
  static Vector multiply_add(Vector a, Vector b, Vector c) { return _mm512_fmadd_pd(a, b, c); }
};

}  // namespace
}  // namespace sparsek::cpu

#include "cpu/check_sums_panel.h"

namespace sparsek::cpu {

void sum_panel_avx512(const sparsek_bsr& a, const DenseB& b, const Panel& panel, const PanelBuffers& buffers) {
  sum_panel_of_any(a, b, panel, buffers);
}

}  // namespace sparsek::cpu
