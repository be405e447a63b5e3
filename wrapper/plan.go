// SPDX-License-Identifier: Apache-2.0

package sparsek

import (
	"context"
	"math"
	"runtime"
	"time"
	"unsafe"

	"github.com/sparsek/sparsek/wrapper/internal/native"
)

// PlanOptions say what a plan is for.
type PlanOptions struct {
	N        int // the extent of the dense operands that A does not have, at least 1: of DSD the columns of B and C
	LDB, LDC int // strides of B and C, in elements; 0: without gaps between rows, or columns. Of SDD LDC is 0

	Op             Op    // the product; 0: DSD
	OrderB, OrderC Order // of B and C, and of an Input; of SDD OrderC is RowMajor
	LDX            int   // of SDD's X, as LDB; else 0
	OrderX         Order
	Alignment      int // bytes to which B and C will be aligned, if not to a larger element; 0: 16 on a GPU, an element's size on the CPU
	// AlignmentC is Alignment of C alone; 0: Alignment.
	AlignmentC int
	Kernel     string // by name (see Library.Kernels); empty: the library chooses

	// DTypeB is the type of B, the matrix's or a wider one, in which products are then summed; 0: the matrix's.
	DTypeB     DType
	Output     DType      // of C and the bias; 0: that of B
	Bias       Bias       // added to alpha A B + beta C; each product is given it in Operands
	Activation Activation // applied last

	Compute Compute // how elements are multiplied; by default exactly

	// AllowDense allows kernels that multiply absent blocks as zeros (Kernel.ReadsAbsent). Where B holds Inf or NaN,
	// elements of C may then be NaN whose blocks read none of it.
	AllowDense bool
	// OwnKernels rules out kernels of other libraries.
	OwnKernels bool
	// NoUserCache has the user's tuning cache neither read nor written: a file of measurements can then not change the
	// kernel, and with it the rounding.
	NoUserCache bool
	// BatchInvariant gives columns of C the same bits however many there are: all plans of the matrix that have it use one
	// of the library's own kernels, and the same order of sums. Tuning must be 0.
	BatchInvariant bool
	// Tuning above 0 has the kernels that seem worth it measured, for about so long, unless the tuning cache knows a
	// similar product. The matrix's values must be there. Package tuning does the same step by step.
	Tuning time.Duration
	// Workers limits the CTAs, or threads of the CPU, of a product, so that others stay free; 0: EngineOptions.Workers,
	// and all where that is 0. With a limit, measurements of other plans choose no kernel.
	Workers int
	// ValuesStatic promises that no kernel which is before a product in its stream, and may still run when the product
	// is about to begin, writes A's values: they are not computed in that stream shortly before. A product of few
	// columns then loads its first blocks while the kernel before it ends. The copies that SetValues makes break no promise.
	ValuesStatic bool
}

// ChosenBy says how a plan's kernel was chosen.
type ChosenBy int32

// The ways to a kernel.
const (
	ChosenByName   ChosenBy = iota + 1 // PlanOptions.Kernel
	ChosenByModel                      // predicted to be the fastest
	ChosenByCache                      // a similar product was measured before
	ChosenByTable                      // a similar product was measured before the library was shipped
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
	Entries             int64   // loads of a block row of B, summed over the row groups; -1 where only the device knows (NewDeviceMatrixIn)
	WorkspaceBytes      int64   // of device memory: what the plan holds, alone or with others of its matrix, and what one product works in
	ProductBytes        int64   // of device memory: what one product works in alone (Operands.Workspace), if it does not use what is kept
	KeptBytes           int64   // of device memory, part of WorkspaceBytes: values from the host, or frozen, as the kernel reads them, so that products need not pack them; plans of a matrix may share these; 0: none
	UnitRoundoff        float64 // of one accumulation step: package check needs it
	ProductRoundoff     float64 // of the product of two elements, before it is summed up: package check needs it; 0: none
	CopiesA             bool    // each product copies A's blocks, transposed
	CopiesB, CopiesC    bool    // each product copies B or C to or from another order, since the kernel cannot take it as it lies

	ChosenBy  ChosenBy
	Predicted time.Duration // of one product, by the cost model; 0: the model does not know this kernel, or was not asked
	Measured  time.Duration // of one product when it, or a similar one, was measured; 0: it was not
	Warning   string        // what is wrong with the file of the tuning cache; empty: nothing
}

// Plan is how one pattern is multiplied: made once, used for any number of products, also with new values, and from
// several goroutines at once.
type Plan struct {
	handle   *handle
	matrix   *Matrix
	n        int
	ldx      int // of SDD
	ldb, ldc int
	op       Op

	orderX, orderB, orderC Order

	dtypeB DType
	output DType
	bias   Bias
	info   PlanInfo
	data   *planData // of a plan in buffers of the caller's, which has no native object
}

