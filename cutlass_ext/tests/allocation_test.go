// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"errors"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	sparsek "github.com/sparsek/sparsek/wrapper"
)

// Memory runs out within a call of the built library: it returns a status, and all is as good as before. Nothing is
// as long as a matrix of few blocks is wide.
func TestAllocationsFail(t *testing.T) {
	library, err := sparsek.Default()
	if errors.Is(err, sparsek.ErrLibraryNotFound) {
		t.Skip("skipped: libsparsek.so not found")
	}
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "allocation_program")
	if out, err := exec.Command("gcc", "-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-rdynamic", "-I", "../include",
		"-o", program, "testdata/allocation_program.c", "-ldl").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, call := range []struct {
		name   string
		stride int // of the allocations that fail, but in a long test; measuring takes its time
		least  int // calls in which one failed
	}{
		{"context_create", 1, 10}, {"matrix_create", 1, 6}, {"plan_create", 1, 100}, {"plan_create_tuned", 16, 8},
		{"tuner_create", 6, 4}, {"tuner_step", 6, 4}, {"tuner_finish", 24, 6}, {"multiply", 1, 0}, {"multiply_time", 1, 1},
		{"matrix_set_values", 1, 0}, {"plan_info", 1, 0}, {"check", 1, 40}, {"tuning_cache_open", 97, 40}, {"limits", 1, 20},
	} {
		t.Run(call.name, func(t *testing.T) {
			cmd := exec.Command(program, library.Path(), call.name, strconv.Itoa(rounds(call.stride, 1)))
			// Without a file, which would be longer with each plan that is tuned.
			cmd.Env = append(cmd.Environ(), "SPARSEK_TUNING_CACHE=off")
			out, err := cmd.CombinedOutput()
			text := strings.TrimSpace(string(out))
			if err != nil {
				t.Fatalf("%v: %s", err, text)
			}
			if count, err := strconv.Atoi(text); err != nil || count < call.least {
				t.Errorf("%q, want at least %d calls with a failure", text, call.least)
			}
		})
	}
}
