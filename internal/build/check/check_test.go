// SPDX-License-Identifier: Apache-2.0

package check

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sparsek/sparsek/internal/toolchain"
	"github.com/sparsek/sparsek/internal/toolchain/fetch"
	"github.com/sparsek/sparsek/internal/toolchain/lock"
)

// clangFormat is the one that the lock pins, from the cache alone.
func clangFormat(t *testing.T) string {
	t.Helper()
	program, err := toolchain.ClangFormat(t.Context(), toolchain.Options{LockPath: "../../../" + lock.FileName, Offline: true}, t.TempDir())
	var offline *fetch.OfflineError
	if errors.As(err, &offline) {
		t.Skip("skipped: clang-format is not in the cache")
	}
	if err != nil {
		t.Fatal(err)
	}
	return program
}

func TestFormat(t *testing.T) {
	program := clangFormat(t)
	root := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	style, err := os.ReadFile("../../../.clang-format")
	if err != nil {
		t.Fatal(err)
	}
	write(".clang-format", string(style))
	const wrong, wrongC = "package  p\n", "int  f( int* x );\n"
	write("a.go", "package p\n")
	write("a.h", "int f(int* x);\n")
	for _, ignored := range []string{"build/a.go", ".git/a.go", "p/testdata/a.go", "mage_output_file.go", "notes.txt"} {
		write(ignored, wrong)
	}
	write("build/gen/a.cu", wrongC)
	if err := Format(t.Context(), root, program, false); err != nil {
		t.Errorf("a formatted tree: %v", err)
	}
	write("p/b.go", wrong)
	write("p/c.go", wrong)
	write("p/d.cuh", wrongC)
	write("p/testdata/e.cpp", wrongC+wrongC)
	err = Format(t.Context(), root, program, false)
	if err == nil || !strings.HasSuffix(err.Error(), "changes p/b.go p/c.go p/d.cuh p/testdata/e.cpp") {
		t.Errorf("got %v, want each file named once", err)
	}
	if err := Format(t.Context(), root, program, true); err != nil {
		t.Errorf("formatting: %v", err)
	}
	if err := Format(t.Context(), root, program, false); err != nil {
		t.Errorf("after formatting: %v", err)
	}
	if text, err := os.ReadFile(filepath.Join(root, "p/d.cuh")); err != nil || string(text) != "int f(int* x);\n" {
		t.Errorf("got %q, %v", text, err)
	}
	write("p/b.go", "package\n")
	if err := Format(t.Context(), root, program, false); err == nil || !strings.Contains(err.Error(), "p/b.go") {
		t.Errorf("got %v, want the file that does not parse", err)
	}
	write("p/b.go", "package p\n")
	write(".clang-format", "NoSuchStyle: yes\n")
	if err := Format(t.Context(), root, program, false); err == nil || !strings.Contains(err.Error(), "NoSuchStyle") {
		t.Errorf("got %v, want what clang-format says", err)
	}
}

func TestEachPackageIsTestedOnce(t *testing.T) {
	root := tree(t, map[string]string{
		"plain/p.go":       "package plain\n",
		"plain/p_test.go":  "package plain\n",
		"statement/p.go":   "package statement\nfunc F() { go F() }\n",
		"method/p.go":      "package method\nimport \"sync\"\nfunc F(w *sync.WaitGroup) { w.Go(func() {}) }\n",
		"inside/p.go":      "package inside\n",
		"inside/p_test.go": "package inside\nimport \"testing\"\nfunc TestP(t *testing.T) { go t.Log() }\n",
	})
	packages, err := listPackages(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	got, err := testArgs(packages)
	if err != nil {
		t.Fatal(err)
	}
	want := [][]string{
		{"go", "test", "-json", "-count=1", "-timeout=30m0s", "m/plain"},
		{"go", "test", "-json", "-count=1", "-timeout=30m0s", "-race", "m/inside", "m/method", "m/statement"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// Without packages, go test would test the folder that it runs in.
	got, err = testArgs(packages[2:3])
	if err != nil || len(got) != 1 || slices.Contains(got[0], "-race") {
		t.Errorf("got %v, %v", got, err)
	}
}
