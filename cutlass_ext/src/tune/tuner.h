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
  std::string note;           // why it is not measured, or no longer; empty where neither is so
  std::vector<double> times;  // of products, seconds, in ascending order
  double setup_seconds = 0;   // what new values cost beside their copy: PlanState::setup_time
  bool open = true;           // it may still win

  double median() const { return quantile(0.5); }
  // Distance of the quartiles as a share of the median.
  double spread() const { return (quantile(0.75) - quantile(0.25)) / median(); }
  // Linear between the times; there is at least one.
  double quantile(double share) const;
};

struct TunerOptions {
  double seconds = 0;  // budget; each candidate that seems worth it is measured once even so
  bool all = false;    // measure every candidate that serves, however slow it is predicted to be
};

// Of two candidates that are equally fast within what their times tell, the one of higher priority, which comes first
// in the list of candidates, is taken: so the choice is stable. Not for several threads at once.
class Tuner {
 public:
  // `backend` and `matrix` must outlive it. Throws SPARSEK_UNSUPPORTED_BLOCK where no candidate serves.
  Tuner(Backend& backend, MatrixState& matrix, const PlanOptions& options, const TunerOptions& tuning);

  // Measures one candidate a little further. Its place in trials(), or -1 where there is nothing left to do.
  int step();

  const std::vector<Trial>& trials() const { return trials_; }
  // The place of the winner so far; -1 where none was measured.
  int best() const;
  // A plan by the winner. The tuner is done with: no step may follow. Throws SPARSEK_BAD_ARGUMENT where none was
  // measured.
  std::unique_ptr<PlanState> finish();

 private:
  using Clock = std::chrono::steady_clock;

  void measure(int place);
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
  std::vector<std::unique_ptr<PlanState>> plans_;  // of each trial, made when it is first measured
  std::unique_ptr<Rehearsal> rehearsal_;
  int next_ = 0;  // whose turn it is
};

}  // namespace sparsek::tune
