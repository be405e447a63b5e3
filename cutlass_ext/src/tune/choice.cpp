// SPDX-License-Identifier: Apache-2.0
#include "tune/choice.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <vector>

#include "abi/error.h"
#include "abi/product_form.h"
#include "tune/build_id.h"

namespace sparsek::tune {
namespace {

// Seconds for people: "8.7 us", "125 ms".
std::string duration(double seconds) {
  char text[48];
  if (seconds < 1e-3) {
    std::snprintf(text, sizeof(text), "%.1f us", seconds * 1e6);
  } else if (seconds < 1) {
    std::snprintf(text, sizeof(text), "%.3g ms", seconds * 1e3);
  } else {
    std::snprintf(text, sizeof(text), "%.3g s", seconds);
  }
  return text;
}

const Candidate* find(const std::vector<Candidate>& list, const std::string& kernel) {
  for (const Candidate& candidate : list) {
    if (candidate.kernel == kernel && candidate.obstacle.empty()) return &candidate;
  }
  return nullptr;
}

bool keeps_values(const Candidate& candidate) { return candidate.keeps_values; }

// Whether the record lacks a kernel that serves this product and is predicted to be faster than the record's best,
// whose prediction is `seconds`. That happens where it was measured with other options (without allow_dense, say, or
// with rows of B that some kernels do not take). Predictions are compared only with predictions: measured times may
// differ from all of them.
bool lacks(const TuningRecord& record, const std::vector<Candidate>& candidates, double seconds) {
  for (const Candidate& candidate : candidates) {
    const auto is_it = [&](const TuningCandidate& measured) { return measured.kernel == candidate.kernel; };
    const bool known = std::any_of(record.candidates.begin(), record.candidates.end(), is_it);
    if (candidate.obstacle.empty() && !known && candidate.predicted_seconds < seconds) return true;
  }
  return false;
}

// Chooses the best kernel of the record that serves this product; false where there is none.
bool choose_measured(const std::vector<Candidate>& candidates, const TuningAnswer& found, Choice& choice) {
  const TuningCandidate* best = nullptr;
  for (const TuningCandidate& measured : found.record.candidates) {
    if (find(candidates, measured.kernel) == nullptr) continue;
    best = &measured;
    break;
  }
  if (best == nullptr || lacks(found.record, candidates, find(candidates, best->kernel)->predicted_seconds))
    return false;
  const bool shipped = found.source == TuningSource::kTable;
  choice.kernel = best->kernel;
  choice.by = shipped ? SPARSEK_CHOSEN_BY_TABLE : SPARSEK_CHOSEN_BY_CACHE;
  choice.predicted_seconds = find(candidates, best->kernel)->predicted_seconds;
  choice.measured_seconds = best->seconds;
  choice.reason = "the fastest of " + std::to_string(found.record.candidates.size()) +
                  " when a similar product was measured, " + duration(best->seconds) +
                  (shipped ? " (the table of this library)" : " (the tuning cache)");
  return true;
}

void choose_predicted(const std::vector<Candidate>& candidates, Choice& choice) {
  const Candidate* fastest = nullptr;
  for (const Candidate& candidate : candidates) {
    if (!candidate.obstacle.empty()) continue;
    if (fastest == nullptr || candidate.predicted_seconds < fastest->predicted_seconds) fastest = &candidate;
  }
  if (fastest == nullptr) return;
  choice.kernel = fastest->kernel;
  choice.predicted_seconds = fastest->predicted_seconds;
  choice.by = SPARSEK_CHOSEN_BY_MODEL;
  choice.reason = "the cost model expects " + duration(choice.predicted_seconds) + ", the least of all that serve";
}

// The kernel that the cost model prefers for some number of columns, whose rows are aligned: for every plan of the
// matrix the same, but for numbers of columns and strides that it does not serve. Measurements differ from machine to
// machine, and are of one number of columns.
void choose_for_any_columns(Backend& backend, const MatrixState& matrix, const PlanOptions& options, Choice& choice) {
  constexpr int64_t kColumns = 1024;
  PlanOptions some = options;
  some.n = some.ldb = some.ldc = kColumns;
  some.alignment = 16;
  std::vector<Candidate> candidates = backend.candidates(matrix, some, false);
  const std::vector<Candidate> of_plan = backend.candidates(matrix, options, false);
  const auto serves_not = [&](const Candidate& candidate) { return find(of_plan, candidate.kernel) == nullptr; };
  candidates.erase(std::remove_if(candidates.begin(), candidates.end(), serves_not), candidates.end());
  choose_predicted(candidates, choice);
  if (choice.kernel.empty()) return;
  choice.reason += ", for " + std::to_string(kColumns) + " columns; it is used for every number of them that it serves";
  choice.predicted_seconds = 0;
}

// Each class is 19 % wider in density than the one below.
int32_t density_class(double density) {
  return density > 0 ? static_cast<int32_t>(std::lround(4 * std::log2(density))) : INT32_MIN;
}

// From rows of even length (0) to patterns where a few rows have most of the blocks (3).
int32_t spread_class(double spread) { return spread < 0.1 ? 0 : spread < 0.5 ? 1 : spread < 1.5 ? 2 : 3; }

// The share of the block rows of a group of 128 rows that use a load of B, on average, in eighths.
int32_t union_class(const BsrShape& shape, const PatternStats& stats) {
  const int32_t together = std::max(1, 128 / shape.block_m);
  if (stats.rows128.loads == 0 || together == 1) return 8;
  const double shared = static_cast<double>(shape.nnzb) / static_cast<double>(stats.rows128.loads);
  return static_cast<int32_t>(std::lround(8 * shared / together));
}

// The product, whether its elements may be rounded to TF32, and which operands are column-major: "dds_t", "sdd/xb",
// "dsd+tf32/c".
std::string op_name(const PlanOptions& options) {
  constexpr const char* kNames[] = {"dsd", "dsd_t", "sdd", "dds", "dds_t"};
  static_assert(SPARSEK_DDS_T == 4, "each has a name");
  std::string columns;
  const auto add = [&](char name, int32_t order) {
    if (order_in_form(options.op, order) == SPARSEK_COLUMN_MAJOR)
      columns += name;  // turned over twice: as it was given
  };
  if (options.op == SPARSEK_SDD) add('x', options.order_x);
  add('b', options.order_b);
  if (options.op != SPARSEK_SDD) add('c', options.order_c);
  return std::string(kNames[options.op]) + (options.tf32 ? "+tf32" : "") + (columns.empty() ? "" : "/" + columns);
}

}  // namespace

Choice choose(Backend& backend, const MatrixState& matrix, const PlanOptions& options, TuningMemory& memory) {
  Choice choice;
  if (!options.kernel.empty()) {
    choice.kernel = options.kernel;
    choice.by = SPARSEK_CHOSEN_BY_NAME;
    choice.reason = "asked for by name";
    return choice;
  }
  if (options.batch_invariant) {
    choose_for_any_columns(backend, matrix, options, choice);
  } else {
    const bool libraries = options.allow_dense && !options.own_kernels;
    const std::vector<Candidate> candidates = backend.candidates(matrix, options, libraries);
    const TuningKey key =
        tuning_key(backend, matrix, options, std::any_of(candidates.begin(), candidates.end(), keeps_values));
    TuningAnswer found;
    if (options.workers == 0) {  // what was measured was measured with all workers
      found = options.user_cache ? memory.lookup(key) : memory.lookup_shipped(key);
    }
    choice.warning = found.warning;
    if (found.source == TuningSource::kNone || !choose_measured(candidates, found, choice)) {
      choose_predicted(candidates, choice);
    }
  }
  if (choice.kernel.empty()) {
    fail(SPARSEK_UNSUPPORTED_BLOCK, "no kernel serves blocks of %dx%d of this type", matrix.shape().block_m,
         matrix.shape().block_k);
  }
  return choice;
}

Choice conclude(const Tuner& tuner, const Backend& backend, const MatrixState& matrix, const PlanOptions& options,
                TuningMemory& memory) {
  const std::vector<Trial>& trials = tuner.trials();
  TuningRecord record;
  const bool kept = std::any_of(trials.begin(), trials.end(), [](const Trial& t) { return keeps_values(t.candidate); });
  record.key = tuning_key(backend, matrix, options, kept);
  record.measured = static_cast<int64_t>(std::time(nullptr));
  const Trial& winner = trials[tuner.require_best()];
  for (const Trial& trial : trials) {
    if (trial.times.empty()) continue;
    record.candidates.push_back({trial.candidate.kernel, trial.median(), trial.spread(), trial.setup_seconds});
  }
  // The winner first: among equally fast kernels it need not have the lowest median.
  std::stable_sort(record.candidates.begin(), record.candidates.end(), [&](const auto& a, const auto& b) {
    const bool a_wins = a.kernel == winner.candidate.kernel, b_wins = b.kernel == winner.candidate.kernel;
    return a_wins != b_wins ? a_wins : a.seconds < b.seconds;
  });
  Choice choice;
  choice.kernel = winner.candidate.kernel;
  choice.by = SPARSEK_CHOSEN_BY_TUNING;
  choice.predicted_seconds = winner.candidate.predicted_seconds;
  choice.measured_seconds = winner.median();
  choice.reason = "the fastest of " + std::to_string(record.candidates.size()) + " that were measured, " +
                  duration(winner.median());
  if (options.user_cache && options.workers == 0) choice.warning = memory.remember(record);
  return choice;
}

TuningKey tuning_key(const Backend& backend, const MatrixState& matrix, const PlanOptions& options, bool kept_values) {
  const BsrShape& shape = matrix.shape();
  const PatternStats& stats = matrix.stats();
  TuningKey key;
  key.device = backend.processor();
  key.sm_count = backend.units();
  key.build = library_build();
  key.op = op_name(options);
  key.m = shape.rows;
  key.n = options.n;
  key.k = shape.cols;
  key.bm = shape.block_m;
  key.bk = shape.block_k;
  key.dtype = matrix.dtype;
  key.dtype_b = options.dtype_b == matrix.dtype ? 0 : options.dtype_b;
  key.dtype_c = options.dtype_c;
  key.bias = options.bias;
  key.activation = options.activation;
  key.density_class = density_class(stats.density);
  key.spread_class = spread_class(stats.row_spread);
  key.union_class = union_class(shape, stats);
  key.kept_values = kept_values ? 1 : 0;
  return key;
}

}  // namespace sparsek::tune
