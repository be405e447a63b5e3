// SPDX-License-Identifier: Apache-2.0

package toolchain

import (
	"os"
	"strings"
	"testing"

	"github.com/sparsek/sparsek/internal/toolchain/lock"
)

func TestClangFormat(t *testing.T) {
	w := newWorld(t)
	if _, err := ClangFormat(t.Context(), w.options(), t.TempDir()); err == nil || !strings.Contains(err.Error(), lock.ClangFormat) {
		t.Errorf("a lock without it: %v", err)
	}
	before := Digest(w.lock)
	w.tool(t, lock.ClangFormat, map[string]string{clangFormatProgram: "program", "clang_format/__init__.py": "not needed"})
	if Digest(w.lock) != before {
		t.Error("a tool that checks sources changes the toolchain")
	}
	dir := t.TempDir()
	program, err := ClangFormat(t.Context(), w.options(), dir)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(program)
	if err != nil || string(text) != "program" {
		t.Errorf("got %q, %v", text, err)
	}
	if info, err := os.Stat(program); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("got %v, %v", info, err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("got %v, %v", entries, err)
	}

	w.lock.Tools = nil
	w.tool(t, lock.ClangFormat, map[string]string{"something/else": "x"})
	if _, err := ClangFormat(t.Context(), w.options(), t.TempDir()); err == nil || !strings.Contains(err.Error(), clangFormatProgram) {
		t.Errorf("a package without the program: %v", err)
	}
}
