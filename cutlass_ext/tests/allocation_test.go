// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// Memory runs out within a call of the built library: it returns a status, and all is as good as before. Nothing is
// as long as a matrix of few blocks is wide.
func TestAllocationsFail(t *testing.T) {
	program, library := programOfLibrary(t, "testdata/allocation_program.c", "-rdynamic")
	for _, call := range []struct {
		name   string
		stride int // of the allocations that fail, but in a long test; measuring takes its time
		least  int // calls in which one failed
	}{
		{"context_create", 1, 10}, {"matrix_create", 1, 6}, {"plan_create", 1, 100}, {"plan_create_tuned", 16, 8},
		{"tuner_create", 6, 4}, {"tuner_step", 2, 4}, {"tuner_finish", 24, 6}, {"multiply", 1, 0}, {"multiply_time", 1, 1},
		{"matrix_set_values", 1, 0}, {"plan_info", 1, 0}, {"check", 1, 40}, {"tuning_cache_open", 97, 40}, {"limits", 1, 20},
	} {
		t.Run(call.name, func(t *testing.T) {
			cmd := exec.Command(program, library, call.name, strconv.Itoa(rounds(call.stride, 1)))
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
