// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// A process forks while other threads are within calls of the built library, which works in the children as well.
func TestForks(t *testing.T) {
	program, library := programOfLibrary(t, "testdata/fork_program.c", "-lpthread")
	for name, forks := range map[string]int{"idle": 4, "products": 150, "plans": 100, "contexts": 100, "tuning": 4, "lock": 50, "gpu": 4} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command(program, library, name, strconv.Itoa(forks))
			cmd.Env = append(cmd.Environ(), "SPARSEK_TUNING_CACHE="+filepath.Join(t.TempDir(), "tuning.txt"))
			out, err := cmd.CombinedOutput()
			text := strings.TrimSpace(string(out))
			if err != nil {
				t.Fatalf("%v: %s", err, text)
			}
			if text == "skipped" {
				t.Skip("skipped: no GPU")
			}
		})
	}
}
