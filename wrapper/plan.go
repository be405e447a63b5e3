// SPDX-License-Identifier: Apache-2.0

package sparsek

import (
	"context"
	"runtime"
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
}

// PlanInfo says how a plan computes.
type PlanInfo struct {
	Kernel              string
	Reason              string // why this kernel
	TileM, TileN, TileK int
	Stages              int
	Tiles               int64   // of C; on the CPU: tasks
	Entries             int64   // loads of a block row of B, summed over the row groups
	WorkspaceBytes      int64   // of device memory that the plan holds
	UnitRoundoff        float64 // of one accumulation step: what Check's bound is made of
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

// Plan chooses a kernel and makes its work list. A large pattern takes a while: ctx is looked at before that.
func (m *Matrix[T]) Plan(ctx context.Context, opts PlanOptions) (*Plan[T], error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := m.handle.acquire(); err != nil {
		return nil, err
	}
	defer m.handle.release()
	if opts.Output == 0 {
		opts.Output = DTypeOf[T]()
	}
	if opts.Alignment == 0 && m.ctx.info.Backend == CPU {
		opts.Alignment = min(sizeOf[T](), opts.Output.size())
	}
	lib := m.ctx.lib
	pointer, err := lib.planCreate(m.handle.pointer, opts)
	if err != nil {
		return nil, err
	}
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
