// SPDX-License-Identifier: Apache-2.0

package roofline

import (
	"slices"

	"github.com/sparsek/sparsek/internal/bsr"
	sparsek "github.com/sparsek/sparsek/wrapper"
)

// Ceilings of an H200, in bytes a second.
const (
	// Tiles from L2 into the shared memory of all SMs: the most that kernels which copy tiles by TMA and compute
	// nothing were measured to reach (9.3 to 10.3 TB/s).
	l2Rate = 10.3e12
	// Device memory, read and written: measured with device-to-device copies.
	dramRate = 4.3e12
)

// sheetRate is the rate in FLOP/s that NVIDIA states for dense bfloat16 products on an H200 (SXM). It is the tensor
// cores' ceiling where the dense product measured beside a case says nothing of them: it is bound by memory, or there
// is none.
const sheetRate = 989e12

// elementBytes is the size of a bfloat16.
const elementBytes = 2

// Work is what a product takes.
type Work struct {
	FLOP float64 // on stored blocks
	L2   float64 // bytes that the kernel moves from L2 into the SMs
	DRAM float64 // bytes that every kernel has to move: A's values and the rows of B that they meet once, and C once
}

// WorkOf counts the work of a case with its pattern under a plan.
func WorkOf(c Case, p bsr.Pattern, plan sparsek.PlanInfo) Work {
	block := float64(c.BlockM) * float64(c.BlockK)
	values := float64(p.Blocks()) * block
	n := float64(c.N)
	panels := blocks(c.N, plan.TileN)
	used := map[int32]bool{}
	for _, col := range p.ColIdx {
		used[col] = true
	}
	rowsOfB := min(len(used)*c.BlockK, c.K)
	// Tiles that are parts of one block row share its entries, and each brings all of B that they name.
	loads := float64(plan.Entries) * max(1, float64(c.BlockM)/float64(plan.TileM))
	return Work{
		FLOP: 2 * values * n,
		// Each load brings a block row of B, panel by panel; each panel brings every block of A once.
		L2:   elementBytes * (loads*float64(c.BlockK)*n + values*float64(panels)),
		DRAM: elementBytes * (values + float64(rowsOfB)*n + float64(c.M)*n),
	}
}

// Bound is a time under which a product cannot come.
type Bound struct {
	Name    string  `json:"name"` // "tensor", "L2" or "DRAM"
	Seconds float64 `json:"seconds"`
}

// Bounds are those of the work where the tensor cores run at `tensor` FLOP/s, the one that binds first.
func (w Work) Bounds(tensor float64) []Bound {
	list := []Bound{{"tensor", w.FLOP / tensor}, {"L2", w.L2 / l2Rate}, {"DRAM", w.DRAM / dramRate}}
	slices.SortStableFunc(list, func(a, b Bound) int {
		switch {
		case a.Seconds > b.Seconds:
			return -1
		case a.Seconds < b.Seconds:
			return 1
		}
		return 0
	})
	return list
}

// DenseFLOP counts the operations of the dense product.
func (c Case) DenseFLOP() float64 { return 2 * float64(c.M) * float64(c.N) * float64(c.K) }

// tensorRate is the ceiling of the tensor cores for a case, in FLOP/s: what cuBLAS reached at the dense product in the
// same run (0 where it was not measured), unless that product is bound by memory.
func (c Case) tensorRate(dense float64) float64 {
	m, n, k := float64(c.M), float64(c.N), float64(c.K)
	memory := elementBytes * (m*k + k*n + m*n) / dramRate
	if dense == 0 || memory > c.DenseFLOP()/sheetRate {
		return sheetRate
	}
	return dense
}
