// SPDX-License-Identifier: Apache-2.0

// Package pybindings writes the Python bindings of sparsek.h: its
// enumerations, its structs and its table of functions for ctypes.
package pybindings
