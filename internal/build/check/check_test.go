// SPDX-License-Identifier: Apache-2.0

package check

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFormat(t *testing.T) {
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
	const wrong = "package  p\n"
	write("a.go", "package p\n")
	for _, ignored := range []string{"build/a.go", ".git/a.go", "p/testdata/a.go", "mage_output_file.go", "notes.txt"} {
		write(ignored, wrong)
	}
	if err := Format(root); err != nil {
		t.Errorf("a formatted tree: %v", err)
	}
	write("p/b.go", wrong)
	write("p/c.go", wrong)
	if err := Format(root); err == nil || !strings.HasSuffix(err.Error(), "gofmt -w p/b.go p/c.go") {
		t.Errorf("got %v, want both files named", err)
	}
	write("p/b.go", "package\n")
	if err := Format(root); err == nil || !strings.Contains(err.Error(), "p/b.go") {
		t.Errorf("got %v, want the file that does not parse", err)
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
		{"go", "test", "-json", "-count=1", "m/plain"},
		{"go", "test", "-json", "-count=1", "-race", "m/inside", "m/method", "m/statement"},
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
