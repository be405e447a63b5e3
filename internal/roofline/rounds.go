// SPDX-License-Identifier: Apache-2.0

package roofline

import (
	"context"
	"time"
)

// timer times that many products.
type timer func(ctx context.Context, repeats int) ([]time.Duration, error)

// turn is what one of several has in each round.
type turn struct {
	time    timer
	repeats int
}

// interleave lets timers take turns, so that chip and cooling are the same for all, and gives all times of each.
func interleave(ctx context.Context, rounds int, turns []turn) ([][]time.Duration, error) {
	all := make([][]time.Duration, len(turns))
	for range rounds {
		for i, t := range turns {
			times, err := t.time(ctx, t.repeats)
			if err != nil {
				return nil, err
			}
			all[i] = append(all[i], times...)
		}
	}
	return all, nil
}

// What is timed in a round.
const (
	mostOurs     = 8
	densePer     = 4
	replaysPer   = 4     // of a graph
	roundSeconds = 10e-3 // that our products of a round should take at most, so that a slow kernel does not hold up all
)

// oursPer is how many of our products, which take about as long as `one`, are timed in a round.
func oursPer(one time.Duration) int {
	if one <= 0 {
		return mostOurs
	}
	return min(mostOurs, max(1, int(roundSeconds/one.Seconds())))
}
