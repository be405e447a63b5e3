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
	// Found: the density at which straight lines between the measured densities cross the dense product's time.
	Density float64 `json:"density,omitempty"`
	// The highest density at which ours was faster, and the lowest one above it at which it was slower; 0: none.
	Faster float64 `json:"faster,omitempty"`
	Slower float64 `json:"slower,omitempty"`
	// The lowest and the highest density between these two at which they were a tie; both 0 where there is none.
	TieFrom float64 `json:"tie_from,omitempty"`
	TieTo   float64 `json:"tie_to,omitempty"`
	// Densities below Faster at which ours was not faster: noise, most of the time.
	OddTies   []float64 `json:"odd_ties,omitempty"`
	OddSlower []float64 `json:"odd_slower,omitempty"`
	// The lowest and the highest density that were measured.
	Lowest  float64 `json:"lowest"`
	Highest float64 `json:"highest"`
}

// Where says where a break-even is.
type Where string

const (
	Found      Where = "found"
	NotReached Where = "not reached"  // ours was slower at no density above the highest at which it was faster
	Below      Where = "below lowest" // ours was faster nowhere, and slower somewhere
	AllTies    Where = "all ties"
)

// sample is a measured density: the time of ours as a share of the dense product's, and whether ours takes less (-1),
// takes more (1) or ties (0).
type sample struct {
	density, ratio float64
	order          int
}

// BreakEvens finds the break-even of each block size and dense peer, where at least two densities of a pattern and a
// size were measured. It is that of straight lines between the measured densities. Results with held SMs have another
// purpose, and none.
func BreakEvens(results []*Result) []BreakEven {
	type group struct {
		blockM, blockK, m, n, k int
		pattern, dtype, against string
	}
	var order []group
	samples := map[group][]sample{}
	for _, r := range results {
		ours := r.Find(Ours)
		if ours == nil || r.Pattern == "" || r.held() {
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
			samples[g] = append(samples[g], sample{r.Density, ours.Seconds / t.Seconds, ours.Summary().Compare(t.Summary())})
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
	faster := -1 // the last place
	for i, s := range samples {
		if s.order < 0 {
			faster = i
		}
	}
	for _, s := range samples[:max(0, faster)] {
		switch s.order {
		case 0:
			b.OddTies = append(b.OddTies, s.density)
		case 1:
			b.OddSlower = append(b.OddSlower, s.density)
		}
	}
	slower := len(samples) // the first place behind it
	for i := faster + 1; i < len(samples); i++ {
		if samples[i].order > 0 {
			slower = i
			break
		}
		if b.TieTo = samples[i].density; b.TieFrom == 0 {
			b.TieFrom = b.TieTo
		}
	}
	if faster >= 0 {
		b.Faster = samples[faster].density
	}
	if slower < len(samples) {
		b.Slower = samples[slower].density
	}
	switch {
	case faster >= 0 && slower < len(samples):
		b.Where, b.Density = Found, crossing(samples[faster:slower+1])
	case faster >= 0:
		b.Where = NotReached
	case slower < len(samples):
		b.Where = Below
	default:
		b.Where = AllTies
	}
	return b, true
}

// crossing is the first density at which the ratio is 1, of samples whose first is below that and whose last is above.
func crossing(samples []sample) float64 {
	i := 1
	for samples[i].ratio < 1 {
		i++
	}
	low, high := samples[i-1], samples[i]
	return low.density + (1-low.ratio)/(high.ratio-low.ratio)*(high.density-low.density)
}
