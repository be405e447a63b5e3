// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"errors"
	"time"

	sparsek "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/timing"
)

// ExpertsRun is a layer of experts with its operands in the back-end's memory. Each step makes the pattern of the counts that
// are there, plans both products of it and computes them; the host reads none of it.
type ExpertsRun[T sparsek.Element] struct {
	Experts
	engine        *sparsek.Engine
	stream        *sparsek.Stream
	host          []T // random
	index         sparsek.DeviceIndex[int32]
	counts, bins  *sparsek.DeviceBuffer[int32]
	x, w1, w2     sparsek.DeviceDense[T] // of W1 the transpose: (Columns, Width), as W2
	h, y          sparsek.DeviceDense[T] // h: the blocks
	first, second planned
	buffers       []interface{ Close() error }
}

// planned is a plan in buffers.
type planned struct {
	layout *sparsek.PlanLayout
	memory *sparsek.DeviceBuffer[int64]
	plan   *sparsek.Plan
}

// NewExpertsRun makes the operands out of RandomElements random numbers, which it keeps.
func NewExpertsRun[T sparsek.Element](ctx context.Context, engine *sparsek.Engine, e Experts, host []T) (*ExpertsRun[T], error) {
	r := &ExpertsRun[T]{Experts: e, engine: engine, host: host}
	if err := r.make(ctx); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

func (r *ExpertsRun[T]) make(ctx context.Context) (err error) {
	if r.stream, err = r.engine.NewStream(); err != nil {
		return err
	}
	rows, columns := r.Rows(), r.Columns()
	r.index = sparsek.DeviceIndex[int32]{Rows: rows, Cols: columns, BlockM: r.Block, BlockK: r.Block}
	r.index.RowPtr = roomOfExperts[int32](&err, r, rows/r.Block+1)
	r.index.ColIdx = roomOfExperts[int32](&err, r, r.Capacity())
	r.index.Fault = roomOfExperts[int64](&err, r, 1)
	r.bins = roomOfExperts[int32](&err, r, r.Count+1)
	r.counts = ofExperts(&err, ctx, r, r.Counts())
	dense := func(rows, cols int, of []T) sparsek.DeviceDense[T] {
		d := sparsek.DeviceDense[T]{Rows: rows, Cols: cols}
		if of == nil {
			d.Buffer = roomOfExperts[T](&err, r, rows*cols)
		} else {
			d.Buffer = ofExperts(&err, ctx, r, of)
		}
		return d
	}
	r.x, r.w1, r.w2 = dense(rows, r.Width, r.hostX()), dense(columns, r.Width, r.hostW1()), dense(columns, r.Width, r.hostW2())
	r.h, r.y = dense(r.Capacity()*r.Block, r.Block, nil), dense(rows, r.Width, nil)
	r.first = r.planIn(&err, sparsek.PlanOptions{Op: sparsek.SDD, OrderB: sparsek.ColumnMajor, Activation: sparsek.GELU})
	r.second = r.planIn(&err, sparsek.PlanOptions{})
	return err
}

// What the operands hold.
func (r *ExpertsRun[T]) hostX() []T  { return r.host[:r.Rows()*r.Width] }
func (r *ExpertsRun[T]) hostW1() []T { return r.host[stagger:][:r.Columns()*r.Width] }
func (r *ExpertsRun[T]) hostW2() []T { return r.host[2*stagger:][:r.Columns()*r.Width] }

// roomOfExperts is a buffer, unless something has failed before. The run closes it.
func roomOfExperts[E sparsek.Element | sparsek.Index, T sparsek.Element](failed *error, r *ExpertsRun[T], elements int) (b *sparsek.DeviceBuffer[E]) {
	if *failed != nil {
		return nil
	}
	if b, *failed = sparsek.NewBuffer[E](r.engine, elements); *failed == nil {
		r.buffers = append(r.buffers, b)
	}
	return b
}

// ofExperts is a buffer that holds data, as roomOfExperts.
func ofExperts[E sparsek.Element | sparsek.Index, T sparsek.Element](failed *error, ctx context.Context, r *ExpertsRun[T], data []E) *sparsek.DeviceBuffer[E] {
	b := roomOfExperts[E](failed, r, len(data))
	if *failed == nil {
		*failed = b.Write(ctx, data)
	}
	return b
}

func (r *ExpertsRun[T]) planIn(failed *error, o sparsek.PlanOptions) (p planned) {
	if *failed != nil {
		return p
	}
	o.N = r.Width
	sizes := sparsek.PatternSizes{Rows: r.Rows(), Cols: r.Columns(), BlockM: r.Block, BlockK: r.Block, Blocks: r.Capacity(), DType: sparsek.DTypeOf[T]()}
	if p.layout, *failed = r.engine.MeasurePlan(sizes, o); *failed != nil {
		return p
	}
	p.memory = roomOfExperts[int64](failed, r, p.layout.MemoryLen())
	var workspace *sparsek.DeviceBuffer[int64]
	if p.layout.WorkspaceLen() > 0 {
		workspace = roomOfExperts[int64](failed, r, p.layout.WorkspaceLen())
	}
	if *failed != nil {
		return p
	}
	if p.plan, *failed = p.layout.Plan(p.memory, workspace); *failed == nil {
		r.buffers = append(r.buffers, p.plan)
	}
	return p
}

// Close frees what there is.
func (r *ExpertsRun[T]) Close() error {
	var err error
	for i := len(r.buffers) - 1; i >= 0; i-- { // plans before their memory
		err = errors.Join(err, r.buffers[i].Close())
	}
	if r.stream != nil {
		err = errors.Join(err, r.stream.Close())
	}
	return err
}

// step enqueues a layer.
func (r *ExpertsRun[T]) step(ctx context.Context, s *sparsek.Stream) error {
	made := sparsek.IndexedBy[T](r.index, nil)
	for _, enqueue := range []func() error{
		func() error { return sparsek.PatternFromCounts(ctx, s, r.index, r.counts, r.bins) },
		func() error { return sparsek.WritePlan(ctx, s, r.first.layout, made, r.first.memory, nil) },
		func() error { return sparsek.WritePlan(ctx, s, r.second.layout, made, r.second.memory, nil) },
		func() error {
			return r.first.plan.Enqueue(ctx, s, 1, 0, sparsek.Operands{X: r.x, B: sparsek.Transpose(r.w1), C: r.h})
		},
		func() error {
			return r.second.plan.Enqueue(ctx, s, 1, 0, sparsek.Operands{B: r.w2, C: r.y, Values: r.h})
		},
	} { // none reads what one before could not write
		if err := enqueue(); err != nil {
			return err
		}
	}
	return nil
}

// stepsInGraph are so many that the launch of a graph counts for little.
const stepsInGraph = 4

// Time gives the times of steps: on a GPU of a CUDA graph of several, on the CPU of single ones.
func (r *ExpertsRun[T]) Time(ctx context.Context, repeats int) ([]time.Duration, error) {
	if r.engine.Info().Backend == sparsek.CUDA {
		return timing.Replay(ctx, r.engine, timing.ReplayOptions{Steps: stepsInGraph, Warmup: 1, Repeats: repeats}, r.step)
	}
	times := make([]time.Duration, repeats)
	for i := range times {
		start := time.Now()
		if err := errors.Join(r.step(ctx, r.stream), r.stream.Wait(ctx)); err != nil {
			return nil, err
		}
		times[i] = time.Since(start)
	}
	return times, nil
}
