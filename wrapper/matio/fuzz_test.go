// SPDX-License-Identifier: Apache-2.0

package matio

import (
	"bytes"
	"io/fs"
	"strings"
	"testing"

	"github.com/sparsek/sparsek/wrapper/bsr"
	"github.com/sparsek/sparsek/wrapper/matio/testdata"
)

// largestSeed keeps mutations and minimisation quick.
const largestSeed = 4 << 10

// seed adds the small test files of the given endings.
func seed(f *testing.F, endings ...string) {
	f.Helper()
	err := fs.WalkDir(testdata.SciPy, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		for _, ending := range endings {
			if strings.HasSuffix(path, ending) {
				b, err := testdata.SciPy.ReadFile(path)
				if err != nil {
					return err
				}
				if len(b) <= largestSeed {
					f.Add(b)
				}
			}
		}
		return nil
	})
	if err != nil {
		f.Fatal(err)
	}
}

// check sees that what was read can be taken on.
func check(t *testing.T, e *bsr.Entries, err error) {
	if (e == nil) == (err == nil) {
		t.Fatalf("%v and %v", e, err)
	}
	if err != nil || e.Rows > 1<<16 || e.Cols > 1<<16 {
		return // an index of empty rows would only take memory
	}
	if _, err := bsr.Block(e, 3, 2); err != nil {
		t.Fatalf("read without an error, but %v", err)
	}
}

func FuzzMatrixMarket(f *testing.F) {
	seed(f, ".mtx")
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := ReadMatrixMarket(bytes.NewReader(b))
		check(t, e, err)
	})
}

func FuzzSciPy(f *testing.F) {
	seed(f, ".npz")
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := ReadSciPy(bytes.NewReader(b), int64(len(b)))
		check(t, e, err)
	})
}

func FuzzNpy(f *testing.F) {
	seed(f, ".npy")
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := ReadNPY(bytes.NewReader(b), int64(len(b)), same)
		if err == nil && len(d.Data) != d.Rows*d.Cols {
			t.Fatalf("%d elements of %d x %d", len(d.Data), d.Rows, d.Cols)
		}
	})
}
