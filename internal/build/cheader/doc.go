// SPDX-License-Identifier: Apache-2.0

// Package cheader reads sparsek.h, so that bindings for other languages can be
// written from it: its enumerations, its structs and its table of functions.
// What it does not understand in the header is an error.
package cheader
