// SPDX-License-Identifier: Apache-2.0

package bsr

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func entries(t *rapid.T) *Entries {
	e := &Entries{Rows: rapid.IntRange(0, 40).Draw(t, "rows"), Cols: rapid.IntRange(0, 40).Draw(t, "cols"), Boolean: rapid.Bool().Draw(t, "boolean")}
	if e.Rows == 0 || e.Cols == 0 {
		return e
	}
	for range rapid.IntRange(0, 200).Draw(t, "nnz") {
		e.Add(rapid.Int32Range(0, int32(e.Rows-1)).Draw(t, "row"), rapid.Int32Range(0, int32(e.Cols-1)).Draw(t, "col"),
			float64(rapid.IntRange(-3, 3).Draw(t, "value")))
	}
	return e
}

// dense sums the elements in a plain loop; listed says which were named at all.
func dense(e *Entries) (values []float64, listed []bool) {
	values, listed = make([]float64, e.Rows*e.Cols), make([]bool, e.Rows*e.Cols)
	for i, v := range e.Value {
		at := int(e.Row[i])*e.Cols + int(e.Col[i])
		listed[at] = true
		values[at] += v
		if e.Boolean {
			values[at] -= v
			if v != 0 {
				values[at] = 1
			}
		}
	}
	return values, listed
}

func TestConversionKeepsTheMatrix(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := entries(t)
		bm, bk := rapid.IntRange(1, 9).Draw(t, "bm"), rapid.IntRange(1, 9).Draw(t, "bk")
		blocking, err := Block(e, bm, bk)
		if err != nil {
			t.Fatal(err)
		}
		m, fill, err := Values(blocking, func(x float64) float64 { return x })
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Validate(); err != nil {
			t.Fatal(err)
		}
		want, listed := dense(e)
		nonzeros := int64(0)
		for _, v := range want {
			if v != 0 {
				nonzeros++
			}
		}
		if fill.Nonzeros != nonzeros || fill.Stored != int64(len(m.Values)) || len(m.Values) != m.Blocks()*bm*bk {
			t.Fatalf("fill %+v of %d values in %d blocks, want %d nonzeros", fill, len(m.Values), m.Blocks(), nonzeros)
		}
		for r := range m.BlockRows {
			for i, c := range m.Row(r) {
				block := m.Values[(int(m.RowPtr[r])+i)*bm*bk:][:bm*bk]
				named := false
				for j, got := range block {
					row, col := r*bm+j/bk, int(c)*bk+j%bk
					if row >= e.Rows || col >= e.Cols {
						if got != 0 {
							t.Fatalf("%v in the border at (%d, %d)", got, row, col)
						}
						continue
					}
					at := row*e.Cols + col
					if got != want[at] {
						t.Fatalf("(%d, %d) = %v, want %v", row, col, got, want[at])
					}
					named = named || listed[at]
					listed[at] = false
				}
				if !named {
					t.Fatalf("block (%d, %d) holds no element", r, c)
				}
			}
		}
		for at, left := range listed {
			if left {
				t.Fatalf("element (%d, %d) is in no block", at/e.Cols, at%e.Cols)
			}
		}
	})
}

func TestRoundsOnceAfterSumming(t *testing.T) {
	e := &Entries{Rows: 1, Cols: 1}
	for range 3 {
		e.Add(0, 0, 0.4)
	}
	blocking, err := Block(e, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	m, _, err := Values(blocking, math.Round)
	if err != nil || m.Values[0] != 1 {
		t.Errorf("%v, %v: want round(1.2)", m.Values, err)
	}
}

func TestBadInput(t *testing.T) {
	for _, c := range []struct {
		name   string
		e      Entries
		bm, bk int
		want   string
	}{
		{"block", Entries{Rows: 1, Cols: 1}, 0, 1, "block of 0 x 1"},
		{"negative", Entries{Rows: -1, Cols: 1}, 1, 1, "-1 x 1"},
		{"too large", Entries{Rows: math.MaxInt32 + 1, Cols: 1}, 1, 1, "go up to 2147483647"},
		{"outside", Entries{Rows: 2, Cols: 2, Row: []int32{0, 1}, Col: []int32{0, 2}, Value: []float64{1, 1}}, 1, 1, "element 1 at row 1, column 2"},
		{"lengths", Entries{Rows: 2, Cols: 2, Row: []int32{0, 1}, Col: []int32{0}, Value: []float64{1, 1}}, 1, 1, "2 rows, 1 columns"},
	} {
		if _, err := Block(&c.e, c.bm, c.bk); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	one := &Entries{Rows: 1, Cols: 1, Row: []int32{0}, Col: []int32{0}, Value: []float64{1}}
	blocking, err := Block(one, math.MaxInt32, math.MaxInt32)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := Values(blocking, func(float64) byte { return 0 }); err == nil {
		t.Error("a block of 2^62 elements is accepted")
	}
}

func TestValidate(t *testing.T) {
	good := func() Pattern {
		return Pattern{BlockRows: 2, BlockCols: 4, RowPtr: []int32{0, 2, 3}, ColIdx: []int32{1, 3, 0}}
	}
	p := good()
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	if got := p.Density(); got != 3.0/8 {
		t.Errorf("density %v", got)
	}
	for want, spoil := range map[string]func(*Pattern){
		"row_ptr has 2":          func(p *Pattern) { p.RowPtr = p.RowPtr[:2] },
		"row_ptr[0] = 1":         func(p *Pattern) { p.RowPtr[0] = 1 },
		"row_ptr[2] = 2":         func(p *Pattern) { p.RowPtr[2] = 2 },
		"row_ptr[2] = 1 after":   func(p *Pattern) { p.BlockRows, p.RowPtr = 3, []int32{0, 2, 1, 3} },
		"col_idx[1] = 4":         func(p *Pattern) { p.ColIdx[1] = 4 },
		"col_idx[2] = -1":        func(p *Pattern) { p.ColIdx[2] = -1 },
		"col_idx[1] = 1 after 1": func(p *Pattern) { p.ColIdx[1] = 1 },
		"-1 x 4":                 func(p *Pattern) { p.BlockRows = -1 },
		"row_ptr[1] = 7 after":   func(p *Pattern) { p.RowPtr[1] = 7 },
	} {
		p := good()
		spoil(&p)
		if err := p.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
