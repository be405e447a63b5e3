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

func TestPatternFromCounts(t *testing.T) {
	onEachRandomly(t, func(t *rapid.T, s *Stream, engine *Engine) {
		const blockM, blockK = 8, 4
		experts, width := rapid.IntRange(1, 600).Draw(t, "experts"), rapid.IntRange(0, 40).Draw(t, "width")
		if experts > 20 {
			width = min(width, 2)
		}
		counts := make([]int32, experts)
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 6))
		var rows []indexRow
		bins := []int32{0}
		for i := range counts {
			counts[i] = int32(random.IntN(30) * random.IntN(2))
			for range (counts[i] + blockM - 1) / blockM {
				row := indexRow{}
				for j := range width {
					row.cols = append(row.cols, i*width+j)
				}
				rows = append(rows, row)
			}
			bins = append(bins, int32(len(rows)))
		}
		room := max(0, len(rows)+rapid.IntRange(-3, 5).Draw(t, "room"))
		sizes := patternSizes{rows: room * blockM, cols: experts * width * blockK, blockM: blockM, blockK: blockK}
		x := newMadeIndex[int32](t, engine, sizes, drawCapacity(t, len(rows)*width))
		defer x.close()
		gotBins := newGuarded[int32](t, engine, experts+1)
		defer gotBins.close()
		faulty := rapid.IntRange(0, 5).Draw(t, "faulty") == 0
		at := rapid.IntRange(0, experts-1).Draw(t, "at")
		if faulty {
			counts[at] = -1
		}
		buffer := filled(t, engine, counts)
		defer buffer.Close()
		enqueued(t, s, PatternFromCounts(context.Background(), s, x.DeviceIndex, buffer, gotBins.front))
		if faulty {
			x.verifyFault(t, ErrBadSize, at)
			return
		}
		if got := gotBins.read(t); !slices.Equal(got, bins) {
			t.Fatalf("bins %v, want %v", got, bins)
		}
		if room >= len(rows) {
			for len(rows) < room {
				rows = append(rows, indexRow{})
			}
			x.verify(t, rows)
			return
		}
		// Those block rows that fit are there.
		if got := x.fault.read(t)[0]; got != int64(ErrOverCapacity) {
			t.Fatalf("fault %#x of %d rows in %d", got, len(rows), room)
		}
		if blocks := x.blocks.read(t)[0]; blocks != int64(len(rows)*width) {
			t.Fatalf("%d blocks, want %d", blocks, len(rows)*width)
		}
		for i, end := range x.rowPtr.read(t) {
			if int(end) != min(i*width, x.ColIdx.Len()) {
				t.Fatalf("RowPtr[%d] = %d", i, end)
			}
		}
	})
}

func TestBlockDiagonal(t *testing.T) {
	onEachRandomly(t, func(t *rapid.T, s *Stream, engine *Engine) {
		const blockM, blockK = 4, 2
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 7))
		count := rapid.SampledFrom([]int{0, 1, 3, 40, 41, 90}).Draw(t, "count")
		var matrices []DeviceBSR[float32, int32]
		var rows []indexRow
		whole := patternSizes{blockM: blockM, blockK: blockK}
		blocks, places := 0, 0
		for i := range count {
			sizes := patternSizes{rows: random.IntN(6) * blockM, cols: random.IntN(6) * blockK, blockM: blockM, blockK: blockK, seed: random.Uint64()}
			if i == count-1 {
				sizes.rows, sizes.cols = sizes.rows+1, sizes.cols+1
			}
			a := randomBSR[float32, int32](sizes, 0.4, random.IntN(2) == 0)
			more := random.IntN(2) * 3
			d, free := inBuffers(t, engine, a, more)
			defer free()
			matrices = append(matrices, d)
			for r := range sizes.blockRows() {
				row := indexRow{}
				for e := int(a.RowPtr[r]); e < int(a.RowPtr[r+1]); e++ {
					row.cols = append(row.cols, whole.blockCols()+int(a.ColIdx[e]))
					block := e
					if a.BlockIdx != nil {
						block = int(a.BlockIdx[e])
					}
					row.blocks = append(row.blocks, places+block)
				}
				rows = append(rows, row)
				blocks += len(row.cols)
			}
			whole.rows += sizes.rows
			whole.cols += sizes.cols
			places += len(a.ColIdx) + more
		}
		x := newMadeIndex[int64](t, engine, whole, places)
		defer x.close()
		if rapid.Bool().Draw(t, "named") {
			x.BlockIdx = x.blockIdx.front
		}
		enqueued(t, s, BlockDiagonal(context.Background(), s, x.DeviceIndex, matrices))
		x.verify(t, rows)
	})
}

