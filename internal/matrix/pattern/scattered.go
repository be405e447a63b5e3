// SPDX-License-Identifier: Apache-2.0

package pattern

import (
	"math"
	"slices"

	"github.com/sparsek/sparsek/internal/matrix/rng"
)

// sampler draws columns without repetition. It keeps one permutation and shuffles its beginning further for every
// draw, so that a draw of k costs k steps whatever the number of columns.
type sampler struct {
	source      *rng.Source
	permutation []int32
}

func newSampler(source *rng.Source, columns int) *sampler {
	return &sampler{source, span(make([]int32, 0, columns), 0, columns)}
}

// draw returns k different columns in random order, valid until the next call.
func (s *sampler) draw(k int) []int32 {
	for i := range k {
		j := i + s.source.Below(len(s.permutation)-i)
		s.permutation[i], s.permutation[j] = s.permutation[j], s.permutation[i]
	}
	return s.permutation[:k]
}

func random(spec Spec, source *rng.Source) rows {
	k := perRow(spec.Density, spec.BlockCols)
	return lengths(spec, source, func(int) int { return k })
}

// lengths gives rows of the given lengths with their columns drawn at random.
func lengths(spec Spec, source *rng.Source, length func(r int) int) rows {
	s := newSampler(source, spec.BlockCols)
	var row []int32
	return func(r int) []int32 {
		row = append(row[:0], s.draw(length(r))...)
		slices.Sort(row)
		return row
	}
}

func bernoulli(spec Spec, source *rng.Source) rows {
	// A float64 holds 53 bits, so the comparison is exact and density 1 takes every block.
	below := uint64(spec.Density * (1 << 53))
	var row []int32
	return func(int) []int32 {
		row = row[:0]
		for c := range spec.BlockCols {
			if source.Uint64()>>11 < below {
				row = append(row, int32(c))
			}
		}
		return row
	}
}

// zipf uses sums, quotients and products of float64 only, each rounded by itself: no machine may fuse them or bring
// another logarithm.
func zipf(spec Spec, source *rng.Source) rows {
	sum := 0.0
	for rank := 1; rank <= spec.BlockRows; rank++ {
		sum += 1 / float64(rank)
	}
	total := spec.Density * float64(spec.BlockRows) * float64(spec.BlockCols)
	counts := make([]int, spec.BlockRows)
	for i := range counts {
		counts[i] = min(spec.BlockCols, int(math.RoundToEven(total/sum/float64(i+1))))
	}
	rng.Shuffle(source, counts)
	return lengths(spec, source, func(r int) int { return counts[r] })
}
