// SPDX-License-Identifier: Apache-2.0

package timing

import (
	"context"
	"errors"
	"time"

	sparsek "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/internal/foreign"
)

// ReplayOptions say what [Replay] times.
type ReplayOptions struct {
	Steps   int // in the graph
	Warmup  int // replays before the first that counts
	Repeats int // replays that count, at least 1
}

// Replay times steps without the host: it captures what `step` puts into a stream, Steps times, into a CUDA graph and
// replays that. It gives the time of each of the last Repeats replays by the wall clock, divided by Steps. A step must
// have been run once before, since CUDA loads kernels then; it must not wait, and what it uses stays open. On the CPU
// the error is [sparsek.ErrNoDevice]. It waits for the replays. ctx is looked at before each.
func Replay(ctx context.Context, engine *sparsek.Engine, o ReplayOptions, step func(context.Context, *sparsek.Stream) error) (times []time.Duration, err error) {
	const op = "time steps in a graph"
	if o.Steps < 1 || o.Repeats < 1 || o.Warmup < 0 {
		return nil, fault(op, "%d replays of %d steps after %d replays to warm up", o.Repeats, o.Steps, o.Warmup)
	}
	info := engine.Info()
	if info.Backend != sparsek.CUDA {
		return nil, &sparsek.Error{Status: sparsek.ErrNoDevice, Op: op, Msg: "there are no graphs on the CPU"}
	}
	driver, err := foreign.Open(true, info.Device)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, driver.Close()) }()
	stream, err := engine.StreamAt(driver.Stream())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stream.Close()) }()
	graph, err := driver.Capture(foreign.CaptureRelaxed, func() error {
		for range o.Steps {
			if err := step(ctx, stream); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, graph.Close()) }()
	for i := range o.Warmup + o.Repeats {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		start := time.Now()
		if err := errors.Join(graph.Launch(), driver.Wait()); err != nil {
			return nil, err
		}
		if i >= o.Warmup {
			times = append(times, time.Since(start)/time.Duration(o.Steps))
		}
	}
	return times, nil
}
