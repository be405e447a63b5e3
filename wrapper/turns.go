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
	t := &turns[T]{options: options.TimeOptions}
	defer t.end()
	if err := t.begin(ctx, op, plans, opts); err != nil {
		return nil, err
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

// turns are the runs of several plans, in one stream.
type turns[T Element] struct {
	stream  *Stream
	runs    []*run[T]
	b, c    []operand
	options TimeOptions[T]
	turn    int

	releaseValues func() // of all plans
}

// begin takes the plans and all operands into use. Whether it fails or not, end must follow.
func (t *turns[T]) begin(ctx context.Context, op string, plans []*Plan[T], opts []MultiplyOption) (err error) {
	if t.stream, err = plans[0].matrix.ctx.NewStream(); err != nil {
		return err
	}
	if t.releaseValues, err = useValues(ctx, plans...); err != nil {
		return err
	}
	opts = append([]MultiplyOption{WithStream(t.stream)}, opts...)
	for _, p := range plans {
		r, err := p.newRun(op, opts)
		if err != nil {
			return err
		}
		t.runs = append(t.runs, r)
		if t.b, t.c, err = r.bind(t.options.Operands); err != nil { // the same for each plan
			return err
		}
	}
	return nil
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
	if t.releaseValues != nil {
		t.releaseValues()
	}
	if t.stream != nil {
		_ = t.stream.Close()
	}
	runtime.KeepAlive(t.options.Operands)
}
