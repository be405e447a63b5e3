// SPDX-License-Identifier: Apache-2.0

package pattern

import (
	"fmt"
	"math"

	"github.com/sparsek/sparsek/wrapper/bsr"
)

// maxBlocks is how many blocks an index of 32 bits can count.
const maxBlocks = math.MaxInt32

// Blocks predicts how many blocks Generate will make, without making any: from closed formulas, near the number by a few
// blocks a row and, for patterns that are drawn at random, a few standard deviations. An error where Generate would refuse
// the pattern at once.
func (s Spec) Blocks() (float64, error) {
	m, err := s.check()
	if err != nil || s.BlockRows == 0 || s.BlockCols == 0 {
		return 0, err
	}
	blocks := m.blocks(s)
	if blocks > maxBlocks {
		return 0, fmt.Errorf("pattern %s of %d x %d blocks has about %.2g blocks, and at most %d are possible: choose larger blocks or a lower density",
			s.Name, s.BlockRows, s.BlockCols, blocks, maxBlocks)
	}
	return blocks, nil
}

// check refuses what no pattern can be made of.
func (s Spec) check() (maker, error) {
	m, err := find(s.Name)
	if err != nil {
		return m, err
	}
	if err := bsr.CheckShape(int64(s.BlockRows), int64(s.BlockCols)); err != nil {
		return m, err
	}
	if m.usesDensity && !(s.Density >= 0 && s.Density <= 1) {
		return m, fmt.Errorf("a density of %v is not within 0 and 1", s.Density)
	}
	return m, nil
}

// places is the number of block rows times that of block columns.
func (s Spec) places() float64 { return float64(s.BlockRows) * float64(s.BlockCols) }

func randomBlocks(s Spec) float64 {
	return float64(s.BlockRows) * float64(perRow(s.Density, s.BlockCols))
}

func bernoulliBlocks(s Spec) float64 { return s.Density * s.places() }

// zipfBlocks has the first rows cut at the matrix's width, the last rounded to nothing, and 1/rank summed by logarithms.
func zipfBlocks(s Spec) float64 {
	rows, cols := float64(s.BlockRows), float64(s.BlockCols)
	harmonic := func(n float64) float64 {
		if n < 1 {
			return 0
		}
		const gamma = 0.5772156649015329 // Euler's constant
		return math.Log(n) + gamma + 1/(2*n)
	}
	first := s.Density * rows * cols / harmonic(rows) // blocks of the longest row, were it not cut
	cut := min(rows, math.Floor(first/cols))
	last := min(rows, math.Floor(2*first))
	return cut*cols + first*max(0, harmonic(last)-harmonic(cut))
}

// windowBlocks is the area of a band of width d around the diagonal of a unit square.
func windowBlocks(s Spec) float64 {
	if s.Density == 0 {
		return 0
	}
	return min(s.places(), s.places()*(s.Density-s.Density*s.Density/4)+float64(s.BlockRows))
}

// causalBlocks is exact: the sum over i of floor(i cols / rows) + 1 (Graham, Knuth, Patashnik: Concrete Mathematics, 3.32).
func causalBlocks(s Spec) float64 {
	rows, cols := float64(s.BlockRows), float64(s.BlockCols)
	if rows == 0 || cols == 0 {
		return 0
	}
	return rows + ((rows-1)*(cols-1)+float64(gcd(s.BlockRows, s.BlockCols))-1)/2
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

func bigbirdBlocks(s Spec) float64 {
	if s.Density == 0 {
		return 0
	}
	return max(float64(s.BlockRows), bernoulliBlocks(s))
}

func blockDiagonalBlocks(s Spec) float64 {
	if s.Density == 0 {
		return 0
	}
	return s.places() / float64(squares(s))
}

func stencilBlocks(s Spec) float64 {
	return float64(s.BlockRows) * float64(min(7, s.BlockCols))
}

// stencil27Blocks has three neighbours along each axis, and one less at both ends.
func stencil27Blocks(s Spec) float64 {
	side := math.Cbrt(float64(s.BlockCols))
	along := max(1, 3-2/side)
	return float64(s.BlockRows) * min(float64(s.BlockCols), along*along*along)
}
