// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/sparsek/sparsek/examples/internal/setup"
	"github.com/sparsek/sparsek/examples/internal/setup/setuptest"
	"github.com/sparsek/sparsek/wrapper/bsr"
)

// The lowest eigenvalues of the beam are those that SciPy computes by factorizing it.
func TestBeam(t *testing.T) {
	var scipy struct{ Eigenvalues []float64 }
	text, err := os.ReadFile("../testdata/beam.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &scipy); err != nil {
		t.Fatal(err)
	}
	k, err := setup.ReadMatrix("../testdata/beam.npz")
	if err != nil {
		t.Fatal(err)
	}
	expect(t, k, scipy.Eigenvalues)
}

// Those of the Laplacian on a box are known: sums of 2 - 2 cos(pi i / (n + 1)). Three of them are the same.
func TestLaplacian(t *testing.T) {
	const nx, ny, nz = 11, 11, 11
	at := func(x, y, z int) int32 { return int32(x + nx*(y+ny*z)) }
	entries := bsr.Entries{Rows: nx * ny * nz, Cols: nx * ny * nz}
	var want []float64
	for z := range nz {
		for y := range ny {
			for x := range nx {
				entries.Add(at(x, y, z), at(x, y, z), 6)
				for _, d := range [][3]int{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}} {
					if x+d[0] < nx && y+d[1] < ny && z+d[2] < nz {
						entries.Add(at(x, y, z), at(x+d[0], y+d[1], z+d[2]), -1)
						entries.Add(at(x+d[0], y+d[1], z+d[2]), at(x, y, z), -1)
					}
				}
				angle := func(i, n int) float64 { return math.Cos(math.Pi * float64(i+1) / float64(n+1)) }
				want = append(want, 6-2*angle(x, nx)-2*angle(y, ny)-2*angle(z, nz))
			}
		}
	}
	slices.Sort(want)
	k, _, err := bsr.Convert(&entries, 1, 1, setup.Exactly)
	if err != nil {
		t.Fatal(err)
	}
	expect(t, k, want[:12])
}

func expect(t *testing.T, k bsr.Matrix[float64], want []float64) {
	setuptest.OnEachDevice(t, func(t *testing.T, device string) {
		p := problem{device: device, modes: len(want), block: 16, tolerance: 1e-7, most: 400, seed: 1, stiffness: k}
		values, vectors, err := p.solve(t.Context(), t.Output())
		if err != nil {
			t.Fatal(err)
		}
		images := mat.NewDense(k.Rows, len(want), setuptest.Multiply(k, vectors.RawMatrix().Data, len(want)))
		for i, v := range values {
			// The error of an eigenvalue is of the second order in that of its vector.
			if d := math.Abs(v-want[i]) / want[i]; !(d < 1e-10) {
				t.Errorf("eigenvalue %d is %.12e, not %.12e: %.1e of it away", i, v, want[i], d)
			}
			residual := images.ColView(i).(*mat.VecDense)
			residual.AddScaledVec(residual, -v, vectors.ColView(i))
			if r := mat.Norm(residual, 2) / v; !(r <= 1.001*p.tolerance) {
				t.Errorf("the residual of mode %d is %.2e of its value", i, r)
			}
		}
	})
}
