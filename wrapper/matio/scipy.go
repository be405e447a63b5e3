// SPDX-License-Identifier: Apache-2.0

package matio

import (
	"fmt"
	"io"

	"github.com/sparsek/sparsek/wrapper/bsr"
)

// ReadSciPy reads what scipy.sparse.save_npz wrote, in `size` bytes: bsr, csr, csc, coo or dia, compressed or not. Errors
// name the array.
func ReadSciPy(r io.ReaderAt, size int64) (*bsr.Entries, error) {
	z, err := openNpz(r, size)
	if err != nil {
		return nil, err
	}
	if !z.has("format") {
		return nil, fmt.Errorf("no array \"format\": the archive was not written by scipy.sparse.save_npz")
	}
	tag, err := z.array("format")
	if err != nil {
		return nil, err
	}
	format, err := tag.text()
	if err != nil {
		return nil, fmt.Errorf("array \"format\": %w", err)
	}
	s, err := newSciPyMatrix(z)
	if err != nil {
		return nil, err
	}
	switch format {
	case "csr":
		err = s.compressed(s.entries.Rows, s.entries.Cols, 1, 1, s.entries.Add)
	case "csc":
		err = s.compressed(s.entries.Cols, s.entries.Rows, 1, 1, func(col, row int32, v float64) { s.entries.Add(row, col, v) })
	case "bsr":
		err = s.blocked()
	case "coo":
		err = s.coordinates()
	case "dia":
		err = s.diagonals()
	default:
		err = fmt.Errorf("the format is %q: bsr, csr, csc, coo and dia can be read", clip([]byte(format)))
	}
	if err != nil {
		return nil, err
	}
	return s.entries, nil
}

// sciPyMatrix is a file whose shape and values were read and whose index was not.
type sciPyMatrix struct {
	z         *npz
	dataShape []int64
	data      []float64
	entries   *bsr.Entries
}

func newSciPyMatrix(z *npz) (*sciPyMatrix, error) {
	shape, err := z.ints("shape")
	if err != nil {
		return nil, err
	}
	if len(shape) != 2 {
		return nil, fmt.Errorf("a sparse array of %d dimensions: it must have two", len(shape))
	}
	if err := bsr.CheckShape(shape[0], shape[1]); err != nil {
		return nil, err
	}
	values, err := z.array("data")
	if err != nil {
		return nil, err
	}
	if values.fortran && len(values.shape) > 1 {
		values = values.inCOrder()
	}
	data, err := values.floats()
	if err != nil {
		return nil, fmt.Errorf("array \"data\": %w", err)
	}
	e := &bsr.Entries{Rows: int(shape[0]), Cols: int(shape[1]), Boolean: values.dtype.kind == 'b'}
	return &sciPyMatrix{z, values.shape, data, e}, nil
}

// compressed reads csr (and, with the roles of rows and columns swapped, csc, and blocks of bm x bk for bsr): the
// entries of row r are those from indptr[r] to indptr[r+1]-1. Columns may be in any order and repeated.
func (s *sciPyMatrix) compressed(rows, cols, bm, bk int, add func(row, col int32, v float64)) error {
	indptr, err := s.z.ints("indptr")
	if err != nil {
		return err
	}
	indices, err := s.z.ints("indices")
	if err != nil {
		return err
	}
	area := bm * bk
	if int64(len(s.data)) != int64(len(indices))*int64(area) {
		return fmt.Errorf("data of shape %v does not fit %d indices", s.dataShape, len(indices))
	}
	if len(indptr) != rows+1 {
		return fmt.Errorf("indptr has %d entries, not %d", len(indptr), rows+1)
	}
	if indptr[0] != 0 {
		return fmt.Errorf("indptr[0] = %d is not 0", indptr[0])
	}
	for r := range rows {
		first, last := indptr[r], indptr[r+1]
		if last < first || last > int64(len(indices)) {
			return fmt.Errorf("indptr[%d] = %d after indptr[%d] = %d of %d indices", r+1, last, r, first, len(indices))
		}
		for i := first; i < last; i++ {
			c := indices[i]
			if c < 0 || c >= int64(cols) {
				return fmt.Errorf("indices[%d] = %d is not within 0 and %d", i, c, cols-1)
			}
			block := s.data[int(i)*area:][:area]
			for j, v := range block {
				add(int32(r*bm+j/bk), int32(int(c)*bk+j%bk), v)
			}
		}
	}
	return nil
}