func TestTransposeIndex(t *testing.T) {
	t.Run("int16", func(t *testing.T) { onEachRandomly(t, testTransposeIndex[int32, int16]) })
	t.Run("int32", func(t *testing.T) { onEachRandomly(t, testTransposeIndex[int16, int32]) })
	t.Run("int64", func(t *testing.T) { onEachRandomly(t, testTransposeIndex[int64, int64]) })
}

func testTransposeIndex[J, I Index](t *rapid.T, s *Stream, engine *Engine) {
	sizes := drawPatternSizes(t)
	a := randomBSR[BFloat16, J](sizes, 0.3, rapid.Bool().Draw(t, "named"))
	turned := patternSizes{rows: sizes.cols, cols: sizes.rows, blockM: sizes.blockK, blockK: sizes.blockM}
	rows := make([]indexRow, turned.blockRows())
	for r := range sizes.blockRows() {
		for e := int(a.RowPtr[r]); e < int(a.RowPtr[r+1]); e++ {
			block := e
			if a.BlockIdx != nil {
				block = int(a.BlockIdx[e])
			}
			row := &rows[a.ColIdx[e]]
			row.cols, row.blocks = append(row.cols, r), append(row.blocks, block)
		}
	}
	if rapid.Bool().Draw(t, "unsorted") {
		a.Unsorted = true
		random := rand.New(rand.NewPCG(sizes.seed, 10))
		if a.BlockIdx == nil {
			for e := range a.ColIdx {
				a.BlockIdx = append(a.BlockIdx, J(e))
			}
		}
		for r := range sizes.blockRows() {
			begin := int(a.RowPtr[r])
			random.Shuffle(int(a.RowPtr[r+1])-begin, func(i, j int) {
				i, j = begin+i, begin+j
				a.ColIdx[i], a.ColIdx[j] = a.ColIdx[j], a.ColIdx[i]
				a.BlockIdx[i], a.BlockIdx[j] = a.BlockIdx[j], a.BlockIdx[i]
			})
		}
	}
	faulty := len(a.ColIdx) > 0 && rapid.IntRange(0, 4).Draw(t, "faulty") == 0
	at := rapid.IntRange(0, max(0, len(a.ColIdx)-1)).Draw(t, "at")
	if faulty {
		a.ColIdx[at] = J(sizes.blockCols())
	}
	more := rapid.IntRange(0, 1).Draw(t, "bound") * 4
	d, free := inBuffers(t, engine, a, more)
	defer free()
	x := newMadeIndex[I](t, engine, turned, len(a.ColIdx)+more)
	defer x.close()
	x.BlockIdx = x.blockIdx.front
	enqueued(t, s, TransposeIndex(context.Background(), s, x.DeviceIndex, d))
	if faulty {
		x.verifyFault(t, ErrColIdxRange, at)
	} else {
		x.verify(t, rows)
	}
}

