// SPDX-License-Identifier: Apache-2.0

// Package pattern makes block patterns by name and seed, the same on every machine and in every version.
//
//	random     round(density * columns) blocks in every block row, at least one
//	bernoulli  every block with probability density
//	zipf       block row lengths in proportion to 1/rank, shuffled; rows longer than the matrix is wide are cut
//	window     a band around the diagonal
//	causal     blocks on and below the diagonal
//	bigbird    a band, global block rows and columns, and random blocks
//	blockdiag  round(1/density) dense squares along the diagonal
//	stencil    7-point neighbourhoods of a cubic grid
//	stencil27  27-point neighbourhoods of a cubic grid
//
// In a matrix that is not square the diagonal runs from corner to corner.
package pattern

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sparsek/sparsek/internal/matrix/rng"
	"github.com/sparsek/sparsek/wrapper/bsr"
)

// Spec describes a pattern.
type Spec struct {
	Name                 string
	BlockRows, BlockCols int
	Density              float64 // requested share of blocks, 0 to 1; see UsesDensity
	Seed                 uint64
}

// rows makes the block columns of one block row after the other, each sorted and without repetition; the slice is valid
// until the next call.
type rows func(r int) []int32

type maker struct {
	name        string
	usesDensity bool
	start       func(Spec, *rng.Source) rows
	blocks      func(Spec) float64 // predicts how many there will be
}

var makers = []maker{
	{"random", true, random, randomBlocks},
	{"bernoulli", true, bernoulli, bernoulliBlocks},
	{"zipf", true, zipf, zipfBlocks},
	{"window", true, window, windowBlocks},
	{"causal", false, causal, causalBlocks},
	{"bigbird", true, bigbird, bigbirdBlocks},
	{"blockdiag", true, blockDiagonal, blockDiagonalBlocks},
	{"stencil", false, stencil, stencilBlocks},
	{"stencil27", false, stencil27, stencil27Blocks},
}

// Names lists the patterns.
func Names() []string {
	names := make([]string, len(makers))
	for i, m := range makers {
		names[i] = m.name
	}
	return names
}

func find(name string) (maker, error) {
	i := slices.IndexFunc(makers, func(m maker) bool { return m.name == name })
	if i < 0 {
		return maker{}, fmt.Errorf("there is no pattern %q: take one of %s", name, strings.Join(Names(), ", "))
	}
	return makers[i], nil
}

// UsesDensity reports whether a density can be chosen for a pattern; causal and the stencils have a fixed one.
func UsesDensity(name string) (bool, error) {
	m, err := find(name)
	return m.usesDensity, err
}

// Generate makes a pattern. It refuses one that Blocks predicts to be too large before it takes memory. The density of the result is near the wanted one, as the pattern's structure allows.
func Generate(spec Spec) (bsr.Pattern, error) {
	m, err := spec.check()
	if err != nil {
		return bsr.Pattern{}, err
	}
	blocks, err := spec.Blocks()
	if err != nil {
		return bsr.Pattern{}, err
	}
	p := bsr.Pattern{BlockRows: spec.BlockRows, BlockCols: spec.BlockCols, RowPtr: make([]int32, spec.BlockRows+1)}
	if spec.BlockCols == 0 || spec.BlockRows == 0 {
		return p, nil
	}
	row := m.start(spec, rng.New(spec.Seed))
	// Room for what is predicted and a little more, so that appending need not copy and hold the index twice.
	p.ColIdx = make([]int32, 0, min(maxBlocks, int(1.01*blocks)+64))
	for r := range spec.BlockRows {
		p.ColIdx = append(p.ColIdx, row(r)...)
		if len(p.ColIdx) > maxBlocks { // predicted to be fewer
			return bsr.Pattern{}, fmt.Errorf("pattern %s of %d x %d blocks has more than %d blocks: choose larger blocks or a lower density",
				spec.Name, spec.BlockRows, spec.BlockCols, maxBlocks)
		}
		p.RowPtr[r+1] = int32(len(p.ColIdx))
	}
	return p, nil
}

// perRow is the number of blocks that a density asks for in a row of n: half to even, at least one unless it is 0.
func perRow(density float64, n int) int {
	if density == 0 {
		return 0
	}
	return min(n, max(1, int(math.RoundToEven(density*float64(n)))))
}

// span appends the columns from first to last-1.
func span(list []int32, first, last int) []int32 {
	for c := first; c < last; c++ {
		list = append(list, int32(c))
	}
	return list
}
