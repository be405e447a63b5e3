// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"gonum.org/v1/gonum/floats"

	"github.com/sparsek/sparsek/examples/internal/setup"
	"github.com/sparsek/sparsek/examples/internal/setup/setuptest"
	"github.com/sparsek/sparsek/wrapper/matio"
)

// A preconditioner in float32 changes no more than a few of the iterations, and not what is reached.
func TestSinglePreconditioner(t *testing.T) {
	const folder = "../testdata/"
	p := problem{device: "cpu", matrix: folder + "beam.npz", load: folder + "beam_load.npy", tolerance: 1e-10, most: 1000}
	_, want, err := p.solve(t.Context(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	p.single = true
	u, got, err := p.solve(t.Context(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	if got > want+want/20 {
		t.Errorf("%d iterations, and %d with the preconditioner in float64", got, want)
	}
	k, err := setup.ReadMatrix(p.matrix)
	if err != nil {
		t.Fatal(err)
	}
	f, err := matio.ReadDense(p.load, setup.Exactly)
	if err != nil {
		t.Fatal(err)
	}
	residual := setuptest.Multiply(k, u, 1)
	floats.Sub(residual, f.Data)
	if r := floats.Norm(residual, 2) / floats.Norm(f.Data, 2); !(r <= 1.01*p.tolerance) {
		t.Errorf("the residual is %.3e of the load's", r)
	}
}

// The beam is solved in as many iterations as SciPy's conjugate gradients took, to the same displacement.
func TestBeam(t *testing.T) {
	const folder = "../testdata/"
	var scipy struct {
		Tolerance  float64
		Iterations int
	}
	text, err := os.ReadFile(folder + "beam.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &scipy); err != nil {
		t.Fatal(err)
	}
	want, err := matio.ReadDense(folder+"beam_solution.npy", setup.Exactly)
	if err != nil {
		t.Fatal(err)
	}
	k, err := setup.ReadMatrix(folder + "beam.npz")
	if err != nil {
		t.Fatal(err)
	}
	f, err := matio.ReadDense(folder+"beam_load.npy", setup.Exactly)
	if err != nil {
		t.Fatal(err)
	}
	setuptest.OnEachDevice(t, func(t *testing.T, device string) {
		p := problem{device: device, matrix: folder + "beam.npz", load: folder + "beam_load.npy", tolerance: scipy.Tolerance, most: 1000}
		u, iterations, err := p.solve(t.Context(), t.Output())
		if err != nil {
			t.Fatal(err)
		}
		if iterations != scipy.Iterations {
			t.Errorf("%d iterations, and SciPy takes %d", iterations, scipy.Iterations)
		}
		residual := setuptest.Multiply(k, u, 1)
		floats.Sub(residual, f.Data)
		if r := floats.Norm(residual, 2) / floats.Norm(f.Data, 2); !(r <= 1.001*scipy.Tolerance) {
			t.Errorf("the residual is %.3e of the load's, not %.0e", r, scipy.Tolerance)
		}
		// Both are within the tolerance of the solution in the norm of K, and the beam bends easily.
		if d := floats.Distance(u, want.Data, math.Inf(1)) / floats.Norm(want.Data, math.Inf(1)); !(d < 1e-9) {
			t.Errorf("the displacement differs from SciPy's by %.1e of its largest", d)
		}
	})
}
