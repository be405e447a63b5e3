// SPDX-License-Identifier: Apache-2.0

package sparsek

import (
	"context"
	"runtime"
	"time"
	"unsafe"
)

// PlanOptions say what a plan is for.
type PlanOptions struct {
	N         int    // columns of B and C
	LDB, LDC  int    // strides of B and C, in elements; 0: N
	Alignment int    // bytes to which B and C will be aligned, if not to a larger element; 0: 16 on a GPU, an element's size on the CPU
	Kernel    string // by name (see Library.Kernels); empty: the library chooses

	Output     DType      // of C and the bias; 0: that of A and B
	Bias       Bias       // added to alpha A B + beta C; each product is given it by WithBias
	Activation Activation // what C goes through then

	// AllowDense allows kernels that multiply absent blocks as zeros (Kernel.ReadsAbsent). Where B holds Inf or NaN,
	// elements of C may then be NaN whose blocks read none of it.
	AllowDense bool
	// Above 0: the kernels that seem worth it are measured, for about so long, unless the tuning cache knows a like
	// product. Usually given by [WithTuning].
	Tuning time.Duration
}

// PlanOption changes how a plan is made.
type PlanOption func(*PlanOptions)

// WithTuning has the kernels that seem worth it measured, for about so long, unless the tuning cache knows a like product.
// The matrix's values must be there.
func WithTuning(budget time.Duration) PlanOption {
	return func(o *PlanOptions) { o.Tuning = budget }
}

// ChosenBy is how a plan came to its kernel.
type ChosenBy int32

// The ways to a kernel.
const (
	ChosenByName   ChosenBy = iota + 1 // PlanOptions.Kernel
	ChosenByModel                      // predicted to be the fastest
	ChosenByCache                      // a like product was measured before
	ChosenByTable                      // a like product was measured before the library was shipped
	ChosenByTuning                     // measured for this plan
)

// String is "name", "model", "cache", "table" or "tuning".
func (c ChosenBy) String() string {
	names := [...]string{"", "name", "model", "cache", "table", "tuning"}
	if c < 0 || int(c) >= len(names) {
		return "unknown"
	}
	return names[c]
}

// PlanInfo says how a plan computes.
type PlanInfo struct {
	Kernel              string
	Reason              string // why this kernel
	TileM, TileN, TileK int    // these, Stages, Tiles and Entries: 0 where another library chooses them
	Stages              int
	Tiles               int64   // of C, and of split ones the parts; on the CPU: tasks
	Entries             int64   // loads of a block row of B, summed over the row groups
	WorkspaceBytes      int64   // of device memory: what the plan holds, alone or with others of its matrix, and what one product works in
	UnitRoundoff        float64 // of one accumulation step: what Check's bound is made of

	ChosenBy  ChosenBy
	Predicted time.Duration // of one product, by the cost model; 0: it has no word on this kernel, or was not asked
	Measured  time.Duration // of one product when it, or a like one, was measured; 0: it was not
	Warning   string        // what is wrong with the file of the tuning cache; empty: nothing
}

// Plan is how one pattern is multiplied: made once, used for any number of products, also with new values, and from
// several goroutines at once.
type Plan[T Element] struct {
	handle   *handle
	matrix   *Matrix[T]
	n        int
	ldb, ldc int
	output   DType
	bias     Bias
	info     PlanInfo
}

// Plan chooses a kernel and makes its work list. The kernel is the one that was the fastest when a like product was
// measured, as the tuning cache or the library's own table tells; where neither does, a cost model chooses, or, with
// [WithTuning], what is measured now. [PlanInfo] says which and why. A large pattern takes a while: ctx is looked at
// before that, and between measurements.
func (m *Matrix[T]) Plan(ctx context.Context, opts PlanOptions, more ...PlanOption) (*Plan[T], error) {
	for _, change := range more {
		change(&opts)
	}
	budget := opts.Tuning
	opts.Tuning = 0
	p, err := m.planOnce(ctx, opts)
	if err != nil || budget <= 0 || p.info.ChosenBy != ChosenByModel {
		return p, err
	}
	if err := p.Close(); err != nil {
		return nil, err
	}
	tuner, err := m.NewTuner(ctx, opts, TunerOptions{Budget: budget})
	if err != nil {
		return nil, err
	}
	defer tuner.Close()
	for {
		if _, more, err := tuner.Step(ctx); err != nil {
			return nil, err
		} else if !more {
			return tuner.Finish()
		}
	}
}

// complete fills in the defaults.
func (m *Matrix[T]) complete(opts PlanOptions) PlanOptions {
	if opts.Output == 0 {
		opts.Output = DTypeOf[T]()
	}
	if opts.Alignment == 0 && m.ctx.info.Backend == CPU {
		opts.Alignment = min(sizeOf[T](), opts.Output.size())
	}
	return opts
}

// planOnce makes a plan without measuring.
func (m *Matrix[T]) planOnce(ctx context.Context, opts PlanOptions) (*Plan[T], error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := m.handle.acquire(); err != nil {
		return nil, err
	}
	defer m.handle.release()
	opts = m.complete(opts)
	pointer, err := m.ctx.lib.planCreate(m.handle.pointer, opts)
	if err != nil {
		return nil, err
	}
	return m.newPlan(pointer, opts)
}

// newPlan takes over a native plan. The matrix must be in use by the caller.
func (m *Matrix[T]) newPlan(pointer unsafe.Pointer, opts PlanOptions) (*Plan[T], error) {
	lib := m.ctx.lib
	info, err := lib.planInfo(pointer)
	if err != nil {
		lib.planDestroy(pointer)
		return nil, err
	}
	h := newHandle("plan", pointer, m.handle, func() { lib.planDestroy(pointer) })
	p := &Plan[T]{
		handle: h, matrix: m, info: info,
		n: opts.N, ldb: strideOf(opts.LDB, opts.N), ldc: strideOf(opts.LDC, opts.N),
		output: opts.Output, bias: opts.Bias,
	}
	runtime.AddCleanup(p, (*handle).close, h)
	return p, nil
}

// Info says how the plan computes.
func (p *Plan[T]) Info() PlanInfo { return p.info }

// Recomputed counts the slabs of 16 rows x TileN that were computed again since the plan was made, because a sum was
// NaN. Some kernels multiply absent blocks as zeros, and meet an Inf or NaN of B that way; they then compute the rows
// again from just the blocks that are there. With operands and sums that are finite it stays 0. It waits for the device
// where the plan was in use.
func (p *Plan[T]) Recomputed() (int64, error) {
	if err := p.handle.acquire(); err != nil {
		return 0, err
	}
	defer p.handle.release()
	return p.matrix.ctx.lib.planRecomputed(p.handle.pointer)
}

// Close waits for the calls in progress and frees the plan. Closing again does nothing.
func (p *Plan[T]) Close() error {
	p.handle.close()
	return nil
}
