// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestSummarise(t *testing.T) {
	values := []time.Duration{40, 10, 30, 20, 51}
	got := Summarise(values)
	if want := (Summary[time.Duration]{5, 30, 20, 40}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if !slices.Equal(values, []time.Duration{40, 10, 30, 20, 51}) {
		t.Error("the values were sorted in place")
	}
	if got := Summarise([]time.Duration{10, 20, 31, 40}); got.Median != 26 || got.Quarter != 18 || got.ThreeQuarters != 33 { // 25.5, 17.5, 33.25
		t.Errorf("%+v", got)
	}
	if got := Summarise([]float64{1, 2}); got.Median != 1.5 || got.Quarter != 1.25 || got.ThreeQuarters != 1.75 || got.Spread() != 0.5/1.5 {
		t.Errorf("%+v", got)
	}
	if one := Summarise([]float64{7}); one != (Summary[float64]{1, 7, 7, 7}) || Median([]float64{7}) != 7 {
		t.Errorf("%+v", one)
	}
	if (Summary[float64]{}).Spread() != 0 {
		t.Error("a spread of nothing")
	}
}

func TestTie(t *testing.T) {
	wide, narrow := Summary[time.Duration]{9, 100, 95, 105}, Summary[time.Duration]{9, 110, 110, 111}
	if !wide.Tie(narrow) || !narrow.Tie(wide) {
		t.Error("medians that are 10 apart, with quartiles that are 10 apart, are not a tie")
	}
	narrow.Median = 111
	if wide.Compare(narrow) != -1 || narrow.Compare(wide) != 1 || wide.Tie(narrow) {
		t.Error("medians that are 11 apart, with quartiles that are 10 apart, are a tie")
	}
}

// The median is in the middle, the quartiles are around it, and a series ties with itself.
func TestOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Float64Range(0, 1e6), 1, 40).Draw(t, "values")
		s := Summarise(values)
		if !(slices.Min(values) <= s.Quarter && s.Quarter <= s.Median && s.Median <= s.ThreeQuarters && s.ThreeQuarters <= slices.Max(values)) {
			t.Fatalf("%+v", s)
		}
		if !s.Tie(s) {
			t.Fatalf("%+v is no tie with itself", s)
		}
	})
}
