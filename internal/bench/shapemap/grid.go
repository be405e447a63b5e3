// SPDX-License-Identifier: Apache-2.0

// Package shapemap is the map of a library's speed over block sizes, columns, types and patterns: its points, what was
// measured of each, the file that it is kept in, and its pictures.
package shapemap

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sparsek/sparsek/internal/bench/workload"
	"github.com/sparsek/sparsek/internal/matrix/pattern"
	sparsek "github.com/sparsek/sparsek/wrapper"
)

// All there is on a map. Blocks are square.
var (
	Types  = []string{"bf16", "fp16", "fp32", "fp64"}
	Blocks = []int{1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 256}
	N      = []int{1, 2, 4, 8, 16, 32, 64, 128, 256, 1024, 4096}
)

// Pattern is a kind of matrix on the map.
type Pattern struct {
	Name    string
	of      string  // of package pattern
	density float64 // as far as it takes one; 0 with perRow
	perRow  float64 // blocks in a row on average
	extent  int     // rows and columns, about; 0: by the number of values
}

// Patterns are all kinds of matrices.
var Patterns = []Pattern{
	{Name: "random-1", of: "random", density: 0.01, extent: 8192},
	{Name: "random-12.5", of: "random", density: 0.125, extent: 4096},
	{Name: "window", of: "window", density: 0.125, extent: 4096},
	{Name: "stencil", of: "stencil27", perRow: 27},
	{Name: "power-law", of: "zipf", perRow: 16},
}

// PatternNames are those of Patterns.
func PatternNames() (names []string) {
	for _, p := range Patterns {
		names = append(names, p.Name)
	}
	return names
}

// Grid is a part of the map.
type Grid struct {
	Types, Patterns []string
	Blocks, N       []int
}

// Whole gives a grid all that it does not name. Without types it has those that the back-end multiplies, and on the CPU
// no more than 256 columns.
func (g Grid) Whole(backend sparsek.Backend) Grid {
	if len(g.Types) == 0 {
		g.Types = []string{"bf16", "fp32", "fp64"}
		if backend == sparsek.CPU {
			g.Types = []string{"fp32", "fp64"}
		}
	}
	if len(g.Patterns) == 0 {
		g.Patterns = PatternNames()
	}
	if len(g.Blocks) == 0 {
		g.Blocks = Blocks
	}
	if len(g.N) == 0 {
		g.N = N
		if backend == sparsek.CPU {
			g.N = N[:slices.Index(N, 256)+1]
		}
	}
	return g
}

// Check refuses what is not on the map.
func (g Grid) Check() error {
	for _, part := range []struct {
		what        string
		given, have []string
	}{
		{"type", g.Types, Types}, {"pattern", g.Patterns, PatternNames()}, {"block", words(g.Blocks), words(Blocks)}, {"N", words(g.N), words(N)},
	} {
		for _, one := range part.given {
			if !slices.Contains(part.have, one) {
				return fmt.Errorf("the map has no %s %s: take some of %s", part.what, one, strings.Join(part.have, ","))
			}
		}
	}
	return nil
}

func words(list []int) (out []string) {
	for _, v := range list {
		out = append(out, fmt.Sprint(v))
	}
	return out
}

// Matrix is one matrix of the map, and the columns of B that it is to be multiplied with.
type Matrix struct {
	DType   string
	Pattern string
	Block   int
	N       []int
}

// order is that in which blocks are measured: where the time ends before the map is whole, what is there is spread.
var order = []int{16, 1, 64, 4, 256, 8, 32, 3, 128, 2, 48, 12, 6, 24, 96}

// Matrices are those of the grid, in the order in which they are measured: type by type.
func (g Grid) Matrices() (list []Matrix) {
	blocks := slices.SortedFunc(slices.Values(g.Blocks), func(a, b int) int {
		return cmp.Compare(slices.Index(order, a), slices.Index(order, b))
	})
	for _, dtype := range g.Types {
		for _, block := range blocks {
			for _, name := range g.Patterns {
				list = append(list, Matrix{dtype, name, block, g.N})
			}
		}
	}
	return list
}

// The least number of block rows of a matrix whose size is chosen by its values: below it a stencil would have no inside.
const fewestRows = 64

// Spec is the pattern of a matrix. Its blocks are as many as suit the back-end: large enough to be worth a GPU, or to be
// measured in a few milliseconds on the CPU.
func (m Matrix) Spec(backend sparsek.Backend, seed uint64) pattern.Spec {
	p := Patterns[slices.IndexFunc(Patterns, func(p Pattern) bool { return p.Name == m.Pattern })]
	spec := pattern.Spec{Name: p.of, Density: p.density, Seed: workload.PatternSeed(seed)}
	values, extent := 4e6, p.extent
	if backend == sparsek.CPU {
		values, extent = 1e6, p.extent/2
	}
	if extent > 0 {
		spec.BlockRows = (extent + m.Block - 1) / m.Block
	} else {
		rows := values / (p.perRow * float64(m.Block*m.Block))
		side := math.Round(math.Cbrt(max(fewestRows, rows)))
		spec.BlockRows = int(side * side * side)
		spec.Density = min(1, p.perRow/float64(spec.BlockRows))
	}
	spec.BlockCols = spec.BlockRows
	return spec
}
