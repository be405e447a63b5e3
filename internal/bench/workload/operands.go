// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"errors"
	"slices"

	sparsek "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/bsr"
	"github.com/sparsek/sparsek/wrapper/timing"
)

// SetCount is how many sets of dense operands there are, taken in turn.
const SetCount = 3

// stagger is the distance, in elements, of the places in the random numbers from which the operands are filled: an
// odd number of rows of no size that is timed.
const stagger = 4099

// Shape is the size of a product: A is M x K, and N what the dense operands have that A has not; of A B, B is K x N and
// C is M x N.
type Shape struct{ M, N, K int }

// Sizes are those of the dense operands of a product, in elements. A is a dense A, of dense peers.
type Sizes struct{ A, X, B, C int }

// Sizes are those of the operands of products of a shape by an A of so many elements in blocks BlockK wide.
func (f Form) Sizes(s Shape, values, blockK int) Sizes {
	return Sizes{X: f.ExtentX(s).elements(), B: f.ExtentB(s).elements(), C: f.ExtentC(s, values, blockK).elements()}
}

// Larger are the larger ones of each.
func (s Sizes) Larger(o Sizes) Sizes {
	return Sizes{max(s.A, o.A), max(s.X, o.X), max(s.B, o.B), max(s.C, o.C)}
}

// Sets are random dense matrices in the back-end's memory, made once for the largest of several products and used by all.
type Sets[T sparsek.Element] struct {
	host   []T // random
	result []T // room for a C on the host
	sets   [SetCount]set[T]
}

type set[T sparsek.Element] struct {
	a, x, b, c *sparsek.DeviceBuffer[T]
}

// NewSets makes operands of those sizes. X and a dense A are left out where they have none.
func NewSets[T sparsek.Element](ctx context.Context, engine *sparsek.Engine, sizes Sizes, seed uint64) (*Sets[T], error) {
	o := &Sets[T]{result: make([]T, sizes.C)}
	o.host = RandomB[T](1, max(sizes.A, sizes.X, sizes.B)+2*SetCount*stagger, seed).Data
	for i := range o.sets {
		if err := o.sets[i].fill(ctx, engine, o.hostA(i)[:sizes.A], o.hostA(i)[:sizes.X], o.hostB(i)[:sizes.B], sizes.C); err != nil {
			return nil, errors.Join(err, o.Close())
		}
	}
	return o, nil
}

// fill makes the buffers of a set.
func (s *set[T]) fill(ctx context.Context, engine *sparsek.Engine, a, x, b []T, out int) (err error) {
	if len(a) > 0 {
		if s.a, err = Upload(ctx, engine, a); err != nil {
			return err
		}
	}
	if len(x) > 0 {
		if s.x, err = Upload(ctx, engine, x); err != nil {
			return err
		}
	}
	if s.b, err = Upload(ctx, engine, b); err != nil {
		return err
	}
	s.c, err = sparsek.NewBuffer[T](engine, out)
	return err
}

// hostA and hostB are what the operands of a set hold; X holds what a dense A does.
func (o *Sets[T]) hostA(set int) []T { return o.host[2*set*stagger:] }
func (o *Sets[T]) hostB(set int) []T { return o.host[(2*set+1)*stagger:] }

// HostB is a copy of the B of a set in host memory, to be read only.
func (o *Sets[T]) HostB(set int, s Shape) []T { return o.hostB(set % SetCount)[:s.K*s.N] }

// Sparse are the operands of products of a shape and form by a.
func (o *Sets[T]) Sparse(s Shape, f Form, a bsr.Matrix[T]) []sparsek.Operands {
	var list []sparsek.Operands
	for _, one := range o.sets {
		operands := sparsek.Operands{
			B: over(one.b, f.ExtentB(s), f.OrderB),
			C: over(one.c, f.ExtentC(s, len(a.Values), a.BlockK), f.OrderC),
		}
		if f.Op == sparsek.SDD {
			operands.X = over(one.x, f.ExtentX(s), f.OrderX)
		}
		list = append(list, operands)
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
		for _, buffer := range []*sparsek.DeviceBuffer[T]{s.a, s.x, s.b, s.c} {
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
	case []sparsek.Float8E4M3:
		return slices.IndexFunc(d, func(v sparsek.Float8E4M3) bool { return v&0x7f == 0x7f })
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
