// SPDX-License-Identifier: Apache-2.0
// What the tuner needs of the CPU back-end.
#pragma once

#include <memory>
#include <vector>

#include "abi/backend.h"
#include "tune/rehearsal.h"

namespace sparsek::cpu {

// All CPU kernels with what stands against them, in the order of priority.
std::vector<tune::Candidate> list_candidates(const MatrixState& matrix, const PlanOptions& options, int threads);

std::unique_ptr<tune::Rehearsal> make_rehearsal(const MatrixState& matrix, const PlanOptions& options);

}  // namespace sparsek::cpu
