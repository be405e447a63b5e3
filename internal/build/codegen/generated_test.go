// SPDX-License-Identifier: Apache-2.0

package codegen

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestWritesOnlyWhatChanged(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "gen")
	files := map[string][]byte{"a.cpp": []byte("a"), "b.cu": []byte("b")}
	if err := Write(dir, files); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "stale", "folder"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "stale.cu"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	long := time.Unix(1e9, 0)
	for name := range files {
		if err := os.Chtimes(filepath.Join(dir, name), long, long); err != nil {
			t.Fatal(err)
		}
	}
	files["b.cu"] = []byte("another b")
	files["c.cpp"] = []byte("c")
	if err := Write(dir, files); err != nil {
		t.Fatal(err)
	}
	touched := map[string]bool{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		touched[e.Name()] = !info.ModTime().Equal(long)
	}
	if diff := cmp.Diff(map[string]bool{"a.cpp": false, "b.cu": true, "c.cpp": true}, touched); diff != "" {
		t.Errorf("rewritten (-want +got):\n%s", diff)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "b.cu")); err != nil || string(text) != "another b" {
		t.Errorf("b.cu is %q, %v", text, err)
	}
}

// Go reads what Quote writes: both languages agree on these escapes.
func TestQuote(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "s")
		got, err := strconv.Unquote(Quote(s))
		if err != nil || got != s {
			t.Fatalf("%q became %s, read as %q, %v", s, Quote(s), got, err)
		}
	})
}
