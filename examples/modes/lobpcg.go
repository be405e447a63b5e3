// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/sparsek/sparsek/examples/internal/setup"
)

// lobpcg computes the lowest eigenvalues of a symmetric positive definite matrix and their vectors by LOBPCG (Knyazev
// 2001): each step takes the best vectors of the space that the present ones, their preconditioned residuals and the
// last step's directions span. That space has an orthonormal basis at any time, as in Hetmaniuk and Lehoucq (2006), for
// without it rounding spoils the last digits. Each step has one product by as many columns as there are vectors.
type lobpcg struct {
	a, preconditioner *setup.Operator
	x, ax             *mat.Dense // vectors, one a column, and A times them
	p, ap             *mat.Dense // the last directions; nil before there are any
	values            []float64  // of the vectors, the lowest first
}

// start makes the vectors of x orthonormal and takes them as the first.
func start(ctx context.Context, a, preconditioner *setup.Operator, x *mat.Dense) (*lobpcg, error) {
	l := &lobpcg{a: a, preconditioner: preconditioner}
	q, err := orthonormal(x)
	if err != nil {
		return nil, err
	}
	aq, err := apply(ctx, a, q)
	if err != nil {
		return nil, err
	}
	values, vectors, err := lowest(q, aq, q.RawMatrix().Cols)
	if err != nil {
		return nil, err
	}
	l.values, l.x, l.ax = values, product(q, vectors), product(aq, vectors)
	return l, nil
}

// residuals are A x - value x, one a column, and their norms over the values.
func (l *lobpcg) residuals() (*mat.Dense, []float64) {
	r := mat.DenseCopyOf(l.ax)
	norms := make([]float64, len(l.values))
	for j, value := range l.values {
		column := r.ColView(j).(*mat.VecDense)
		column.AddScaledVec(column, -value, l.x.ColView(j))
		norms[j] = mat.Norm(column, 2) / value
	}
	return r, norms
}

// step makes the vectors better. residuals are the present ones.
func (l *lobpcg) step(ctx context.Context, residuals *mat.Dense) error {
	w, err := apply(ctx, l.preconditioner, residuals)
	if err != nil {
		return err
	}
	basis := []*mat.Dense{l.x}
	images := []*mat.Dense{l.ax}
	if l.p != nil {
		basis, images = append(basis, l.p), append(images, l.ap)
	}
	if w, err = orthonormal(w, basis...); err != nil {
		return err
	}
	aw, err := apply(ctx, l.a, w)
	if err != nil {
		return err
	}
	q, aq := beside(append(basis, w)...), beside(append(images, aw)...)
	count := len(l.values)
	values, best, err := lowest(q, aq, count)
	if err != nil {
		return err
	}
	// The directions are what the best vectors have of the basis beyond x, made orthogonal to them. The basis is
	// orthonormal, so their coefficients can be made so in place of the vectors.
	directions := mat.DenseCopyOf(best)
	directions.Slice(0, count, 0, count).(*mat.Dense).Zero()
	if directions, err = orthonormal(directions, best); err != nil {
		return err
	}
	l.values, l.x, l.ax = values, product(q, best), product(aq, best)
	l.p, l.ap = product(q, directions), product(aq, directions)
	return nil
}

// apply is A times the columns of x.
func apply(ctx context.Context, a *setup.Operator, x *mat.Dense) (*mat.Dense, error) {
	_, columns := x.Dims()
	y := mat.NewDense(a.Rows, columns, nil)
	return y, a.Apply(ctx, y.RawMatrix().Data, x.RawMatrix().Data, columns)
}

// lowest are the lowest eigenvalues of q' A q, and the coefficients of their vectors by q, one a column.
func lowest(q, aq *mat.Dense, count int) ([]float64, *mat.Dense, error) {
	h := product(q.T(), aq)
	size, _ := h.Dims()
	symmetric := mat.NewSymDense(size, nil)
	for i := range size {
		for j := i; j < size; j++ {
			symmetric.SetSym(i, j, (h.At(i, j)+h.At(j, i))/2)
		}
	}
	var eigen mat.EigenSym
	if !eigen.Factorize(symmetric, true) {
		return nil, nil, errors.New("the small eigenproblem did not converge")
	}
	var vectors mat.Dense
	eigen.VectorsTo(&vectors)
	return eigen.Values(nil)[:count], mat.DenseCopyOf(vectors.Slice(0, size, 0, count)), nil
}

// orthonormal are as many orthonormal vectors as x has, which span the same space but for what lies in that of others,
// whose columns are orthonormal. Twice is enough: the first pass leaves an error of rounding that is large where vectors
// were nearly dependent.
func orthonormal(x mat.Matrix, others ...*mat.Dense) (*mat.Dense, error) {
	q := mat.DenseCopyOf(x)
	_, columns := q.Dims()
	for j := range columns {
		column := q.ColView(j).(*mat.VecDense)
		norm := mat.Norm(column, 2)
		if norm == 0 || math.IsNaN(norm) || math.IsInf(norm, 0) {
			return nil, fmt.Errorf("vector %d has the norm %v", j, norm)
		}
		column.ScaleVec(1/norm, column)
	}
	for range 2 {
		for _, other := range others {
			q.Sub(q, product(other, product(other.T(), q)))
		}
		var gram mat.SymDense
		gram.SymOuterK(1, q.T())
		var eigen mat.EigenSym
		if !eigen.Factorize(&gram, true) {
			return nil, errors.New("the vectors cannot be made orthonormal")
		}
		var turn mat.Dense
		eigen.VectorsTo(&turn)
		squares := eigen.Values(nil)
		for j, square := range squares {
			// Directions that are lost in rounding are kept at that length, for the second pass to straighten.
			column := turn.ColView(j).(*mat.VecDense)
			column.ScaleVec(1/math.Sqrt(max(square, 1e-15*squares[columns-1])), column)
		}
		q = product(q, &turn)
	}
	return q, nil
}

// product is a b.
func product(a, b mat.Matrix) *mat.Dense {
	var c mat.Dense
	c.Mul(a, b)
	return &c
}

// beside is the matrix of the columns of all.
func beside(all ...*mat.Dense) *mat.Dense {
	joined := all[0]
	for _, next := range all[1:] {
		var wider mat.Dense
		wider.Augment(joined, next)
		joined = &wider
	}
	return joined
}
