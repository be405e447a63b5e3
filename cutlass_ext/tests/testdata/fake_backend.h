// SPDX-License-Identifier: Apache-2.0
// A back-end whose kernels are what a test says of them.
#pragma once

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "abi/error.h"
#include "tune/tuner.h"

namespace sparsek::fake {

using tune::Candidate;
using tune::Rehearsal;

// How a kernel behaves: the times of its products come in turn.
struct Behaviour {
  double predicted;
  std::vector<double> times;
  const char* obstacle = "";
  bool fails = false;  // when a plan is to be made
  int64_t most_columns = INT64_MAX;
  double of_column = 0;  // predicted in addition
};

class FakePlan final : public PlanState {
 public:
  explicit FakePlan(const Behaviour& behaviour) : behaviour_(behaviour) {}
  void info(sparsek_plan_info&) const override {}
  void multiply(const MultiplyArgs&) override {}
  void multiply_time(const MultiplyArgs*, int, int, int, double*) override {}
  double next() { return behaviour_.times[turn_++ % behaviour_.times.size()]; }

 private:
  const Behaviour& behaviour_;
  size_t turn_ = 0;
};

class FakeRehearsal final : public Rehearsal {
 public:
  void warm_up(PlanState&, int) override {}
  void time(PlanState& plan, int repeats, double* seconds) override {
    for (int i = 0; i < repeats; ++i) seconds[i] = static_cast<FakePlan&>(plan).next();
  }
};

class FakeMatrix final : public MatrixState {
 public:
  const BsrShape& shape() const override { return shape_; }
  const PatternStats& stats() const override { return stats_; }
  void set_values(const void*, sparsek_memory, sparsek_stream) override {}

 private:
  BsrShape shape_;
  PatternStats stats_;
};

class FakeBackend final : public Backend {
 public:
  std::vector<std::pair<std::string, Behaviour>> kernels;
  std::string name = "fake";
  int plans = 0;

  std::vector<Candidate> candidates(const MatrixState&, const PlanOptions& options, bool) override {
    std::vector<Candidate> list;
    for (const auto& [kernel, behaviour] : kernels) {
      const std::string obstacle =
          options.n > behaviour.most_columns ? "more columns than it serves" : behaviour.obstacle;
      const double predicted = behaviour.predicted + behaviour.of_column * static_cast<double>(options.n);
      list.push_back({kernel, obstacle, obstacle.empty() ? predicted : 0});
    }
    return list;
  }
  std::unique_ptr<PlanState> make_plan(MatrixState&, const PlanOptions& options) override {
    for (const auto& [kernel, behaviour] : kernels) {
      if (kernel != options.kernel) continue;
      if (behaviour.fails) fail(SPARSEK_OUT_OF_MEMORY, "%s is too large", kernel.c_str());
      ++plans;
      return std::make_unique<FakePlan>(behaviour);
    }
    std::abort();
  }
  std::unique_ptr<Rehearsal> rehearse(MatrixState&, const PlanOptions&) override {
    return std::make_unique<FakeRehearsal>();
  }

  sparsek_backend kind() const override { return SPARSEK_CPU; }
  int device() const override { return 0; }
  int threads() const override { return 1; }
  const char* isa() const override { return ""; }
  const std::string& processor() const override { return name; }
  int units() const override { return 1; }
  std::unique_ptr<MatrixState> make_matrix(const sparsek_bsr&) override { return nullptr; }
  std::unique_ptr<MatrixState> make_pattern(const BsrShape&, sparsek_dtype) override { return nullptr; }
  PlanDataSize plan_data_size(MatrixState&, const PlanOptions&) override { return {}; }
  void write_plan_data(MatrixState&, const PlanOptions&, const sparsek_bsr&, void*, int64_t*) override {}
  std::unique_ptr<PlanState> open_plan_data(MatrixState&, const PlanOptions&, const void*) override { return nullptr; }
  void* allocate(size_t) override { return nullptr; }
  void release(void*) override {}
  void write(void*, const void*, size_t, sparsek_stream) override {}
  void read(void*, const void*, size_t, sparsek_stream) override {}
  void fill(void*, int, size_t, sparsek_stream) override {}
  sparsek_stream stream_create() override { return nullptr; }
  void stream_destroy(sparsek_stream) override {}
  void stream_synchronize(sparsek_stream) override {}
  bool stream_done(sparsek_stream) override { return true; }
};

}  // namespace sparsek::fake
