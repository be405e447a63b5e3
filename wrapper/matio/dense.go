// SPDX-License-Identifier: Apache-2.0

package matio

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"

	"github.com/google/renameio/v2"

	"github.com/sparsek/sparsek/wrapper/bsr"
	"github.com/sparsek/sparsek/wrapper/half"
)

// Dense is a dense matrix, row-major (Rows, Cols):(Cols, 1).
type Dense[T any] struct {
	Rows, Cols int
	Data       []T
}

// ReadDense reads a .npy file of f2, f4 or f8 in either byte order and C or Fortran order, of one or two dimensions; a
// vector becomes one column. convert gets the elements in the order of the file.
func ReadDense[T any](path string, convert func(float64) T) (Dense[T], error) {
	return withFile(path, func(f *os.File, size int64) (Dense[T], error) {
		return ReadNPY(f, size, convert)
	})
}

// ReadNPY reads a .npy array, as [ReadDense] does, which must take up all the `size` bytes of r.
func ReadNPY[T any](r io.Reader, size int64, convert func(float64) T) (Dense[T], error) {
	counted := &countingReader{r: r}
	h, err := readNpyHeader(counted)
	if err != nil {
		return Dense[T]{}, err
	}
	if h.dtype.kind != 'f' {
		return Dense[T]{}, fmt.Errorf("elements of type %c%d: f2, f4 and f8 can be read", h.dtype.kind, h.dtype.size)
	}
	if left := size - counted.n; h.bytes() != left {
		return Dense[T]{}, fmt.Errorf("an array of shape %v takes %d bytes, but %d follow the header", h.shape, h.bytes(), left)
	}
	rows, cols := int64(1), int64(1)
	switch len(h.shape) {
	case 1:
		rows = h.shape[0]
	case 2:
		rows, cols = h.shape[0], h.shape[1]
	default:
		return Dense[T]{}, fmt.Errorf("an array of %d dimensions: it must have one or two", len(h.shape))
	}
	if err := bsr.CheckShape(rows, cols); err != nil {
		return Dense[T]{}, err
	}
	d := Dense[T]{int(rows), int(cols), make([]T, h.count)}
	if err := d.readElements(r, h, convert); err != nil {
		return Dense[T]{}, err
	}
	return d, nil
}

func (d *Dense[T]) readElements(r io.Reader, h npyHeader, convert func(float64) T) error {
	value, size := h.dtype.float64(), h.dtype.size
	buffer := make([]byte, 1<<16)
	at, count := 0, len(d.Data)
	for done := 0; done < count; {
		part := buffer[:min(len(buffer), (count-done)*size)]
		if _, err := io.ReadFull(r, part); err != nil {
			return fmt.Errorf("the elements are cut off after %d of %d: %w", done, count, err)
		}
		for ; len(part) > 0; part = part[size:] {
			d.Data[at] = convert(value(part))
			done++
			if at++; h.fortran {
				if at += d.Cols - 1; at >= count {
					at -= count - 1 // the top of the next column
				}
			}
		}
	}
	return nil
}

// Encoding is how elements are written to a .npy file.
type Encoding[T any] struct {
	Type string // NumPy's name, little-endian: "<f4"
	Size int    // bytes
	Put  func(dst []byte, v T)
}

// The exact encodings of the types of elements. NumPy has no bfloat16: it becomes float32.
var (
	Float32 = Encoding[float32]{"<f4", 4, func(dst []byte, v float32) {
		binary.LittleEndian.PutUint32(dst, math.Float32bits(v))
	}}
	Float64 = Encoding[float64]{"<f8", 8, func(dst []byte, v float64) {
		binary.LittleEndian.PutUint64(dst, math.Float64bits(v))
	}}
	Float16 = Encoding[half.Float16]{"<f2", 2, func(dst []byte, v half.Float16) {
		binary.LittleEndian.PutUint16(dst, uint16(v))
	}}
	BFloat16 = Encoding[half.BFloat16]{"<f4", 4, func(dst []byte, v half.BFloat16) {
		binary.LittleEndian.PutUint32(dst, math.Float32bits(v.Float32()))
	}}
)

// Output is a .npy file in the making. Nothing is at its path before Write has come to its end.
type Output struct{ pending *renameio.PendingFile }

// CreateDense opens the file, so that a path that cannot be written is found out before any work is done. Close must
// be called.
func CreateDense(path string) (*Output, error) {
	pending, err := renameio.NewPendingFile(path, renameio.WithPermissions(0o666))
	if err != nil {
		return nil, fmt.Errorf("create %s: %w", path, err)
	}
	return &Output{pending}, nil
}

// Close removes what was written unless WriteDense succeeded.
func (o *Output) Close() error { return o.pending.Cleanup() }

// bare is the cause of an error that names the file itself.
func bare(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

// WriteDense writes d in C order and puts the file in its place.
func WriteDense[T any](o *Output, d Dense[T], encoding Encoding[T]) error {
	err := WriteNPY(o.pending, d, encoding)
	if err == nil {
		err = o.pending.CloseAtomicallyReplace()
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", o.pending.Name(), bare(err))
	}
	return nil
}

// WriteNPY writes d as a .npy array of version 1, in C order.
func WriteNPY[T any](out io.Writer, d Dense[T], encoding Encoding[T]) error {
	if len(d.Data) != d.Rows*d.Cols {
		return fmt.Errorf("%d elements of a %d x %d matrix", len(d.Data), d.Rows, d.Cols)
	}
	w := bufio.NewWriterSize(out, 1<<20)
	if _, err := w.Write(npyHeaderBytes(encoding.Type, d.Rows, d.Cols)); err != nil {
		return err
	}
	element := make([]byte, encoding.Size)
	for _, v := range d.Data {
		encoding.Put(element, v)
		if _, err := w.Write(element); err != nil {
			return err
		}
	}
	return w.Flush()
}

// npyHeaderBytes makes a version 1 header, padded so that the elements begin at a multiple of 64 bytes.
func npyHeaderBytes(descr string, rows, cols int) []byte {
	dict := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%d, %d), }", descr, rows, cols)
	var b bytes.Buffer
	b.WriteString(npyMagic + "\x01\x00")
	length := (b.Len()+2+len(dict)+1+63)/64*64 - b.Len() - 2
	b.Write(binary.LittleEndian.AppendUint16(nil, uint16(length)))
	fmt.Fprintf(&b, "%-*s\n", length-1, dict)
	return b.Bytes()
}

// countingReader counts what was read.
type countingReader struct {
	r io.Reader
	n int64
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}
