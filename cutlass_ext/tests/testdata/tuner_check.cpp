// SPDX-License-Identifier: Apache-2.0
// Tunes products that take the times they are told, and prints the first thing that is wrong.
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

#include "fake_backend.h"

namespace {

using namespace sparsek;
using fake::Behaviour;
using fake::FakeBackend;
using fake::FakeMatrix;
using tune::Trial;
using tune::Tuner;

void expect(bool holds, const char* what) {
  if (holds) return;
  std::printf("wrong: %s\n", what);
  std::exit(1);
}

struct Outcome {
  std::string best;
  std::map<std::string, Trial> trials;
  int steps = 0, plans = 0;
};

Outcome tuned(std::vector<std::pair<std::string, Behaviour>> kernels, double seconds, bool all = false) {
  FakeBackend backend;
  backend.kernels = std::move(kernels);
  FakeMatrix matrix;
  Tuner tuner(backend, matrix, {}, {seconds, all});
  Outcome outcome;
  while (tuner.step() >= 0) {
    if (++outcome.steps > 1000) expect(false, "it ends");
  }
  for (const Trial& trial : tuner.trials()) outcome.trials[trial.candidate.kernel] = trial;
  if (tuner.best() >= 0) outcome.best = tuner.trials()[tuner.best()].candidate.kernel;
  outcome.plans = backend.plans;
  if (tuner.best() >= 0) expect(tuner.take_best() != nullptr, "the winner has a plan");
  return outcome;
}

constexpr double kLong = 60;

void check_fastest() {
  const Outcome got = tuned({{"slow", {1e-4, {3e-4}}}, {"fast", {1e-4, {1e-4}}}, {"near", {1e-4, {1.1e-4}}}}, kLong);
  expect(got.best == "fast", "the fastest wins");
  expect(!got.trials.at("slow").open && got.trials.at("slow").times.size() <= 16,
         "a far slower one is dropped at once");
  expect(!got.trials.at("near").open && got.trials.at("near").times.size() >= 5,
         "a slower one is dropped when it is clear");
  expect(got.trials.at("fast").times.size() >= 21, "the winner is measured to the end");
}

void check_long_products() {
  const Outcome got = tuned({{"fast", {1e-4, {1e-3}}}, {"long", {1e-4, {20e-3, 20e-3, 1e-5}}}}, kLong);
  expect(got.best == "fast" && !got.trials.at("long").open && got.trials.at("long").times.size() == 1 &&
             got.trials.at("long").times[0] == 20e-3,
         "one product that is long and far slower decides");
  const Outcome loaded = tuned({{"fast", {1e-4, {1e-3}}}, {"loaded", {1e-4, {60e-3, 1e-4, 1e-4, 1e-4}}}}, kLong);
  expect(loaded.trials.at("loaded").times.size() > 1, "not the one that loads its code");
  const Outcome first = tuned({{"long", {1e-4, {20e-3, 1e-5, 1e-5}}}, {"fast", {1e-4, {1e-3}}}}, kLong);
  expect(first.best == "long", "nor the first of all");
}

void check_ties() {
  const std::vector<double> noisy = {0.97e-4, 1.03e-4, 1e-4, 0.99e-4, 1.01e-4};
  std::vector<double> a_little_faster = noisy;
  for (double& time : a_little_faster) time *= 0.995;
  expect(tuned({{"first", {1e-4, noisy}}, {"second", {1e-4, a_little_faster}}}, kLong).best == "first",
         "of two that are equally fast the first wins");
  expect(tuned({{"first", {1e-4, {1e-4}}}, {"second", {1e-4, {0.98e-4}}}}, kLong).best == "second",
         "2 % without any spread is no tie");
  for (double& time : a_little_faster) time *= 0.96;
  expect(tuned({{"first", {1e-4, noisy}}, {"second", {1e-4, a_little_faster}}}, kLong).best == "second",
         "4 % is no tie, whatever the spread");
}

void check_predictions() {
  const std::vector<std::pair<std::string, Behaviour>> kernels = {{"hopeless", {4e-4, {0.5e-4}}},
                                                                  {"likely", {1e-4, {1e-4}}}};
  const Outcome few = tuned(kernels, kLong);
  expect(few.best == "likely" && few.plans == 1, "what is predicted to be far slower is not tried");
  expect(few.trials.at("hopeless").note.find("4.0 times") != std::string::npos, "and says so");
  expect(tuned(kernels, kLong, true).best == "hopeless", "unless all are");
}

void check_obstacles() {
  const Outcome got =
      tuned({{"absent", {0, {}, "not here"}}, {"large", {1e-4, {1e-5}, "", true}}, {"there", {2e-4, {2e-4}}}}, kLong);
  expect(got.best == "there", "what serves wins");
  expect(got.trials.at("absent").note == "not here", "an obstacle is told");
  expect(got.trials.at("large").note == "large is too large", "so is why a plan could not be made");
  try {
    tuned({{"absent", {0, {}, "not here"}}}, kLong);
    expect(false, "nothing serves: an error");
  } catch (const Error& error) {
    expect(error.status() == SPARSEK_UNSUPPORTED_BLOCK, "nothing serves: its status");
  }
}

void check_budget() {
  const Outcome got = tuned({{"a", {1e-4, {2e-4}}}, {"b", {1e-4, {1.9e-4}}}, {"c", {1e-4, {1.95e-4}}}}, 0);
  expect(got.steps == 3, "without time each is measured once");
  expect(got.best == "b", "and the fastest of that wins");
}

}  // namespace

int main() {
  check_fastest();
  check_long_products();
  check_ties();
  check_predictions();
  check_obstacles();
  check_budget();
}