// Plan chooses a kernel and makes its work list. The kernel is the one that was the fastest when a similar product was
// measured, according to the tuning cache or the library's own table; where neither has one, a cost model chooses, or,
// with [PlanOptions].Tuning, what is measured now. [PlanInfo] says which and why. A large pattern takes a while: ctx is
// looked at before that, and between measurements.
func (m *Matrix) Plan(ctx context.Context, opts PlanOptions) (*Plan, error) {
	if err := m.made("create plan"); err != nil {
		return nil, err
	}
	p, err := m.planOnce(ctx, opts)
	if err != nil || opts.Tuning <= 0 || p.info.ChosenBy != ChosenByModel {
		return p, err
	}
	if err := p.Close(); err != nil {
		return nil, err
	}
	t, err := m.newTuner(ctx, opts, native.TunerOptions{Seconds: opts.Tuning.Seconds()})
	if err != nil {
		return nil, err
	}
	defer t.handle.close()
	for {
		if at, err := t.step(ctx); err != nil {
			return nil, err
		} else if at < 0 {
			return t.finish()
		}
	}
}

// complete checks the options and fills in the defaults.
func (m *Matrix) complete(op string, opts PlanOptions) (PlanOptions, error) {
	if opts.N < 1 {
		return opts, fault(op, ErrBadSize, "N is %d: set PlanOptions.N to the columns of B and C, at least 1", opts.N)
	}
	if opts.DTypeB == 0 {
		opts.DTypeB = m.dtype
	}
	if opts.Output == 0 {
		opts.Output = opts.DTypeB
	}
	if opts.Workers == 0 {
		opts.Workers = m.engine.workers
	}
	if opts.Workers < 0 {
		return opts, fault(op, ErrBadArgument, "Workers is %d: set it to the CTAs or threads that a product may use, or to 0 for all", opts.Workers)
	}
	if opts.Alignment == 0 && m.engine.info.Backend == CPU {
		opts.Alignment = min(opts.DTypeB.size(), opts.Output.size())
	}
	return opts, nil
}

// raw is C's form of the options for a matrix of that type. B's type is named only where it is another: libraries from
// before it could be know no such member.
func (o *PlanOptions) raw(matrix DType) native.PlanOptions {
	typeOfB := o.DTypeB
	if typeOfB == matrix {
		typeOfB = 0
	}
	return native.PlanOptions{Op: int32(o.Op), OrderX: int32(o.OrderX), OrderB: int32(o.OrderB), OrderC: int32(o.OrderC), LDX: o.LDX,
		N: o.N, LDB: o.LDB, LDC: o.LDC, Alignment: o.Alignment, AlignmentC: o.AlignmentC, Kernel: o.Kernel,
		DTypeB: int32(typeOfB), Output: int32(o.Output), Bias: int32(o.Bias), Activation: int32(o.Activation), AllowDense: o.AllowDense,
		OwnKernels: o.OwnKernels, NoUserCache: o.NoUserCache, BatchInvariant: o.BatchInvariant, Workers: o.Workers, ValuesStatic: o.ValuesStatic, Compute: int32(o.Compute)}
}

// planOnce makes a plan without measuring.
func (m *Matrix) planOnce(ctx context.Context, opts PlanOptions) (*Plan, error) {
	const op = "create plan"
	if err := checkContext(op, ctx); err != nil {
		return nil, err
	}
	opts, err := m.complete(op, opts)
	if err != nil {
		return nil, err
	}
	if err := m.handle.acquire(); err != nil {
		return nil, err
	}
	defer m.handle.release()
	pointer, err := m.engine.lib.native.PlanCreate(m.handle.pointer, opts.raw(m.dtype))
	if err != nil {
		return nil, err
	}
	return m.newPlan(pointer, opts)
}

// newPlan takes over a native plan. The matrix must be in use by the caller.
func (m *Matrix) newPlan(pointer unsafe.Pointer, opts PlanOptions) (*Plan, error) {
	lib := m.engine.lib.native
	info, err := lib.PlanDescribe(pointer)
	if err != nil {
		lib.PlanDestroy(pointer)
		return nil, err
	}
	h := newHandle("plan", pointer, m.handle, func() { lib.PlanDestroy(pointer) })
	p := &Plan{handle: h, matrix: m, info: planInfo(info)}
	p.set(opts)
	runtime.AddCleanup(p, (*handle).close, h)
	return p, nil
}

// set is what the plan keeps of its options.
func (p *Plan) set(opts PlanOptions) {
	x, b, c := p.matrix.extents(opts.Op, opts.N)
	p.n, p.op, p.dtypeB, p.output, p.bias = opts.N, opts.Op, opts.DTypeB, opts.Output, opts.Bias
	p.orderX, p.orderB, p.orderC = opts.OrderX, opts.OrderB, opts.OrderC
	p.ldx = strideOf(opts.LDX, x.line(opts.OrderX))
	p.ldb, p.ldc = strideOf(opts.LDB, b.line(opts.OrderB)), strideOf(opts.LDC, c.line(opts.OrderC))
}

