// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	sparsek "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/timing"
)

// HeldMethod says how products are timed while SMs are held.
const HeldMethod = "Some turns begin with a kernel that holds so many SMs of the GPU: each of its CTAs has one SM for itself, takes all of its " +
	"shared memory and waits, almost without other traffic, until the turn is over. Timing begins when all of them run. The ratio is that to the time of the same " +
	"product with no SM held, in the same rounds."

// longestHeld is for how long SMs are held at most: many times what a turn takes, so that a turn which waits for the
// whole device fails and does not hang.
const longestHeld = 10 * time.Second

// withHeld adds to each entrant the same while each of the counts of SMs is held.
func withHeld(engine *sparsek.Engine, list []entrant, counts []int) []entrant {
	return heldBy(list, counts, func(ctx context.Context, count int) (release func() error, err error) {
		hold, err := timing.HoldSMs(ctx, engine, count, longestHeld)
		if err != nil {
			return nil, err
		}
		return hold.Release, nil
	})
}

// heldBy is withHeld with the function that holds SMs until its release is called. Products on a full matrix and those in
// a graph are left out: they would say nothing more.
func heldBy(list []entrant, counts []int, hold func(ctx context.Context, count int) (release func() error, err error)) []entrant {
	all := list
	for _, count := range counts {
		for _, e := range list {
			if e.full || e.name == OursGraph {
				continue
			}
			alone := e.time
			e.of, e.held, e.name = e.name, count, fmt.Sprintf("%s_held_%d", e.name, count)
			e.run, e.close = nil, nil // those of the entrant without held SMs
			e.time = func(ctx context.Context, repeats int) (times []time.Duration, err error) {
				release, err := hold(ctx, count)
				if err != nil {
					return nil, err
				}
				defer func() { err = errors.Join(err, release()) }()
				return alone(ctx, repeats)
			}
			all = append(all, e)
		}
	}
	return all
}
