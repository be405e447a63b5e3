// SPDX-License-Identifier: Apache-2.0

// Package stamp decides whether the outcome of a command is up to date.
//
// A stamp records, by content, what a finished command was, what it read and
// what it wrote. It is written last and atomically, so that a command that
// was interrupted has none, and modification times decide nothing.
package stamp
