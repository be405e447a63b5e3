// SPDX-License-Identifier: Apache-2.0

package sparsek_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sparsek/sparsek/wrapper/internal/abitest"

	. "github.com/sparsek/sparsek/wrapper"
)

// What no Go program can do through this package: nulls, wrong abi_sizes, enumeration values that do not exist.
func TestEdgeOfTheABI(t *testing.T) {
	checks, failures := abitest.Edge(library(t).Path())
	if failures != "" {
		t.Error(failures)
	}
	if checks < 100 {
		t.Errorf("only %d checks were made", checks)
	}
}

// A product can be captured into a CUDA graph and replayed; misaligned device values are refused.
func TestGraphCapture(t *testing.T) {
	lib := library(t)
	for name, run := range map[string]func() string{
		"whole tiles":          func() string { return abitest.Graph(lib.Path()) },
		"split tiles":          func() string { return abitest.SplitGraph(lib.Path(), "gather_bf16_128_256") },
		"new values":           func() string { return abitest.KeptGraph(lib.Path(), "packed_bf16_128_256") },
		"new values of stages": func() string { return abitest.KeptGraph(lib.Path(), "scatter_bf16_128_64") },
	} {
		t.Run(name, func(t *testing.T) { report(t, run()) })
	}
}

// A product may work in memory of its caller, and be one of a batch.
func TestWorkspaceOfTheCaller(t *testing.T) {
	report(t, abitest.Workspace(library(t).Path(), "gather_bf16_128_256"))
}

// The device memory of a context may be of its application's allocator, and plans of a matrix share what they keep.
func TestAllocatorOfTheApplication(t *testing.T) {
	report(t, abitest.Allocator(library(t).Path(), "gather_bf16_128_256", "scatter_bf16_128_64"))
}

// report fails or skips the test where a program of package abitest has something to say.
func report(t *testing.T, result string) {
	t.Helper()
	switch {
	case strings.HasPrefix(result, "skipped: "):
		t.Skip(result)
	case result != "":
		t.Error(result)
	}
}

// No call of the library spoils the capture of a stream, on whatever thread.
func TestCapturesStayWhole(t *testing.T) {
	lib := library(t)
	for _, blocking := range []bool{false, true} {
		for _, sameThread := range []bool{false, true} {
			t.Run(fmt.Sprintf("blocking %t, same thread %t", blocking, sameThread), func(t *testing.T) {
				report(t, abitest.Capture(lib.Path(), blocking, sameThread))
			})
		}
	}
}

// A plan and its matrix are destroyed without waiting for their products, and what these read stays theirs. The cases
// without memory take all of the device's for a moment: other programs may find none meanwhile.
func TestDestroyedBeforeProductsRan(t *testing.T) {
	lib := library(t)
	for name, how := range abitest.ReleaseCases {
		for _, noMemory := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, without memory %t", name, noMemory), func(t *testing.T) {
				report(t, abitest.Release(lib.Path(), how, noMemory))
			})
		}
	}
}

func TestStatusNames(t *testing.T) {
	lib := library(t)
	for status, name := range StatusNames {
		if got := lib.StatusName(status); got != name {
			t.Errorf("status %d is %s in Go and %s in the library", int32(status), name, got)
		}
	}
	for status := range Status(64) {
		if name := lib.StatusName(status); name != "SPARSEK_UNKNOWN_STATUS" && status != 0 && StatusNames[status] == "" {
			t.Errorf("%s is not known in Go", name)
		}
	}
}

// Matrices and plans are made, used and let go in the order of a stream, and no call waits for it.
func TestPlansInStreamOrder(t *testing.T) {
	lib := library(t)
	for name, what := range abitest.StreamCases {
		t.Run(name, func(t *testing.T) { report(t, abitest.Stream(lib.Path(), what)) })
	}
}
