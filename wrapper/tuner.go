// SPDX-License-Identifier: Apache-2.0

package sparsek

import (
	"context"

	"github.com/sparsek/sparsek/wrapper/internal/native"
)

// tuner is a native tuner of a matrix: what [Matrix.Plan] measures with, and package tuning shows step by step.
type tuner struct {
	handle *handle
	matrix *Matrix
	opts   PlanOptions
}

// newTuner makes a tuner, which must be closed. opts names no kernel.
func (m *Matrix) newTuner(ctx context.Context, opts PlanOptions, tuning native.TunerOptions) (*tuner, error) {
	const op = "create tuner"
	if err := m.made(op); err != nil {
		return nil, err
	}
	if err := checkContext(op, ctx); err != nil {
		return nil, err
	}
	if opts.Kernel != "" {
		return nil, fault(op, ErrBadArgument, "kernel %s is named: there is nothing to tune", opts.Kernel)
	}
	opts, err := m.complete(op, opts)
	if err != nil {
		return nil, err
	}
	if err := m.handle.acquire(); err != nil {
		return nil, err
	}
	defer m.handle.release()
	lib := m.engine.lib.native
	pointer, err := lib.TunerCreate(m.handle.pointer, opts.raw(m.dtype), tuning)
	if err != nil {
		return nil, err
	}
	return &tuner{handle: newHandle("tuner", pointer, m.handle, func() { lib.TunerDestroy(pointer) }), matrix: m, opts: opts}, nil
}

// step measures one candidate and gives its index; -1 where there is nothing left to do. Where SetValues is at work it
// waits for that, or for the end of ctx.
func (t *tuner) step(ctx context.Context) (int, error) {
	if err := checkContext("tune", ctx); err != nil {
		return -1, err
	}
	if err := t.handle.acquire(); err != nil {
		return -1, err
	}
	defer t.handle.release()
	if err := t.matrix.values.use.Acquire(ctx, 1); err != nil {
		return -1, err
	}
	defer t.matrix.values.use.Release(1)
	return t.matrix.engine.lib.native.TunerStep(t.handle.pointer)
}

// candidates are those of the tuner.
func (t *tuner) candidates() ([]native.Candidate, error) {
	if err := t.handle.acquire(); err != nil {
		return nil, err
	}
	defer t.handle.release()
	return t.matrix.engine.lib.native.TunerCandidates(t.handle.pointer)
}

// finish makes a plan by the best so far. No step may follow.
func (t *tuner) finish() (*Plan, error) {
	if err := t.handle.acquire(); err != nil {
		return nil, err
	}
	defer t.handle.release()
	pointer, err := t.matrix.engine.lib.native.TunerFinish(t.handle.pointer)
	if err != nil {
		return nil, err
	}
	return t.matrix.newPlan(pointer, t.opts)
}
