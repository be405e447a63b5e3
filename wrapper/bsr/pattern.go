// SPDX-License-Identifier: Apache-2.0

// Package bsr holds block compressed sparse row (BSR) matrices on the host and makes them from single elements.
package bsr

import "fmt"

// Pattern says which blocks of a matrix are stored.
//
// Block row r has the blocks RowPtr[r] to RowPtr[r+1]-1; block i lies in block column ColIdx[i]. Columns increase
// strictly within a block row.
type Pattern struct {
	BlockRows, BlockCols int
	RowPtr               []int32 // (BlockRows + 1)
	ColIdx               []int32 // (nnzb)
}

// Blocks is the number of stored blocks, nnzb.
func (p *Pattern) Blocks() int { return len(p.ColIdx) }

// Row gives the block columns of block row r.
func (p *Pattern) Row(r int) []int32 { return p.ColIdx[p.RowPtr[r]:p.RowPtr[r+1]] }

// Density is the share of blocks that are stored, 0 for a pattern without places.
func (p *Pattern) Density() float64 {
	if p.BlockRows == 0 || p.BlockCols == 0 {
		return 0
	}
	return float64(p.Blocks()) / float64(p.BlockRows) / float64(p.BlockCols)
}

// Validate returns an error that names the first place where p is not as Pattern says.
func (p *Pattern) Validate() error {
	if p.BlockRows < 0 || p.BlockCols < 0 {
		return fmt.Errorf("a pattern of %d x %d blocks", p.BlockRows, p.BlockCols)
	}
	if len(p.RowPtr) != p.BlockRows+1 {
		return fmt.Errorf("row_ptr has %d entries, not the %d of %d block rows", len(p.RowPtr), p.BlockRows+1, p.BlockRows)
	}
	if p.RowPtr[0] != 0 {
		return fmt.Errorf("row_ptr[0] = %d is not 0", p.RowPtr[0])
	}
	if last := p.RowPtr[p.BlockRows]; int(last) != len(p.ColIdx) {
		return fmt.Errorf("row_ptr[%d] = %d is not the number of blocks, %d", p.BlockRows, last, len(p.ColIdx))
	}
	for r := range p.BlockRows {
		// Each entry lies between its neighbours and the last is len(ColIdx), but a later one may still be too
		// large: look before slicing.
		if p.RowPtr[r+1] < p.RowPtr[r] || int(p.RowPtr[r+1]) > len(p.ColIdx) {
			return fmt.Errorf("row_ptr[%d] = %d after row_ptr[%d] = %d of %d blocks", r+1, p.RowPtr[r+1], r, p.RowPtr[r], len(p.ColIdx))
		}
		previous := int32(-1)
		for i, c := range p.Row(r) {
			if c < 0 || int(c) >= p.BlockCols {
				return fmt.Errorf("col_idx[%d] = %d is not below %d block columns", int(p.RowPtr[r])+i, c, p.BlockCols)
			}
			if c <= previous {
				return fmt.Errorf("col_idx[%d] = %d after %d in block row %d: columns must increase", int(p.RowPtr[r])+i, c, previous, r)
			}
			previous = c
		}
	}
	return nil
}
