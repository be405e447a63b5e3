// SPDX-License-Identifier: Apache-2.0
// Chooses kernels of a back-end that serve what they are told. Prints the first wrong choice and exits with 1.
#include "tune/choice.h"

#include <cstdio>

#include "fake_backend.h"
#include "tune/shipped_table.h"
#include "tune/tuning_records.h"

namespace sparsek::tune {

// The build's table is not needed here.
extern const ShippedFile kShippedFiles[] = {{nullptr, nullptr}};
extern const int kShippedFileCount = 0;

}  // namespace sparsek::tune

namespace {

using namespace sparsek;
using tune::Choice;

// By few columns the first is the fastest, by 1024 the second; each serves what the ones before it do not.
constexpr int64_t kMostOfFew = 512, kMostOfSome = 65536;

PlanOptions invariant_for(int64_t n) {
  PlanOptions options = {};
  options.n = options.ldb = options.ldc = n;
  options.alignment = 16;
  options.dtype_b = options.dtype_c = SPARSEK_BF16;
  options.batch_invariant = options.own_kernels = true;
  return options;
}

struct Case {
  int64_t n;
  const char* want;
};

// Whatever n is, the choice is that for 1024, of those which serve n.
constexpr Case kCases[] = {{1, "some"},
                           {512, "some"},
                           {1024, "some"},
                           {kMostOfSome, "some"},
                           {kMostOfSome + 1, "all"},
                           {int64_t{1} << 30, "all"}};

}  // namespace

int main() {
  fake::FakeBackend backend;
  backend.kernels = {{"few", {1e-6, {}, "", false, kMostOfFew, 1e-6}},
                     {"some", {1e-5, {}, "", false, kMostOfSome, 1e-8}},
                     {"all", {1e-4, {}, "", false, INT64_MAX, 1e-9}}};
  const fake::FakeMatrix matrix;
  const tune::TuningRecords none;
  tune::TuningMemory memory(none, "");
  for (const Case& c : kCases) {
    const Choice choice = tune::choose(backend, matrix, invariant_for(c.n), memory);
    if (choice.kernel == c.want) continue;
    std::printf("%lld columns: chose %s, want %s\n", static_cast<long long>(c.n), choice.kernel.c_str(), c.want);
    return 1;
  }
}
