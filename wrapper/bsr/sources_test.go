// SPDX-License-Identifier: Apache-2.0

package bsr

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// A matrix is the same one from whatever it is made.
func TestSourcesAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows, cols, gap := rapid.IntRange(0, 20).Draw(t, "rows"), rapid.IntRange(0, 20).Draw(t, "cols"), rapid.IntRange(0, 3).Draw(t, "gap")
		stride := cols + gap
		array := make([]float32, rows*stride)
		rowPtr, colIdx, row, values := []int64{0}, []int64{}, []int64{}, []float32{}
		for i := range rows {
			for j := range stride {
				v := float32(rapid.IntRange(-1, 1).Draw(t, "value"))
				array[i*stride+j] = v
				if v != 0 && j < cols {
					row, colIdx, values = append(row, int64(i)), append(colIdx, int64(j)), append(values, v)
				}
			}
			rowPtr = append(rowPtr, int64(len(values)))
		}
		if rows > 0 {
			array = array[:len(array)-gap] // the last row may end with its last element
		}
		want := make([]float64, rows*cols)
		for i, v := range values {
			want[int(row[i])*cols+int(colIdx[i])] = float64(v)
		}
		for name, made := range map[string]func() (*Entries, error){
			"CSR":   func() (*Entries, error) { return FromCSR(rows, cols, rowPtr, colIdx, values) },
			"COO":   func() (*Entries, error) { return FromCOO(rows, cols, row, colIdx, values) },
			"dense": func() (*Entries, error) { return FromDense(rows, cols, stride, array) },
		} {
			e, err := made()
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if got, _ := dense(e); !slices.Equal(got, want) {
				t.Fatalf("%s: %v, want %v", name, got, want)
			}
		}
	})
}

func TestBadSources(t *testing.T) {
	one := []float32{1}
	for want, made := range map[string]func() (*Entries, error){
		"rowPtr has 1 entries":   func() (*Entries, error) { return FromCSR(1, 1, []int32{0}, []int32{}, []float32{}) },
		"1 columns and 0 values": func() (*Entries, error) { return FromCSR(1, 1, []int32{0, 1}, []int32{0}, []float32{}) },
		"rowPtr goes from 1":     func() (*Entries, error) { return FromCSR(1, 1, []int32{1, 1}, []int32{0}, one) },
		"rowPtr[1] = 9":          func() (*Entries, error) { return FromCSR(2, 1, []int32{0, 9, 1}, []int32{0}, one) },
		"rowPtr[2] = 0 after":    func() (*Entries, error) { return FromCSR(3, 1, []int{0, 1, 0, 1}, []int{0}, one) },
		"colIdx[0] = 2":          func() (*Entries, error) { return FromCSR(1, 2, []int32{0, 1}, []int32{2}, one) },
		"-1 x 1":                 func() (*Entries, error) { return FromCSR(-1, 1, []int32{}, []int32{}, one) },
		"row 4294967296":         func() (*Entries, error) { return FromCOO(1, 1, []int64{1 << 32}, []int64{0}, one) },
		"0 rows, 1 columns":      func() (*Entries, error) { return FromCOO(1, 1, []int32{}, []int32{0}, one) },
		"below the 2 columns":    func() (*Entries, error) { return FromDense(1, 2, 1, one) },
		"1 values":               func() (*Entries, error) { return FromDense(2, 1, 0, one) },
		"0 values":               func() (*Entries, error) { return FromDense(1, 1, 5, []float32{}) },
	} {
		if _, err := made(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
