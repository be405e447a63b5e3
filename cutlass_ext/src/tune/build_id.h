// SPDX-License-Identifier: Apache-2.0
// Which build this library is: another one has other kernels, or the same ones at another speed.
#pragma once

#include <string>

namespace sparsek::tune {

// The first 16 hexadecimal digits of what the linker made of the library's content (the ELF note NT_GNU_BUILD_ID);
// of a library without one, its version and commit.
const std::string& library_build();

}  // namespace sparsek::tune
