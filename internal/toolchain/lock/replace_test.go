// SPDX-License-Identifier: Apache-2.0

package lock

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// watch is a writer that looks at the file each time something is shown.
type watch struct {
	bytes.Buffer
	look func()
	err  error
}

func (w *watch) Write(p []byte) (int, error) {
	w.look()
	if w.err != nil {
		return 0, w.err
	}
	return w.Buffer.Write(p)
}

func TestReplaceShowsBeforeItWrites(t *testing.T) {
	from, to := sample(), sample()
	to.CUTLASS.Commit = strings.Repeat("d", 40)
	to.CUDA.Wheels[0].Bytes++
	path := filepath.Join(t.TempDir(), FileName)
	if err := from.Save(path); err != nil {
		t.Fatal(err)
	}
	old, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	unchanged := func() {
		if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, old) {
			t.Errorf("written before all was shown (%v)", err)
		}
	}
	closed := &watch{look: unchanged, err: errors.New("closed")}
	if _, err := Replace(path, from, to, closed); !errors.Is(err, closed.err) {
		t.Errorf("got %v", err)
	}
	unchanged()

	seen := &watch{look: unchanged}
	if changed, err := Show(path, from, to, seen); err != nil || !changed {
		t.Fatal(changed, err)
	}
	unchanged()
	if changed, err := Replace(path, from, to, seen); err != nil || !changed {
		t.Fatal(changed, err)
	}
	for _, want := range []string{"cutlass commit: ", strings.Repeat("d", 40), from.CUDA.Wheels[0].Name + " bytes: "} {
		if !strings.Contains(seen.String(), want) {
			t.Errorf("%q is not in %q", want, seen.String())
		}
	}
	if got, err := Load(path); err != nil || got.CUTLASS.Commit != to.CUTLASS.Commit {
		t.Errorf("not written: %v", err)
	}

	same := &watch{look: func() {}}
	changed, err := Replace(filepath.Join(t.TempDir(), "none", "x"), to, to, same)
	if err != nil || changed || !strings.Contains(same.String(), "up to date") {
		t.Errorf("without a change: %t, %v, %q", changed, err, same.String())
	}
}

// Every difference between two locks is reported, or an update could slip it in.
func TestDiffTellsEverything(t *testing.T) {
	text, err := sample().Format()
	if err != nil {
		t.Fatal(err)
	}
	leaves := 0
	for i := 0; ; i++ {
		var tree any
		if err := json.Unmarshal(text, &tree); err != nil {
			t.Fatal(err)
		}
		left := i
		tree, where := alter(tree, "", &left)
		if where == "" {
			break
		}
		leaves++
		changed, err := json.Marshal(tree)
		if err != nil {
			t.Fatal(err)
		}
		var l Lock
		if err := json.Unmarshal(changed, &l); err != nil {
			t.Fatal(err)
		}
		if len(Diff(sample(), &l)) == 0 {
			t.Errorf("a change of %s is not reported", where)
		}
	}
	if leaves < 20 {
		t.Errorf("only %d values were changed", leaves)
	}
}

// alter changes the left-th value below node, in the order of names, and tells
// where that is; "" if there are fewer.
func alter(node any, path string, left *int) (any, string) {
	switch v := node.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if next, where := alter(v[key], path+"/"+key, left); where != "" {
				v[key] = next
				return v, where
			}
		}
		return v, ""
	case []any:
		for i := range v {
			if next, where := alter(v[i], path, left); where != "" {
				v[i] = next
				return v, where
			}
		}
		return v, ""
	}
	if *left > 0 {
		*left--
		return node, ""
	}
	switch v := node.(type) {
	case float64:
		return v + 1, path
	case string:
		return v + "x", path
	}
	return node, ""
}
