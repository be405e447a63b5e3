// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"errors"
	"slices"

	sparsek "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/timing"
)

// SetCount is how many sets of dense operands there are, taken in turn.
const SetCount = 3

// stagger is the distance, in elements, of the places in the random numbers from which the operands are filled: an
// odd number of rows of no size that is timed.
const stagger = 4099

// Shape is the size of a product: A is M x K, B is K x N and C is M x N.
type Shape struct{ M, N, K int }

// Sets are random dense matrices in the back-end's memory, made once for the largest of several products and used by all.
type Sets[T sparsek.Element] struct {
	host   []T // random
	result []T // room for a C on the host
	sets   [SetCount]set[T]
}

type set[T sparsek.Element] struct {
	a, b, c *sparsek.DeviceBuffer[T]
}

// NewSets makes operands for products of those shapes, with dense A's for the shapes in dense.
func NewSets[T sparsek.Element](ctx context.Context, engine *sparsek.Engine, shapes, dense []Shape, seed uint64) (*Sets[T], error) {
	var a, b, out int
	for _, s := range shapes {
		b, out = max(b, s.K*s.N), max(out, s.M*s.N)
	}
	for _, s := range dense {
		a = max(a, s.M*s.K)
	}
	o := &Sets[T]{result: make([]T, out)}
	o.host = RandomB[T](1, max(a, b)+2*SetCount*stagger, seed).Data
	for i := range o.sets {
		if err := o.sets[i].fill(ctx, engine, o.hostA(i)[:a], o.hostB(i)[:b], out); err != nil {
			return nil, errors.Join(err, o.Close())
		}
	}
	return o, nil
}

// fill makes the buffers of a set. A dense A is left out where there is none.
func (s *set[T]) fill(ctx context.Context, engine *sparsek.Engine, a, b []T, out int) (err error) {
	if len(a) > 0 {
		if s.a, err = sparsek.NewBuffer[T](engine, len(a)); err != nil {
			return err
		}
		if err = s.a.Write(ctx, a); err != nil {
			return err
		}
	}
	if s.b, err = sparsek.NewBuffer[T](engine, len(b)); err != nil {
		return err
	}
	if err = s.b.Write(ctx, b); err != nil {
		return err
	}
	s.c, err = sparsek.NewBuffer[T](engine, out)
	return err
}

// hostA and hostB are what the operands of a set hold.
func (o *Sets[T]) hostA(set int) []T { return o.host[2*set*stagger:] }
func (o *Sets[T]) hostB(set int) []T { return o.host[(2*set+1)*stagger:] }

// HostB is a copy of the B of a set in host memory, to be read only.
func (o *Sets[T]) HostB(set int, s Shape) []T { return o.hostB(set % SetCount)[:s.K*s.N] }

// Sparse are B and C of products of a shape.
func (o *Sets[T]) Sparse(s Shape) []sparsek.Operands {
	var list []sparsek.Operands
	for i := range o.sets {
		list = append(list, sparsek.Operands{
			B: sparsek.DeviceDense[T]{Rows: s.K, Cols: s.N, Buffer: o.sets[i].b},
			C: sparsek.DeviceDense[T]{Rows: s.M, Cols: s.N, Buffer: o.sets[i].c},
		})
	}
	return list
}

// DenseOperands are A, B and C of dense products of a shape; o must have dense A's.
func DenseOperands[T sparsek.BFloat16 | sparsek.Float16](o *Sets[T], s Shape) []timing.DenseOperands[T] {
	var list []timing.DenseOperands[T]
	for i := range o.sets {
		list = append(list, timing.DenseOperands[T]{
			A: sparsek.DeviceDense[T]{Rows: s.M, Cols: s.K, Buffer: o.sets[i].a},
			B: sparsek.DeviceDense[T]{Rows: s.K, Cols: s.N, Buffer: o.sets[i].b},
			C: sparsek.DeviceDense[T]{Rows: s.M, Cols: s.N, Buffer: o.sets[i].c},
		})
	}
	return list
}

// WithOtherB are the same operands of products of a shape with B's in which something was changed. They must be let go
// by CloseB, before o is closed.
func (o *Sets[T]) WithOtherB(ctx context.Context, c *sparsek.Engine, s Shape, change func(b []T)) (*Sets[T], error) {
	other := &Sets[T]{result: o.result}
	for i := range o.sets {
		b := slices.Clone(o.HostB(i, s))
		change(b)
		buffer, err := sparsek.NewBuffer[T](c, len(b))
		if err != nil {
			return nil, errors.Join(err, other.CloseB())
		}
		other.sets[i] = set[T]{b: buffer, c: o.sets[i].c}
		if err := buffer.Write(ctx, b); err != nil {
			return nil, errors.Join(err, other.CloseB())
		}
	}
	return other, nil
}

// CloseB frees what WithOtherB made.
func (o *Sets[T]) CloseB() error {
	var all []error
	for _, s := range o.sets {
		if s.b != nil {
			all = append(all, s.b.Close())
		}
	}
	return errors.Join(all...)
}

// Close frees the operands.
func (o *Sets[T]) Close() error {
	var all []error
	for _, s := range o.sets {
		for _, buffer := range []*sparsek.DeviceBuffer[T]{s.a, s.b, s.c} {
			if buffer != nil {
				all = append(all, buffer.Close())
			}
		}
	}
	return errors.Join(all...)
}

// firstNaN is the place of the first NaN, -1 where there is none.
func firstNaN[T sparsek.Element](data []T) int {
	switch d := any(data).(type) {
	case []sparsek.BFloat16:
		return firstAbove(d, 0x7f80) // infinity: beyond it is a fraction
	case []sparsek.Float16:
		return firstAbove(d, 0x7c00)
	case []float32:
		return slices.IndexFunc(d, func(v float32) bool { return v != v })
	case []float64:
		return slices.IndexFunc(d, func(v float64) bool { return v != v })
	}
	return -1
}

func firstAbove[T ~uint16](data []T, infinity T) int {
	for i, v := range data {
		if v&0x7fff > infinity {
			return i
		}
	}
	return -1
}
