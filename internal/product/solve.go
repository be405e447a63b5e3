// SPDX-License-Identifier: Apache-2.0

package product

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"
	"unsafe"

	"github.com/sparsek/sparsek/internal/matio"
	sparsek "github.com/sparsek/sparsek/wrapper"
)

// Options say how a product is run.
type Options struct {
	Kernel  string // by name; empty: the library chooses
	Repeats int    // timed runs; 0: 5 on the CPU, 30 on a GPU
}

// Solution is a product that was run.
type Solution[T sparsek.Element] struct {
	C      matio.Dense[T] // M x N
	Plan   sparsek.PlanInfo
	Timing Timing
}

// Timing sums up the times of single products, all after a warm-up.
type Timing struct {
	Runs                   int
	Median                 time.Duration
	Quarter, ThreeQuarters time.Duration // a quarter of the runs took at most, and at least, so long
}

// Spread is the distance of the quartiles as a share of the median.
func (t Timing) Spread() float64 {
	if t.Median == 0 {
		return 0
	}
	return float64(t.ThreeQuarters-t.Quarter) / float64(t.Median)
}

// Summarise sums up at least one time; it sorts them.
func Summarise(times []time.Duration) Timing {
	slices.Sort(times)
	n := len(times)
	at := func(q float64) time.Duration {
		place := q * float64(n-1)
		low := int(place)
		high := min(low+1, n-1)
		return times[low] + time.Duration(math.Round((place-float64(low))*float64(times[high]-times[low])))
	}
	return Timing{n, at(0.5), at(0.25), at(0.75)}
}

// Solve runs the product in c and times it. The result begins as NaNs, so that nothing unwritten passes for one.
func Solve[T sparsek.Element](ctx context.Context, c *sparsek.Context, p *Problem[T], o Options) (s *Solution[T], err error) {
	matrix, err := sparsek.NewMatrix(c, p.bsr())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, matrix.Close()) }()
	plan, err := matrix.Plan(ctx, sparsek.PlanOptions{N: p.B.Cols, Kernel: o.Kernel})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, plan.Close()) }()

	s = &Solution[T]{Plan: plan.Info(), C: matio.Dense[T]{Rows: p.A.Rows, Cols: p.B.Cols, Data: make([]T, p.A.Rows*p.B.Cols)}}
	nan := sparsek.FromFloat32[T](float32(math.NaN()))
	for i := range s.C.Data {
		s.C.Data[i] = nan
	}
	operands, release, err := place(c, p, s.C)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, release()) }()
	if err := plan.Multiply(ctx, p.Alpha, operands[0].B, 0, operands[0].C); err != nil {
		return nil, err
	}
	switch first := operands[0].C.(type) {
	case sparsek.DeviceDense[T]:
		if err := first.Buffer.Read(s.C.Data); err != nil {
			return nil, err
		}
	case sparsek.Dense[T]: // the result itself: the timed products are not to write there
		first.Data = make([]T, len(first.Data))
		operands[0].C = first
	}
	repeats, warmup := 5, 1
	if c.Info().Backend == sparsek.CUDA {
		repeats, warmup = 30, 5
	}
	if o.Repeats > 0 {
		repeats = o.Repeats
	}
	times, err := plan.Time(ctx, sparsek.TimeOptions[T]{Alpha: p.Alpha, Operands: operands, Warmup: warmup, Repeats: repeats})
	if err != nil {
		return nil, err
	}
	s.Timing = Summarise(times)
	return s, nil
}

// place brings the operands where the back-end wants them: on the CPU they stay where they are. On a GPU there are
// so many copies, taken in turn, that L2 holds none of the last but one product.
func place[T sparsek.Element](c *sparsek.Context, p *Problem[T], result matio.Dense[T]) (sets []sparsek.Operands[T], release func() error, err error) {
	host := sparsek.Dense[T]{Rows: result.Rows, Cols: result.Cols, Data: result.Data}
	if c.Info().Backend == sparsek.CPU {
		return []sparsek.Operands[T]{{B: p.b(), C: host}}, func() error { return nil }, nil
	}
	var buffers []*sparsek.DeviceBuffer[T]
	release = func() error {
		var all []error
		for _, b := range buffers {
			all = append(all, b.Close())
		}
		return errors.Join(all...)
	}
	upload := func(d sparsek.Dense[T]) (sparsek.DeviceDense[T], error) {
		buffer, err := sparsek.NewBuffer[T](c, len(d.Data))
		if err != nil {
			return sparsek.DeviceDense[T]{}, err
		}
		buffers = append(buffers, buffer)
		return sparsek.DeviceDense[T]{Rows: d.Rows, Cols: d.Cols, Buffer: buffer}, buffer.Write(d.Data)
	}
	count, err := copies(c, p, result)
	for range count {
		if err != nil {
			break
		}
		var b, out sparsek.DeviceDense[T]
		if b, err = upload(p.b()); err == nil {
			out, err = upload(host)
		}
		sets = append(sets, sparsek.Operands[T]{B: b, C: out})
	}
	if err != nil {
		return nil, nil, errors.Join(err, release())
	}
	return sets, release, nil
}

// mostCopies bounds the memory that the copies of small operands take.
const mostCopies = 16

func copies[T sparsek.Element](c *sparsek.Context, p *Problem[T], result matio.Dense[T]) (int, error) {
	devices, err := c.Library().Devices()
	if err != nil {
		return 0, err
	}
	var element T
	bytes := int64(len(p.B.Data)+len(result.Data)) * int64(unsafe.Sizeof(element))
	l2 := devices[c.Info().Device].L2Bytes
	return int(min(mostCopies, 1+2*l2/max(1, bytes))), nil
}

// Check compares every element of a solution with a float64 reference; see sparsek.Check.
func (p *Problem[T]) Check(c *sparsek.Context, s *Solution[T]) (sparsek.Report, error) {
	return sparsek.Check(c.Library(), p.bsr(), sparsek.CheckArgs[T]{
		Alpha: p.Alpha, B: p.b(), UnitRoundoff: s.Plan.UnitRoundoff, Threads: c.Info().Threads,
		C: sparsek.Dense[T]{Rows: s.C.Rows, Cols: s.C.Cols, Data: s.C.Data},
	})
}
