// SPDX-License-Identifier: Apache-2.0

package pair

import (
	"math"
	"slices"
)

// confidence is that of the intervals, at least.
const confidence = 0.99

// Interval is where the true ratio lies, with at least the confidence of 99 %.
type Interval struct {
	Ratio float64 `json:"ratio"` // of the candidate's time to the blessed one's: the median over the rounds
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// intervalOf is that of the median of at least 8 log ratios. It presumes nothing of their distribution but that they are
// independent: the median lies between two of them, in their order, unless nearly all fell on one side of it. A sign
// test gives the probability of that.
func intervalOf(logs []float64) Interval {
	sorted := slices.Sorted(slices.Values(logs))
	k := outermost(len(sorted))
	return Interval{math.Exp(median(sorted)), math.Exp(sorted[k]), math.Exp(sorted[len(sorted)-1-k])}
}

// outermost is the largest k for which the median of n values lies between the k-th of them and the k-th from behind,
// counted from 0, with the confidence wanted. With fewer than 8 values it is 0, and the confidence is less.
func outermost(n int) int {
	tail, choose := 0., math.Pow(0.5, float64(n)) // the probability that at most k values are below the median
	for k := 0; ; k++ {
		tail += choose
		choose *= float64(n-k) / float64(k+1)
		if 1-2*(tail+choose) < confidence {
			return k
		}
	}
}

// Slower says whether the candidate is slower by more than the margin, with confidence.
func (i Interval) Slower(margin float64) bool { return i.Low > 1+margin }

// Decided says whether the interval lies on one side of the margin.
func (i Interval) Decided(margin float64) bool { return i.Slower(margin) || i.High <= 1+margin }
