// SPDX-License-Identifier: Apache-2.0

// Package interleave times several products in turn, so that chip and cooling are the same for all.
package interleave

import (
	"context"
	"slices"
	"time"
)

// Timer times that many products.
type Timer func(ctx context.Context, repeats int) ([]time.Duration, error)

// Turn is what one of several has in each round.
type Turn struct {
	Time    Timer
	Repeats int
}

// Series are the times of one that took turns: a list for each round.
type Series [][]time.Duration

// All are the times of all rounds.
func (s Series) All() []time.Duration { return slices.Concat(s...) }

// Rest is the idle time before each turn after which a GPU's clock no longer depends on the products before
// (docs/notes/measuring.md, "Rests between turns").
const Rest = 20 * time.Millisecond

// Interleave lets timers take turns, each after a rest, and gives all times of each. An error that a timer gives ends it,
// and so does ctx.
func Interleave(ctx context.Context, rounds int, rest time.Duration, turns []Turn) ([]Series, error) {
	all := make([]Series, len(turns))
	for range rounds {
		for i, t := range turns {
			if err := Sleep(ctx, rest); err != nil {
				return nil, err
			}
			times, err := t.Time(ctx, t.Repeats)
			if err != nil {
				return nil, err
			}
			all[i] = append(all[i], times)
		}
	}
	return all, nil
}

// Sleep waits that long, or until ctx is done.
func Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

const (
	// MostRepeats is how many products are timed in a round at most.
	MostRepeats = 8
	// seconds that the products of a round should take at most, so that a slow kernel does not hold up all.
	longestRound = 10e-3
)

// Repeats is how many products, which take about as long as `one`, are timed in a round.
func Repeats(one time.Duration) int {
	if one <= 0 {
		return MostRepeats
	}
	return min(MostRepeats, max(1, int(longestRound/one.Seconds())))
}
