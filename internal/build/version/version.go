// SPDX-License-Identifier: Apache-2.0

// Package version has the version of sparsek. It stands apart from the build tool, so that the program does not link that.
package version

// Sparsek is sparsek's own version, semantic.
const Sparsek = "0.1.0"
