// SPDX-License-Identifier: Apache-2.0

package bsr

import (
	"fmt"
	"math"
)

// Entries is a matrix as single elements, in any order. Elements that are listed more than once are summed, or, where
// Boolean is set, joined by a logical or.
type Entries struct {
	Rows, Cols int
	Row, Col   []int32   // (nnz), within Rows and Cols
	Value      []float64 // (nnz)
	Boolean    bool

	BlockM, BlockK int // of the blocks that a file listed the elements in; 0 where it has none
}

// CheckShape returns an error for a matrix that Entries or a Pattern cannot index.
func CheckShape(rows, cols int64) error {
	if rows < 0 || cols < 0 {
		return fmt.Errorf("a matrix of %d x %d", rows, cols)
	}
	if rows > math.MaxInt32 || cols > math.MaxInt32 {
		return fmt.Errorf("a matrix of %d x %d: rows and columns go up to %d", rows, cols, math.MaxInt32)
	}
	return nil
}

// Add appends an element.
func (e *Entries) Add(row, col int32, value float64) {
	e.Row = append(e.Row, row)
	e.Col = append(e.Col, col)
	e.Value = append(e.Value, value)
}

// validate returns an error that names the first element outside the matrix.
func (e *Entries) validate() error {
	if err := CheckShape(int64(e.Rows), int64(e.Cols)); err != nil {
		return err
	}
	if len(e.Row) != len(e.Value) || len(e.Col) != len(e.Value) {
		return fmt.Errorf("%d rows, %d columns and %d values of elements", len(e.Row), len(e.Col), len(e.Value))
	}
	if len(e.Value) > math.MaxInt32 {
		return fmt.Errorf("%d elements: up to %d can be converted", len(e.Value), math.MaxInt32)
	}
	for i, r := range e.Row {
		if c := e.Col[i]; r < 0 || int(r) >= e.Rows || c < 0 || int(c) >= e.Cols {
			return fmt.Errorf("element %d at row %d, column %d is outside of %d x %d", i, r, c, e.Rows, e.Cols)
		}
	}
	return nil
}
