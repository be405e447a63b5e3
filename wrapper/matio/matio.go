// SPDX-License-Identifier: Apache-2.0

// Package matio reads and writes the files that matrices come in: Matrix Market (.mtx, .mtx.gz), what
// scipy.sparse.save_npz writes (.npz), and dense NumPy arrays (.npy). It needs no cgo.
//
// [ReadMatrixMarket], [ReadSciPy], [ReadNPY] and [WriteNPY] work on readers and writers; [ReadSparse], [ReadDense] and
// [CreateDense] on names of files, and put the name into their errors.
//
// Files may come from anywhere: what a file claims about its sizes is held against the bytes that are there before
// memory is taken for it.
package matio

import (
	"fmt"
	"os"
	"strings"

	"github.com/sparsek/sparsek/wrapper/bsr"
)

// ReadSparse reads the file of a sparse matrix; the end of its name says which format it has.
func ReadSparse(path string) (*bsr.Entries, error) {
	read := func(*os.File, int64) (*bsr.Entries, error) {
		return nil, fmt.Errorf("the name ends in none of .mtx, .mtx.gz and .npz")
	}
	switch name := strings.ToLower(path); {
	case strings.HasSuffix(name, ".mtx"):
		read = func(f *os.File, _ int64) (*bsr.Entries, error) { return ReadMatrixMarket(f) }
	case strings.HasSuffix(name, ".mtx.gz"):
		read = func(f *os.File, _ int64) (*bsr.Entries, error) { return readGzip(f) }
	case strings.HasSuffix(name, ".npz"):
		read = func(f *os.File, size int64) (*bsr.Entries, error) { return ReadSciPy(f, size) }
	}
	return withFile(path, read)
}

// withFile opens a file for read and puts its name before any error.
func withFile[T any](path string, read func(f *os.File, size int64) (T, error)) (T, error) {
	var none T
	f, err := os.Open(path)
	if err != nil {
		return none, err // names the file itself
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return none, err
	}
	if !info.Mode().IsRegular() {
		return none, fmt.Errorf("%s: not a regular file", path)
	}
	v, err := read(f, info.Size())
	if err != nil {
		return none, fmt.Errorf("%s: %w", path, err)
	}
	return v, nil
}
