// SPDX-License-Identifier: Apache-2.0

package timing

import (
	"context"
	"time"

	sparsek "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/internal/bridge"
	"github.com/sparsek/sparsek/wrapper/internal/native"
)

// InTurnOptions say what [InTurn] times.
type InTurnOptions struct {
	Options
	// Products that run, untimed, before each one that is timed: they have the device busy while the timed one is
	// enqueued, so that its time holds nothing of the host.
	Between int
}

// InTurn is [Products] with several plans of one engine: product i is that of plans[i % len(plans)] with
// Operands[i % len(Operands)]. With plans of equal matrices, each with its values in memory of its own, A is as cold in
// the caches as rotated operands make B and C. ctx is looked at before each timed product.
func InTurn(ctx context.Context, plans []*sparsek.Plan, o InTurnOptions) ([]time.Duration, error) {
	const op = "time multiply"
	use, err := bridge.Begin(ctx, op, plans, o.Operands)
	if err != nil {
		return nil, err
	}
	defer use.End()
	if o.Repeats < 1 || o.Between < 0 || o.Warmup < 0 {
		return nil, fault(op, "%d repeats with %d products between them and %d before them", o.Repeats, o.Between, o.Warmup)
	}
	t := &turns{use: use, alpha: o.Alpha, beta: o.Beta}
	if err := t.multiply(o.Warmup); err != nil {
		return nil, err
	}
	var times []time.Duration
	for range o.Repeats {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := t.multiply(o.Between); err != nil {
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

// turns hands out plans and operands.
type turns struct {
	use         *bridge.Use
	alpha, beta float32
	turn        int
}

// next is a single product to be timed, of the plan and the operands whose turn it is.
func (t *turns) next() native.Products {
	p := t.use.Plans[t.turn%len(t.use.Plans)]
	i := t.turn % len(t.use.C)
	t.turn++
	return native.Products{Plan: p.Pointer, Alpha: t.alpha, Beta: t.beta, LDB: p.LDB, LDC: p.LDC,
		X: t.use.X[i : i+1], B: t.use.B[i : i+1], C: t.use.C[i : i+1], Bias: t.use.Bias[i : i+1], Stream: t.use.Stream, Repeats: 1}
}

// multiply enqueues products.
func (t *turns) multiply(count int) error {
	for range count {
		if err := t.use.Native.MultiplyAt(t.next()); err != nil {
			return err
		}
	}
	return nil
}

// timed runs one product and waits for it.
func (t *turns) timed() ([]time.Duration, error) {
	seconds, err := t.use.Native.MultiplyTime(t.next())
	return durations(seconds), err
}
