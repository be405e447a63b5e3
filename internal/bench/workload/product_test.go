// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"errors"
	"math"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"github.com/sparsek/sparsek/internal/matrix/pattern"
	sparsek "github.com/sparsek/sparsek/wrapper"
)

// newEngines makes one for each back-end that is there; without a library the test is skipped.
func newEngines(t *testing.T) []*sparsek.Engine {
	t.Helper()
	lib, err := sparsek.Default()
	if errors.Is(err, sparsek.ErrLibraryNotFound) {
		t.Skip("skipped: libsparsek.so not found")
	}
	if err != nil {
		t.Fatal(err)
	}
	var list []*sparsek.Engine
	for _, backend := range []sparsek.Backend{sparsek.CPU, sparsek.CUDA} {
		engine, err := lib.NewEngine(sparsek.EngineOptions{Backend: backend})
		if errors.Is(err, sparsek.ErrNoDevice) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { engine.Close() })
		list = append(list, engine)
	}
	return list
}

func problem(t testing.TB, name string, m, n, k, bm, bk int) *Problem[float32] {
	t.Helper()
	p, err := pattern.Generate(pattern.Spec{Name: name, BlockRows: (m + bm - 1) / bm, BlockCols: (k + bk - 1) / bk, Density: 0.5, Seed: PatternSeed(3)})
	if err != nil {
		t.Fatal(err)
	}
	return &Problem[float32]{A: RandomA[float32](p, m, k, bm, bk, 3), B: RandomB[float32](k, n, 3), Alpha: 1}
}

func TestRandomAIsZeroOutside(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, k := rapid.IntRange(1, 30).Draw(t, "m"), rapid.IntRange(1, 30).Draw(t, "k")
		bm, bk := rapid.IntRange(1, 9).Draw(t, "bm"), rapid.IntRange(1, 9).Draw(t, "bk")
		p, err := pattern.Generate(pattern.Spec{Name: "bernoulli", BlockRows: (m + bm - 1) / bm, BlockCols: (k + bk - 1) / bk, Density: 0.7, Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		a := RandomA[float32](p, m, k, bm, bk, 1)
		for r := range a.BlockRows {
			for i := a.RowPtr[r]; i < a.RowPtr[r+1]; i++ {
				for j, v := range a.Values[int(i)*bm*bk:][:bm*bk] {
					inside := r*bm+j/bk < m && int(a.ColIdx[i])*bk+j%bk < k
					if inside == (v == 0) { // of the 2^24 values one is 0, and this seed does not draw it
						t.Fatalf("block %d, element %d, inside %v: %v", i, j, inside, v)
					}
				}
			}
		}
	})
}

func TestSolveAndCheck(t *testing.T) {
	for _, engine := range newEngines(t) {
		name := engine.Info().Backend.String()
		for _, shape := range [][5]int{{65, 33, 70, 8, 8}, {7, 5, 9, 3, 2}, {1, 1, 1, 1, 1}, {128, 256, 128, 64, 64}} {
			p := problem(t, "random", shape[0], shape[1], shape[2], shape[3], shape[4])
			p.Alpha = -1.5
			testSolve(t, engine, name, p, Epilogue[float32]{})
			testSolve(t, engine, name, p, Epilogue[sparsek.BFloat16]{BiasKind: sparsek.RowBias, Bias: RandomBias[sparsek.BFloat16](shape[0], 3), Activation: sparsek.SiLU})
			testSolve(t, engine, name, p, Epilogue[sparsek.Float16]{BiasKind: sparsek.ColumnBias, Bias: RandomBias[sparsek.Float16](shape[1], 3)})
		}
	}
}

func testSolve[C sparsek.Element](t *testing.T, engine *sparsek.Engine, name string, p *Problem[float32], e Epilogue[C]) {
	t.Helper()
	m, n := p.A.Rows, p.B.Cols
	s, err := Solve(context.Background(), engine, p, e, Options{Repeats: 3})
	if err != nil {
		t.Fatalf("%s %d x %d: %v", name, m, n, err)
	}
	if s.Timing.Runs != 3 || s.Timing.Quarter > s.Timing.Median || s.Timing.Median > s.Timing.ThreeQuarters {
		t.Errorf("%s: timing %+v", name, s.Timing)
	}
	report, err := Check(engine, p, e, s)
	if err != nil || report.Elements != m*n || report.Failures != 0 {
		t.Fatalf("%s %d x %d: %+v, %v", name, m, n, report, err)
	}
	// One element that is off must be found and named.
	row, col := m/2, n/2
	at := &s.C.Data[row*n+col]
	*at = sparsek.FromFloat32[C](sparsek.ToFloat32(*at) + 1)
	report, err = Check(engine, p, e, s)
	if !errors.Is(err, sparsek.ErrCheckFailed) || report.Failures != 1 || report.WorstRow != row || report.WorstCol != col {
		t.Errorf("%s %d x %d: %+v, %v", name, m, n, report, err)
	}
}

func TestSolveStopsWhenCancelled(t *testing.T) {
	for _, engine := range newEngines(t) {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if _, err := Solve(ctx, engine, problem(t, "random", 8, 8, 8, 4, 4), Epilogue[float32]{}, Options{}); !errors.Is(err, context.Canceled) {
			t.Errorf("%v: %v", engine.Info().Backend, err)
		}
	}
}

func TestFLOP(t *testing.T) {
	p := problem(t, "causal", 128, 100, 128, 64, 64)
	if got, want := p.EffectiveFLOP(), 2.0*3*64*64*100; got != want {
		t.Errorf("effective %v, want %v", got, want)
	}
	if got, want := p.DenseFLOP(), 2.0*128*128*100; got != want {
		t.Errorf("dense %v, want %v", got, want)
	}
}

func TestCountOverflow(t *testing.T) {
	var count atomic.Int64
	half, single := Float16.CountOverflow(&count), Float32.CountOverflow(&count)
	for _, x := range []float64{65519, -65519, math.Inf(1), math.NaN(), 0} {
		half(x)
	}
	single(1e38)
	if count.Load() != 0 {
		t.Fatalf("%d counted of none", count.Load())
	}
	half(65520)
	half(-1e9)
	single(1e39)
	BFloat16.CountOverflow(&count)(3.4e38)
	if count.Load() != 4 {
		t.Errorf("%d counted, want 4", count.Load())
	}
}
