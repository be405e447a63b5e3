// SPDX-License-Identifier: Apache-2.0
// Stands between the program and the system calls that change files: the one of a given number fails, or ends the
// process in its middle, as kill -9 does.
#pragma once

namespace trap {

// Counts from here on. Call number `at` (from 1) fails with errno `code`, or with a code of 0 kills; 0: none does.
void set(int at, int code);

}  // namespace trap
