// SPDX-License-Identifier: Apache-2.0
// The parts of the CPU back-end that the tuner uses.
#pragma once

#include <memory>
#include <vector>

#include "abi/backend.h"
#include "tune/rehearsal.h"

namespace sparsek::cpu {

// All CPU kernels in the order of priority, with the obstacles of those that do not serve.
std::vector<tune::Candidate> list_candidates(const MatrixState& matrix, const PlanOptions& options, int threads);

std::unique_ptr<tune::Rehearsal> make_rehearsal(const MatrixState& matrix, const PlanOptions& options);

}  // namespace sparsek::cpu
