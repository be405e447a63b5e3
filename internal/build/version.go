// SPDX-License-Identifier: Apache-2.0

package build

// Version is sparsek's own, semantic.
const Version = "0.1.0"
