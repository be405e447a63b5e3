// SPDX-License-Identifier: Apache-2.0

package sparsek_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"pgregory.net/rapid"

	. "github.com/sparsek/sparsek/wrapper"
)

// patternSizes are those of a pattern that a test makes.
type patternSizes struct {
	rows, cols, blockM, blockK int
	seed                       uint64
}

func drawPatternSizes(t *rapid.T) patternSizes {
	block := rapid.SampledFrom([]int{1, 2, 3, 4, 7, 8, 16, 24, 64})
	s := patternSizes{blockM: block.Draw(t, "block_m"), blockK: block.Draw(t, "block_k"), seed: rapid.Uint64().Draw(t, "seed")}
	s.rows = rapid.IntRange(0, 40*s.blockM).Draw(t, "rows")
	s.cols = rapid.IntRange(0, 70*s.blockK).Draw(t, "cols")
	if rapid.Bool().Draw(t, "whole blocks") {
		s.rows, s.cols = s.rows/s.blockM*s.blockM, s.cols/s.blockK*s.blockK
	}
	return s
}

func (s patternSizes) blockRows() int { return (s.rows + s.blockM - 1) / s.blockM }
func (s patternSizes) blockCols() int { return (s.cols + s.blockK - 1) / s.blockK }

// drawCapacity is a capacity that is too small now and then.
func drawCapacity(t *rapid.T, blocks int) int {
	return rapid.SampledFrom([]int{blocks, blocks + 5, blocks / 2, max(0, blocks-1), 0}).Draw(t, "capacity")
}

// guarded is a buffer over the front of a larger one, behind which nothing may be written.
type guarded[T Element | Index | byte] struct {
	front, whole *DeviceBuffer[T]
}

const guardBytes = 64

func newGuarded[T Element | Index | byte](t rapid.TB, engine *Engine, n int) guarded[T] {
	t.Helper()
	whole := must(NewBuffer[T](engine, n+guardBytes))(t)
	if err := whole.Fill(context.Background(), 0x5a); err != nil {
		t.Fatal(err)
	}
	return guarded[T]{must(BufferAt[T](engine, whole.Pointer(), n))(t), whole}
}

// read gives what the front holds, and makes sure that nothing was written behind it.
func (g guarded[T]) read(t rapid.TB) []T {
	t.Helper()
	all := make([]T, g.whole.Len())
	if err := g.whole.Read(context.Background(), all); err != nil {
		t.Fatal(err)
	}
	front, behind := all[:g.front.Len()], all[g.front.Len():]
	for _, b := range unsafe.Slice((*byte)(unsafe.Pointer(&behind[0])), len(behind)*int(unsafe.Sizeof(behind[0]))) {
		if b != 0x5a {
			t.Fatal("memory behind the capacity was written")
		}
	}
	return front
}

func (g guarded[T]) close() {
	g.front.Close()
	g.whole.Close()
}

// madeIndex is an index in buffers with guards.
type madeIndex[I Index] struct {
	DeviceIndex[I]
	rowPtr, colIdx, blockIdx, rowIdx guarded[I]
	blocks, fault                    guarded[int64]
}

func newMadeIndex[I Index](t rapid.TB, engine *Engine, s patternSizes, capacity int) *madeIndex[I] {
	t.Helper()
	x := &madeIndex[I]{rowPtr: newGuarded[I](t, engine, s.blockRows()+1), colIdx: newGuarded[I](t, engine, capacity),
		blockIdx: newGuarded[I](t, engine, capacity), rowIdx: newGuarded[I](t, engine, capacity),
		blocks: newGuarded[int64](t, engine, 1), fault: newGuarded[int64](t, engine, 1)}
	x.DeviceIndex = DeviceIndex[I]{Rows: s.rows, Cols: s.cols, BlockM: s.blockM, BlockK: s.blockK, RowPtr: x.rowPtr.front,
		ColIdx: x.colIdx.front, Blocks: x.blocks.front, Fault: x.fault.front}
	return x
}

func (x *madeIndex[I]) close() {
	for _, g := range []guarded[I]{x.rowPtr, x.colIdx, x.blockIdx, x.rowIdx} {
		g.close()
	}
	x.blocks.close()
	x.fault.close()
}

// indexRow is one of an index: its columns, and where they are of interest the blocks of values.
type indexRow struct{ cols, blocks []int }

// verify makes sure that the index is that of rows, or what there is room for. It gives the entries.
func (x *madeIndex[I]) verify(t rapid.TB, rows []indexRow) (entries int) {
	t.Helper()
	capacity := x.ColIdx.Len()
	rowPtr, colIdx := x.rowPtr.read(t), x.colIdx.read(t)
	blockIdx := x.blockIdx.read(t)
	var wantCols, wantBlocks []int
	total := 0
	if len(rowPtr) != len(rows)+1 || rowPtr[0] != 0 {
		t.Fatalf("RowPtr %v of %d rows", rowPtr, len(rows))
	}
	for i, row := range rows {
		total += len(row.cols)
		wantCols, wantBlocks = append(wantCols, row.cols...), append(wantBlocks, row.blocks...)
		if int(rowPtr[i+1]) != min(total, capacity) {
			t.Fatalf("RowPtr[%d] = %d, want %d, at most %d", i+1, rowPtr[i+1], total, capacity)
		}
	}
	entries = min(total, capacity)
	for e := range entries {
		if int(colIdx[e]) != wantCols[e] {
			t.Fatalf("ColIdx[%d] = %d, want %d", e, colIdx[e], wantCols[e])
		}
		if x.BlockIdx != nil && int(blockIdx[e]) != wantBlocks[e] {
			t.Fatalf("BlockIdx[%d] = %d, want %d", e, blockIdx[e], wantBlocks[e])
		}
	}
	if blocks := x.blocks.read(t)[0]; blocks != int64(total) {
		t.Fatalf("%d blocks, want %d", blocks, total)
	}
	wantFault := int64(0)
	if total > capacity {
		wantFault = int64(ErrOverCapacity)
	}
	if got := x.fault.read(t)[0]; got != wantFault {
		t.Fatalf("fault %#x, want %#x", got, wantFault)
	}
	return entries
}

