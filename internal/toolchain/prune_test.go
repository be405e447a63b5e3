// SPDX-License-Identifier: Apache-2.0

package toolchain

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// litter puts what no lock uses into the cache, and things of others.
func (w *world) litter(t *testing.T) (tree, download, part, staged, foreign string) {
	t.Helper()
	digest := strings.Repeat("a", 64)
	tree, download = "tree/"+digest, "sha256/"+strings.Repeat("b", 64)
	part, staged, foreign = "tmp/"+strings.Repeat("c", 64)+".part", "tree/.new-"+digest, "tree/notes.txt"
	for _, name := range []string{tree + "/cuda/bin/nvcc", download, part, staged + "/cuda/half", foreign, "sha256/notes", "tmp/notes"} {
		file := filepath.Join(w.cache, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte("12345"), 0o444)); err != nil {
			t.Fatal(err)
		}
	}
	return tree, download, part, staged, foreign
}

func paths(p *Pruning) []string {
	var names []string
	for _, u := range p.Unused {
		names = append(names, u.Path)
	}
	slices.Sort(names)
	return names
}

func (w *world) has(name string) bool {
	_, err := os.Lstat(filepath.Join(w.cache, name))
	return !errors.Is(err, fs.ErrNotExist)
}

func TestPruneRemovesWhatNoLockUses(t *testing.T) {
	w := newWorld(t)
	tc := w.prepare(t)
	before := listing(t, w.cache)
	tree, download, part, staged, foreign := w.litter(t)
	p, err := FindUnused(t.Context(), w.options())
	if err != nil {
		t.Fatal(err)
	}
	want := slices.Sorted(slices.Values([]string{tree, download, part, staged}))
	if diff := cmp.Diff(want, paths(p)); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	for _, u := range p.Unused {
		if u.Bytes != 5 || u.InUse || !w.has(u.Path) {
			t.Errorf("%+v", u)
		}
	}
	freed, err := p.Remove(t.Context())
	if err != nil || freed != 20 {
		t.Errorf("freed %d, %v", freed, err)
	}
	for _, name := range want {
		if w.has(name) {
			t.Errorf("%s is still there", name)
		}
	}
	if !w.has(foreign) || !w.has("sha256/notes") || !w.has("tmp/notes") {
		t.Error("removed what is another's")
	}
	after := listing(t, w.cache)
	for name := range before {
		if _, ok := after[name]; !ok {
			t.Errorf("removed %s, which the lock uses", name)
		}
	}
	hits := w.hits.Load()
	if w.prepare(t).NVCC != tc.NVCC || w.hits.Load() != hits {
		t.Error("the toolchain had to be fetched again")
	}
}

// Another checkout works with its toolchain while this one prunes.
func TestPruneBesideARunningBuild(t *testing.T) {
	w := newWorld(t)
	other := w.prepare(t)
	releaseFirst, err := other.Use()
	if err != nil {
		t.Fatal(err)
	}
	releaseSecond, err := other.Use()
	if err != nil {
		t.Fatalf("two cannot use it at once: %v", err)
	}
	w.lock.CUTLASS.Commit = strings.Repeat("d", 40) // this checkout's lock is another
	treePath := filepath.Join("tree", other.Digest)
	prune := func(inUse bool) {
		t.Helper()
		p, err := FindUnused(t.Context(), w.options())
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Unused) != 1 || p.Unused[0].Path != treePath || p.Unused[0].InUse != inUse {
			t.Errorf("found %+v", p.Unused)
		}
		if _, err := p.Remove(t.Context()); err != nil {
			t.Error(err)
		}
		if w.has(treePath) != inUse {
			t.Errorf("in use %t, still there %t", inUse, w.has(treePath))
		}
	}
	prune(true)
	releaseFirst()
	prune(true)
	releaseSecond()
	prune(false)
	if _, err := other.Use(); err == nil || !strings.Contains(err.Error(), "start again") {
		t.Errorf("a tree that was pruned is used: %v", err)
	}
}

// A fetch that runs has its part file and its tree's folder under locks.
func TestPruneBesideAFetch(t *testing.T) {
	w := newWorld(t)
	tc := w.prepare(t)
	_, download, part, staged, _ := w.litter(t)
	for _, key := range []string{strings.Repeat("b", 64), strings.Repeat("c", 64), treeKey(strings.Repeat("a", 64))} {
		unlock, ok, err := tc.cache.TryLock(key)
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		defer unlock()
	}
	p, err := FindUnused(t.Context(), w.options())
	if err != nil {
		t.Fatal(err)
	}
	if freed, err := p.Remove(t.Context()); err != nil || freed != 0 {
		t.Errorf("freed %d, %v", freed, err)
	}
	for _, name := range []string{download, part, staged} {
		if !w.has(name) {
			t.Errorf("%s was taken from under a fetch", name)
		}
	}
}

func TestPruneOfNoCache(t *testing.T) {
	w := newWorld(t)
	p, err := FindUnused(t.Context(), w.options())
	if err != nil || len(p.Unused) != 0 {
		t.Errorf("got %v, %v", p, err)
	}
}
