// SPDX-License-Identifier: Apache-2.0

package roofline

import (
	"context"
	"time"
)

// timer times that many products.
type timer func(ctx context.Context, repeats int) ([]time.Duration, error)

// schedule says how two timers take turns: chip and cooling are then the same for both.
type schedule struct {
	rounds      int
	ours, dense int // products of each in a round
}

// interleave runs the schedule and gives all times. dense may be nil.
func (s schedule) interleave(ctx context.Context, ours, dense timer) (ourTimes, denseTimes []time.Duration, err error) {
	for range s.rounds {
		times, err := ours(ctx, s.ours)
		if err != nil {
			return nil, nil, err
		}
		ourTimes = append(ourTimes, times...)
		if dense == nil {
			continue
		}
		if times, err = dense(ctx, s.dense); err != nil {
			return nil, nil, err
		}
		denseTimes = append(denseTimes, times...)
	}
	return ourTimes, denseTimes, nil
}

const (
	mostOurs     = 8
	densePer     = 4
	roundSeconds = 10e-3 // that our products of a round should take at most, so that a slow kernel does not hold up all
)

// newSchedule plans rounds for products that take about as long as `one`.
func newSchedule(rounds int, one time.Duration) schedule {
	ours := mostOurs
	if one > 0 {
		ours = min(mostOurs, max(1, int(roundSeconds/one.Seconds())))
	}
	return schedule{rounds, ours, densePer}
}
