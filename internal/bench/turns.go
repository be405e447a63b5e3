// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/sparsek/sparsek/internal/bench/interleave"
	"github.com/sparsek/sparsek/internal/bench/workload"
	"github.com/sparsek/sparsek/internal/machine/nvsmi"
)

// timeAll fills in what the entrants take, in turn and then, where that is asked for, under sustained load. load is ours once more.
func (r *Runner) timeAll(ctx context.Context, out *Result, entrants []entrant, load interleave.Timer) error {
	if err := r.takeTurns(ctx, out, entrants, load); err != nil {
		return err
	}
	return r.sustain(ctx, out, entrants)
}

// takeTurns runs the rounds.
func (r *Runner) takeTurns(ctx context.Context, out *Result, entrants []entrant, load interleave.Timer) (err error) {
	var turns []interleave.Turn
	for _, e := range entrants {
		turns = append(turns, interleave.Turn{Repeats: e.repeats, Time: func(ctx context.Context, repeats int) ([]time.Duration, error) {
			times, err := e.time(ctx, repeats)
			if err != nil && ctx.Err() == nil {
				err = fmt.Errorf("time %s: %w", e.name, err)
			}
			return times, err
		}})
	}
	out.Before = r.look(ctx)
	all, err := interleave.Interleave(ctx, r.options.Rounds, workload.Rest(r.engine), turns)
	if err != nil {
		return err
	}
	out.After, err = nvsmi.LookWhile(ctx, r.look, func(ctx context.Context) error {
		_, err := load(ctx, interleave.MostRepeats)
		return err
	})
	if err != nil {
		return err
	}
	for i, e := range entrants {
		out.Timed = append(out.Timed, newTimed(e, all[i], out.EffectiveFLOP, out.DenseFLOP))
	}
	out.compare()
	return nil
}
