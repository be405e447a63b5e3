// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"cmp"
	"slices"
)

// BreakEven is the density up to which ours is faster than a dense product, for blocks of one size.
type BreakEven struct {
	BlockM  int    `json:"block_m"`
	BlockK  int    `json:"block_k"`
	Against string `json:"against"` // the dense peer
	Where   Where  `json:"where"`
	// Found: the density, between the two measured ones around it.
	Density float64 `json:"density,omitempty"`
	// The densities between which the two are a tie, as far as they were measured; both 0 where there is none.
	TieFrom float64 `json:"tie_from,omitempty"`
	TieTo   float64 `json:"tie_to,omitempty"`
	// The lowest and the highest density that were measured.
	Lowest  float64 `json:"lowest"`
	Highest float64 `json:"highest"`
}

// Where says where a break-even is.
type Where string

const (
	Found      Where = "found"
	NotReached Where = "not reached"  // above the highest density that was measured
	Below      Where = "below lowest" // below the lowest one
)

// sample is a measured density: the time of ours as a share of the dense product's, and the share by which the two may
// differ and be a tie.
type sample struct{ density, ratio, slack float64 }

// BreakEvens finds the break-even of each block size and dense peer, where at least two densities of a pattern and a
// size were measured. It is that of straight lines between the measured densities.
func BreakEvens(results []*Result) []BreakEven {
	type group struct {
		blockM, blockK, m, n, k int
		pattern, dtype, against string
	}
	var order []group
	samples := map[group][]sample{}
	for _, r := range results {
		ours := r.Find(Ours)
		if ours == nil || r.Pattern == "" {
			continue
		}
		for _, t := range r.Timed {
			if !t.Dense || t.Seconds <= 0 {
				continue
			}
			g := group{r.BlockM, r.BlockK, r.M, r.N, r.K, r.Pattern, r.DType, t.Name}
			if samples[g] == nil {
				order = append(order, g)
			}
			slack := max(ours.Quartiles[1]-ours.Quartiles[0], t.Quartiles[1]-t.Quartiles[0]) / t.Seconds
			samples[g] = append(samples[g], sample{r.Density, ours.Seconds / t.Seconds, slack})
		}
	}
	var list []BreakEven
	for _, g := range order {
		if b, ok := breakEven(samples[g]); ok {
			b.BlockM, b.BlockK, b.Against = g.blockM, g.blockK, g.against
			list = append(list, b)
		}
	}
	return list
}

func breakEven(samples []sample) (b BreakEven, ok bool) {
	slices.SortFunc(samples, func(a, b sample) int { return cmp.Compare(a.density, b.density) })
	if len(samples) < 2 || samples[0].density == samples[len(samples)-1].density {
		return b, false
	}
	b.Lowest, b.Highest = samples[0].density, samples[len(samples)-1].density
	b.Density, b.Where = crossing(samples, func(s sample) float64 { return s.ratio })
	// Were ours slower, or faster, by what still is a tie, it would be here.
	from, first := crossing(samples, func(s sample) float64 { return s.ratio + s.slack })
	to, last := crossing(samples, func(s sample) float64 { return s.ratio - s.slack })
	if first == NotReached || last == Below {
		return b, true
	}
	b.TieFrom, b.TieTo = b.Lowest, b.Highest
	if first == Found {
		b.TieFrom = from
	}
	if last == Found {
		b.TieTo = to
	}
	return b, true
}

// crossing is the first density from which on the ratio is not below 1.
func crossing(samples []sample, ratio func(sample) float64) (float64, Where) {
	if ratio(samples[0]) >= 1 {
		return 0, Below
	}
	for i := 1; i < len(samples); i++ {
		low, high := ratio(samples[i-1]), ratio(samples[i])
		if high >= 1 {
			share := (1 - low) / (high - low)
			return samples[i-1].density + share*(samples[i].density-samples[i-1].density), Found
		}
	}
	return 0, NotReached
}
