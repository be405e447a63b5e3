// SPDX-License-Identifier: Apache-2.0
// The CPU's cost model against times that were measured once (fp32, one thread, `scripts/fit_cpu_cost_model.py` on an
// AMD EPYC with AVX-512; N = 1: `sparsek run --threads 1`, random patterns, on an Intel Xeon with AVX-512), as far as a
// factor of 2 goes, and what must be so whatever its coefficients are. Prints the first difference and exits with 1.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "cpu/cost_model.h"

namespace {

using sparsek::BsrShape;
using sparsek::cpu::Kernel;
using sparsek::cpu::predict;

constexpr Kernel kKernels[] = {{"cpu_avx512", "avx512", "", nullptr, nullptr, nullptr, nullptr},
                               {"cpu_avx2", "avx2", "", nullptr, nullptr, nullptr, nullptr},
                               {"cpu_generic", "generic", "", nullptr, nullptr, nullptr, nullptr}};

struct Measured {
  int32_t block_m, block_k;
  int64_t n, block_rows, nnzb;
  double seconds[3];  // of each kernel
};

BsrShape shape_of(int32_t block_m, int32_t block_k, int64_t block_rows, int64_t nnzb) {
  BsrShape shape;
  shape.block_m = block_m;
  shape.block_k = block_k;
  shape.block_rows = shape.block_cols = static_cast<int32_t>(block_rows);
  shape.rows = block_rows * block_m;
  shape.cols = block_rows * block_k;
  shape.nnzb = nnzb;
  return shape;
}

#define REQUIRE(condition, what)                                                         \
  do {                                                                                   \
    if (!(condition)) {                                                                  \
      std::printf("line %d: %s: %s\n", __LINE__, #condition, std::string(what).c_str()); \
      std::exit(1);                                                                      \
    }                                                                                    \
  } while (0)

constexpr Measured kMeasured[] = {
    {3, 3, 1, 3750, 60000, {0.000311, 0.000322, 0.000426}}, {3, 3, 8, 6666, 59994, {0.00267, 0.0017, 0.0018}},
    {3, 3, 40, 6172, 55548, {0.00333, 0.00217, 0.00337}},   {3, 3, 128, 1929, 17361, {0.00113, 0.0013, 0.00216}},
    {3, 3, 512, 361, 4332, {0.000714, 0.000828, 0.00185}},  {8, 8, 1, 10000, 60000, {0.00144, 0.00156, 0.00193}},
    {8, 8, 8, 13020, 39060, {0.00954, 0.00456, 0.00473}},   {8, 8, 40, 339, 7797, {0.00155, 0.00105, 0.00197}},
    {8, 8, 128, 348, 2436, {0.000507, 0.000594, 0.00152}},  {8, 8, 512, 61, 610, {0.00052, 0.000747, 0.00176}},
    {16, 16, 1, 3157, 59983, {0.00571, 0.00907, 0.0122}},   {16, 16, 8, 813, 9756, {0.00273, 0.0017, 0.00246}},
    {16, 16, 40, 390, 1950, {0.000717, 0.000576, 0.00132}}, {16, 16, 128, 50, 600, {0.00038, 0.000402, 0.00119}},
    {16, 16, 512, 9, 189, {0.00046, 0.000531, 0.00156}},    {32, 32, 1, 1502, 19526, {0.0139, 0.0129, 0.014}},
    {32, 32, 8, 162, 2430, {0.00147, 0.00108, 0.00153}},    {32, 32, 40, 18, 486, {0.000544, 0.000492, 0.00116}},
    {32, 32, 128, 10, 200, {0.000488, 0.000586, 0.0016}},   {32, 32, 512, 12, 192, {0.00184, 0.00229, 0.00645}},
    {64, 64, 1, 305, 4880, {0.0142, 0.0162, 0.0156}},       {64, 64, 8, 30, 600, {0.00163, 0.00152, 0.00223}},
    {64, 64, 40, 13, 195, {0.000857, 0.000995, 0.00243}},   {64, 64, 128, 11, 198, {0.00249, 0.00259, 0.00746}},
};

void check_measured() {
  for (const Measured& one : kMeasured) {
    const BsrShape shape = shape_of(one.block_m, one.block_k, one.block_rows, one.nnzb);
    int chosen = 0;
    double fastest = one.seconds[0];
    for (int k = 0; k < 3; ++k) {
      const double ratio = predict(kKernels[k], shape, one.n, 1) / one.seconds[k];
      const std::string what = std::to_string(one.block_m) + " x " + std::to_string(one.block_k) + ", N " +
                               std::to_string(one.n) + ", " + kKernels[k].name + ": " + std::to_string(ratio);
      REQUIRE(ratio > 0.5 && ratio < 2, what);
      if (predict(kKernels[k], shape, one.n, 1) < predict(kKernels[chosen], shape, one.n, 1)) chosen = k;
      if (one.seconds[k] < fastest) fastest = one.seconds[k];
    }
    REQUIRE(one.seconds[chosen] <= 1.5 * fastest, kKernels[chosen].name);
  }
}

void check_order() {
  for (const Kernel& kernel : kKernels) {
    double before = 0;
    for (const int64_t n : {0, 8, 64, 512, 4096}) {
      const double seconds = predict(kernel, shape_of(8, 8, 1000, 10000), n, 2);
      REQUIRE(seconds > before, kernel.name);
      before = seconds;
    }
    REQUIRE(predict(kernel, shape_of(64, 64, 100, 5000), 256, 1) >
                1.5 * predict(kernel, shape_of(64, 64, 100, 5000), 256, 2),
            kernel.name);
    REQUIRE(predict(kernel, shape_of(3, 3, 0, 0), 8, 2) > 0, kernel.name);
    REQUIRE(predict(kernel, shape_of(3, 3, 100, 0), 8, 2) > 0, kernel.name);
  }
}

}  // namespace

int main() {
  check_measured();
  check_order();
}
