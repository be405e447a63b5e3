// SPDX-License-Identifier: Apache-2.0

package sparsek_test

import (
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
		"whole tiles": func() string { return abitest.Graph(lib.Path()) },
		"split tiles": func() string { return abitest.SplitGraph(lib.Path(), "gather_bf16_128_256") },
	} {
		t.Run(name, func(t *testing.T) {
			switch result := run(); {
			case strings.HasPrefix(result, "skipped: "):
				t.Skip(result)
			case result != "":
				t.Error(result)
			}
		})
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
