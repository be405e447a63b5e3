// SPDX-License-Identifier: Apache-2.0

// Package rustbindings writes the Rust bindings of sparsek.h: its enumerations
// as constants, its structs, and its table of functions.
package rustbindings
