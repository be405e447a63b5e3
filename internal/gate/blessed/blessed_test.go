// SPDX-License-Identifier: Apache-2.0

package blessed

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sparsek/sparsek/internal/gate/ncu"
)

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o777); err != nil {
		t.Fatal(err)
	}
}

// A library is found by its content; one whose content is another is refused.
func TestStore(t *testing.T) {
	dir := t.TempDir()
	library := filepath.Join(dir, "lib.so")
	write(t, library, "code")
	sum, err := Keep(filepath.Join(dir, "b"), library)
	if err != nil || sum != ncu.Hash([]byte("code")) {
		t.Fatal(sum, err)
	}
	if file, err := Find(sum, filepath.Join(dir, "a"), filepath.Join(dir, "b")); err != nil || file != Place(filepath.Join(dir, "b"), sum) {
		t.Errorf("%s, %v", file, err)
	}
	if _, err := Find(sum, filepath.Join(dir, "a")); !errors.Is(err, ErrMissing) {
		t.Errorf("got %v", err)
	}
	write(t, Place(filepath.Join(dir, "b"), sum), "other code")
	if file, err := Find(sum, filepath.Join(dir, "b")); err == nil || errors.Is(err, ErrMissing) || !strings.Contains(err.Error(), "was changed") {
		t.Errorf("another content under the hash: %s, %v", file, err)
	}
}

// The baselines of several GPUs may be of one library.
func TestLibraries(t *testing.T) {
	root := t.TempDir()
	record := func(gpu, text string) { write(t, filepath.Join(root, "ci", "baseline", gpu, "baseline.json"), text) }
	if list, err := Libraries(root); err != nil || len(list) > 0 {
		t.Errorf("%v, %v", list, err)
	}
	record("nvidia-h100", `{"gpu": "H100", "commit": "c1", "library_sha256": "s1"}`)
	record("nvidia-h200", `{"commit": "c1", "library_sha256": "s1"}`)
	record("nvidia-x", `{"commit": "c2", "library_sha256": "s2"}`)
	if list, err := Libraries(root); err != nil || !slices.Equal(list, []Library{{"s1", "c1"}, {"s2", "c2"}}) {
		t.Errorf("%v, %v", list, err)
	}
	record("nvidia-x", `{"commit": "c2"}`)
	if list, err := Libraries(root); err == nil || !strings.Contains(err.Error(), "names no library") {
		t.Errorf("%v, %v", list, err)
	}
}

// world is a repository whose build tool, a stand-in for go, writes the content of the file `source` as the library.
func world(t *testing.T) (o MakeOptions, commit string) {
	t.Helper()
	dir := t.TempDir()
	root := filepath.Join(dir, "root")
	write(t, filepath.Join(root, "source"), "as it was blessed")
	git := func(args ...string) string {
		c := exec.Command("git", append([]string{"-C", root, "-c", "user.name=n", "-c", "user.email=e@example.org"}, args...)...)
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("git %q: %v, %s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	git("init", "-q")
	git("add", ".")
	git("commit", "-q", "-m", "first")
	commit = git("rev-parse", "HEAD")
	write(t, filepath.Join(root, "source"), "as it is now")
	git("commit", "-q", "-a", "-m", "second")
	bin := filepath.Join(dir, "bin")
	write(t, filepath.Join(bin, "go"), "#!/bin/sh\nmkdir -p build/lib && cp source build/lib/libsparsek.so && echo built >> "+filepath.Join(dir, "log")+"\n")
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Cleanup(func() {
		if left := git("worktree", "list"); strings.Count(left, "\n") > 0 {
			t.Errorf("worktrees are left:\n%s", left)
		}
	})
	return MakeOptions{Root: root, Build: filepath.Join(dir, "build"), Cache: filepath.Join(dir, "cache"), Log: os.Stderr}, commit
}

// The library of the blessed commit is built once, and only if it is the blessed one.
func TestMake(t *testing.T) {
	o, commit := world(t)
	sum := ncu.Hash([]byte("as it was blessed"))
	l := Library{sum, commit}
	for _, remove := range []string{"", o.Build} { // the second time it comes out of the cache
		if remove != "" {
			if err := os.RemoveAll(remove); err != nil {
				t.Fatal(err)
			}
		}
		if err := Make(t.Context(), l, o); err != nil {
			t.Fatal(err)
		}
		if _, err := Find(sum, o.Build); err != nil {
			t.Error(err)
		}
	}
	if log, err := os.ReadFile(filepath.Join(filepath.Dir(o.Build), "log")); err != nil || string(log) != "built\n" {
		t.Errorf("built more than once: %q, %v", log, err)
	}
	other := Library{ncu.Hash([]byte("something else")), commit}
	if err := Make(t.Context(), other, o); !errors.Is(err, ErrOther) || !strings.Contains(err.Error(), sum) {
		t.Errorf("another library than the blessed one: %v", err)
	}
	if _, err := Find(other.SHA256, o.Build, o.Cache); !errors.Is(err, ErrMissing) {
		t.Errorf("it was kept: %v", err)
	}
	if err := Make(t.Context(), Library{other.SHA256, strings.Repeat("0", 40)}, o); err == nil || !strings.Contains(err.Error(), "shallow") {
		t.Errorf("a commit that is not there: %v", err)
	}
}
