// SPDX-License-Identifier: Apache-2.0

package shapemap

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var header = Header{Build: "b1", Device: "a GPU", Commit: "c", Seed: 3, Rivals: Strings{"torch"}}

func open(t *testing.T, path string, h Header) *Journal {
	t.Helper()
	j, err := Open(path, h)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func point(block, n int) Cell {
	return Cell{Key: Key{"bf16", "stencil", block, n}, Kernel: "k", Seconds: 1e-6 * float64(n), Timed: []Timed{{Name: "k", Runs: 3, Seconds: 1e-6}}}
}

// A run goes on where the one before it ended, wherever that was: each cell is whole, or it is measured again.
func TestResume(t *testing.T) {
	path := filepath.Join(t.TempDir(), "map.jsonl")
	j := open(t, path, header)
	for _, n := range []int{1, 8, 64} {
		if err := j.Add(point(16, n)); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	of := Matrix{"bf16", "stencil", 16, []int{1, 2, 8, 64}}
	for end := range len(text) + 1 {
		if err := os.WriteFile(path, text[:end], 0o644); err != nil {
			t.Fatal(err)
		}
		lines := strings.Count(string(text[:end]), "\n")
		again, err := Open(path, header)
		if lines == 0 && end > 0 && end < len(begins) {
			if !errors.Is(err, ErrNoMap) { // too short to tell what it is
				t.Fatalf("%d bytes: %v", end, err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%d bytes: %v", end, err)
		}
		want := max(0, lines-1)
		if len(again.Cells) != want || len(again.Missing(of)) != 4-want {
			t.Fatalf("%d bytes: %d cells, %v are missing, want %d cells", end, len(again.Cells), again.Missing(of), want)
		}
		if err := again.Add(point(16, 2)); err != nil {
			t.Fatal(err)
		}
		if err := again.Close(); err != nil {
			t.Fatal(err)
		}
		whole := open(t, path, header)
		if len(whole.Cells) != want+1 || whole.Find(Key{"bf16", "stencil", 16, 2}) == nil {
			t.Fatalf("%d bytes: %d cells after one more", end, len(whole.Cells))
		}
		if err := whole.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// Cells that failed are measured again, and the last measurement counts.
func TestFailedAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "map.jsonl")
	j := open(t, path, header)
	failed := point(4, 1)
	failed.Failed, failed.Seconds, failed.Timed = "no memory", 0, nil
	of := Matrix{"bf16", "stencil", 4, []int{1}}
	if err := j.Add(failed); err != nil || len(j.Missing(of)) != 1 || len(j.Failures()) != 1 {
		t.Fatal(err, j.Missing(of))
	}
	if err := errors.Join(j.Add(point(4, 1)), j.Close()); err != nil {
		t.Fatal(err)
	}
	j = open(t, path, header)
	defer j.Close()
	if len(j.Cells) != 1 || len(j.Missing(of)) != 0 || len(j.Failures()) != 0 {
		t.Errorf("%+v", j.Cells)
	}
}

// Cells of two libraries, devices or seeds do not get onto one map, nor does a map get into another file.
func TestOtherFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "map.jsonl")
	if err := open(t, path, header).Close(); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*Header){
		"another build":  func(h *Header) { h.Build = "b2" },
		"another device": func(h *Header) { h.Device = "another" },
		"another seed":   func(h *Header) { h.Seed = 4 },
		"other rivals":   func(h *Header) { h.Rivals = nil },
	} {
		h := header
		change(&h)
		if _, err := Open(path, h); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	j := open(t, path, header)
	if _, err := Open(path, header); err == nil || !strings.Contains(err.Error(), "another run") {
		t.Error(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	const mine = "my notes\n"
	if err := os.WriteFile(path, []byte(mine), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path, header); !errors.Is(err, ErrNoMap) {
		t.Error(err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != mine {
		t.Errorf("%q, %v", text, err)
	}
}
