// SPDX-License-Identifier: Apache-2.0
#include "tune/tuner.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "abi/error.h"

namespace sparsek::tune {
namespace {

// A candidate predicted to take this many times as long as the best is not measured: predictions err by less.
constexpr double kHopeless = 3;
// The length of a candidate's turn, and the limits on its products.
constexpr double kTurnSeconds = 1.5e-3;
constexpr int kFewestInTurn = 1, kMostInTurn = 16;
// A candidate is dropped when even its faster runs are slower than the slower runs of the best by kClearlySlower; after
// its first turn, by kFarSlower.
constexpr double kClearlySlower = 1.03, kFarSlower = 1.5;
// One long product of a candidate, behind the one that loads its code, decides where it takes so many times as long as
// the best: others like it would take more time than all that is still to be decided.
constexpr double kBeyondDoubt = 8, kLongSeconds = 10e-3;
// After this much measured time, within these numbers of products, a candidate that is still open is decided.
constexpr double kDecidedSeconds = 20e-3;
constexpr int kFewestDecide = 21, kMostDecide = 151;
// A candidate runs untimed for this long first: the GPU was idle while its plan was made, and takes a while to reach
// its clock.
constexpr double kWarmUpSeconds = 1e-3;
constexpr int kMostToWarmUp = 32;

std::string text(const char* format, double value) {
  char buffer[160];
  std::snprintf(buffer, sizeof(buffer), format, value);
  return buffer;
}

bool is_decided(const Trial& trial) {
  if (trial.times.empty()) return false;
  const double enough = std::clamp(kDecidedSeconds / trial.median(), double{kFewestDecide}, double{kMostDecide});
  return static_cast<double>(trial.times.size()) >= enough;
}

// Two medians are equal where they differ by less than the spread of the times. The tolerance is at least kLeastTie,
// since no two runs agree better, and at most kMostTie, since a stable choice is not worth more time.
bool is_tie(const Trial& a, const Trial& b) {
  constexpr double kLeastTie = 0.005, kMostTie = 0.015;
  const double tie = std::clamp((a.spread() + b.spread()) / 2, kLeastTie, kMostTie);
  return std::abs(a.median() - b.median()) <= tie * std::min(a.median(), b.median());
}

}  // namespace

double Trial::quantile(double share) const {
  const double place = share * static_cast<double>(times.size() - 1);
  const auto low = static_cast<size_t>(place);
  const size_t high = std::min(low + 1, times.size() - 1);
  return times[low] + (place - static_cast<double>(low)) * (times[high] - times[low]);
}

Tuner::Tuner(Backend& backend, MatrixState& matrix, const PlanOptions& options, const TunerOptions& tuning)
    : backend_(backend), matrix_(matrix), options_(options), tuning_(tuning), begin_(Clock::now()) {
  double least = 0;
  for (Candidate& candidate : backend.candidates(matrix, options, !options.own_kernels)) {
    Trial trial;
    trial.candidate = std::move(candidate);
    if (trial.candidate.obstacle.empty() && (least == 0 || trial.candidate.predicted_seconds < least)) {
      least = trial.candidate.predicted_seconds;
    }
    trials_.push_back(std::move(trial));
  }
  plans_.resize(trials_.size());
  for (Trial& trial : trials_) {
    const double predicted = trial.candidate.predicted_seconds;
    if (!trial.candidate.obstacle.empty()) {
      trial.note = trial.candidate.obstacle;
    } else if (!tuning.all && predicted > kHopeless * least) {
      trial.note = text("predicted to take %.1f times as long as the best", predicted / least);
    }
    trial.open = trial.note.empty();
  }
  if (least == 0) {
    fail(SPARSEK_UNSUPPORTED_BLOCK, "no kernel serves blocks of %dx%d of this type here", matrix.shape().block_m,
         matrix.shape().block_k);
  }
  rehearsal_ = backend.rehearse(matrix, options);
}

bool Tuner::out_of_time() const {
  return std::chrono::duration<double>(Clock::now() - begin_).count() >= tuning_.seconds;
}

int Tuner::step() {
  const int count = static_cast<int>(trials_.size());
  const bool late = out_of_time();
  for (int i = 0; i < count; ++i) {
    const int place = (next_ + i) % count;
    const Trial& trial = trials_[place];
    if (!trial.open || is_decided(trial)) continue;
    const bool measured = !trial.times.empty();
    if (measured && late) continue;
    measure(place);
    next_ = (place + 1) % count;
    drop();
    return place;
  }
  return -1;
}

void Tuner::measure(int place) {
  Trial& trial = trials_[place];
  try {
    double one = 0;
    if (plans_[place] == nullptr) {
      PlanOptions options = options_;
      options.kernel = trial.candidate.kernel;
      plans_[place] = backend_.make_plan(matrix_, options);
      trial.setup_seconds = plans_[place]->setup_time();
      rehearsal_->time(*plans_[place], 1, &one);  // loads its code onto the device
      if (is_beyond_doubt(one)) rehearsal_->time(*plans_[place], 1, &one);
      if (is_beyond_doubt(one)) {
        trial.times.push_back(one);
        return;
      }
      const double often = kWarmUpSeconds / std::max(one, 1e-9);
      rehearsal_->warm_up(*plans_[place], std::clamp(static_cast<int>(often), 1, kMostToWarmUp));
      rehearsal_->time(*plans_[place], 1, &one);
    }
    const double expected = trial.times.empty() ? std::max(one, 1e-9) : std::max(trial.median(), 1e-9);
    const int repeats = std::clamp(static_cast<int>(kTurnSeconds / expected), kFewestInTurn, kMostInTurn);
    std::vector<double> times(repeats);
    rehearsal_->time(*plans_[place], repeats, times.data());
    trial.times.insert(trial.times.end(), times.begin(), times.end());
    std::sort(trial.times.begin(), trial.times.end());
  } catch (const Error& error) {
    // A candidate that cannot run does not stop the others.
    trial.open = false;
    trial.note = error.what();
    trial.times.clear();
    plans_[place].reset();
  }
}

bool Tuner::is_beyond_doubt(double one) const {
  const int winner = best();
  return winner >= 0 && one > kLongSeconds && one > kBeyondDoubt * trials_[winner].median();
}

void Tuner::drop() {
  const int winner = best();
  if (winner < 0) return;
  const Trial& first = trials_[winner];
  for (size_t i = 0; i < trials_.size(); ++i) {
    Trial& trial = trials_[i];
    if (static_cast<int>(i) == winner || !trial.open || trial.times.empty()) continue;
    const bool far = trial.quantile(0) > kFarSlower * first.median();
    const bool clear = trial.times.size() >= 5 && first.times.size() >= 5 &&
                       trial.quantile(0.25) > kClearlySlower * first.quantile(0.75);
    if (!far && !clear) continue;
    trial.open = false;
    trial.note = text("%.2f times the time of the fastest", trial.median() / first.median());
    plans_[i].reset();  // frees its memory
  }
}

bool Tuner::in_the_running(int place) const { return trials_[place].open && !trials_[place].times.empty(); }

int Tuner::best() const {
  int fastest = -1;
  const int count = static_cast<int>(trials_.size());
  for (int i = 0; i < count; ++i) {
    if (in_the_running(i) && (fastest < 0 || trials_[i].median() < trials_[fastest].median())) fastest = i;
  }
  for (int i = 0; i < fastest; ++i) {
    if (in_the_running(i) && is_tie(trials_[i], trials_[fastest])) return i;
  }
  return fastest;
}

int Tuner::require_best() const {
  const int winner = best();
  if (winner < 0) {
    std::string why;
    for (const Trial& trial : trials_) why += "; " + trial.candidate.kernel + ": " + trial.note;
    fail(SPARSEK_BAD_ARGUMENT, "no candidate was measured%s", why.c_str());
  }
  return winner;
}

std::unique_ptr<PlanState> Tuner::take_best() noexcept {
  rehearsal_.reset();
  return std::move(plans_[best()]);
}

}  // namespace sparsek::tune
