// SPDX-License-Identifier: Apache-2.0
// What sparsek.h names and this library does not serve yet: refused by name, so that no caller gets the result of
// another request. A member that is served leaves this file.
#pragma once

#include "sparsek.h"

namespace sparsek {

// Each throws SPARSEK_BAD_ARGUMENT, naming the member. They also check new members that are enumerations or flags.
void require_served(const sparsek_bsr& bsr);
void require_served(const sparsek_plan_options& options);
void require_served(const sparsek_multiply_args& args);
void require_served(const sparsek_check_args& args);

}  // namespace sparsek
