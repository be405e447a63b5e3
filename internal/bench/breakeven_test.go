// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// With times that are straight lines the break-even is exact, wherever it was measured; the tie is around it.
func TestBreakEven(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fixed := rapid.Float64Range(0, 0.9).Draw(t, "fixed")
		slope := rapid.Float64Range(0.01, 5).Draw(t, "slope")
		slack := rapid.Float64Range(0, 0.3).Draw(t, "slack")
		densities := rapid.SliceOfNDistinct(rapid.IntRange(1, 100), 2, 10, rapid.ID[int]).Draw(t, "densities")
		var samples []sample
		low, high := 1.0, 0.0
		for _, percent := range densities {
			d := float64(percent) / 100
			low, high = min(low, d), max(high, d)
			samples = append(samples, sample{d, fixed + slope*d, slack})
		}
		got, ok := breakEven(samples)
		if !ok || got.Lowest != low || got.Highest != high {
			t.Fatalf("%+v", got)
		}
		at := func(slack float64) float64 { return (1 - fixed - slack) / slope }
		want := at(0)
		const near = 1e-9
		switch {
		case want > high+near:
			if got.Where != NotReached {
				t.Fatalf("%+v, want none up to %v", got, high)
			}
		case want < low-near:
			if got.Where != Below {
				t.Fatalf("%+v, want it below %v", got, low)
			}
		case want > low+near && want < high-near:
			if got.Where != Found || math.Abs(got.Density-want) > near {
				t.Fatalf("%+v, want %v", got, want)
			}
			if got.TieFrom > got.Density+near || got.TieTo < got.Density-near || got.TieFrom < low-near || got.TieTo > high+near {
				t.Fatalf("%+v: the tie is not around it", got)
			}
		}
		// The tie is where the line is within the slack of 1, wherever the break-even is.
		from, to := max(low, at(slack)), min(high, at(-slack))
		switch {
		case from > to+near || slack == 0 && got.Where != Found:
			if got.TieFrom != 0 || got.TieTo != 0 {
				t.Fatalf("%+v: a tie where there is none", got)
			}
		case from < to-near:
			if math.Abs(got.TieFrom-from) > near || math.Abs(got.TieTo-to) > near {
				t.Fatalf("%+v: want a tie from %v to %v", got, from, to)
			}
		}
	})
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
