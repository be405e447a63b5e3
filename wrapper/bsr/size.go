// SPDX-License-Identifier: Apache-2.0

package bsr

import (
	"context"
	"slices"
)

// Fit is what blocks of a size store of a matrix.
type Fit struct {
	BlockM  int     `json:"block_m"`
	BlockK  int     `json:"block_k"`
	Blocks  int     `json:"blocks"`
	Density float64 `json:"density"` // share of all blocks
	Stored  int64   `json:"stored"`  // elements
	FillIn  float64 `json:"fill_in"` // stored elements for each that is listed; 1 where none is
	Own     bool    `json:"own"`     // the blocks of the file
	Best    bool    `json:"best"`    // by the rule of CompareSizes
}

// perBlock is what a block costs beside its elements, in elements: its index, and the part of a vector or of a tensor
// core's tile that it does not fill.
const perBlock = 32

// cost is what CompareSizes chooses by.
func (f Fit) cost() int64 { return f.Stored + perBlock*int64(f.Blocks) }

// sizes are the square blocks that are compared, beside those of the file.
var sizes = []int{1, 2, 4, 8, 16, 32, 64, 128}

// CompareSizes counts what blocks of several sizes store, the smallest first. The best is the one for which stored elements
// and 32 for each block are the fewest: a rule of thumb, which knows nothing of the device. It takes a pass over the
// elements for each size.
func CompareSizes(ctx context.Context, e *Entries) ([]Fit, error) {
	var list []Fit
	add := func(m, k int) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		blocking, err := Block(e, m, k)
		if err != nil {
			return err
		}
		stored, err := blocking.Stored()
		if err != nil {
			return err
		}
		f := Fit{BlockM: m, BlockK: k, Blocks: blocking.Pattern.Blocks(), Density: blocking.Pattern.Density(), Stored: stored, FillIn: 1,
			Own: m == e.BlockM && k == e.BlockK}
		if n := len(e.Value); n > 0 {
			f.FillIn = float64(stored) / float64(n)
		}
		list = append(list, f)
		return nil
	}
	for _, n := range sizes {
		if n > 1 && n >= 2*max(e.Rows, e.Cols) {
			break // all of the matrix is in one block already
		}
		if err := add(n, n); err != nil {
			return nil, err
		}
	}
	if e.BlockM > 0 && !slices.ContainsFunc(list, func(f Fit) bool { return f.Own }) {
		if err := add(e.BlockM, e.BlockK); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(list, func(a, b Fit) int { return a.BlockM*a.BlockK - b.BlockM*b.BlockK })
	best := 0
	for i := range list {
		if list[i].cost() <= list[best].cost() {
			best = i
		}
	}
	list[best].Best = true
	return list, nil
}

// BestSize is the size of blocks that [CompareSizes] calls the best.
func BestSize(ctx context.Context, e *Entries) (m, k int, err error) {
	list, err := CompareSizes(ctx, e)
	if err != nil {
		return 0, 0, err
	}
	best := list[slices.IndexFunc(list, func(f Fit) bool { return f.Best })]
	return best.BlockM, best.BlockK, nil
}
