// SPDX-License-Identifier: Apache-2.0

package roofline

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/sparsek/sparsek/internal/bench/interleave"
	"github.com/sparsek/sparsek/internal/bench/workload"
	sparsek "github.com/sparsek/sparsek/wrapper"
)

// All of it, on whatever back-end there is: the CPU has no cuBLAS.
func TestMeasure(t *testing.T) {
	lib, err := sparsek.Default()
	if errors.Is(err, sparsek.ErrLibraryNotFound) {
		t.Skip("skipped: libsparsek.so not found")
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, backend := range []sparsek.Backend{sparsek.CPU, sparsek.CUDA} {
		c, err := lib.NewEngine(sparsek.EngineOptions{Backend: backend})
		if errors.Is(err, sparsek.ErrNoDevice) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		cases := []Case{
			{Name: "shuffled", M: 256, N: 192, K: 320, BlockM: 64, BlockK: 64, Pattern: "window", Density: 0.4, Shuffled: true},
			{Name: "narrow", M: 200, N: 16, K: 300, BlockM: 64, BlockK: 64, Pattern: "random", Density: 0.5, GraphReach: Reach{Seconds: 1e-6}},
		}
		b, err := New(c, cases, 2)
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		for _, one := range cases {
			r, err := b.Measure(context.Background(), one)
			if err != nil {
				t.Fatalf("%s: %v", one.Name, err)
			}
			if r.Timing.Runs < 2 || r.Timing.Runs > 2*interleave.MostRepeats || r.Effective(r.Timing) <= 0 || r.Fraction(r.Timing) <= 0 || r.PlanTime <= 0 || r.Plan.Kernel == "" {
				t.Errorf("%s: %+v", one.Name, r)
			}
			if (r.DevicePlanTime > 0) != (backend == sparsek.CUDA) {
				t.Errorf("%s: a plan on the GPU takes %v", one.Name, r.DevicePlanTime)
			}
			if wanted := backend == sparsek.CUDA && one.Name == "narrow"; wanted != (r.Graph != nil) {
				t.Errorf("%s: in a graph %+v", one.Name, r.Graph)
			} else if wanted && (r.Graph.Runs != 2*replaysPer || r.Graph.Products != 64 || r.Graph.Median <= 0) {
				t.Errorf("%s: in a graph %+v", one.Name, r.Graph)
			}
			if (r.Dense == nil) != (b.NoDense() != nil) || r.Dense != nil && r.Dense.Runs != 2*densePer {
				t.Errorf("%s: dense %+v, %v", one.Name, r.Dense, b.NoDense())
			}
		}
		if backend == sparsek.CPU && !errors.Is(b.NoDense(), sparsek.ErrNoLibrary) {
			t.Errorf("on the CPU: %v", b.NoDense())
		}
		l, err := b.Launch(context.Background(), cases[0], 3)
		if err != nil || l.Launches != 4 || l.Plan.Kernel == "" || l.Work.FLOP <= 0 {
			t.Errorf("launched: %+v, %v", l, err)
		}
		stopped, stop := context.WithCancel(context.Background())
		stop()
		if _, err := b.Measure(stopped, cases[0]); !errors.Is(err, context.Canceled) {
			t.Errorf("stopped: %v", err)
		}
		testWrong(t, b, cases[0])
	}
}

// A product that is not the one of the matrix is found in each of the block rows that are looked at, and nowhere else.
func testWrong(t *testing.T, b *Bench, c Case) {
	p, err := c.Generate()
	if err != nil {
		t.Fatal(err)
	}
	a := workload.RandomA[element](p, c.M, c.K, c.BlockM, c.BlockK, Seed)
	rotation, err := workload.NewRotation(context.Background(), b.context, a, workload.RotationOptions{N: c.N, Copies: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer rotation.Close()
	for r := range p.BlockRows {
		other := a
		other.Values = slices.Clone(a.Values)
		other.Values[int(p.RowPtr[r])*c.BlockM*c.BlockK+7] += 0x100
		err := workload.CheckSample(context.Background(), b.context, other, c.N, rotation, b.operands)
		looked := r == 0 || r == p.BlockRows/2 || r == p.BlockRows-1
		if looked != errors.Is(err, workload.ErrWrong) || !looked && err != nil {
			t.Errorf("block row %d: %v", r, err)
		}
	}
	// A NaN in A makes the row of C NaN.
	broken := a
	broken.Values = slices.Clone(a.Values)
	broken.Values[0] = 0x7fff
	nan, err := workload.NewRotation(context.Background(), b.context, broken, workload.RotationOptions{N: c.N, Copies: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer nan.Close()
	if err := workload.CheckSample(context.Background(), b.context, a, c.N, nan, b.operands); !errors.Is(err, workload.ErrWrong) || !strings.Contains(err.Error(), "C[0, 0]") {
		t.Errorf("NaN in C: %v", err)
	}
}
