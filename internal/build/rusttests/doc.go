// SPDX-License-Identifier: Apache-2.0

// Package rusttests runs cargo over the Rust crates: their tests, and the
// checks of their sources.
package rusttests
