// SPDX-License-Identifier: Apache-2.0

// Package abitest calls libsparsek's C ABI as a hostile C program would: in ways that the Go API rules out. It is for
// tests only, and is a package because cgo is not available in test files.
package abitest

/*
#cgo CFLAGS: -I${SRCDIR}/../native -std=gnu11
#cgo linux LDFLAGS: -ldl
#include <stdlib.h>
#include "allocator.h"
#include "digest.h"
#include "edge.h"
#include "graph.h"
#include "release.h"
#include "stream.h"
#include "workspace.h"
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

// KeptGraph captures new values of a matrix, of which a plan by the kernel of that name keeps some, into a graph, and
// replays it. The result is as Graph's.
func KeptGraph(path, kernel string) string {
	text, name := C.CString(path), C.CString(kernel)
	defer C.free(unsafe.Pointer(text))
	defer C.free(unsafe.Pointer(name))
	result := C.graph_kept_run(text, name)
	defer C.free(unsafe.Pointer(result))
	return C.GoString(result)
}

// Workspace multiplies in memory of the caller, and batches, with the kernel of that name, whose tiles are split. The
// result is as Graph's.
func Workspace(path, kernel string) string {
	text, name := C.CString(path), C.CString(kernel)
	defer C.free(unsafe.Pointer(text))
	defer C.free(unsafe.Pointer(name))
	result := C.workspace_run(text, name)
	defer C.free(unsafe.Pointer(result))
	return C.GoString(result)
}

// Allocator multiplies in a context whose device memory is the application's, with the kernel of that name, whose tiles
// are split, and with the kernel named keeping, whose plans share the layout of A that they keep. The result is as
// Graph's.
func Allocator(path, kernel, keeping string) string {
	text, name, keepingName := C.CString(path), C.CString(kernel), C.CString(keeping)
	defer C.free(unsafe.Pointer(text))
	defer C.free(unsafe.Pointer(name))
	defer C.free(unsafe.Pointer(keepingName))
	result := C.allocator_run(text, name, keepingName)
	defer C.free(unsafe.Pointer(result))
	return C.GoString(result)
}

// Capture makes each call of the library at path while a stream is captured in global mode, from another thread or from
// the one that captures. With blocking, the captured stream waits for the default stream. The result is as Graph's.
func Capture(path string, blocking, sameThread bool) string {
	text := C.CString(path)
	defer C.free(unsafe.Pointer(text))
	// The capture ends on the thread on which it begins, since all of it is one call.
	result := C.capture_run(text, number(blocking), number(sameThread))
	defer C.free(unsafe.Pointer(result))
	return C.GoString(result)
}

// ReleaseCases are the ways in which a plan is used before Release destroys it.
var ReleaseCases = map[string]C.release_case{
	"a stream of the library":                C.kReleaseOwnStream,
	"a stream of the application":            C.kReleaseForeignStream,
	"a stream of the library, destroyed":     C.kReleaseClosedStream,
	"a stream of the application, destroyed": C.kReleaseLostStream,
	"the default stream":                     C.kReleaseDefaultStream,
	"a graph":                                C.kReleaseGraph,
}

// Release destroys a plan while a product of it is still to run, with noMemory when no device memory is left, and looks
// at what the product gives. The result is as Graph's.
func Release(path string, how C.release_case, noMemory bool) string {
	text := C.CString(path)
	defer C.free(unsafe.Pointer(text))
	result := C.release_run(text, how, number(noMemory))
	defer C.free(unsafe.Pointer(result))
	return C.GoString(result)
}

// PlanDigest is the digest of a plan of the library at path, a sparsek_plan*: of the work list and the rows that share
// tiles.
func PlanDigest(path string, plan unsafe.Pointer) uint64 {
	text := C.CString(path)
	defer C.free(unsafe.Pointer(text))
	return uint64(C.plan_digest(text, plan))
}

// StreamCases are what Stream does.
var StreamCases = map[string]C.stream_case{
	"steps in a stream that is held up":     C.kStreamHeldUp,
	"products in another stream":            C.kStreamOthers,
	"faults":                                C.kStreamFaults,
	"a captured stream":                     C.kStreamCaptured,
	"destroyed instead of released":         C.kStreamDestroyed,
	"a stream that is named and waited for": C.kStreamNamed,
	"a plan that is updated":                C.kStreamUpdated,
	"a plan as plain data":                  C.kStreamData,
}

// Stream makes matrices and plans in the order of a stream, and looks at what their products give. The result is as
// Graph's.
func Stream(path string, what C.stream_case) string {
	text := C.CString(path)
	defer C.free(unsafe.Pointer(text))
	result := C.stream_run(text, what)
	defer C.free(unsafe.Pointer(result))
	return C.GoString(result)
}

func number(condition bool) C.int {
	if condition {
		return 1
	}
	return 0
}
