// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"math"
	"slices"
	"time"
)

// Timing sums up the times of single products, all after a warm-up.
type Timing struct {
	Runs                   int
	Median                 time.Duration
	Quarter, ThreeQuarters time.Duration // a quarter of the runs took at most, and at least, so long
}

// Spread is the distance of the quartiles as a share of the median.
func (t Timing) Spread() float64 {
	if t.Median == 0 {
		return 0
	}
	return float64(t.ThreeQuarters-t.Quarter) / float64(t.Median)
}

// Tie tells whether the medians of two differ by no more than the distance of the quartiles of either: then neither is
// to be called faster.
func (t Timing) Tie(other Timing) bool {
	distance := max(t.ThreeQuarters-t.Quarter, other.ThreeQuarters-other.Quarter)
	return (t.Median - other.Median).Abs() <= distance
}

// Summarise sums up at least one time; it sorts them.
func Summarise(times []time.Duration) Timing {
	slices.Sort(times)
	n := len(times)
	at := func(q float64) time.Duration {
		place := q * float64(n-1)
		low := int(place)
		high := min(low+1, n-1)
		return times[low] + time.Duration(math.Round((place-float64(low))*float64(times[high]-times[low])))
	}
	return Timing{n, at(0.5), at(0.25), at(0.75)}
}
