// SPDX-License-Identifier: Apache-2.0

package sparsek

import (
	"context"
	"fmt"
	"runtime"
	"unsafe"

	"github.com/sparsek/sparsek/wrapper/internal/bridge"
	"github.com/sparsek/sparsek/wrapper/internal/native"
)

// What the packages beside this one use of it.
func init() {
	bridge.Library = func(lib any) *native.Library { return lib.(*Library).native }
	bridge.BSR = func(op string, a any) (native.BSR, error) {
		return a.(interface {
			checked(op string) (native.BSR, error)
		}).checked(op)
	}
	bridge.Attention = func(op string, layout, options, operands any, backward bool, pins *runtime.Pinner) (native.AttentionOptions, native.AttentionArgs, error) {
		var args native.AttentionArgs
		opts := options.(AttentionOptions)
		raw, err := layout.(interface {
			attention(op string, o AttentionOptions) (native.AttentionOptions, error)
		}).attention(op, opts)
		if err != nil {
			return raw, args, err
		}
		err = opts.operands(op, DType(raw.DType), raw.Block(), operands.(AttentionOperands), backward, &args, func(name string, h heads) (unsafe.Pointer, error) {
			if h.buffer != nil {
				return nil, fault(op, ErrWrongMemory, "%s is in a buffer: read it to host memory first", name)
			}
			return h.pinned(pins), nil
		})
		return raw, args, err
	}
	bridge.MaskSizes = func(options any, raw native.AttentionOptions, masked int) (index, bits int) {
		opts := options.(AttentionOptions)
		return opts.maskSizes(raw.Block(), raw.Layout != nil, masked)
	}
	bridge.Begin = func(ctx context.Context, op string, plans, operands any) (*bridge.Use, error) {
		return begin(ctx, op, plans.([]*Plan), operands.([]Operands))
	}
	bridge.BeginAttention = func(ctx context.Context, op string, attention, operands any, backward bool) (*bridge.AttentionUse, error) {
		return attention.(*Attention).begin(ctx, op, operands.([]AttentionOperands), backward)
	}
	bridge.BeginEngine = func(ctx context.Context, op string, engine any) (*bridge.Engine, error) {
		return beginEngine(ctx, op, engine.(*Engine))
	}
	bridge.HostOperand = func(op, name string, o any, rows, cols, stride int) (bridge.Host, error) {
		host, err := hostOperand(op, name, o)
		if err != nil {
			return bridge.Host{}, err
		}
		if rows < 0 {
			rows = host.rows
		}
		if cols < 0 {
			cols = host.cols
		}
		return host.bridged(), host.check(op, name, rows, cols, stride)
	}
	bridge.HostBias = func(op string, o any, kind int32, rows, cols int) (bridge.Host, error) {
		host, err := hostOperand(op, "the bias", o)
		if err != nil {
			return bridge.Host{}, err
		}
		return host.bridged(), host.checkBias(op, Bias(kind), rows, cols, 1)
	}
	bridge.NewTuner = func(ctx context.Context, matrix, options any, tuning native.TunerOptions) (bridge.Tuner, error) {
		t, err := matrix.(*Matrix).newTuner(ctx, options.(PlanOptions), tuning)
		return bridgedTuner{t}, err
	}
}

type bridgedTuner struct{ t *tuner }

func (b bridgedTuner) Step(ctx context.Context) (int, error)   { return b.t.step(ctx) }
func (b bridgedTuner) Candidates() ([]native.Candidate, error) { return b.t.candidates() }
func (b bridgedTuner) Finish() (plan any, err error)           { return b.t.finish() }
func (b bridgedTuner) Close()                                  { b.t.handle.close() }

// hostOperand is an Operand that must be in host memory.
func hostOperand(op, name string, o any) (host operand, err error) {
	d, _ := o.(Operand)
	err = host.of(op, name, d)
	if err == nil && host.buffer != nil {
		err = fault(op, ErrWrongMemory, "%s is in a buffer: read it to host memory first", name)
	}
	return host, err
}

