// SPDX-License-Identifier: Apache-2.0

package sparsek_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	. "github.com/sparsek/sparsek/wrapper"
)

// A fault of one matrix is one of the joined matrix too. What is wrong with it could be right there: a column or a block
// of the next matrix, rows that begin or end where others do.
func TestBlockDiagonalOfFaultyMatrix(t *testing.T) {
	member := func() BSR[float32, int32] {
		return BSR[float32, int32]{Rows: 3, Cols: 3, BlockM: 1, BlockK: 1, RowPtr: []int32{0, 2, 3, 5}, ColIdx: []int32{0, 1, 1, 0, 2},
			BlockIdx: []int32{4, 3, 2, 1, 0}, Values: make([]float32, 5)}
	}
	faults := map[string]func(a *BSR[float32, int32]){
		"a row that begins behind 0":  func(a *BSR[float32, int32]) { a.RowPtr[0] = 1 },
		"rows in another order":       func(a *BSR[float32, int32]) { a.RowPtr[2] = 1 },
		"a row that ends beyond":      func(a *BSR[float32, int32]) { a.RowPtr[2] = 9 },
		"a row that ends below 0":     func(a *BSR[float32, int32]) { a.RowPtr[1] = -1 },
		"fewer blocks":                func(a *BSR[float32, int32]) { a.RowPtr[3] = 4 },
		"more blocks":                 func(a *BSR[float32, int32]) { a.RowPtr[3] = 6 },
		"no end":                      func(a *BSR[float32, int32]) { a.RowPtr[3] = -2 },
		"a column of the next matrix": func(a *BSR[float32, int32]) { a.ColIdx[4] = 3 },
		"a column of the one before":  func(a *BSR[float32, int32]) { a.ColIdx[0] = -1 },
		"a block of the next matrix":  func(a *BSR[float32, int32]) { a.BlockIdx[1] = 5 },
		"a block of the one before":   func(a *BSR[float32, int32]) { a.BlockIdx[1] = -1 },
		"":                            func(*BSR[float32, int32]) {},
	}
	onEach(t, func(t *testing.T, engine *Engine) {
		s := must(engine.NewStream())(t)
		defer s.Close()
		for name, spoil := range faults {
			for _, count := range []int{1, 3, 60} { // of 60, several kernels have some each
				for _, at := range slices.Compact([]int{0, count / 2, max(0, min(count, 28)-1), count - 1}) {
					t.Run(fmt.Sprintf("%s/%d of %d", name, at, count), func(t *testing.T) {
						var matrices []DeviceBSR[float32, int32]
						for i := range count {
							a := member()
							if i == at {
								spoil(&a)
							}
							d, free := inBuffers(t, engine, a, 0)
							defer free()
							matrices = append(matrices, d)
						}
						x := newMadeIndex[int32](t, engine, patternSizes{rows: 3 * count, cols: 3 * count, blockM: 1, blockK: 1}, 5*count)
						defer x.close()
						x.BlockIdx = x.blockIdx.front
						fault := newGuarded[int64](t, engine, 1)
						defer fault.close()
						joined := IndexedBy[float32](x.DeviceIndex, nil)
						joined.BlockIdx = x.BlockIdx
						background := context.Background()
						enqueued(t, s, BlockDiagonal(background, s, x.DeviceIndex, matrices), CheckIndex(background, s, joined, fault.front))
						for _, g := range []guarded[int32]{x.rowPtr, x.colIdx, x.blockIdx} {
							g.read(t)
						}
						if found := fault.read(t)[0] != 0; found != (name != "") {
							t.Errorf("found a fault: %v", found)
						}
					})
				}
			}
		}
	})
}

// More block rows than the type of the index, or any matrix, can have: the bins are as far as they can say.
func TestPatternFromManyTokens(t *testing.T) {
	t.Run("int16", func(t *testing.T) {
		fillBins[int16](t, []int64{8, 300_000, 5, 7}, []int16{0, 1, 32767, 32767, 32767}, 1+37500+1+1)
	})
	t.Run("int32", func(t *testing.T) {
		fillBins[int32](t, []int64{8, 1 << 40, 1 << 40, 7}, []int32{0, 1, 1<<31 - 1, 1<<31 - 1, 1<<31 - 1}, 1<<31)
	})
	t.Run("int64", func(t *testing.T) {
		fillBins[int64](t, []int64{8, 1<<63 - 1, 1<<63 - 1, 7}, []int64{0, 1, 1<<31 + 1, 1<<32 + 1, 1<<32 + 2}, 1<<31)
	})
}

func fillBins[I Index](t *testing.T, counts []int64, want []I, rows int64) {
	const blockM, width, there = 8, 3, 5 // block rows of the matrix
	onEach(t, func(t *testing.T, engine *Engine) {
		s := must(engine.NewStream())(t)
		defer s.Close()
		sizes := patternSizes{rows: there * blockM, cols: len(counts) * width, blockM: blockM, blockK: 1}
		x := newMadeIndex[I](t, engine, sizes, there*width)
		defer x.close()
		bins := newGuarded[I](t, engine, len(counts)+1)
		defer bins.close()
		buffer := filled(t, engine, counts)
		defer buffer.Close()
		enqueued(t, s, PatternFromCounts(context.Background(), s, x.DeviceIndex, buffer, bins.front))
		if got := bins.read(t); !slices.Equal(got, want) {
			t.Errorf("bins %v, want %v", got, want)
		}
		if got := x.blocks.read(t)[0]; got != rows*width {
			t.Errorf("%d blocks, want %d", got, rows*width)
		}
		if got := x.fault.read(t)[0]; got != int64(ErrOverCapacity) {
			t.Errorf("fault %#x", got)
		}
		// The block rows that fit: one of the first expert, and then of the second.
		var rowPtr, colIdx []I
		for row := range there + 1 {
			rowPtr = append(rowPtr, I(row*width))
		}
		for row := range there {
			for col := range width {
				colIdx = append(colIdx, I(min(row, 1)*width+col))
			}
		}
		if got := x.rowPtr.read(t); !slices.Equal(got, rowPtr) {
			t.Errorf("RowPtr %v", got)
		}
		if got := x.colIdx.read(t); !slices.Equal(got, colIdx) {
			t.Errorf("ColIdx %v", got)
		}
	})
}
