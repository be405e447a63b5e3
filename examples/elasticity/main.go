// SPDX-License-Identifier: Apache-2.0

// Command elasticity solves a problem of linear elasticity, K u = f, by conjugate gradients with a block Jacobi
// preconditioner. K and f come from files that SciPy and NumPy wrote.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	"gonum.org/v1/gonum/floats"

	"github.com/sparsek/sparsek/examples/internal/setup"
	sparsek "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/bsr"
	"github.com/sparsek/sparsek/wrapper/matio"
)

// problem is what to solve, and how.
type problem struct {
	device, matrix, load string
	tolerance            float64
	most                 int
	single               bool
}

func main() {
	log.SetFlags(0)
	var p problem
	flag.StringVar(&p.device, "device", "auto", setup.DeviceUsage)
	flag.StringVar(&p.matrix, "matrix", "examples/testdata/beam.npz", "stiffness matrix, by scipy.sparse.save_npz or Matrix Market")
	flag.StringVar(&p.load, "load", "examples/testdata/beam_load.npy", "right-hand side, a vector by numpy.save")
	flag.Float64Var(&p.tolerance, "tolerance", 1e-10, "residual to reach, relative to the load")
	flag.IntVar(&p.most, "iterations", 10000, "iterations to give up after")
	flag.BoolVar(&p.single, "single", false, "store the preconditioner in float32, on the CPU alone: half the bytes; vectors and sums stay in float64")
	flag.Parse()
	if _, _, err := p.solve(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func newPreconditioner(ctx context.Context, engine *sparsek.Engine, inverse bsr.Matrix[float64], single bool) (*setup.Operator, error) {
	if single {
		return setup.NewOperator(ctx, engine, setup.Single(inverse), 1)
	}
	return setup.NewOperator(ctx, engine, inverse, 1)
}

// solve gives the displacement and the iterations that it took.
func (p problem) solve(ctx context.Context, out io.Writer) (u []float64, iterations int, err error) {
	k, err := setup.ReadMatrix(p.matrix)
	if err != nil {
		return nil, 0, err
	}
	f, err := matio.ReadDense(p.load, setup.Exactly)
	if err != nil {
		return nil, 0, err
	}
	if k.Rows != k.Cols || f.Rows != k.Rows || f.Cols != 1 {
		return nil, 0, fmt.Errorf("a matrix of %d x %d by a load of %d x %d", k.Rows, k.Cols, f.Rows, f.Cols)
	}
	inverse, err := setup.BlockJacobi(k)
	if err != nil {
		return nil, 0, err
	}
	engine, err := setup.Engine(p.device)
	if err != nil {
		return nil, 0, err
	}
	defer engine.Close()
	stiffness, err := setup.NewOperator(ctx, engine, k, 1)
	if err != nil {
		return nil, 0, err
	}
	defer stiffness.Close()
	preconditioner, err := newPreconditioner(ctx, engine, inverse, p.single)
	if err != nil {
		return nil, 0, err
	}
	defer preconditioner.Close()
	fmt.Fprintf(out, "K: %s, float64\n", setup.Describe(k))
	fmt.Fprintf(out, "products on the %s, kernel %s\n", setup.Device(engine), stiffness.Kernel())

	start := time.Now()
	u, iterations, err = conjugateGradients(ctx, stiffness, preconditioner, f.Data, p.tolerance, p.most, func(i int, residual float64) {
		if i%50 == 0 {
			fmt.Fprintf(out, "iteration %4d: residual %.1e\n", i, residual)
		}
	})
	if err != nil {
		return nil, iterations, err
	}
	took := time.Since(start)
	residual := make([]float64, len(u))
	if err := stiffness.Apply(ctx, residual, u, 1); err != nil {
		return nil, iterations, err
	}
	floats.SubTo(residual, f.Data, residual)
	fmt.Fprintf(out, "solved in %d iterations, %v: |f - K u| = %.2e |f|, largest displacement %.4f\n", iterations,
		took.Round(10*time.Microsecond), floats.Norm(residual, 2)/floats.Norm(f.Data, 2), max(floats.Max(u), -floats.Min(u)))
	return u, iterations, nil
}
