// SPDX-License-Identifier: Apache-2.0

package timing

import (
	"context"
	"time"

	sparsek "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/internal/bridge"
)

// AttentionOptions say which calls of attention are timed.
type AttentionOptions struct {
	Backward bool // backward passes, which need O and LSE of forward ones; else forward passes
	// Taken in turn, so that operands which do not fit into the caches together are cold each time.
	Operands []sparsek.AttentionOperands
	// Calls that run, untimed, before each one that is timed: they have the device busy while the timed one is enqueued, so
	// that its time holds nothing of the host.
	Between int
	Repeats int // at least 1
}

// Attention times calls of an attention, by CUDA events on a GPU. It waits for the device. ctx is looked at before each
// timed call.
func Attention(ctx context.Context, a *sparsek.Attention, o AttentionOptions) ([]time.Duration, error) {
	const op = "time attention"
	use, err := bridge.BeginAttention(ctx, op, a, o.Operands, o.Backward)
	if err != nil {
		return nil, err
	}
	defer use.End()
	if o.Repeats < 1 || o.Between < 0 {
		return nil, fault(op, "%d repeats with %d calls between them", o.Repeats, o.Between)
	}
	turn := 0
	next := func() int {
		turn++
		return (turn - 1) % len(use.Args)
	}
	var times []time.Duration
	for range o.Repeats {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		for range o.Between {
			if err := use.Native.AttentionRun(op, use.Pointer, use.Args[next()], o.Backward); err != nil {
				return nil, err
			}
		}
		var seconds [1]float64
		if err := use.Native.AttentionTime(use.Pointer, use.Args[next()], o.Backward, 0, seconds[:]); err != nil {
			return nil, err
		}
		times = append(times, durations(seconds[:])...)
	}
	return times, nil
}
