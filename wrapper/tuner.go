// SPDX-License-Identifier: Apache-2.0

package sparsek

import (
	"context"
	"runtime"
	"time"
)

// TunerOptions say how long and how much is measured.
type TunerOptions struct {
	Budget time.Duration // about; each candidate that seems worth it is measured once even so
	All    bool          // measure every candidate that serves, however slow it is predicted to be
}

// Candidate is a kernel that a product could be computed by, and what is known of it.
type Candidate struct {
	Kernel    string
	Note      string        // why it is not measured, or no longer; empty where neither is so
	Serves    bool          // whether it can compute this product; Note says why not
	Best      bool          // the winner so far
	Runs      int           // products that were timed
	Predicted time.Duration // by the cost model; 0: it has no word on this kernel
	Median    time.Duration // of the runs; 0 where there are none
	Spread    float64       // distance of the quartiles as a share of the median
	Setup     time.Duration // what new values cost beside their copy, where the kernel has a layout of its own
}

// Tuner measures what the products of a matrix could be computed by, step by step, so that a caller can show how it goes
// and stop it. [WithTuning] does the same in one call. It is not for several goroutines at once.
type Tuner[T Element] struct {
	handle *handle
	matrix *Matrix[T]
	opts   PlanOptions
}

// NewTuner lists the candidates and takes memory for operands of its own: B, C and, on a GPU, twice the size of L2. The
// matrix's values must be there; opts names no kernel.
func (m *Matrix[T]) NewTuner(ctx context.Context, opts PlanOptions, tuning TunerOptions) (*Tuner[T], error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if opts.Kernel != "" {
		return nil, fault("create tuner", ErrBadArgument, "kernel %s is named: there is nothing to tune", opts.Kernel)
	}
	if err := m.handle.acquire(); err != nil {
		return nil, err
	}
	defer m.handle.release()
	opts = m.complete(opts)
	lib := m.ctx.lib
	pointer, err := lib.tunerCreate(m.handle.pointer, opts, tuning)
	if err != nil {
		return nil, err
	}
	h := newHandle("tuner", pointer, m.handle, func() { lib.tunerDestroy(pointer) })
	t := &Tuner[T]{handle: h, matrix: m, opts: opts}
	runtime.AddCleanup(t, (*handle).close, h)
	return t, nil
}

// Step measures one candidate a little further and gives its place in [Tuner.Candidates]. more is false, and nothing was
// measured, where the budget is spent or the ranking is clear. ctx is looked at before it begins; where SetValues is at
// work, Step waits for it, or for the end of ctx.
func (t *Tuner[T]) Step(ctx context.Context) (place int, more bool, err error) {
	if err := t.handle.acquire(); err != nil {
		return 0, false, err
	}
	defer t.handle.release()
	if err := t.matrix.values.use.Acquire(ctx, 1); err != nil {
		return 0, false, err
	}
	defer t.matrix.values.use.Release(1)
	place, err = t.matrix.ctx.lib.tunerStep(t.handle.pointer)
	return place, place >= 0, err
}

// Candidates are those of the tuner, in the order of priority: of two that are equally fast the first is the best.
func (t *Tuner[T]) Candidates() ([]Candidate, error) {
	if err := t.handle.acquire(); err != nil {
		return nil, err
	}
	defer t.handle.release()
	return t.matrix.ctx.lib.tunerCandidates(t.handle.pointer)
}

// Finish makes a plan by the best so far, and keeps in the tuning cache what was measured. No step may follow.
func (t *Tuner[T]) Finish() (*Plan[T], error) {
	if err := t.handle.acquire(); err != nil {
		return nil, err
	}
	defer t.handle.release()
	pointer, err := t.matrix.ctx.lib.tunerFinish(t.handle.pointer)
	if err != nil {
		return nil, err
	}
	return t.matrix.newPlan(pointer, t.opts)
}

// Close frees the tuner and its operands. Closing again does nothing.
func (t *Tuner[T]) Close() error {
	t.handle.close()
	return nil
}
