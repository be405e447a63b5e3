// SPDX-License-Identifier: Apache-2.0

package bsr

import "fmt"

// Number is the type of elements that [Entries] are made from. Other types are converted first: 16-bit ones by package
// half.
type Number interface {
	~float32 | ~float64 | ~int8 | ~int16 | ~int32 | ~int64 | ~int | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uint
}

// Index is the type of rows and columns.
type Index interface{ ~int32 | ~int64 | ~int }

// FromCSR lists the elements of a matrix of rows x cols in compressed sparse row format: row r has values
// rowPtr[r] to rowPtr[r+1]-1, in the columns colIdx. Columns may be in any order, and repeated.
func FromCSR[T Number, I Index](rows, cols int, rowPtr, colIdx []I, values []T) (*Entries, error) {
	if err := CheckShape(int64(rows), int64(cols)); err != nil {
		return nil, err
	}
	if len(rowPtr) != rows+1 {
		return nil, fmt.Errorf("rowPtr has %d entries: %d rows need %d", len(rowPtr), rows, rows+1)
	}
	if len(colIdx) != len(values) {
		return nil, fmt.Errorf("%d columns and %d values", len(colIdx), len(values))
	}
	if rowPtr[0] != 0 || int(rowPtr[rows]) != len(values) {
		return nil, fmt.Errorf("rowPtr goes from %d to %d: it must go from 0 to the %d values", rowPtr[0], rowPtr[rows], len(values))
	}
	e := newEntries(rows, cols, len(values))
	for r := range rows {
		first, last := rowPtr[r], rowPtr[r+1]
		if last < first || int(last) > len(values) {
			return nil, fmt.Errorf("rowPtr[%d] = %d after rowPtr[%d] = %d of %d values", r+1, last, r, first, len(values))
		}
		for i := first; i < last; i++ {
			c := colIdx[i]
			if c < 0 || int64(c) >= int64(cols) {
				return nil, fmt.Errorf("colIdx[%d] = %d is not within the %d columns", i, c, cols)
			}
			e.Add(int32(r), int32(c), float64(values[i]))
		}
	}
	return e, nil
}

// FromCOO lists the elements of a matrix of rows x cols in coordinate format: values[i] is at row[i], col[i]. They may be
// in any order; repeated ones are summed.
func FromCOO[T Number, I Index](rows, cols int, row, col []I, values []T) (*Entries, error) {
	if err := CheckShape(int64(rows), int64(cols)); err != nil {
		return nil, err
	}
	if len(row) != len(values) || len(col) != len(values) {
		return nil, fmt.Errorf("%d rows, %d columns and %d values of elements", len(row), len(col), len(values))
	}
	e := newEntries(rows, cols, len(values))
	for i, v := range values {
		r, c := row[i], col[i]
		if r < 0 || int64(r) >= int64(rows) || c < 0 || int64(c) >= int64(cols) {
			return nil, fmt.Errorf("element %d at row %d, column %d is outside of %d x %d", i, r, c, rows, cols)
		}
		e.Add(int32(r), int32(c), float64(v))
	}
	return e, nil
}

// FromDense lists the elements of a row-major matrix of rows x cols that are not zero: element (i, j) is
// values[i*stride+j]. A stride of 0 stands for cols.
func FromDense[T Number](rows, cols, stride int, values []T) (*Entries, error) {
	if err := CheckShape(int64(rows), int64(cols)); err != nil {
		return nil, err
	}
	if stride == 0 {
		stride = cols
	}
	if stride < cols {
		return nil, fmt.Errorf("the stride %d is below the %d columns", stride, cols)
	}
	if rows > 0 && cols > 0 && (len(values)-cols)/max(stride, 1) < rows-1 || rows > 0 && len(values) < cols {
		return nil, fmt.Errorf("%d values: %d rows of %d with stride %d need more", len(values), rows, cols, stride)
	}
	e := newEntries(rows, cols, 0)
	for i := range rows {
		for j, v := range values[i*stride:][:cols] {
			if v != 0 {
				e.Add(int32(i), int32(j), float64(v))
			}
		}
	}
	return e, nil
}

// newEntries has room for count elements.
func newEntries(rows, cols, count int) *Entries {
	return &Entries{Rows: rows, Cols: cols, Row: make([]int32, 0, count), Col: make([]int32, 0, count), Value: make([]float64, 0, count)}
}

// Convert makes the matrix of blockM x blockK blocks that hold the elements: [Block] and [Values] in one call. convert
// rounds each sum once, as half.BFloat16From64 does, or a conversion to float32.
func Convert[T any](e *Entries, blockM, blockK int, convert func(float64) T) (Matrix[T], Fill, error) {
	blocking, err := Block(e, blockM, blockK)
	if err != nil {
		return Matrix[T]{}, Fill{}, err
	}
	return Values(blocking, convert)
}
