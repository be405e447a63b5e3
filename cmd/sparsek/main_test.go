// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// The program is copied to other machines without a checkout: it links nothing of the tool that fetches and builds.
func TestProgramHasNoBuildTool(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").CombinedOutput()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, out)
	}
	for _, name := range []string{"github.com/sparsek/sparsek/internal/toolchain", "github.com/sparsek/sparsek/internal/build", "net/http"} {
		if slices.Contains(strings.Fields(string(out)), name) {
			t.Errorf("the program links %s", name)
		}
	}
}
