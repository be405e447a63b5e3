// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"errors"
	"math"
	"time"
	"unsafe"

	"github.com/sparsek/sparsek/internal/sys/stats"
	sparsek "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/check"
	"github.com/sparsek/sparsek/wrapper/matio"
	"github.com/sparsek/sparsek/wrapper/timing"
)

// Options say how a product is run.
type Options struct {
	Kernel     string // by name; empty: the library chooses
	AllowDense bool   // see [sparsek.PlanOptions]
	Compute    sparsek.Compute
	Repeats    int // timed runs; 0: 5 on the CPU, 30 on a GPU
}

// Solution is a product that was run.
type Solution[C sparsek.Element] struct {
	C          matio.Dense[C] // M x N, or what the product says; row-major
	Plan       sparsek.PlanInfo
	Recomputed int64 // slabs of C that were computed again; see [sparsek.Plan.Recomputed]
	Timing     stats.Summary[time.Duration]
}

// Solve runs the product in c and times it. The result begins as NaNs, so that nothing unwritten passes for one.
func Solve[T, C sparsek.Element](ctx context.Context, engine *sparsek.Engine, p *Problem[T], e Epilogue[C], o Options) (s *Solution[C], err error) {
	matrix, err := p.Matrix(ctx, engine)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, matrix.Close()) }()
	planned := p.planOptions(p.N())
	planned.Kernel, planned.AllowDense, planned.Compute = o.Kernel, o.AllowDense, o.Compute
	planned.DTypeB, planned.Output, planned.Bias, planned.Activation = sparsek.DTypeOf[T](), sparsek.DTypeOf[C](), e.BiasKind, e.Activation
	plan, err := matrix.Plan(ctx, planned)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, plan.Close()) }()

	rows, cols := p.ExtentC()
	s = &Solution[C]{Plan: plan.Info(), C: matio.Dense[C]{Rows: rows, Cols: cols, Data: make([]C, rows*cols)}}
	nan := sparsek.FromFloat32[C](float32(math.NaN()))
	for i := range s.C.Data {
		s.C.Data[i] = nan
	}
	operands, release, err := place(ctx, engine, p, s.C)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, release()) }()
	bias, releaseBias, err := e.operand(ctx, engine)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, releaseBias()) }()
	for i := range operands {
		operands[i].Bias = bias
	}
	if err := plan.Multiply(ctx, p.Alpha, 0, operands[0]); err != nil {
		return nil, err
	}
	if s.Recomputed, err = plan.Recomputed(ctx); err != nil {
		return nil, err
	}
	switch first := operands[0].C.(type) {
	case columns[C]:
		first.read(s.C.Data)
	case onDevice[C]:
		if err := first.read(ctx, s.C.Data); err != nil {
			return nil, err
		}
	case sparsek.Dense[C]: // the result itself: the timed products are not to write there
		first.Data = make([]C, len(first.Data))
		operands[0].C = first
	}
	repeats, warmup := 5, 1
	if engine.Info().Backend == sparsek.CUDA {
		repeats, warmup = 30, 5
	}
	if o.Repeats > 0 {
		repeats = o.Repeats
	}
	times, err := timing.Products(ctx, plan, timing.Options{Alpha: p.Alpha, Operands: operands, Warmup: warmup, Repeats: repeats})
	if err != nil {
		return nil, err
	}
	s.Timing = stats.Summarise(times)
	return s, nil
}

