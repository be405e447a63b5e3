// SPDX-License-Identifier: Apache-2.0
// What all parts of the cost model count in: times, rates and bytes.
#pragma once

#include <algorithm>
#include <cmath>

#include "cuda/cost_model.h"

namespace sparsek::cuda {

// Times are microseconds, rates are by the microsecond.
constexpr double kMicrosecond = 1e-6;
// Work is counted in steps: 64 columns of A by one tile.
constexpr double kStepColumns = 64;

// Of two times that overlap for the most part, somewhat more than the longer.
inline double together(double a, double b, double power) {
  return std::pow(std::pow(a, power) + std::pow(b, power), 1 / power);
}
constexpr double kOnChip = 3;      // computing, copies and L2
constexpr double kWithMemory = 2;  // all that, and device memory

inline double ceil_div(double a, double b) { return std::ceil(a / b); }

inline double values_of(const Work& work) {
  return static_cast<double>(work.shape.nnzb) * work.shape.block_m * work.shape.block_k;
}

// A and B once.
inline double bytes_of_operands(const Work& work) {
  return static_cast<double>(work.element_bytes) * values_of(work) +
         static_cast<double>(work.element_bytes_b) * static_cast<double>(work.shape.cols) * static_cast<double>(work.n);
}

inline double bytes_of_c(const Work& work) {
  return static_cast<double>(work.element_bytes_c) * static_cast<double>(work.shape.rows) * static_cast<double>(work.n);
}

// Time on the SMs here, of what takes `fitted` on the SMs that the coefficients were fitted on.
inline double on_sms(double fitted, const Work& work) { return fitted * kFittedClock / work.device.sm_clock; }

// CTAs of a kernel that a plan has at once.
inline int ctas_of(const KernelDesc& kernel, const Work& work) {
  const int all = work.device.sm_count * kernel.ops->ctas_per_sm;
  return work.workers > 0 ? std::min(all, work.workers) : all;
}

// What all SMs do together here, by a rate that was fitted on kFittedSms SMs.
inline double by_all_sms(double rate, const Work& work) {
  return rate * work.device.sm_count / kFittedSms * work.device.sm_clock / kFittedClock;
}

inline double memory_rate(double share, const Work& work) { return share * work.device.memory_rate * kMicrosecond; }

// A kernel of its own that reads B and writes it.
inline double pack_b(const Work& work) {
  constexpr double kLaunch = 2.5, kShare = 0.85;
  return kLaunch + 2 * static_cast<double>(work.element_bytes * work.shape.cols * work.n) / memory_rate(kShare, work);
}

// What L2 does not hold of B comes from memory, for each 64 rows of A again.
// loads: of the row groups that read it together.
inline double bytes_missed(const Work& work, double share, double l2_share, int64_t loads) {
  const double of_column = static_cast<double>(work.element_bytes_b) * static_cast<double>(work.n);
  const double b = of_column * static_cast<double>(work.shape.cols);
  const double missed = std::max(0.0, 1 - l2_share * work.device.l2_bytes / std::max(1.0, b));
  return share * missed * of_column * static_cast<double>(loads) * work.shape.block_k;
}

}  // namespace sparsek::cuda
