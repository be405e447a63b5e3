// SPDX-License-Identifier: Apache-2.0
// Identifies the build of this library: another build has other kernels, or the same ones at another speed.
#pragma once

#include <string>

namespace sparsek::tune {

// The first 16 hexadecimal digits of the linker's hash of the library's content (the ELF note NT_GNU_BUILD_ID); for a
// library without that note, its version and commit.
const std::string& library_build();

}  // namespace sparsek::tune
