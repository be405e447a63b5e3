// SPDX-License-Identifier: Apache-2.0

package kernelreport

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/gofrs/flock"
)

// treeLimit is what those parts of build/ may take, in bytes, that are there to
// be copied to another machine: all but the objects.
const treeLimit = 72 << 20

// treeSize adds up the files of the folders below root, those that are there.
func treeSize(root string, folders ...string) (total int64, err error) {
	for _, folder := range folders {
		err := filepath.WalkDir(filepath.Join(root, folder), func(_ string, entry fs.DirEntry, err error) error {
			var info fs.FileInfo
			if err == nil {
				info, err = entry.Info()
			}
			switch {
			case errors.Is(err, fs.ErrNotExist): // a build at work takes files away meanwhile
				return nil
			case err != nil:
				return err
			case !info.IsDir():
				total += info.Size()
			}
			return nil
		})
		if err != nil {
			return 0, err
		}
	}
	return total, nil
}

func TestBuildIsSmall(t *testing.T) {
	root := filepath.Join(filepath.Dir(builtLibrary(t)), "..")
	size, err := treeSize(root, "lib", "bin", "gen", "report", "include", "licenses", "test")
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%.1f MiB", float64(size)/(1<<20))
	if size > treeLimit {
		t.Errorf("the build takes %d bytes: more than %d", size, int64(treeLimit))
	}
}

// A build leaves no temporary files behind. One at work has some.
func TestNothingTemporaryIsLeft(t *testing.T) {
	root := filepath.Join(filepath.Dir(builtLibrary(t)), "..")
	// For reading: the tree may be a copy that cannot be written to.
	lock := flock.New(filepath.Join(root, ".lock"), flock.SetFlag(os.O_RDONLY))
	free, err := lock.TryRLock()
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // a copy may lack the file
		t.Fatal(err)
	}
	if err == nil && !free {
		t.Skip("skipped: a build is at work")
	}
	defer lock.Unlock()
	entries, err := os.ReadDir(filepath.Join(root, "tmp"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if len(entries) > 0 {
		t.Errorf("build/tmp holds %d entries, %s the first", len(entries), entries[0].Name())
	}
}

func TestTreeSize(t *testing.T) {
	root := t.TempDir()
	for name, size := range map[string]int{"lib/a": 5, "obj/x/b": 7, "other/c": 100} {
		path := filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, make([]byte, size), 0o666)); err != nil {
			t.Fatal(err)
		}
	}
	if size, err := treeSize(root, "lib", "obj", "missing"); size != 12 || err != nil {
		t.Errorf("%d bytes, %v: want 12", size, err)
	}
}
