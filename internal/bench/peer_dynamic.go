// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"time"

	"github.com/sparsek/sparsek/internal/bench/workload"
	"github.com/sparsek/sparsek/internal/sys/stats"
	sparsek "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/timing"
)

// DynamicMethod says how steps of a new pattern each are timed.
const DynamicMethod = "A step of new_pattern makes a matrix of device arrays, a plan and a product of it, and lets matrix and plan go, all in the order of one stream; " +
	"a step of update gives one plan the index again, and multiplies; a step of same_pattern only multiplies. A time is that of a step of many, by the wall clock until the last has ended; " +
	"those with _host are what the calls of a step take on the host, which waits for none; update_graph is such a step in a CUDA graph of many, replayed. While another kernel holds an SM, another stream is busy."

// stepsAtOnce are so many that the host runs ahead of the GPU or the other way round, and few enough that the host's
// calls never wait for room in the queue of launches.
const stepsAtOnce = 48

// dynamic is ours again with a pattern that is new with each step.
type dynamic[T sparsek.Element] struct{}

// steps is what such steps work on.
type steps[T sparsek.Element] struct {
	stream   *sparsek.Stream
	a        sparsek.DeviceBSR[T, int32]
	n        int
	operands sparsek.Operands
	matrix   *sparsek.Matrix // for update
	plan     *sparsek.Plan
}

func (dynamic[T]) enter(ctx context.Context, s *subject[T]) (list []entrant, err error) {
	if s.engine.Info().Backend != sparsek.CUDA {
		return nil, &missing{Dynamic, "the CPU back-end takes no device arrays", "use a GPU"}
	}
	d, err := newSteps(ctx, s)
	if err != nil {
		return nil, errors.Join(err, d.close())
	}
	inStream := func(ctx context.Context) error { return d.update(ctx, d.stream) }
	same := func(ctx context.Context) error { return d.plan.Enqueue(ctx, d.stream, 1, 0, d.operands) }
	for _, one := range []struct {
		name, about string
		step        func(context.Context) error
	}{{"same_pattern", "product", same}, {"new_pattern", "matrix, plan and product", d.newPattern}, {"update", "plan_update and product", inStream}} {
		for _, host := range []bool{false, true} {
			e := entrant{name: one.name, kernel: d.plan.Info().Kernel + ", " + one.about, time: d.timer(one.step, host)}
			if host {
				e.name, e.host = one.name+"_host", true
			}
			if err := tryOnce(ctx, &e, ""); err != nil {
				return nil, errors.Join(err, d.close())
			}
			list = append(list, e)
		}
	}
	graph := entrant{name: "update_graph", kernel: d.plan.Info().Kernel + ", plan_update and product, replayed", repeats: replays,
		time: func(ctx context.Context, repeats int) ([]time.Duration, error) {
			return timing.Replay(ctx, s.engine, timing.ReplayOptions{Steps: stepsAtOnce, Warmup: 1, Repeats: repeats}, d.update)
		}}
	list[0].close = d.close
	if err := tryOnce(ctx, &graph, ""); err != nil {
		return list, err
	}
	return append(list, graph), nil
}

// newSteps puts the operands where the steps read them. What it gives must be closed, also after an error.
func newSteps[T sparsek.Element](ctx context.Context, s *subject[T]) (d *steps[T], err error) {
	d = &steps[T]{n: s.shape.N, operands: s.operands()[0]}
	d.a = sparsek.DeviceBSR[T, int32]{Rows: s.a.Rows, Cols: s.a.Cols, BlockM: s.a.BlockM, BlockK: s.a.BlockK}
	if d.stream, err = s.engine.NewStream(); err != nil {
		return d, err
	}
	if d.a.RowPtr, err = workload.Upload(ctx, s.engine, s.a.RowPtr); err != nil {
		return d, err
	}
	if d.a.ColIdx, err = workload.Upload(ctx, s.engine, s.a.ColIdx); err != nil {
		return d, err
	}
	if d.a.Values, err = workload.Upload(ctx, s.engine, s.a.Values); err != nil {
		return d, err
	}
	if d.matrix, err = sparsek.NewDeviceMatrixIn(ctx, d.stream, d.a); err != nil {
		return d, err
	}
	d.plan, err = d.matrix.Plan(ctx, sparsek.PlanOptions{N: d.n})
	return d, err
}

func (d *steps[T]) close() error {
	var err error
	if d.plan != nil {
		err = errors.Join(err, d.plan.Close())
	}
	if d.matrix != nil {
		err = errors.Join(err, d.matrix.Close())
	}
	if d.stream != nil {
		err = errors.Join(err, d.stream.Close())
	}
	for _, buffer := range []*sparsek.DeviceBuffer[int32]{d.a.RowPtr, d.a.ColIdx} {
		if buffer != nil {
			err = errors.Join(err, buffer.Close())
		}
	}
	if d.a.Values != nil {
		err = errors.Join(err, d.a.Values.Close())
	}
	return err
}

func (d *steps[T]) newPattern(ctx context.Context) error {
	m, err := sparsek.NewDeviceMatrixIn(ctx, d.stream, d.a)
	if err != nil {
		return err
	}
	plan, err := m.Plan(ctx, sparsek.PlanOptions{N: d.n})
	if err != nil {
		return errors.Join(err, m.Release(d.stream))
	}
	return errors.Join(plan.Enqueue(ctx, d.stream, 1, 0, d.operands), plan.Release(d.stream), m.Release(d.stream))
}

func (d *steps[T]) update(ctx context.Context, stream *sparsek.Stream) error {
	index := d.a
	index.Values = nil // the matrix's
	return errors.Join(sparsek.UpdatePlan(ctx, stream, d.plan, index), d.plan.Enqueue(ctx, stream, 1, 0, d.operands))
}

// timer times steps: each of many, or what one takes on the host.
func (d *steps[T]) timer(step func(context.Context) error, host bool) func(ctx context.Context, repeats int) ([]time.Duration, error) {
	return func(ctx context.Context, repeats int) ([]time.Duration, error) {
		times := make([]time.Duration, repeats)
		calls := make([]time.Duration, stepsAtOnce)
		for i := range times {
			begin := time.Now()
			for j := range calls {
				start := time.Now()
				if err := step(ctx); err != nil {
					return nil, errors.Join(err, d.stream.Wait(ctx))
				}
				calls[j] = time.Since(start)
			}
			if err := d.stream.Wait(ctx); err != nil {
				return nil, err
			}
			times[i] = time.Since(begin) / stepsAtOnce
			if host {
				times[i] = stats.Median(calls)
			}
		}
		return times, nil
	}
}
