// SPDX-License-Identifier: Apache-2.0
// The sums of the check for AVX2 with FMA.
#include <immintrin.h>

namespace sparsek::cpu {
namespace {

struct Lanes {
  using Vector = __m256d;
  static constexpr int kCount = 4;
  static Vector load(const double* p) { return _mm256_loadu_pd(p); }
  static void store(double* p, Vector v) { _mm256_storeu_pd(p, v); }
  static Vector broadcast(double x) { return _mm256_set1_pd(x); }
  static Vector absolute(Vector v) { return _mm256_andnot_pd(_mm256_set1_pd(-0.0), v); }
  static Vector multiply_add(Vector a, Vector b, Vector c) { return _mm256_fmadd_pd(a, b, c); }
};

}  // namespace
}  // namespace sparsek::cpu

#include "cpu/check_sums_panel.h"

namespace sparsek::cpu {

void sum_panel_avx2(const sparsek_bsr& a, const DenseB& b, const Panel& panel, const PanelBuffers& buffers) {
  sum_panel_of_any(a, b, panel, buffers);
}

}  // namespace sparsek::cpu