func (s *sciPyMatrix) blocked() error {
	if len(s.dataShape) != 3 || s.dataShape[1] < 1 || s.dataShape[2] < 1 {
		return fmt.Errorf("data of shape %v: that of bsr has three dimensions, the last two the block", s.dataShape)
	}
	rows, cols := int64(s.entries.Rows), int64(s.entries.Cols)
	bm, bk := s.dataShape[1], s.dataShape[2]
	if rows%bm != 0 || cols%bk != 0 {
		return fmt.Errorf("blocks of %d x %d do not divide a matrix of %d x %d", bm, bk, rows, cols)
	}
	s.entries.BlockM, s.entries.BlockK = int(bm), int(bk)
	return s.compressed(int(rows/bm), int(cols/bk), int(bm), int(bk), s.entries.Add)
}

func (s *sciPyMatrix) coordinates() error {
	row, col, err := s.places()
	if err != nil {
		return err
	}
	if len(row) != len(s.data) || len(col) != len(s.data) {
		return fmt.Errorf("%d rows, %d columns and %d values", len(row), len(col), len(s.data))
	}
	for i, v := range s.data {
		if r, c := row[i], col[i]; r < 0 || r >= int64(s.entries.Rows) || c < 0 || c >= int64(s.entries.Cols) {
			return fmt.Errorf("entry %d at (%d, %d) is outside of %d x %d", i, r, c, s.entries.Rows, s.entries.Cols)
		}
		s.entries.Add(int32(row[i]), int32(col[i]), v)
	}
	return nil
}

// places reads the rows and columns of a coo matrix: two arrays, or the two rows of one.
func (s *sciPyMatrix) places() (row, col []int64, err error) {
	if s.z.has("coords") {
		coords, err := s.z.array("coords")
		if err != nil {
			return nil, nil, err
		}
		if len(coords.shape) != 2 || coords.shape[0] != 2 {
			return nil, nil, fmt.Errorf("array \"coords\" has the shape %v, not two rows", coords.shape)
		}
		if coords.fortran {
			coords = coords.inCOrder()
		}
		n := coords.shape[1]
		coords.shape = []int64{coords.count}
		both, err := coords.ints()
		if err != nil {
			return nil, nil, fmt.Errorf("array \"coords\": %w", err)
		}
		return both[:n], both[n:], nil
	}
	if row, err = s.z.ints("row"); err != nil {
		return nil, nil, err
	}
	col, err = s.z.ints("col")
	return row, col, err
}

// diagonals reads dia: data[d, j] is the element of column j on the diagonal that offsets[d] is right of the main
// one. Zeros make no entries, as in SciPy.
func (s *sciPyMatrix) diagonals() error {
	offsets, err := s.z.ints("offsets")
	if err != nil {
		return err
	}
	if len(s.dataShape) != 2 || s.dataShape[0] != int64(len(offsets)) {
		return fmt.Errorf("data of shape %v does not fit %d offsets", s.dataShape, len(offsets))
	}
	width := s.dataShape[1]
	rows, cols := int64(s.entries.Rows), int64(s.entries.Cols)
	seen := map[int64]bool{}
	for d, offset := range offsets {
		if seen[offset] {
			return fmt.Errorf("offset %d comes twice", offset)
		}
		seen[offset] = true
		if offset <= -rows || offset >= cols {
			continue // no element of such a diagonal is inside
		}
		for j := max(0, offset); j < min(width, cols, rows+offset); j++ {
			if v := s.data[int64(d)*width+j]; v != 0 {
				s.entries.Add(int32(j-offset), int32(j), v)
			}
		}
	}
	return nil
}

// inCOrder gives the array with its last index running fastest.
func (a npzArray) inCOrder() npzArray {
	out := npzArray{a.npyHeader, make([]byte, len(a.data))}
	out.fortran = false
	size := a.dtype.size
	index := make([]int64, len(a.shape))
	for from := range a.count { // the first index runs fastest in the source
		to := int64(0)
		for axis, n := range a.shape {
			to = to*n + index[axis]
		}
		copy(out.data[to*int64(size):][:size], a.data[from*int64(size):])
		for axis := range index {
			if index[axis]++; index[axis] < a.shape[axis] {
				break
			}
			index[axis] = 0
		}
	}
	return out
}
