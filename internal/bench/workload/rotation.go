// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"errors"
	"time"

	sparsek "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/bsr"
	"github.com/sparsek/sparsek/wrapper/timing"
)

// Rotation is one matrix several times over, each copy with a plan of its own: products that take them in turn find
// the values of A as cold in the caches as new ones would be.
type Rotation[T sparsek.Element] struct {
	matrices []*sparsek.Matrix
	plans    []*sparsek.Plan
	form     Form
	n        int
}

// RotationOptions say what a Rotation is made for.
type RotationOptions struct {
	N      int // columns of B, or what the form says
	Form   Form
	Copies int    // of the matrix
	Kernel string // by name; empty: the library chooses

	AllowDense bool // see [sparsek.PlanOptions]
}

// NewRotation takes a into c several times and plans a product for each.
func NewRotation[T sparsek.Element](ctx context.Context, engine *sparsek.Engine, a bsr.Matrix[T], o RotationOptions) (*Rotation[T], error) {
	r := &Rotation[T]{form: o.Form, n: o.N}
	for range o.Copies {
		if err := r.add(ctx, engine, a, o); err != nil {
			return nil, errors.Join(err, r.Close())
		}
	}
	return r, nil
}

func (r *Rotation[T]) add(ctx context.Context, engine *sparsek.Engine, a bsr.Matrix[T], o RotationOptions) error {
	p := Problem[T]{A: a}
	matrix, err := p.Matrix(ctx, engine)
	if err != nil {
		return err
	}
	r.matrices = append(r.matrices, matrix)
	planned := o.Form.planOptions(o.N)
	planned.Kernel, planned.AllowDense = o.Kernel, o.AllowDense
	plan, err := matrix.Plan(ctx, planned)
	if err != nil {
		return err
	}
	r.plans = append(r.plans, plan)
	return nil
}

// Info says how the plans compute.
func (r *Rotation[T]) Info() sparsek.PlanInfo { return r.plans[0].Info() }

// Copies is the number of matrices.
func (r *Rotation[T]) Copies() int { return len(r.plans) }

// Multiply runs one product, with the matrix whose turn it is.
func (r *Rotation[T]) Multiply(ctx context.Context, turn int, o sparsek.Operands) error {
	return r.plans[turn%len(r.plans)].Multiply(ctx, 1, 0, o)
}

// Time times products, each behind `between` others that are not timed; see [timing.InTurn].
func (r *Rotation[T]) Time(ctx context.Context, operands []sparsek.Operands, between, repeats int) ([]time.Duration, error) {
	return timing.InTurn(ctx, r.plans, timing.InTurnOptions{
		Options: timing.Options{Alpha: 1, Operands: operands, Repeats: repeats}, Between: between,
	})
}

// TimeGraph times products in a CUDA graph of so many, which should be a multiple of Copies; see [timing.Graph]. It
// gives the times of a product, one for each of `replays` replays, which follow `warmup` that are not timed.
func (r *Rotation[T]) TimeGraph(ctx context.Context, operands []sparsek.Operands, products, warmup, replays int) ([]time.Duration, error) {
	return timing.Graph(ctx, r.plans, timing.GraphOptions{
		Options: timing.Options{Alpha: 1, Operands: operands, Warmup: warmup, Repeats: replays}, Products: products,
	})
}

// Close frees plans and matrices.
func (r *Rotation[T]) Close() error {
	var all []error
	for _, p := range r.plans {
		all = append(all, p.Close())
	}
	for _, m := range r.matrices {
		all = append(all, m.Close())
	}
	return errors.Join(all...)
}

const (
	fewestCopies, mostRotated = 2, 16
)

// ColdCopies is the number of A's in a Rotation so that twice L2's size goes by between two uses of the same: of A's
// `values`, a B of k x n and a C of m x n, in elements of so many bytes, where A is rotated with sets of B and C.
func ColdCopies(l2 int64, element, values, m, n, k int) int {
	product := int64(element) * (int64(values) + int64(k)*int64(n) + int64(m)*int64(n))
	// Small B and C stay in L2, whatever is done.
	if product < l2 {
		product = int64(element) * int64(values)
	}
	return int(min(mostRotated, max(fewestCopies, 1+(2*l2+product-1)/max(1, product))))
}
