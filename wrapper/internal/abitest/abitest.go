// SPDX-License-Identifier: Apache-2.0

// Package abitest calls libsparsek's C ABI as a hostile C program would: in ways that the Go API rules out. It is for
// tests only, and is a package because cgo is not to be had in test files.
package abitest

/*
#cgo CFLAGS: -I${SRCDIR}/../native -std=gnu11
#cgo linux LDFLAGS: -ldl
#include <stdlib.h>
#include "edge.h"
#include "graph.h"
*/
import "C"

import "unsafe"

// Edge runs all checks against the library at path, on its CPU back-end. It gives the number of checks, and a line
// for each that failed.
func Edge(path string) (checks int, failures string) {
	text := C.CString(path)
	defer C.free(unsafe.Pointer(text))
	result := C.edge_run(text)
	defer C.free(unsafe.Pointer(result.failures))
	return int(result.checks), C.GoString(result.failures)
}

// Graph captures a product on the first GPU into a CUDA graph and replays it, with the library at path. It gives "",
// or what went wrong, or "skipped: " and why.
func Graph(path string) string {
	text := C.CString(path)
	defer C.free(unsafe.Pointer(text))
	result := C.graph_run(text)
	defer C.free(unsafe.Pointer(result))
	return C.GoString(result)
}

// SplitGraph is like Graph, with a product whose tiles the kernel of that name splits, in several graphs at once.
func SplitGraph(path, kernel string) string {
	text, name := C.CString(path), C.CString(kernel)
	defer C.free(unsafe.Pointer(text))
	defer C.free(unsafe.Pointer(name))
	result := C.graph_parts_run(text, name)
	defer C.free(unsafe.Pointer(result))
	return C.GoString(result)
}
