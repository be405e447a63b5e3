// SPDX-License-Identifier: Apache-2.0

package sparsek

import (
	"context"
	"math"
	"time"
)

// GraphTimeOptions say what TimeGraph times.
type GraphTimeOptions[T Element] struct {
	TimeOptions[T]     // Warmup and Repeats count replays of the graph
	Products       int // in the graph
}

const opTimeGraph = "time products in a graph"

// TimeGraph times products without their launches by the host: it captures Products of them into one CUDA graph, product
// i being that of plans[i % len(plans)] with Operands[i % len(Operands)], and replays it. It gives the time of each of
// the last Repeats replays, divided by Products. As with [TimeInTurn], plans of equal matrices keep A cold. The plans are
// of one context, which must be one of a GPU: on the CPU the error is [ErrNoDevice]. opts are for each of the plans. It
// waits for the replays. ctx is looked at before they begin.
func TimeGraph[T Element](ctx context.Context, plans []*Plan[T], options GraphTimeOptions[T], opts ...MultiplyOption) ([]time.Duration, error) {
	if len(plans) == 0 {
		return nil, fault(opTimeGraph, ErrBadSize, "no plans")
	}
	if min(options.Repeats, options.Products) < 1 || max(options.Repeats, options.Products) > math.MaxInt32 || options.Warmup < 0 {
		return nil, fault(opTimeGraph, ErrBadSize, "%d replays of %d products after %d replays to warm up", options.Repeats, options.Products, options.Warmup)
	}
	t := &turns[T]{options: options.TimeOptions}
	defer t.end()
	if err := t.begin(ctx, opTimeGraph, plans, opts); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var handles []uintptr
	var b, c, bias []operand
	for range options.Products {
		r, ob, oc := t.next()
		handles = append(handles, uintptr(r.plan.handle.pointer))
		b, c, bias = append(b, ob), append(c, oc), append(bias, r.bias)
	}
	seconds, err := plans[0].matrix.ctx.lib.graphTime(handles, options.Alpha, options.Beta, addresses(b), addresses(c), addresses(bias),
		options.Warmup, options.Repeats)
	if err != nil {
		return nil, err
	}
	return durations(seconds), nil
}
