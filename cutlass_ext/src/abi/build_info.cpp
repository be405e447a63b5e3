// SPDX-License-Identifier: Apache-2.0
// The only file that sees the versions, so that a new commit recompiles only this file.
#include "abi/abi_size.h"
#include "abi/entry.h"
#include "abi/guard.h"

#if !defined(SPARSEK_VERSION) || !defined(SPARSEK_CUTLASS_VERSION) || !defined(SPARSEK_CUDA_VERSION) || \
    !defined(SPARSEK_COMMIT)
#error "the build defines SPARSEK_VERSION, SPARSEK_CUTLASS_VERSION, SPARSEK_CUDA_VERSION and SPARSEK_COMMIT as strings"
#endif

#if defined(__clang__)
#define SPARSEK_COMPILER "clang " __clang_version__
#else
#define SPARSEK_COMPILER "g++ " __VERSION__
#endif

namespace sparsek::entry {

sparsek_status build_info(sparsek_build_info* out) noexcept {
  return guard([&] {
    sparsek_build_info info{};
    info.version = SPARSEK_VERSION;
    info.cutlass = SPARSEK_CUTLASS_VERSION;
    info.cuda = SPARSEK_CUDA_VERSION;
    info.compiler = SPARSEK_COMPILER;
    info.commit = SPARSEK_COMMIT;
    write_struct(out, info, "out");
  });
}

}  // namespace sparsek::entry
