// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	"gonum.org/v1/gonum/floats"

	"github.com/sparsek/sparsek/examples/internal/setup"
)

// conjugateGradients solves A x = b from x = 0 on, for a symmetric positive definite A and a preconditioner like it, until
// the residual that it carries along is at most tolerance times b (2-norms). It takes the same steps, and stops by the same
// rule, as scipy.sparse.linalg.cg. report, where there is one, gets each iteration and its relative residual.
func conjugateGradients(ctx context.Context, a, preconditioner *setup.Operator, b []float64, tolerance float64, most int,
	report func(iteration int, residual float64)) (x []float64, iterations int, err error) {
	n := len(b)
	x = make([]float64, n)
	r := append([]float64(nil), b...)
	z, p, q := make([]float64, n), make([]float64, n), make([]float64, n)
	norm := floats.Norm(b, 2)
	last := 0.0
	for ; floats.Norm(r, 2) > tolerance*norm; iterations++ {
		if iterations == most {
			return x, iterations, fmt.Errorf("no convergence in %d iterations: the residual is %.2g of the load's", most, floats.Norm(r, 2)/norm)
		}
		if err := preconditioner.Apply(ctx, z, r, 1); err != nil {
			return nil, iterations, err
		}
		rho := floats.Dot(r, z)
		if iterations == 0 {
			copy(p, z)
		} else {
			floats.AddScaledTo(p, z, rho/last, p)
		}
		if err := a.Apply(ctx, q, p, 1); err != nil {
			return nil, iterations, err
		}
		step := rho / floats.Dot(p, q)
		floats.AddScaled(x, step, p)
		floats.AddScaled(r, -step, q)
		last = rho
		if report != nil {
			report(iterations+1, floats.Norm(r, 2)/norm)
		}
	}
	return x, iterations, nil
}