func (o operand) bridged() bridge.Host {
	return bridge.Host{Operand: native.Operand{Data: o.address(), Stride: o.stride}, Rows: o.rows, Cols: o.cols, DType: int32(o.dtype), Order: int32(o.order)}
}

// begin takes plans of one engine, the values of their matrices and sets of operands into use, in a stream of their own.
func begin(ctx context.Context, op string, plans []*Plan, sets []Operands) (*bridge.Use, error) {
	if err := checkContext(op, ctx); err != nil {
		return nil, err
	}
	if len(plans) == 0 {
		return nil, fault(op, ErrBadSize, "no plans")
	}
	if len(sets) == 0 {
		return nil, fault(op, ErrBadSize, "no operands")
	}
	for _, p := range plans {
		if err := p.made(op); err != nil {
			return nil, err
		}
	}
	release, err := useValues(ctx, plans...)
	if err != nil {
		return nil, err
	}
	engine := plans[0].matrix.engine
	stream, err := engine.NewStream()
	if err != nil {
		release()
		return nil, err
	}
	var runs []*run
	end := func() {
		if len(runs) > 0 {
			_ = runs[0].settle(nil)
		}
		for _, r := range runs {
			r.end()
		}
		release()
		_ = stream.Close()
		runtime.KeepAlive(sets)
	}
	use := &bridge.Use{Native: engine.lib.native, OnGPU: engine.info.Backend == CUDA, Stream: stream.queue.stream, End: end}
	for _, p := range plans {
		r := &run{plan: p, op: op}
		if err := r.begin(stream); err != nil {
			end()
			return nil, err
		}
		runs = append(runs, r)
		use.Plans = append(use.Plans, bridge.Plan{Pointer: p.handle.pointer, LDB: p.ldb, LDC: p.strideC(p.ldc)})
		use.X, use.B, use.C, use.Bias = nil, nil, nil, nil // the same for each plan
		for i, o := range sets {
			err := r.matchPlanned(o)
			if err == nil {
				err = r.bind(o)
			}
			if err != nil {
				end()
				return nil, fmt.Errorf("operands %d: %w", i, err)
			}
			for _, x := range [...]*operand{&r.x, &r.b, &r.c, &r.bias} {
				if x.buffer == nil && x.span() > 0 {
					r.pins.Pin(x.host)
				}
			}
			use.X = append(use.X, uintptr(r.x.address()))
			use.B = append(use.B, uintptr(r.b.address()))
			use.C = append(use.C, uintptr(r.c.address()))
			use.Bias = append(use.Bias, uintptr(r.bias.address()))
		}
	}
	return use, nil
}

// beginEngine takes the engine into use, and then operands in its memory.
func beginEngine(ctx context.Context, op string, e *Engine) (*bridge.Engine, error) {
	if err := checkContext(op, ctx); err != nil {
		return nil, err
	}
	if err := e.made(op); err != nil {
		return nil, err
	}
	use := &lease{}
	if err := use.add(e.handle); err != nil {
		return nil, err
	}
	take := func(name string, o any, rows, cols int) (uintptr, error) {
		d, _ := o.(Operand)
		var x operand
		if err := x.of(op, name, d); err != nil {
			return 0, err
		}
		if x.buffer == nil {
			return 0, fault(op, ErrNullPointer, "%s has no buffer", name)
		}
		if x.engine != e {
			return 0, fault(op, ErrBadArgument, "%s's buffer is of another engine", name)
		}
		if err := x.check(op, name, rows, cols, cols); err != nil {
			return 0, err
		}
		if err := use.add(x.buffer); err != nil {
			return 0, err
		}
		return uintptr(x.address()), nil
	}
	return &bridge.Engine{Native: e.lib.native, Context: e.handle.pointer, Take: take, InStream: e.inStream, End: use.release}, nil
}
