// SPDX-License-Identifier: Apache-2.0

package tunereval

import "github.com/sparsek/sparsek/wrapper/bsr"

// GroupLoads is how neighbouring rows share block columns when they are computed as groups: sparsek::GroupLoads of
// plan/pattern_stats.h, which the cost model reads and its fit needs.
type GroupLoads struct {
	Loads   int64 `json:"loads"`   // of block rows of B: the sum over groups of the union of their block columns
	Longest int64 `json:"longest"` // the largest union of one group
}

// LoadsOf describes groups of `height` rows of a matrix of so many rows in blocks of blockM rows. A group loads all block
// columns of each block row that it touches.
func LoadsOf(p bsr.Pattern, rows, blockM, height int) (g GroupLoads) {
	seenBy := make([]int, p.BlockCols)
	for first := 0; first < rows; first += height {
		last := min(first+height, rows) - 1
		var loads int64
		for _, col := range p.ColIdx[p.RowPtr[first/blockM]:p.RowPtr[last/blockM+1]] {
			if seenBy[col] != first+1 {
				seenBy[col] = first + 1
				loads++
			}
		}
		g.Loads += loads
		g.Longest = max(g.Longest, loads)
	}
	return g
}
