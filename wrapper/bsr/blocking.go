// SPDX-License-Identifier: Apache-2.0

package bsr

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
)

// Matrix is a BSR matrix. Values holds the blocks one after the other, each row-major (BlockM, BlockK). Blocks at the
// border may extend beyond Rows and Cols; they hold zeros there.
type Matrix[T any] struct {
	Rows, Cols     int
	BlockM, BlockK int
	Pattern
	Values []T // (nnzb, BlockM, BlockK)
}

// Fill is the cost of a block size.
type Fill struct {
	Nonzeros int64 // elements of the matrix that are not zero
	Stored   int64 // elements that the blocks hold: nnzb * BlockM * BlockK
}

// Ratio is the number of stored elements for each nonzero one; 1 where there is none.
func (f Fill) Ratio() float64 {
	if f.Nonzeros == 0 {
		return 1
	}
	return float64(f.Stored) / float64(f.Nonzeros)
}

// Blocking is a matrix whose blocks are known and whose values are still single elements, so that the cost of a block
// size is known before memory is allocated for it.
type Blocking struct {
	Rows, Cols     int
	BlockM, BlockK int
	Pattern        Pattern
	entries        *Entries
	// Elements of block row r are entries[order[start[r]:start[r+1]]], in the order in which they were listed.
	order, start []int32
}

// Block finds the blocks of blockM x blockK that hold an element. Listed elements keep their block even where their
// value is zero. It takes about 8 bytes for each element, and time linear in them.
func Block(e *Entries, blockM, blockK int) (*Blocking, error) {
	if blockM < 1 || blockK < 1 || blockM > math.MaxInt32 || blockK > math.MaxInt32 {
		return nil, fmt.Errorf("a block of %d x %d", blockM, blockK)
	}
	if err := e.validate(); err != nil {
		return nil, err
	}
	b := &Blocking{Rows: e.Rows, Cols: e.Cols, BlockM: blockM, BlockK: blockK, entries: e}
	b.Pattern.BlockRows = ceilDivide(e.Rows, blockM)
	b.Pattern.BlockCols = ceilDivide(e.Cols, blockK)
	b.sortByBlockRow()

	columns := make([][]int32, b.Pattern.BlockRows)
	b.eachBlockRow(func() func(int) {
		seen := make([]int32, b.Pattern.BlockCols) // block row + 1 in which the column was last seen
		return func(r int) {
			for _, i := range b.order[b.start[r]:b.start[r+1]] {
				c := e.Col[i] / int32(blockK)
				if seen[c] != int32(r)+1 {
					seen[c] = int32(r) + 1
					columns[r] = append(columns[r], c)
				}
			}
			slices.Sort(columns[r])
		}
	})
	b.Pattern.RowPtr = make([]int32, b.Pattern.BlockRows+1)
	for r, list := range columns {
		b.Pattern.RowPtr[r+1] = b.Pattern.RowPtr[r] + int32(len(list))
	}
	b.Pattern.ColIdx = slices.Concat(columns...)
	return b, nil
}

// Stored is the number of elements that the values of the matrix will hold. An error where that overflows.
func (b *Blocking) Stored() (int64, error) {
	area := int64(b.BlockM) * int64(b.BlockK)
	blocks := int64(b.Pattern.Blocks())
	if blocks > 0 && area > math.MaxInt64/8/blocks {
		return 0, fmt.Errorf("%d blocks of %d x %d are more than can be stored", blocks, b.BlockM, b.BlockK)
	}
	return area * blocks, nil
}

// Values makes the matrix. Elements are summed in float64 and rounded by convert once; elements of blocks that are
// not listed are convert(0).
func Values[T any](b *Blocking, convert func(float64) T) (Matrix[T], Fill, error) {
	stored, err := b.Stored()
	if err != nil {
		return Matrix[T]{}, Fill{}, err
	}
	m := Matrix[T]{b.Rows, b.Cols, b.BlockM, b.BlockK, b.Pattern, make([]T, stored)}
	area := b.BlockM * b.BlockK
	var mutex sync.Mutex
	fill := Fill{Stored: stored}
	b.eachBlockRow(func() func(int) {
		place := make([]int32, b.Pattern.BlockCols) // of a block column within the block row
		var sums []float64
		return func(r int) {
			row := b.Pattern.Row(r)
			for i, c := range row {
				place[c] = int32(i)
			}
			sums = append(sums[:0], make([]float64, len(row)*area)...)
			b.sum(r, place, sums)
			first := int(b.Pattern.RowPtr[r]) * area
			nonzeros := int64(0)
			for i, v := range sums {
				if v != 0 {
					nonzeros++
				}
				m.Values[first+i] = convert(v)
			}
			mutex.Lock()
			fill.Nonzeros += nonzeros
			mutex.Unlock()
		}
	})
	return m, fill, nil
}

// sum adds the elements of block row r into its blocks, where place finds the block of a column.
func (b *Blocking) sum(r int, place []int32, sums []float64) {
	e, area := b.entries, b.BlockM*b.BlockK
	for _, i := range b.order[b.start[r]:b.start[r+1]] {
		column := int(e.Col[i])
		inBlock := (int(e.Row[i])-r*b.BlockM)*b.BlockK + column%b.BlockK
		at := int(place[column/b.BlockK])*area + inBlock
		switch {
		case !e.Boolean:
			sums[at] += e.Value[i]
		case e.Value[i] != 0:
			sums[at] = 1
		}
	}
}

// sortByBlockRow fills order and start by counting.
func (b *Blocking) sortByBlockRow() {
	height := int32(b.BlockM)
	b.start = make([]int32, b.Pattern.BlockRows+1)
	for _, r := range b.entries.Row {
		b.start[r/height+1]++
	}
	for r := range b.Pattern.BlockRows {
		b.start[r+1] += b.start[r]
	}
	next := slices.Clone(b.start)
	b.order = make([]int32, len(b.entries.Row))
	for i, r := range b.entries.Row {
		b.order[next[r/height]] = int32(i)
		next[r/height]++
	}
}

// eachBlockRow calls work for every block row, on all processors; start makes the work of each goroutine.
func (b *Blocking) eachBlockRow(start func() (work func(r int))) {
	const batch = 64
	batches := make(chan int, ceilDivide(b.Pattern.BlockRows, batch))
	for first := 0; first < b.Pattern.BlockRows; first += batch {
		batches <- first
	}
	close(batches)
	var group sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(batches)) {
		group.Go(func() {
			work := start()
			for first := range batches {
				for r := first; r < min(first+batch, b.Pattern.BlockRows); r++ {
					work(r)
				}
			}
		})
	}
	group.Wait()
}

func ceilDivide(a, b int) int { return (a + b - 1) / b }
