// SPDX-License-Identifier: Apache-2.0

// Package tunereval draws the products by which the tuner is judged: block shapes, patterns, densities and sizes of all
// kinds, the same for the same seed on every machine.
package tunereval

import (
	"fmt"
	"math"

	"github.com/sparsek/sparsek/internal/bench/workload"
	"github.com/sparsek/sparsek/internal/matrix/pattern"
	"github.com/sparsek/sparsek/internal/matrix/rng"
	"github.com/sparsek/sparsek/wrapper/bsr"
)

// Seed is that of the grid by which the tuner is judged. It was fixed before the cost model had any coefficient, and no
// coefficient was chosen by its figures: those come from grids of other seeds.
const Seed = 20261121

// Count is the number of cases of that grid.
const Count = 72

// Case is one product: C (M, N) = A (M, K) in blocks of BlockM x BlockK by B (K, N).
type Case struct {
	Number         int
	M, N, K        int
	BlockM, BlockK int
	Pattern        string  // of internal/matrix/pattern
	Density        float64 // wanted; not of every pattern
	Seed           uint64  // of the pattern and the values
}

// What is drawn from. Patterns and blocks come in turn, so that each is there equally often.
var (
	patterns = []string{"random", "window", "zipf", "causal", "bigbird", "blockdiag"}
	blocks   = [][2]int{{16, 16}, {32, 32}, {48, 48}, {64, 64}, {96, 96}, {128, 128}, {256, 256}, {64, 32}, {32, 64}, {128, 64}, {64, 64}}
	extents  = []int{1024, 2048, 4096, 8192}
)

// N and the density are drawn evenly on a logarithmic scale.
const (
	leastN, mostN             = 16, 8192
	multipleN                 = 8
	leastDensity, mostDensity = 0.01, 0.9
)

// Draw gives that many cases.
func Draw(seed uint64, count int) []Case {
	source := rng.New(seed)
	list := make([]Case, count)
	for i := range list {
		block := blocks[i%len(blocks)]
		list[i] = Case{
			Number: i + 1,
			M:      extents[source.Below(len(extents))], K: extents[source.Below(len(extents))],
			N:      logarithmic(source, leastN, mostN) / multipleN * multipleN,
			BlockM: block[0], BlockK: block[1],
			Pattern: patterns[i%len(patterns)],
			Density: float64(logarithmic(source, leastDensity*1e4, mostDensity*1e4)) / 1e4,
			Seed:    rng.Split(seed, uint64(i)),
		}
	}
	return list
}

// logarithmic draws a whole number from low to high, its logarithm evenly.
func logarithmic(source *rng.Source, low, high float64) int {
	const steps = 1 << 20
	share := float64(source.Below(steps+1)) / steps
	return int(math.Round(low * math.Pow(high/low, share)))
}

// Generate makes the pattern.
func (c Case) Generate() (bsr.Pattern, error) {
	return pattern.Generate(pattern.Spec{
		Name: c.Pattern, BlockRows: (c.M + c.BlockM - 1) / c.BlockM, BlockCols: (c.K + c.BlockK - 1) / c.BlockK,
		Density: c.Density, Seed: workload.PatternSeed(c.Seed),
	})
}

// String is how reports name the case.
func (c Case) String() string {
	return fmt.Sprintf("%dx%dx%d b%dx%d %s", c.M, c.N, c.K, c.BlockM, c.BlockK, c.Pattern)
}
