// SPDX-License-Identifier: Apache-2.0

package matio

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// vector makes the .npy file of a vector.
func vector[T int32 | int64 | float64](list ...T) string {
	kind := map[string]string{"int32": "<i4", "int64": "<i8", "float64": "<f8"}[fmt.Sprintf("%T", *new(T))]
	return array(kind, fmt.Sprintf("(%d,)", len(list)), list)
}

func array[T int32 | int64 | float64](kind, shape string, list []T) string {
	var b bytes.Buffer
	if err := binary.Write(&b, binary.LittleEndian, list); err != nil {
		panic(err) // a slice of numbers can always be written to memory
	}
	return string(npy(fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': %s}", kind, shape), b.Bytes()))
}

func format(name string) string {
	return string(npy(fmt.Sprintf("{'descr': '|S%d', 'fortran_order': False, 'shape': ()}", len(name)), []byte(name)))
}

// archive makes an .npz file.
func archive(t testing.TB, files map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		f, err := w.Create(name + ".npy")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte(files[name])); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestSciPyFaults(t *testing.T) {
	csr := map[string]string{
		"format": format("csr"), "shape": vector[int64](2, 3), "data": vector(1.0, 2, 3),
		"indptr": vector[int32](0, 2, 3), "indices": vector[int32](0, 2, 1),
	}
	coo := map[string]string{
		"format": format("coo"), "shape": vector[int64](2, 3), "data": vector(1.0, 2), "row": vector[int32](0, 1), "col": vector[int32](2, 0),
	}
	dia := map[string]string{
		"format": format("dia"), "shape": vector[int64](2, 3), "data": array("<f8", "(1, 3)", []float64{1, 2, 3}), "offsets": vector[int32](0),
	}
	blocked := map[string]string{
		"format": format("bsr"), "shape": vector[int64](2, 4), "data": array("<f8", "(1, 2, 2)", []float64{1, 2, 3, 4}),
		"indptr": vector[int32](0, 1), "indices": vector[int32](1),
	}
	for _, c := range []struct {
		base              map[string]string
		name, value, want string
	}{
		{csr, "", "", ""}, {coo, "", "", ""}, {dia, "", "", ""}, {blocked, "", "", ""},
		{csr, "format", "", `no array "format"`},
		{csr, "format", format("lil"), `the format is "lil"`},
		{csr, "format", vector(1.0), "holds no text"},
		{csr, "shape", "", `array "shape" is missing`},
		{csr, "shape", vector[int64](2), "1 dimensions"},
		{csr, "shape", vector[int64](-2, 3), "-2 x 3"},
		{csr, "shape", vector[int64](1<<40, 3), "go up to"},
		{csr, "shape", vector(2.0, 3), "not integers"},
		{csr, "shape", vector[int64](3, 3), "indptr has 3 entries, not 4"},
		{csr, "data", format("abc"), "text, not numbers"},
		{csr, "data", vector(1.0), "does not fit 3 indices"},
		{csr, "data", vector(1.0, 2, 3)[:80], "follow the header"},
		{csr, "indptr", vector[int32](1, 2, 3), "indptr[0] = 1"},
		{csr, "indptr", vector[int32](0, 2, 1), "indptr[2] = 1 after indptr[1] = 2"},
		{csr, "indptr", vector[int32](0, 9, 3), "indptr[1] = 9 after"},
		{csr, "indices", vector[int32](0, 3, 1), "indices[1] = 3 is not within 0 and 2"},
		{csr, "indices", vector[int64](0, -1, 1), "indices[1] = -1"},
		{csr, "indices", vector[int64](0, 1<<32, 1), "indices[1] = 4294967296"},
		{csr, "indices", array("<i4", "(3, 1)", []int32{0, 2, 1}), "not one dimension"},
		{coo, "row", vector[int32](0), "1 rows, 2 columns"},
		{coo, "row", vector[int32](0, 2), "entry 1 at (2, 0) is outside of 2 x 3"},
		{coo, "coords", vector[int32](0, 1), "not two rows"},
		{dia, "offsets", vector[int32](0, 1), "does not fit 2 offsets"},
		{dia, "data", array("<f8", "(3,)", []float64{1, 2, 3}), "does not fit 1 offsets"},
		{blocked, "data", array("<f8", "(1, 4)", []float64{1, 2, 3, 4}), "has three dimensions"},
		{blocked, "data", array("<f8", "(1, 1, 3)", []float64{1, 2, 3}), "blocks of 1 x 3 do not divide"},
	} {
		files := maps.Clone(c.base)
		if files[c.name] = c.value; c.value == "" {
			delete(files, c.name)
		}
		b := archive(t, files)
		if _, err := ReadSciPy(bytes.NewReader(b), int64(len(b))); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s of %q: %v, want %q", c.name, files["format"], err, c.want)
		}
	}
}

func TestArchiveFaults(t *testing.T) {
	files := map[string]string{"format": format("csr")}
	whole := archive(t, files)
	cut := whole[:len(whole)-10]
	huge := bytes.Clone(whole)
	// The uncompressed size in the central directory, the 4 bytes at 24 behind its signature.
	at := bytes.LastIndex(huge, []byte("PK\x01\x02"))
	copy(huge[at+24:], "\xff\xff\xff\x7f")
	damaged := bytes.Clone(whole)
	copy(damaged[at+16:], "\x00\x00\x00\x00") // the checksum
	for want, b := range map[string][]byte{"no .npz archive": cut, "claims 2147483647 bytes": huge, "checksum": damaged} {
		if _, err := ReadSciPy(bytes.NewReader(b), int64(len(b))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
