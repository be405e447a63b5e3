// SPDX-License-Identifier: Apache-2.0
// The CPU's cost model against times that were measured once (fp32, one thread, `scripts/fit_cpu_cost_model.py --cases`
// on an Intel Xeon with AVX-512), as far as a factor of 2 goes, and what must be so whatever its coefficients are.
// Prints the first difference and exits with 1.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "cpu/cost_model.h"

namespace {

using sparsek::BsrShape;
using sparsek::cpu::Kernel;
using sparsek::cpu::predict;

constexpr Kernel kKernels[] = {
    {"cpu_avx512", "avx512", "",      nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
     nullptr,      nullptr,  nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr},
    {"cpu_avx2", "avx2",  "",      nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
     nullptr,    nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr},
    {"cpu_generic", "generic", "",      nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
     nullptr,       nullptr,   nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr}};
constexpr sparsek::OperandTypes kFp32 = {SPARSEK_FP32, SPARSEK_FP32};

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
    {1, 1, 1, 8571, 59997, {8.35e-05, 5.84e-05, 8.84e-05}},  {3, 3, 1, 5454, 59994, {0.000151, 0.000138, 0.000237}},
    {8, 8, 1, 2608, 59984, {0.000422, 0.000404, 0.00153}},   {16, 16, 1, 3333, 59994, {0.00171, 0.00167, 0.00616}},
    {32, 32, 1, 1302, 19530, {0.00185, 0.00186, 0.00772}},   {64, 64, 1, 221, 4862, {0.00172, 0.00173, 0.00746}},
    {1, 1, 4, 2222, 59994, {4.19e-05, 4.56e-05, 5.47e-05}},  {1, 1, 8, 2608, 59984, {5.14e-05, 5.78e-05, 0.000201}},
    {1, 1, 40, 4000, 60000, {0.000263, 0.000297, 0.000642}}, {1, 1, 128, 2400, 60000, {0.000646, 0.000759, 0.00155}},
    {3, 3, 4, 4615, 59995, {0.000176, 0.00018, 0.000313}},   {3, 3, 8, 3157, 59983, {0.00022, 0.00022, 0.00051}},
    {3, 3, 40, 4629, 55548, {0.00104, 0.0012, 0.00248}},     {3, 3, 128, 4340, 17360, {0.00154, 0.00179, 0.00327}},
    {3, 3, 512, 180, 4320, {0.000566, 0.000849, 0.00209}},   {8, 8, 4, 3750, 60000, {0.00106, 0.00145, 0.0019}},
    {8, 8, 8, 2441, 39056, {0.000864, 0.00105, 0.00191}},    {8, 8, 40, 355, 7810, {0.000405, 0.000664, 0.00173}},
    {8, 8, 128, 106, 2438, {0.000325, 0.000591, 0.0019}},    {8, 8, 512, 30, 600, {0.000356, 0.000621, 0.00197}},
    {16, 16, 4, 1502, 19526, {0.00162, 0.0017, 0.00235}},    {16, 16, 8, 887, 9757, {0.000792, 0.000904, 0.00172}},
    {16, 16, 40, 88, 1936, {0.00033, 0.000605, 0.00156}},    {16, 16, 128, 87, 609, {0.000297, 0.000572, 0.00161}},
    {16, 16, 512, 10, 190, {0.000387, 0.000781, 0.00214}},   {32, 32, 4, 1220, 4880, {0.00173, 0.00164, 0.00225}},
    {32, 32, 8, 116, 2436, {0.000872, 0.000872, 0.00163}},   {32, 32, 40, 25, 475, {0.000318, 0.000588, 0.0015}},
    {32, 32, 128, 22, 198, {0.000362, 0.000717, 0.00203}},   {64, 64, 4, 152, 1216, {0.00157, 0.00148, 0.00208}},
    {64, 64, 8, 55, 605, {0.000736, 0.000757, 0.00164}},     {64, 64, 40, 14, 196, {0.00053, 0.000909, 0.0025}},
    {64, 64, 128, 9, 198, {0.00172, 0.00301, 0.0168}},       {64, 64, 512, 10, 200, {0.013, 0.0241, 0.0693}},
};

void check_measured() {
  for (const Measured& one : kMeasured) {
    const BsrShape shape = shape_of(one.block_m, one.block_k, one.block_rows, one.nnzb);
    int chosen = 0;
    double fastest = one.seconds[0];
    for (int k = 0; k < 3; ++k) {
      const double ratio = predict(kKernels[k], shape, kFp32, one.n, 1) / one.seconds[k];
      const std::string what = std::to_string(one.block_m) + " x " + std::to_string(one.block_k) + ", N " +
                               std::to_string(one.n) + ", " + kKernels[k].name + ": " + std::to_string(ratio);
      REQUIRE(ratio > 0.5 && ratio < 2, what);
      if (predict(kKernels[k], shape, kFp32, one.n, 1) < predict(kKernels[chosen], shape, kFp32, one.n, 1)) chosen = k;
      if (one.seconds[k] < fastest) fastest = one.seconds[k];
    }
    REQUIRE(one.seconds[chosen] <= 1.5 * fastest, std::string(kKernels[chosen].name) + " for blocks of " +
                                                      std::to_string(one.block_m) + ", N " + std::to_string(one.n));
  }
}

void check_order() {
  for (const Kernel& kernel : kKernels) {
    double before = 0;
    for (const int64_t n : {0, 8, 64, 512, 4096}) {
      const double seconds = predict(kernel, shape_of(8, 8, 1000, 10000), kFp32, n, 2);
      REQUIRE(seconds > before, kernel.name);
      before = seconds;
    }
    REQUIRE(predict(kernel, shape_of(64, 64, 100, 5000), kFp32, 256, 1) >
                1.5 * predict(kernel, shape_of(64, 64, 100, 5000), kFp32, 256, 2),
            kernel.name);
    REQUIRE(predict(kernel, shape_of(3, 3, 0, 0), kFp32, 8, 2) > 0, kernel.name);
    REQUIRE(predict(kernel, shape_of(3, 3, 100, 0), kFp32, 8, 2) > 0, kernel.name);
  }
}

}  // namespace

int main() {
  check_measured();
  check_order();
}
