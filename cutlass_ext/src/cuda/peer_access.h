// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace sparsek::cuda {

// Whether the current device may read the memory of another GPU that the pointer is in: the application has enabled
// peer access, or mapped the memory for this device as well.
bool may_read_peer(const void* pointer);

}  // namespace sparsek::cuda
