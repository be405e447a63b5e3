// SPDX-License-Identifier: Apache-2.0

package tunereval

import "github.com/sparsek/sparsek/wrapper/bsr"

// GroupLoads is how neighbouring block rows share block columns when so many of them are computed together: what the
// library's cost model goes by, for those who fit it.
type GroupLoads struct {
	Loads   int64 `json:"loads"`   // of block rows of B: the sizes of the unions of the groups' block columns
	Longest int64 `json:"longest"` // the largest of these
}

// loadsOf are those of groups of so many rows in blocks of blockM rows, at least one block row each.
func loadsOf(p bsr.Pattern, blockM, rows int) (g GroupLoads) {
	together := max(1, rows/blockM)
	seenBy := make([]int, p.BlockCols)
	for first := 0; first < p.BlockRows; first += together {
		var loads int64
		for _, col := range p.ColIdx[p.RowPtr[first]:p.RowPtr[min(first+together, p.BlockRows)]] {
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
