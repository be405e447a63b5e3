// SPDX-License-Identifier: Apache-2.0
// Records to try tuning files with.
#pragma once

#include <cstring>
#include <random>
#include <string>

#include "tune/tuning_record.h"

namespace sparsek::tune {

// The record of a number: no two have a key in common.
inline TuningRecord sample_record(int64_t number) {
  TuningRecord record;
  record.key.device = "GPU of 100 % | \"made up\"\n";
  record.key.sm_count = 132;
  record.key.build = "0123456789abcdef";
  record.key.op = "dsd";
  record.key.m = number;
  record.key.n = record.key.k = 4096;
  record.key.bm = record.key.bk = 64;
  record.key.dtype = record.key.dtype_c = 1;
  record.candidates = {{"first", 1e-5 / static_cast<double>(number + 1), 0.1, 3e-4}, {"second", 2e-5, 1.0 / 3, 0}};
  record.measured = 1700000000 + number;
  return record;
}

class Dice {
 public:
  explicit Dice(uint64_t seed) : engine_(seed) {}

  int64_t below(int64_t end) { return static_cast<int64_t>(engine_() % static_cast<uint64_t>(end)); }

  std::string bytes() {
    std::string text(static_cast<size_t>(below(12)), '\0');
    for (char& c : text) c = static_cast<char>(below(3) == 0 ? below(256) : ' ' + below(95));
    return text;
  }

  // Any double that is finite and not negative, by its bits.
  double duration() {
    for (;;) {
      const uint64_t bits = engine_() >> 1;
      double value = 0;
      std::memcpy(&value, &bits, sizeof(value));
      if (value - value == 0) return value;
    }
  }

  TuningKey key() {
    TuningKey key;
    key.device = bytes();
    key.build = bytes();
    key.op = bytes();
    for (int64_t* const field : {&key.m, &key.n, &key.k, &key.bm, &key.bk}) *field = static_cast<int64_t>(engine_());
    for (int32_t* const field : {&key.sm_count, &key.density_class, &key.spread_class, &key.union_class}) {
      *field = static_cast<int32_t>(engine_());
    }
    // Also values that have no name.
    for (int32_t* const field :
         {&key.dtype, &key.dtype_b, &key.dtype_c, &key.bias, &key.activation, &key.kept_values}) {
      *field = static_cast<int32_t>(below(7) - 1);
    }
    return key;
  }

  TuningRecord record() {
    TuningRecord record;
    record.key = key();
    record.measured = below(253402300800);
    for (int64_t i = below(4); i >= 0; --i) {
      record.candidates.push_back({"k" + bytes(), duration(), duration(), duration()});
    }
    return record;
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace sparsek::tune
