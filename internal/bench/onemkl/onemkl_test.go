// SPDX-License-Identifier: Apache-2.0

package onemkl

import (
	"errors"
	"math"
	"testing"

	"github.com/sparsek/sparsek/wrapper/bsr"
)

func small[T float32 | float64]() bsr.Matrix[T] {
	a := bsr.Matrix[T]{Rows: 6, Cols: 9, BlockM: 3, BlockK: 3, Values: make([]T, 3*9),
		Pattern: bsr.Pattern{BlockRows: 2, BlockCols: 3, RowPtr: []int32{0, 2, 3}, ColIdx: []int32{0, 2, 1}}}
	for i := range a.Values {
		a.Values[i] = T(i%7 - 3)
	}
	return a
}

func TestElements(t *testing.T) {
	rowPtr, colIdx, values := elements(small[float64]())
	if len(rowPtr) != 7 || rowPtr[1] != 6 || rowPtr[6] != 27 || colIdx[3] != 6 || values[3] != small[float64]().Values[9] {
		t.Errorf("%v, %v, %v", rowPtr, colIdx, values)
	}
}

func TestMultiply(t *testing.T) {
	l, err := Open(2)
	if errors.Is(err, ErrNotInstalled) {
		t.Skipf("skipped: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if l.Version() == "" {
		t.Error("no version")
	}
	multiply[float32](t, l)
	multiply[float64](t, l)
}

func multiply[T float32 | float64](t *testing.T, l *Library) {
	a := small[T]()
	rowPtr, colIdx, values := elements(a)
	for _, blocked := range []bool{true, false} {
		for _, n := range []int{1, 5} {
			m, err := NewMatrix(l, a, blocked, n)
			if err != nil {
				t.Fatal(err)
			}
			b, c := make([]T, a.Cols*n), make([]T, a.Rows*n)
			for i := range b {
				b[i] = T(i%5 - 2)
			}
			if err := Multiply(m, b, c); err != nil {
				t.Fatal(err)
			}
			for i := range a.Rows {
				for j := range n {
					want := 0.0
					for e := rowPtr[i]; e < rowPtr[i+1]; e++ {
						want += float64(values[e]) * float64(b[int(colIdx[e])*n+j])
					}
					if math.Abs(float64(c[i*n+j])-want) > 1e-5 {
						t.Errorf("blocked %t, %d columns: (%d, %d) = %v, want %v", blocked, n, i, j, c[i*n+j], want)
					}
				}
			}
			if err := Multiply(m, b, c[1:]); err == nil {
				t.Error("a C that is too short is accepted")
			}
			if err := m.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