// verifyFault makes sure that the index is empty, and why.
func (x *madeIndex[I]) verifyFault(t rapid.TB, status Status, place int) {
	t.Helper()
	if got := x.fault.read(t)[0]; got != int64(place)<<8|int64(status) {
		t.Fatalf("fault %#x, want %v at %d", got, status, place)
	}
	for i, end := range x.rowPtr.read(t) {
		if end != 0 {
			t.Fatalf("RowPtr[%d] = %d of a faulty index", i, end)
		}
	}
	if blocks := x.blocks.read(t)[0]; blocks != 0 {
		t.Fatalf("%d blocks of a faulty index", blocks)
	}
	x.colIdx.read(t)
}

// wait returns when s has come past all that was put into it.
func wait(t rapid.TB, s *Stream) {
	t.Helper()
	if err := s.Wait(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// enqueued fails where something could not be enqueued, and waits.
func enqueued(t rapid.TB, s *Stream, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	wait(t, s)
}

// onEachRandomly runs a property test on each back-end, in a stream.
func onEachRandomly(t *testing.T, property func(t *rapid.T, s *Stream, engine *Engine)) {
	onEach(t, func(t *testing.T, engine *Engine) {
		s := must(engine.NewStream())(t)
		defer s.Close()
		rapid.Check(t, func(t *rapid.T) { property(t, s, engine) })
	})
}

// randomBSR is a matrix of random blocks, in an order of its own where named. Rows of A beyond the last hold NaN.
func randomBSR[T Element, I Index](s patternSizes, density float64, named bool) BSR[T, I] {
	random := rand.New(rand.NewPCG(s.seed, 3))
	a := BSR[T, I]{Rows: s.rows, Cols: s.cols, BlockM: s.blockM, BlockK: s.blockK, RowPtr: []I{0}, ColIdx: []I{}}
	for range s.blockRows() {
		for col := range s.blockCols() {
			if random.Float64() < density {
				a.ColIdx = append(a.ColIdx, I(col))
			}
		}
		a.RowPtr = append(a.RowPtr, I(len(a.ColIdx)))
	}
	a.Values = make([]T, len(a.ColIdx)*s.blockM*s.blockK)
	if named {
		a.BlockIdx = make([]I, len(a.ColIdx))
		for i, block := range random.Perm(len(a.ColIdx)) {
			a.BlockIdx[i] = I(block)
		}
	}
	eachElement(a, func(row, col, place int) {
		a.Values[place] = smallValue[T](random)
		if row >= s.rows {
			a.Values[place] = FromFloat32[T](float32(math.NaN()))
		} else if col >= s.cols {
			a.Values[place] = 0
		}
	})
	return a
}

// eachElement calls visit for each element of each block.
func eachElement[T Element, I Index](a BSR[T, I], visit func(row, col, place int)) {
	for r := range len(a.RowPtr) - 1 {
		for e := int(a.RowPtr[r]); e < int(a.RowPtr[r+1]); e++ {
			block := e
			if a.BlockIdx != nil {
				block = int(a.BlockIdx[e])
			}
			for i := range a.BlockM {
				for j := range a.BlockK {
					visit(r*a.BlockM+i, int(a.ColIdx[e])*a.BlockK+j, (block*a.BlockM+i)*a.BlockK+j)
				}
			}
		}
	}
}

// inBuffers is a in buffers that have room for more blocks.
func inBuffers[T Element, I Index](t rapid.TB, engine *Engine, a BSR[T, I], more int) (DeviceBSR[T, I], func()) {
	t.Helper()
	d := DeviceBSR[T, I]{Rows: a.Rows, Cols: a.Cols, BlockM: a.BlockM, BlockK: a.BlockK, Bound: more > 0, Unsorted: a.Unsorted}
	d.RowPtr = filled(t, engine, a.RowPtr)
	d.ColIdx = filled(t, engine, append(slices.Clone(a.ColIdx), make([]I, more)...))
	d.Values = filled(t, engine, append(slices.Clone(a.Values), make([]T, more*a.BlockM*a.BlockK)...))
	if a.BlockIdx != nil {
		d.BlockIdx = filled(t, engine, append(slices.Clone(a.BlockIdx), make([]I, more)...))
	}
	return d, func() {
		d.RowPtr.Close()
		d.ColIdx.Close()
		d.Values.Close()
		if d.BlockIdx != nil {
			d.BlockIdx.Close()
		}
	}
}

// equalElements returns whether a and b are equal, where NaN is NaN.
func equalElements[T Element](a, b []T) bool {
	return slices.EqualFunc(a, b, func(x, y T) bool {
		fx, fy := exactly(x), exactly(y)
		return math.IsNaN(fx) && math.IsNaN(fy) || math.Float64bits(fx) == math.Float64bits(fy)
	})
}