func planInfo(i native.PlanInfo) PlanInfo {
	return PlanInfo{Kernel: i.Kernel, Reason: i.Reason, TileM: i.TileM, TileN: i.TileN, TileK: i.TileK, Stages: i.Stages,
		Tiles: i.Tiles, Entries: i.Entries, WorkspaceBytes: i.WorkspaceBytes, ProductBytes: i.ProductBytes, KeptBytes: i.KeptBytes, UnitRoundoff: i.UnitRoundoff, ProductRoundoff: i.ProductRoundoff,
		CopiesA: i.CopiesA, CopiesB: i.CopiesB, CopiesC: i.CopiesC,
		ChosenBy: ChosenBy(i.ChosenBy), Predicted: duration(i.Predicted), Measured: duration(i.Measured), Warning: i.Warning}
}

func duration(seconds float64) time.Duration {
	return time.Duration(math.Round(seconds * float64(time.Second)))
}

// Info says how the plan computes.
func (p *Plan) Info() PlanInfo { return p.info }

// Recomputed counts the slabs of 16 rows x TileN that were computed again since the plan was made, because a sum was
// NaN. Some kernels multiply absent blocks as zeros, and meet an Inf or NaN of B that way; they then compute the rows
// again from just the blocks that are there. With operands and sums that are finite it stays 0. It waits for the device
// where the plan was in use; ctx is looked at before that.
func (p *Plan) Recomputed(ctx context.Context) (int64, error) {
	const op = "describe plan"
	if err := p.made(op); err != nil {
		return 0, err
	}
	if err := checkContext(op, ctx); err != nil {
		return 0, err
	}
	if err := p.handle.acquire(); err != nil {
		return 0, err
	}
	defer p.handle.release()
	info, err := p.matrix.engine.lib.native.PlanInfo(p.handle.pointer)
	return info.Recomputed, err
}

// Close waits for the calls in progress and for the streams' work, and frees the plan. Closing again does nothing.
func (p *Plan) Close() error {
	if p.made("close") == nil {
		p.handle.close()
	}
	return nil
}

// UpdatePlan gives a plan another index, in the order of stream s: its matrix, which must be of [NewDeviceMatrixIn], takes
// it over, and the plan is made anew in the memory of the old one, behind what s holds already. It waits for nothing, and
// becomes part of the graph where s is being captured: each replay then plans for what the buffers hold. Other plans of the
// matrix keep the old index. a has the sizes of the matrix and at most as many blocks; its Values must be nil, since the
// matrix's are used. Earlier products of the plan must be before it in s. [Matrix.Check] tells of a fault.
func UpdatePlan[T Element, I Index](ctx context.Context, s *Stream, p *Plan, a DeviceBSR[T, I]) error {
	const op = "update plan"
	if err := p.made(op); err != nil {
		return err
	}
	if err := checkContext(op, ctx); err != nil {
		return err
	}
	done, err := s.using(op, p.matrix.engine)
	if err != nil {
		return err
	}
	defer done()
	if a.Values != nil {
		return fault(op, ErrBadArgument, "Values is not nil: SetDeviceValues gives a matrix others")
	}
	var use lease
	defer use.release()
	raw, _, err := a.raw(op, p.matrix.engine, &use)
	if err != nil {
		return err
	}
	for _, h := range []*handle{p.handle, s.handle} {
		if err := use.add(h); err != nil {
			return err
		}
	}
	raw.Stream = s.queue.stream
	err = p.matrix.engine.lib.native.PlanUpdate(p.handle.pointer, raw)
	s.queue.hold(&use, nil, nil) // also after an error: some of it may have been enqueued
	return err
}

// Release is Close for a plan whose products were all enqueued in s, and waits for none of them: its memory is given back
// behind them, in the order of s. Where products are in other streams, it waits for those. [Matrix.Release] tells when to
// use it.
func (p *Plan) Release(s *Stream) error {
	const op = "release plan"
	if err := p.made(op); err != nil {
		return err
	}
	done, err := s.using(op, p.matrix.engine)
	if err != nil {
		return err
	}
	defer done()
	lib, pointer := p.matrix.engine.lib.native, p.handle.pointer
	p.handle.closeIn(s.queue, nil, func() { lib.PlanRelease(pointer, s.queue.stream) })
	return nil
}

// made refuses a nil plan and the zero value.
func (p *Plan) made(op string) error {
	if p == nil || p.handle == nil {
		return fault(op, ErrNullPointer, "there is no plan: make one by Matrix.Plan")
	}
	return nil
}
