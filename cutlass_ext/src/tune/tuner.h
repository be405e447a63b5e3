// SPDX-License-Identifier: Apache-2.0
// Measures candidates until it is clear which is the fastest.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "abi/backend.h"
#include "tune/candidate.h"
#include "tune/rehearsal.h"

namespace sparsek::tune {

// A candidate under measurement.
struct Trial {
  Candidate candidate;
  std::string note;           // why it is not measured, or no longer; empty where it is
  std::vector<double> times;  // seconds of each product, ascending
  double setup_seconds = 0;   // cost of new values beyond their copy: PlanState::setup_time
  bool open = true;           // it may still win

  double median() const { return quantile(0.5); }
  // Distance of the quartiles / median.
  double spread() const { return (quantile(0.75) - quantile(0.25)) / median(); }
  // Interpolates linearly; needs at least one time.
  double quantile(double share) const;
};

struct TunerOptions {
  double seconds = 0;  // budget; each candidate that may be the fastest is measured at least once
  bool all = false;    // measure every candidate that serves, however slow its prediction
};

// Among candidates that are equally fast within the spread of their times, the first of the list, which has the highest
// priority, wins, so that the choice is stable. Not thread-safe.
class Tuner {
 public:
  // `backend` and `matrix` must outlive it. Throws SPARSEK_UNSUPPORTED_BLOCK where no candidate serves.
  Tuner(Backend& backend, MatrixState& matrix, const PlanOptions& options, const TunerOptions& tuning);

  // Measures one candidate a little further. Returns its index in trials(), or -1 where nothing is left to do.
  int step();

  const std::vector<Trial>& trials() const { return trials_; }
  // The index of the best so far; -1 where none was measured.
  int best() const;
  // The same; throws SPARSEK_BAD_ARGUMENT where none was measured.
  int require_best() const;
  // The winner's plan; there must be one. Afterwards the tuner can only be asked for its trials.
  std::unique_ptr<PlanState> take_best() noexcept;

 private:
  using Clock = std::chrono::steady_clock;

  void measure(int place);
  // Whether a candidate whose first product took so long cannot win.
  bool is_beyond_doubt(double one) const;
  // Closes the trials that cannot win any more.
  void drop();
  bool out_of_time() const;
  bool in_the_running(int place) const;

  Backend& backend_;
  MatrixState& matrix_;
  PlanOptions options_;
  TunerOptions tuning_;
  Clock::time_point begin_;
  std::vector<Trial> trials_;
  std::vector<std::unique_ptr<PlanState>> plans_;  // (trials): made when the trial is first measured
  std::unique_ptr<Rehearsal> rehearsal_;
  int next_ = 0;  // index of the trial whose turn is next
};

}  // namespace sparsek::tune
