// SPDX-License-Identifier: Apache-2.0

package sparsek

import (
	"context"
	"runtime"

	"golang.org/x/sync/semaphore"

	"github.com/sparsek/sparsek/wrapper/internal/native"
)

// PatternSizes are those of a BSR matrix whose index is not there yet.
type PatternSizes struct {
	Rows, Cols     int
	BlockM, BlockK int
	Blocks         int // at most
	DType          DType
}

// PlanLayout describes a plan that lies in buffers of the caller's: which kernel computes its products, and how much
// memory it takes. See [Engine.MeasurePlan].
type PlanLayout struct {
	engine *Engine
	sizes  PatternSizes
	opts   PlanOptions
	raw    native.PlanLayout
}

// MeasurePlan works out, from sizes alone, how products will be computed and how much memory a plan for them takes, so
// that [WritePlan] can write plans there without the host knowing the index: in the order of a stream, or as a part of a
// CUDA graph, each replay of which plans anew. opts.Tuning must be 0, and kernels of other libraries are not chosen.
func (e *Engine) MeasurePlan(sizes PatternSizes, opts PlanOptions) (*PlanLayout, error) {
	const op = "measure plan"
	if err := e.made(op); err != nil {
		return nil, err
	}
	if opts.Tuning != 0 {
		return nil, fault(op, ErrBadArgument, "PlanOptions.Tuning is %v: a pattern without an index cannot be measured", opts.Tuning)
	}
	opts, err := (&Matrix{engine: e, dtype: sizes.DType}).complete(op, opts)
	if err != nil {
		return nil, err
	}
	if err := e.handle.acquire(); err != nil {
		return nil, err
	}
	defer e.handle.release()
	shape := native.BSR{Rows: sizes.Rows, Cols: sizes.Cols, BlockM: sizes.BlockM, BlockK: sizes.BlockK, Blocks: sizes.Blocks,
		DType: int32(sizes.DType), IndexType: indexTypeOf[int32](), Memory: native.Host}
	raw, err := e.lib.native.PlanMeasure(e.handle.pointer, shape, opts.raw(sizes.DType))
	if err != nil {
		return nil, err
	}
	return &PlanLayout{engine: e, sizes: sizes, opts: opts, raw: raw}, nil
}

// MemoryLen is the length of the buffer that a plan takes.
func (l *PlanLayout) MemoryLen() int { return words(l.raw.Bytes()) }

// WorkspaceLen is the length of the buffer that a product works in; 0: it needs none.
func (l *PlanLayout) WorkspaceLen() int { return words(l.raw.WorkspaceBytes()) }

func words(bytes int) int { return (bytes + 7) / 8 }

// WritePlan writes a plan for a, which has the sizes that were measured for, into memory of l.MemoryLen() elements, behind
// what s holds already, and waits for nothing. a.Values must be nil: products are given theirs. fault may be nil, or has
// one element, which becomes 0, or for an index with a fault its status in the lowest 8 bits and above them its place in
// RowPtr, ColIdx or BlockIdx; products by such a plan are act(beta C + bias).
func WritePlan[T Element, I Index](ctx context.Context, s *Stream, l *PlanLayout, a DeviceBSR[T, I], memory, faultOut *DeviceBuffer[int64]) error {
	const op = "write plan"
	if err := checkContext(op, ctx); err != nil {
		return err
	}
	done, err := s.using(op, l.engine)
	if err != nil {
		return err
	}
	defer done()
	if a.Values != nil {
		return fault(op, ErrBadArgument, "Values is not nil: each product is given its own, in Operands")
	}
	var use lease
	defer use.release()
	raw, _, err := a.raw(op, l.engine, &use)
	if err != nil {
		return err
	}
	if err := l.take(&use, op, "memory", memory, l.MemoryLen()); err != nil {
		return err
	}
	write := native.PlanWrite{Index: raw, Layout: &l.raw, Memory: memory.handle.pointer}
	if faultOut != nil {
		if err := l.take(&use, op, "fault", faultOut, 1); err != nil {
			return err
		}
		write.Fault = faultOut.handle.pointer
	}
	if err := use.add(s.handle); err != nil {
		return err
	}
	if l.engine.info.Backend == CPU { // where a buffer is host memory
		write.Index.Memory = native.Host
	}
	write.Index.Stream = s.queue.stream
	err = l.engine.lib.native.PlanWrite(l.engine.handle.pointer, write)
	s.queue.hold(&use, nil, nil) // also after an error: some of it may have been enqueued
	return err
}

// Plan is the plan that lies in that memory, and whose products work in workspace, one at a time (nil where
// l.WorkspaceLen() is 0). Each product needs Values of its own ([Operands]), with room for all blocks that were measured for,
// and must come behind what writes the plan: [Plan.Enqueue] on the same stream does, [Plan.Multiply] does once that stream
// was waited for. The buffers cannot be freed before the plan is closed. Of [Plan.Info] there is the size of the plan's
// memory alone.
func (l *PlanLayout) Plan(memory, workspace *DeviceBuffer[int64]) (*Plan, error) {
	const op = "open plan"
	var use lease
	defer use.release()
	if err := l.take(&use, op, "memory", memory, l.MemoryLen()); err != nil {
		return nil, err
	}
	data := &planData{layout: &l.raw, memory: memory.handle}
	values := &valueHolder{use: semaphore.NewWeighted(changeValues)}
	if l.WorkspaceLen() > 0 {
		if err := l.take(&use, op, "workspace", workspace, l.WorkspaceLen()); err != nil {
			return nil, err
		}
		data.workspace = workspace.handle
		values.buffer, values.keep = workspace.handle, workspace // in use with each product
	}
	sizes := l.sizes
	m := &Matrix{engine: l.engine, rows: sizes.Rows, cols: sizes.Cols, blockM: sizes.BlockM, blockK: sizes.BlockK, blocks: sizes.Blocks,
		dtype: sizes.DType, values: values, inStream: true}
	m.handle = newHandle("plan", nil, memory.handle, func() {})
	p := &Plan{handle: m.handle, matrix: m, data: data, info: PlanInfo{Entries: -1, WorkspaceBytes: int64(l.raw.Bytes())}}
	p.set(l.opts)
	runtime.AddCleanup(p, (*handle).close, p.handle)
	return p, nil
}

// planData is what a plan in buffers of the caller's is.
type planData struct {
	layout            *native.PlanLayout
	memory, workspace *handle
}

// take takes a buffer of at least so many elements into use.
func (l *PlanLayout) take(use *lease, op, name string, buffer *DeviceBuffer[int64], n int) error {
	if buffer == nil {
		return fault(op, ErrNullPointer, "%s is nil", name)
	}
	if buffer.n < n {
		return fault(op, ErrBadSize, "%s has %d elements and needs %d", name, buffer.n, n)
	}
	return takeBuffer(use, op, name, l.engine, buffer)
}
