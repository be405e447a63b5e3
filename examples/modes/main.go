// SPDX-License-Identifier: Apache-2.0

// Command modes computes the lowest modes of vibration of an elastic body, with a unit mass at each node: the lowest
// eigenvalues of its stiffness matrix, by LOBPCG with a block of vectors. Each step multiplies the matrix by that block.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/sparsek/sparsek/examples/internal/setup"
	"github.com/sparsek/sparsek/wrapper/bsr"
)

// problem is what to solve, and how.
type problem struct {
	device       string
	modes, block int
	tolerance    float64
	most         int
	seed         uint64
	stiffness    bsr.Matrix[float64]
}

func main() {
	log.SetFlags(0)
	p := problem{seed: 1}
	flag.StringVar(&p.device, "device", "auto", setup.DeviceUsage)
	matrix := flag.String("matrix", "examples/testdata/beam.npz", "stiffness matrix, by scipy.sparse.save_npz or Matrix Market")
	flag.IntVar(&p.modes, "modes", 12, "modes to compute")
	flag.IntVar(&p.block, "block", 16, "vectors in a block; a few more than modes make it converge sooner")
	flag.Float64Var(&p.tolerance, "tolerance", 1e-7, "residual of a mode to reach, |K x - value x| over the value")
	flag.IntVar(&p.most, "iterations", 2000, "iterations to give up after")
	flag.Parse()
	stiffness, err := setup.ReadMatrix(*matrix)
	if err != nil {
		log.Fatal(err)
	}
	p.stiffness = stiffness
	values, _, err := p.solve(context.Background(), os.Stdout)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("mode  eigenvalue        frequency")
	for i, v := range values {
		fmt.Printf("%4d  %.9e  %.6f\n", i+1, v, math.Sqrt(v)/(2*math.Pi))
	}
}

// solve gives the lowest eigenvalues, and their vectors as columns.
func (p problem) solve(ctx context.Context, out io.Writer) ([]float64, *mat.Dense, error) {
	if p.modes < 1 || p.modes > p.block || 3*p.block > p.stiffness.Rows {
		return nil, nil, fmt.Errorf("%d modes by %d vectors of %d elements: there must be as many vectors as modes, and three times as many elements",
			p.modes, p.block, p.stiffness.Rows)
	}
	inverse, err := setup.BlockJacobi(p.stiffness)
	if err != nil {
		return nil, nil, err
	}
	engine, err := setup.Engine(p.device)
	if err != nil {
		return nil, nil, err
	}
	defer engine.Close()
	a, err := setup.NewOperator(ctx, engine, p.stiffness, p.block)
	if err != nil {
		return nil, nil, err
	}
	defer a.Close()
	preconditioner, err := setup.NewOperator(ctx, engine, inverse, p.block)
	if err != nil {
		return nil, nil, err
	}
	defer preconditioner.Close()
	fmt.Fprintf(out, "K: %s, float64, by %d vectors\n", setup.Describe(p.stiffness), p.block)
	fmt.Fprintf(out, "products on the %s, kernel %s\n", setup.Device(engine), a.Kernel())

	begin := time.Now()
	random := rand.New(rand.NewPCG(p.seed, 0))
	x := mat.NewDense(a.Rows, p.block, nil)
	for i := range x.RawMatrix().Data {
		x.RawMatrix().Data[i] = random.NormFloat64()
	}
	l, err := start(ctx, a, preconditioner, x)
	if err != nil {
		return nil, nil, err
	}
	for i := 0; ; i++ {
		residuals, norms := l.residuals()
		worst := slices.Max(norms[:p.modes])
		if i%20 == 0 {
			fmt.Fprintf(out, "iteration %4d: lowest %.9e, worst residual of the %d modes %.1e\n", i, l.values[0], p.modes, worst)
		}
		if worst <= p.tolerance {
			fmt.Fprintf(out, "%d modes in %d iterations, %v, worst residual %.1e\n", p.modes, i, time.Since(begin).Round(time.Millisecond), worst)
			return l.values[:p.modes], mat.DenseCopyOf(l.x.Slice(0, a.Rows, 0, p.modes)), nil
		}
		if i == p.most {
			return nil, nil, fmt.Errorf("no convergence in %d iterations: the worst residual is %.1e", i, worst)
		}
		if err := l.step(ctx, residuals); err != nil {
			return nil, nil, err
		}
	}
}
