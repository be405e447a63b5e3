// SPDX-License-Identifier: Apache-2.0

package sparsek

import (
	"context"
	"runtime"
	"time"
)

// TurnOptions say what TimeInTurn times.
type TurnOptions[T Element] struct {
	TimeOptions[T]
	// Products that run, untimed, before each one that is timed: they have the device busy while the timed one is
	// enqueued, so that its time holds nothing of the host.
	Between int
}

// TimeInTurn is [Plan.Time] with several plans of one context: product i is that of plans[i % len(plans)] with
// Operands[i % len(Operands)]. With plans of equal matrices, each with its values in memory of its own, A is as cold in
// the caches as rotated operands make B and C. opts are for each of the plans. ctx is looked at before each timed
// product.
func TimeInTurn[T Element](ctx context.Context, plans []*Plan[T], options TurnOptions[T], opts ...MultiplyOption) (times []time.Duration, err error) {
	const op = "time multiply"
	if len(plans) == 0 {
		return nil, fault(op, ErrBadSize, "no plans")
	}
	if options.Repeats < 1 || options.Between < 0 || options.Warmup < 0 {
		return nil, fault(op, ErrBadSize, "%d repeats with %d products between them and %d before them", options.Repeats, options.Between, options.Warmup)
	}
	stream, err := plans[0].matrix.ctx.NewStream()
	if err != nil {
		return nil, err
	}
	defer stream.Close()
	opts = append([]MultiplyOption{WithStream(stream)}, opts...)
	t := &turns[T]{options: options.TimeOptions}
	defer t.end()
	for _, p := range plans {
		r, err := p.newRun(ctx, op, opts)
		if err != nil {
			return nil, err
		}
		t.runs = append(t.runs, r)
		b, c, err := r.bind(options.Operands)
		if err != nil {
			return nil, err
		}
		t.b, t.c = b, c // the same for each plan
	}
	if err := t.multiply(options.Warmup); err != nil {
		return nil, err
	}
	for range options.Repeats {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := t.multiply(options.Between); err != nil {
			return nil, err
		}
		one, err := t.timed()
		if err != nil {
			return nil, err
		}
		times = append(times, one...)
	}
	return times, nil
}

// turns are the runs of TimeInTurn, in one stream.
type turns[T Element] struct {
	runs    []*run[T]
	b, c    []operand
	options TimeOptions[T]
	turn    int
}

func (t *turns[T]) next() (r *run[T], b, c operand) {
	i := t.turn
	t.turn++
	return t.runs[i%len(t.runs)], t.b[i%len(t.b)], t.c[i%len(t.c)]
}

// multiply enqueues products.
func (t *turns[T]) multiply(count int) error {
	for range count {
		r, b, c := t.next()
		if err := r.launch(t.options.Alpha, b, t.options.Beta, c); err != nil {
			return err
		}
	}
	return nil
}

// timed runs one product and waits for it.
func (t *turns[T]) timed() ([]time.Duration, error) {
	r, b, c := t.next()
	seconds, err := r.plan.matrix.ctx.lib.multiplyTime(r.plan.handle.pointer, t.options.Alpha, t.options.Beta,
		[]uintptr{uintptr(b.address())}, b.stride, []uintptr{uintptr(c.address())}, c.stride, r.bias.address(), r.stream, 0, 1)
	return durations(seconds), err
}

// end waits for what is in the stream and gives back everything.
func (t *turns[T]) end() {
	if len(t.runs) > 0 {
		_ = t.runs[0].settle(nil)
	}
	for _, r := range t.runs {
		r.end()
	}
	runtime.KeepAlive(t.options.Operands)
}
