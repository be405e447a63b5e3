// SPDX-License-Identifier: Apache-2.0

// Package stats has the median, the quartiles, and the one rule by which two series of measurements are a tie.
package stats

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Number is a measured value: a time, or a number of another unit.
type Number interface{ time.Duration | float64 }

// Summary describes a series of measurements of the same thing.
type Summary[T Number] struct {
	Runs                   int
	Median                 T
	Quarter, ThreeQuarters T // the first and the third quartile
}

// Summarise describes at least one value, in any order.
func Summarise[T Number](values []T) Summary[T] {
	sorted := slices.Sorted(slices.Values(values))
	return Summary[T]{len(sorted), quantile(sorted, 0.5), quantile(sorted, 0.25), quantile(sorted, 0.75)}
}

// Median is that of at least one value.
func Median[T Number](values []T) T { return quantile(slices.Sorted(slices.Values(values)), 0.5) }

// quantile interpolates between the two values around a place.
func quantile[T Number](sorted []T, q float64) T {
	place := q * float64(len(sorted)-1)
	low := int(place)
	between := (place - float64(low)) * float64(sorted[min(low+1, len(sorted)-1)]-sorted[low])
	if _, whole := any(sorted[0]).(time.Duration); whole {
		between = math.Round(between)
	}
	return sorted[low] + T(between)
}

// Distance is that of the quartiles.
func (s Summary[T]) Distance() T { return s.ThreeQuarters - s.Quarter }

// Spread is the distance of the quartiles as a share of the median.
func (s Summary[T]) Spread() float64 {
	if s.Median == 0 {
		return 0
	}
	return float64(s.Distance()) / float64(s.Median)
}

// Compare is -1 where s is less than other, 1 where it is more, and 0 for a tie: the medians differ by no more than the
// larger distance of quartiles.
func (s Summary[T]) Compare(other Summary[T]) int {
	difference, distance := s.Median-other.Median, max(s.Distance(), other.Distance())
	if difference <= distance && -difference <= distance {
		return 0
	}
	return cmp.Compare(s.Median, other.Median)
}

// Tie reports whether neither is less than the other.
func (s Summary[T]) Tie(other Summary[T]) bool { return s.Compare(other) == 0 }
