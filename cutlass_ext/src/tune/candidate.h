// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace sparsek::tune {

// A kernel that could compute a product.
struct Candidate {
  std::string kernel;            // as plan_options names it
  std::string obstacle;          // why it does not serve; empty where it does
  double predicted_seconds = 0;  // by the cost model; 0 where there is an obstacle
  bool keeps_values = false;     // it serves, and its plans keep the matrix's values as the kernel reads them
};

}  // namespace sparsek::tune