// A block column of many blocks, which are sorted in memory.
func TestTransposeLongColumns(t *testing.T) {
	onEach(t, func(t *testing.T, engine *Engine) {
		s := must(engine.NewStream())(t)
		defer s.Close()
		a := randomBSR[float32, int32](patternSizes{rows: 9000, cols: 3, blockM: 1, blockK: 1, seed: 1}, 0.7, false)
		d, free := inBuffers(t, engine, a, 0)
		defer free()
		x := newMadeIndex[int32](t, engine, patternSizes{rows: 3, cols: 9000, blockM: 1, blockK: 1}, len(a.ColIdx))
		x.BlockIdx = x.blockIdx.front
		rows := make([]indexRow, 3)
		eachElement(a, func(row, col, place int) {
			rows[col].cols, rows[col].blocks = append(rows[col].cols, row), append(rows[col].blocks, place)
		})
		enqueued(t, s, TransposeIndex(context.Background(), s, x.DeviceIndex, d))
		x.verify(t, rows)
	})
}

// What is found is what matrix_create finds, with its place.
func TestCheckIndex(t *testing.T) {
	cpu := newEngine(t, CPU)
	onEachRandomly(t, func(t *rapid.T, s *Stream, engine *Engine) {
		sizes := patternSizes{rows: 12, cols: 300, blockM: 4, blockK: 2, seed: rapid.Uint64().Draw(t, "seed")}
		a := randomBSR[float32, int32](sizes, 0.5, rapid.Bool().Draw(t, "named"))
		a.Unsorted = rapid.Bool().Draw(t, "unsorted")
		for range rapid.IntRange(0, 2).Draw(t, "faults") {
			switch array := rapid.SampledFrom([][]int32{a.RowPtr, a.ColIdx, a.BlockIdx}).Draw(t, "array"); {
			case len(array) > 0:
				array[rapid.IntRange(0, len(array)-1).Draw(t, "at")] = rapid.SampledFrom([]int32{-1, 0, 3, 149, 150, 1 << 30}).Draw(t, "number")
			}
		}
		d, free := inBuffers(t, engine, a, 0)
		defer free()
		d.Values = nil
		fault := newGuarded[int64](t, engine, 1)
		defer fault.close()
		enqueued(t, s, CheckIndex(context.Background(), s, d, fault.front))
		found := fault.read(t)[0]
		host := a
		host.Values = nil
		m, err := NewMatrix(context.Background(), cpu, host)
		if err == nil {
			m.Close()
		}
		if (found == 0) != (err == nil) {
			t.Fatalf("found %#x, and NewMatrix gave %v", found, err)
		}
		if want := firstFault(a); found != want {
			t.Fatalf("found %#x, want %#x (NewMatrix: %v)", found, want, err)
		}
	})
}

// firstFault looks for the first fault, in the order of the arrays.
func firstFault(a BSR[float32, int32]) int64 {
	blockRows, blockCols, blocks := len(a.RowPtr)-1, (a.Cols+a.BlockK-1)/a.BlockK, len(a.ColIdx)
	made := func(place int, status Status) int64 { return int64(place)<<8 | int64(status) }
	for i, at := range a.RowPtr {
		var faults []int64
		if i == 0 && at != 0 {
			faults = append(faults, made(0, ErrRowPtrStart))
		}
		if i > 0 && at < a.RowPtr[i-1] {
			faults = append(faults, made(i, ErrRowPtrNotMonotone))
		}
		if i == blockRows && int(at) != blocks {
			faults = append(faults, made(i, ErrRowPtrEnd))
		}
		if len(faults) > 0 {
			return slices.Min(faults)
		}
	}
	for r := range blockRows {
		seen := map[int32]bool{}
		for e := int(a.RowPtr[r]); e < int(a.RowPtr[r+1]); e++ {
			col := a.ColIdx[e]
			first := e == int(a.RowPtr[r])
			switch {
			case col < 0 || int(col) >= blockCols:
				return made(e, ErrColIdxRange)
			case a.Unsorted && seen[col] || !a.Unsorted && !first && col == a.ColIdx[e-1]:
				return made(e, ErrColIdxRepeated)
			case !a.Unsorted && !first && col < a.ColIdx[e-1]:
				return made(e, ErrColIdxUnsorted)
			}
			seen[col] = true
		}
	}
	for e, block := range a.BlockIdx {
		if block < 0 || int(block) >= blocks {
			return made(e, ErrBlockIdxRange)
		}
	}
	return 0
}
