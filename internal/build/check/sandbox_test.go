// SPDX-License-Identifier: Apache-2.0

package check

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sparsek/sparsek/internal/cli/exitcode"
)

func TestSandbox(t *testing.T) {
	for _, c := range []struct {
		code       int
		runs       int
		says, want string
	}{
		{0, len(sandboxRuns), "", ""},
		{exitcode.NoDevice, 1, "not verified: no GPU", ""},
		{1, 1, "", "verifying tma_sandbox"},
		{20, 1, "", "verifying tma_sandbox"},
	} {
		t.Run(fmt.Sprint(c.code), func(t *testing.T) {
			dir := t.TempDir()
			program, calls := filepath.Join(dir, "program"), filepath.Join(dir, "calls")
			script := fmt.Sprintf("#!/bin/sh\necho \"$SPARSEK_LIBRARY $*\" >> '%s'\nexit %d\n", calls, c.code)
			if err := os.WriteFile(program, []byte(script), 0o777); err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			err := Sandbox(t.Context(), program, "/lib/own.so", &out)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("error is %v, want %q", err, c.want)
			}
			if !strings.Contains(out.String(), c.says) {
				t.Errorf("said %q, want %q", out.String(), c.says)
			}
			text, err := os.ReadFile(calls)
			if err != nil {
				t.Fatal(err)
			}
			lines := strings.Split(strings.TrimSpace(string(text)), "\n")
			if len(lines) != c.runs || !strings.HasPrefix(lines[0], "/lib/own.so verify --device gpu --kernel tma_sandbox ") {
				t.Errorf("ran %q", lines)
			}
		})
	}
}
