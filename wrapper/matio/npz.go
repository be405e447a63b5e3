// SPDX-License-Identifier: Apache-2.0

package matio

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
)

// mostDeflated is the most that deflate can shrink data by: 258 bytes to 2 bits, rounded up.
const mostDeflated = 1040

// npzArray is one array of an .npz archive. Elements are in the order of the file.
type npzArray struct {
	npyHeader
	data []byte
}

// npz is an open .npz archive: a zip of .npy files.
type npz struct {
	size  int64
	files map[string]*zip.File
}

func openNpz(r io.ReaderAt, size int64) (*npz, error) {
	archive, err := zip.NewReader(r, size)
	if err != nil {
		return nil, fmt.Errorf("no .npz archive: %w", err)
	}
	z := &npz{size, map[string]*zip.File{}}
	for _, f := range archive.File {
		name, ok := strings.CutSuffix(f.Name, ".npy")
		if !ok {
			continue
		}
		if z.files[name] != nil {
			return nil, fmt.Errorf("array %q comes twice", clip([]byte(name)))
		}
		z.files[name] = f
	}
	return z, nil
}

func (z *npz) has(name string) bool { return z.files[name] != nil }

// array reads the named array. Its checksum is verified.
func (z *npz) array(name string) (npzArray, error) {
	f := z.files[name]
	if f == nil {
		return npzArray{}, fmt.Errorf("array %q is missing", name)
	}
	a, err := z.read(f)
	if err != nil {
		return npzArray{}, fmt.Errorf("array %q: %w", name, err)
	}
	return a, nil
}

func (z *npz) read(f *zip.File) (npzArray, error) {
	// The sizes are claims of the archive: see that they can be true before any memory is taken.
	packed, plain := f.CompressedSize64, f.UncompressedSize64
	if packed > uint64(z.size) || plain > packed*mostDeflated {
		return npzArray{}, fmt.Errorf("the archive of %d bytes claims %d bytes, packed into %d", z.size, plain, packed)
	}
	r, err := f.Open()
	if err != nil {
		return npzArray{}, err
	}
	defer r.Close()
	counted := &countingReader{r: r}
	h, err := readNpyHeader(counted)
	if err != nil {
		return npzArray{}, err
	}
	if left := int64(plain) - counted.n; h.bytes() != left {
		return npzArray{}, fmt.Errorf("an array of shape %v takes %d bytes, but %d follow the header", h.shape, h.bytes(), left)
	}
	// The buffer grows with what comes out of the archive; reading on to its end verifies the checksum.
	var data bytes.Buffer
	if _, err := io.Copy(&data, r); err != nil {
		return npzArray{}, err
	}
	return npzArray{h, data.Bytes()}, nil
}

// floats gives every element as a float64.
func (a npzArray) floats() ([]float64, error) {
	if !a.dtype.number() {
		return nil, errors.New("the elements are text, not numbers")
	}
	value, size := a.dtype.float64(), a.dtype.size
	list := make([]float64, a.count)
	for i := range list {
		list[i] = value(a.data[i*size:])
	}
	return list, nil
}

// ints gives every element of a vector of integers.
func (a npzArray) ints() ([]int64, error) {
	if a.dtype.kind != 'i' && a.dtype.kind != 'u' {
		return nil, fmt.Errorf("the elements are of type %c%d, not integers", a.dtype.kind, a.dtype.size)
	}
	if len(a.shape) != 1 {
		return nil, fmt.Errorf("the array has the shape %v, not one dimension", a.shape)
	}
	value, size := a.dtype.int64(), a.dtype.size
	list := make([]int64, a.count)
	for i := range list {
		list[i] = value(a.data[i*size:])
	}
	return list, nil
}

// text gives the only element of an array as a string, from ASCII bytes or from UCS-4 text.
func (a npzArray) text() (string, error) {
	if a.dtype.number() || a.count != 1 {
		return "", fmt.Errorf("the array of shape %v holds no text", a.shape)
	}
	if a.dtype.kind == 'S' {
		return strings.TrimRight(string(a.data), "\x00"), nil
	}
	var b strings.Builder
	for i := 0; i < len(a.data); i += 4 {
		if c := a.dtype.order.Uint32(a.data[i:]); c != 0 {
			b.WriteRune(rune(c))
		}
	}
	return b.String(), nil
}

// ints reads the named vector of integers.
func (z *npz) ints(name string) ([]int64, error) {
	a, err := z.array(name)
	if err != nil {
		return nil, err
	}
	list, err := a.ints()
	if err != nil {
		return nil, fmt.Errorf("array %q: %w", name, err)
	}
	return list, nil
}
