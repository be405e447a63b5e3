// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// With times that are straight lines the break-even is exact, wherever it was measured; ties are around it.
func TestBreakEven(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fixed := rapid.Float64Range(0, 0.9).Draw(t, "fixed")
		slope := rapid.Float64Range(0.01, 5).Draw(t, "slope")
		slack := rapid.Float64Range(0, 0.3).Draw(t, "slack")
		densities := rapid.SliceOfNDistinct(rapid.IntRange(1, 100), 2, 10, rapid.ID[int]).Draw(t, "densities")
		var samples []sample
		var of [3][]float64 // densities at which ours is faster, ties and is slower
		slices.Sort(densities)
		for _, percent := range densities {
			d := float64(percent) / 100
			ratio := fixed + slope*d
			order := 0
			if math.Abs(ratio-1) > slack {
				order = cmp.Compare(ratio, 1)
			}
			of[order+1] = append(of[order+1], d)
			samples = append(samples, sample{d, ratio, order})
		}
		got, ok := breakEven(rapid.Permutation(samples).Draw(t, "order"))
		if !ok || got.Lowest != samples[0].density || got.Highest != samples[len(samples)-1].density || got.OddTies != nil || got.OddSlower != nil {
			t.Fatalf("%+v", got)
		}
		faster, ties, slower := of[0], of[1], of[2]
		want := map[[2]bool]Where{{true, true}: Found, {true, false}: NotReached, {false, true}: Below, {false, false}: AllTies}[[2]bool{len(faster) > 0, len(slower) > 0}]
		if got.Where != want {
			t.Fatalf("%+v, want %v", got, want)
		}
		if want == Found && math.Abs(got.Density-(1-fixed)/slope) > 1e-9 {
			t.Fatalf("%+v, want %v", got, (1-fixed)/slope)
		}
		if len(faster) > 0 && got.Faster != slices.Max(faster) || len(slower) > 0 && got.Slower != slices.Min(slower) {
			t.Fatalf("%+v: faster at %v, slower at %v", got, faster, slower)
		}
		if len(ties) > 0 && (got.TieFrom != slices.Min(ties) || got.TieTo != slices.Max(ties)) || len(ties) == 0 && (got.TieFrom != 0 || got.TieTo != 0) {
			t.Fatalf("%+v, ties at %v", got, ties)
		}
	})
}

// One noisy sample among others that are clear is named, and moves nothing.
func TestBreakEvenNoise(t *testing.T) {
	list := []sample{{0.1, 0.14, -1}, {0.203, 0.97, 0}, {0.3, 0.18, -1}, {0.5, 0.33, -1}, {0.7, 0.45, -1}, {1, 0.55, -1}}
	if got, ok := breakEven(list); !ok || got.Where != NotReached || got.Faster != 1 || got.TieFrom != 0 || !slices.Equal(got.OddTies, []float64{0.203}) {
		t.Errorf("a tie below: %+v", got)
	}
	list[1] = sample{0.203, 1.6, 1}
	if got, _ := breakEven(list); got.Where != NotReached || !slices.Equal(got.OddSlower, []float64{0.203}) || got.OddTies != nil {
		t.Errorf("slower below: %+v", got)
	}
	list = append(list[:4], sample{0.7, 0.99, 0}, sample{0.8, 1.02, 0}, sample{1, 1.5, 1})
	if got, _ := breakEven(list); got.Where != Found || got.Density < 0.7 || got.Density > 0.8 || got.TieFrom != 0.7 || got.TieTo != 0.8 || got.Faster != 0.5 || got.Slower != 1 {
		t.Errorf("found, with noise below: %+v", got)
	}
}

// Each block size has its own, against each dense peer; what is not dense, or of a file, has none.
func TestBreakEvens(t *testing.T) {
	result := func(block int, density, ours, dense float64, pattern string) *Result {
		return &Result{BlockM: block, BlockK: block, M: 8, N: 8, K: 8, Density: density, Pattern: pattern, Timed: []Timed{
			{Name: Ours, Seconds: ours}, {Name: CUBLAS, Seconds: dense, Dense: true}, {Name: "cusparse_bsr", Seconds: dense},
		}}
	}
	got := BreakEvens([]*Result{
		result(16, 0.1, 1, 2, "random"), result(16, 0.5, 3, 2, "random"),
		result(64, 0.1, 1, 2, "random"), result(64, 0.5, 1.5, 2, "random"), result(64, 0.5, 1, 2, "window"),
		result(32, 0.1, 3, 2, "random"), result(32, 0.5, 4, 2, "random"),
		result(128, 0.1, 3, 2, ""), result(128, 0.5, 4, 2, ""),
	})
	if len(got) != 3 {
		t.Fatalf("%+v", got)
	}
	if got[0].Where != Found || math.Abs(got[0].Density-0.3) > 1e-12 || got[0].Against != CUBLAS || got[0].BlockM != 16 {
		t.Errorf("%+v", got[0])
	}
	if got[1].Where != NotReached || got[1].Highest != 0.5 || got[1].BlockM != 64 {
		t.Errorf("%+v", got[1])
	}
	if got[2].Where != Below || got[2].Lowest != 0.1 {
		t.Errorf("%+v", got[2])
	}
}