// place brings the operands where the back-end needs them: on the CPU they stay where they are. On a GPU there are
// so many copies, taken in turn, that L2 holds none of the last but one product.
func place[T, C sparsek.Element](ctx context.Context, engine *sparsek.Engine, p *Problem[T], result matio.Dense[C]) (sets []sparsek.Operands, release func() error, err error) {
	if engine.Info().Backend == sparsek.CPU {
		o := sparsek.Operands{B: laid(p.B, p.OrderB), C: laid(result, p.OrderC)}
		if p.Op == sparsek.SDD {
			o.X = laid(p.X, p.OrderX)
		}
		return []sparsek.Operands{o}, func() error { return nil }, nil
	}
	var closers []func() error
	release = func() error {
		var all []error
		for _, closer := range closers {
			all = append(all, closer())
		}
		return errors.Join(all...)
	}
	count, err := copies(engine, p, result)
	for range count {
		if err != nil {
			break
		}
		var o sparsek.Operands
		if o.B, err = upload(ctx, engine, p.B, p.OrderB, &closers); err != nil {
			break
		}
		if p.Op == sparsek.SDD {
			if o.X, err = upload(ctx, engine, p.X, p.OrderX, &closers); err != nil {
				break
			}
		}
		o.C, err = upload(ctx, engine, result, p.OrderC, &closers)
		sets = append(sets, o)
	}
	if err != nil {
		return nil, nil, errors.Join(err, release())
	}
	return sets, release, nil
}

// onDevice is a matrix in a buffer of its own.
type onDevice[T sparsek.Element] struct {
	sparsek.Operand
	rows, cols int
	order      sparsek.Order
	buffer     *sparsek.DeviceBuffer[T]
}

// read writes the matrix to row-major data.
func (d onDevice[T]) read(ctx context.Context, data []T) error {
	if d.order == sparsek.RowMajor {
		return d.buffer.Read(ctx, data)
	}
	c := columns[T]{rows: d.rows, cols: d.cols, data: make([]T, len(data))}
	if err := d.buffer.Read(ctx, c.data); err != nil {
		return err
	}
	c.read(data)
	return nil
}

// upload copies d to a buffer of its own, in that order, and adds to closers what closes it.
func upload[T sparsek.Element](ctx context.Context, engine *sparsek.Engine, d matio.Dense[T], order sparsek.Order, closers *[]func() error) (sparsek.Operand, error) {
	buffer, err := sparsek.NewBuffer[T](engine, len(d.Data))
	if err != nil {
		return nil, err
	}
	*closers = append(*closers, buffer.Close)
	to := onDevice[T]{rows: d.Rows, cols: d.Cols, order: order, buffer: buffer}
	if order == sparsek.RowMajor {
		to.Operand = sparsek.DeviceDense[T]{Rows: d.Rows, Cols: d.Cols, Buffer: buffer}
		return to, buffer.Write(ctx, d.Data)
	}
	to.Operand = sparsek.Transpose(sparsek.DeviceDense[T]{Rows: d.Cols, Cols: d.Rows, Buffer: buffer})
	return to, buffer.Write(ctx, laid(d, order).(columns[T]).data)
}

// mostCopies bounds the memory that the copies of small operands take.
const mostCopies = 16

func copies[T, C sparsek.Element](engine *sparsek.Engine, p *Problem[T], result matio.Dense[C]) (int, error) {
	devices, err := engine.Library().Devices()
	if err != nil {
		return 0, err
	}
	var b T
	var out C
	bytes := int64(len(p.B.Data))*int64(unsafe.Sizeof(b)) + int64(len(result.Data))*int64(unsafe.Sizeof(out))
	l2 := devices[engine.Info().Device].L2Bytes
	return int(min(mostCopies, 1+2*l2/max(1, bytes))), nil
}

// Check compares every element of a solution with a float64 reference; see package check.
func Check[T, C sparsek.Element](engine *sparsek.Engine, p *Problem[T], e Epilogue[C], s *Solution[C]) (check.Report, error) {
	return p.matrix().check(engine.Library(), check.Args{
		Op: p.Op, X: laid(p.X, sparsek.RowMajor), Alpha: p.Alpha, B: p.b(), UnitRoundoff: s.Plan.UnitRoundoff, ProductRoundoff: s.Plan.ProductRoundoff, Threads: engine.Info().Threads,
		C:        sparsek.Dense[C]{Rows: s.C.Rows, Cols: s.C.Cols, Data: s.C.Data},
		BiasKind: e.BiasKind, Bias: e.bias(), Activation: e.Activation,
	})
}
