// SPDX-License-Identifier: Apache-2.0

package sparsek_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	. "github.com/sparsek/sparsek/wrapper"
)

// Blocks to CSR and COO and back.
func testElements[T Element, J, I Index](t *rapid.T, s *Stream, engine *Engine) {
	background := context.Background()
	sizes := drawPatternSizes(t)
	for sizes.rows*sizes.cols > 30_000 { // int16 numbers the elements
		sizes.rows /= 2
	}
	a := randomBSR[T, J](sizes, rapid.SampledFrom([]float64{0.1, 0.6}).Draw(t, "density"), rapid.Bool().Draw(t, "named"))
	d, free := inBuffers(t, engine, a, rapid.IntRange(0, 1).Draw(t, "bound"))
	defer free()
	single := patternSizes{rows: sizes.rows, cols: sizes.cols, blockM: 1, blockK: 1}
	elements := make([]indexRow, sizes.rows)
	var want []T
	for row := range sizes.rows {
		r := row / sizes.blockM
		for e := int(a.RowPtr[r]); e < int(a.RowPtr[r+1]); e++ {
			block := e
			if a.BlockIdx != nil {
				block = int(a.BlockIdx[e])
			}
			for j := range min(sizes.blockK, sizes.cols-int(a.ColIdx[e])*sizes.blockK) {
				elements[row].cols = append(elements[row].cols, int(a.ColIdx[e])*sizes.blockK+j)
				want = append(want, a.Values[(block*sizes.blockM+row%sizes.blockM)*sizes.blockK+j])
			}
		}
	}
	short := drawCapacity(t, len(want))
	y := newMadeIndex[I](t, engine, single, short)
	defer y.close()
	y.RowIdx = y.rowIdx.front
	values := newGuarded[T](t, engine, short)
	defer values.close()
	enqueued(t, s, ToCSR(background, s, y.DeviceIndex, values.front, d))
	count := y.verify(t, elements)
	if !equalElements(values.read(t)[:count], want[:count]) {
		t.Fatal("the values of the elements are others")
	}
	rowIdx, at := y.rowIdx.read(t), 0
	for row, of := range elements {
		for range of.cols {
			if at < count && int(rowIdx[at]) != row {
				t.Fatalf("RowIdx[%d] = %d, want %d", at, rowIdx[at], row)
			}
			at++
		}
	}
	if count < len(want) {
		return
	}

	// Other blocks of the same elements, some of which are taken away.
	random := rand.New(rand.NewPCG(sizes.seed, 22))
	rowPtr, rows, cols, kept := []I{0}, []I{}, []I{}, []T{}
	at = 0
	for row, of := range elements {
		for _, col := range of.cols {
			if random.IntN(3) == 0 {
				rows, cols, kept = append(rows, I(row)), append(cols, I(col)), append(kept, want[at])
			}
			at++
		}
		rowPtr = append(rowPtr, I(len(cols)))
	}
	blocks := patternSizes{rows: sizes.rows, cols: sizes.cols, blockM: rapid.IntRange(1, 9).Draw(t, "new block_m"), blockK: rapid.IntRange(1, 9).Draw(t, "new block_k")}
	wantRows := make([]indexRow, blocks.blockRows())
	for i := range cols {
		row := &wantRows[int(rows[i])/blocks.blockM]
		row.cols = append(row.cols, int(cols[i])/blocks.blockK)
	}
	total := 0
	for r := range wantRows {
		slices.Sort(wantRows[r].cols)
		wantRows[r].cols = slices.Compact(wantRows[r].cols)
		total += len(wantRows[r].cols)
	}
	capacity := drawCapacity(t, total)
	csr := DeviceBSR[T, I]{Rows: sizes.rows, Cols: sizes.cols, BlockM: 1, BlockK: 1, RowPtr: filled(t, engine, rowPtr), ColIdx: filled(t, engine, cols), Values: filled(t, engine, kept)}
	rowBuffer := filled(t, engine, rows)
	defer func() {
		csr.RowPtr.Close()
		csr.ColIdx.Close()
		csr.Values.Close()
		rowBuffer.Close()
	}()
	for _, coo := range []bool{false, true} {
		x := newMadeIndex[J](t, engine, blocks, capacity)
		made := newGuarded[T](t, engine, capacity*blocks.blockM*blocks.blockK)
		if coo {
			enqueued(t, s, PatternFromCOO(background, s, x.DeviceIndex, made.front, rowBuffer, csr.ColIdx, csr.Values))
		} else {
			enqueued(t, s, PatternFromCSR(background, s, x.DeviceIndex, made.front, csr))
		}
		entries := x.verify(t, wantRows)
		place := make(map[[2]int]T)
		for i := range cols {
			place[[2]int{int(rows[i]), int(cols[i])}] = kept[i]
		}
		got := made.read(t)
		eachElement(BSR[T, J]{BlockM: blocks.blockM, BlockK: blocks.blockK, RowPtr: x.rowPtr.read(t), ColIdx: x.colIdx.read(t)[:entries]}, func(row, col, at int) {
			if !equalElements([]T{got[at]}, []T{place[[2]int{row, col}]}) {
				t.Fatalf("element (%d, %d) is %v, want %v", row, col, got[at], place[[2]int{row, col}])
			}
		})
		x.close()
		made.close()
	}
	if len(cols) == 0 {
		return
	}
	// A column beyond the last, and a row out of order.
	fault := rapid.IntRange(0, len(cols)-1).Draw(t, "fault")
	x := newMadeIndex[J](t, engine, blocks, capacity)
	defer x.close()
	outside, unordered := slices.Clone(cols), slices.Clone(rows)
	outside[fault], unordered[fault] = I(sizes.cols), I(sizes.rows)
	wrong, wrongRows := csr, filled(t, engine, unordered)
	wrong.ColIdx = filled(t, engine, outside)
	defer wrong.ColIdx.Close()
	defer wrongRows.Close()
	enqueued(t, s, PatternFromCSR(background, s, x.DeviceIndex, nil, wrong))
	x.verifyFault(t, ErrColIdxRange, fault)
	enqueued(t, s, PatternFromCOO(background, s, x.DeviceIndex, nil, rowBuffer, wrong.ColIdx, csr.Values))
	x.verifyFault(t, ErrColIdxRange, fault)
	enqueued(t, s, PatternFromCOO(background, s, x.DeviceIndex, nil, wrongRows, csr.ColIdx, csr.Values))
	x.verifyFault(t, ErrRowPtrNotMonotone, fault)
}

func TestElements(t *testing.T) {
	t.Run("bf16", func(t *testing.T) { onEachRandomly(t, testElements[BFloat16, int32, int64]) })
	t.Run("fp32", func(t *testing.T) { onEachRandomly(t, testElements[float32, int64, int16]) })
	t.Run("fp64", func(t *testing.T) { onEachRandomly(t, testElements[float64, int16, int32]) })
}
