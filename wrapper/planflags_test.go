// SPDX-License-Identifier: Apache-2.0

package sparsek_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/sparsek/sparsek/wrapper"
)

// invariantShapes are products whose fastest kernel and way of summing depend on N: a few long rows, whose tiles are split
// or shared where N is small, and many short ones.
var invariantShapes = map[string]shape{
	"long rows of 64 x 64":    {rows: 256, cols: 12800, blockM: 64, blockK: 64, density: 0.5, seed: 31},
	"long rows of 16 x 16":    {rows: 128, cols: 9600, blockM: 16, blockK: 16, density: 0.5, seed: 32},
	"short rows of 64 x 64":   {rows: 2048, cols: 1024, blockM: 64, blockK: 64, density: 0.2, seed: 33},
	"blocks of no kernel's":   {rows: 40, cols: 70, blockM: 5, blockK: 7, density: 0.6, seed: 34},
	"blocks of 128 x 128":     {rows: 512, cols: 2048, blockM: 128, blockK: 128, density: 0.4, seed: 35},
	"blocks of 24 x 8 ragged": {rows: 230, cols: 603, blockM: 24, blockK: 8, density: 0.3, seed: 36},
}

// sums are those of A B in float32, of the first n columns of B, by a plan of `planned` columns.
func sums(t *testing.T, m *Matrix, kernel string, b Dense[BFloat16], planned, n int) ([]float32, PlanInfo) {
	t.Helper()
	plan := must(m.Plan(context.Background(), PlanOptions{N: planned, Kernel: kernel, Output: FP32, Alignment: 2, BatchInvariant: true}))(t)
	defer plan.Close()
	narrow := Dense[BFloat16]{Rows: b.Rows, Cols: n, Data: make([]BFloat16, b.Rows*n)}
	for i := range b.Rows {
		copy(narrow.Data[i*n:], b.Data[i*b.Stride:][:n])
	}
	c := Dense[float32]{Rows: m.Rows(), Cols: n, Data: make([]float32, m.Rows()*n)}
	if err := plan.Multiply(context.Background(), 1, 0, Operands{B: narrow, C: c}); err != nil {
		t.Fatal(err)
	}
	return c.Data, plan.Info()
}

func testBatchInvariant(t *testing.T, engine *Engine, s shape) {
	const most = 600
	s.n, s.alpha = most, 1
	p := newProduct[BFloat16, int32](s)
	random := rand.New(rand.NewPCG(s.seed, 1))
	for i := range p.a.Values {
		if p.a.Values[i] != 0 { // those beyond K stay
			p.a.Values[i] = ToBFloat16(float32(random.NormFloat64()))
		}
	}
	for i := range p.b.Data {
		p.b.Data[i] = ToBFloat16(float32(random.NormFloat64()))
	}
	m := must(NewMatrix(context.Background(), engine, p.a))(t)
	defer m.Close()
	want, info := sums(t, m, s.kernel, p.b, most, most)
	compare := func(planned, n int) {
		t.Helper()
		got, other := sums(t, m, s.kernel, p.b, planned, n)
		if other.Kernel != info.Kernel {
			t.Fatalf("N = %d: kernel %s, and with N = %d %s", planned, other.Kernel, most, info.Kernel)
		}
		for i := range m.Rows() {
			for j := range n {
				if got[i*n+j] != want[i*most+j] {
					t.Fatalf("kernel %s, N = %d of %d: C[%d, %d] = %g, and with N = %d %g", info.Kernel, n, planned, i, j, got[i*n+j], most, want[i*most+j])
				}
			}
		}
	}
	for _, n := range []int{1, 2, 3, 8, 17, 64, 100, 256, 300} {
		compare(n, n)
		compare(most, n)
	}
}

// With BatchInvariant, a column of C is the same however many there are.
func TestBatchInvariant(t *testing.T) {
	onEach(t, func(t *testing.T, engine *Engine) {
		for name, s := range invariantShapes {
			t.Run(name, func(t *testing.T) { testBatchInvariant(t, engine, s) })
		}
	})
}

func TestBatchInvariantTakesNoTuning(t *testing.T) {
	onEach(t, func(t *testing.T, engine *Engine) {
		m := must(NewMatrix(context.Background(), engine, small()))(t)
		_, err := m.Plan(context.Background(), PlanOptions{N: 8, BatchInvariant: true, Tuning: time.Millisecond})
		wantFault(t, err, ErrBadArgument, "SPARSEK_BATCH_INVARIANT")
	})
}

// With NoUserCache a measurement of the user's neither decides nor is kept.
func TestNoUserCache(t *testing.T) {
	needsAllWorkers(t) // measurements with fewer are not kept
	onEach(t, func(t *testing.T, engine *Engine) {
		path := filepath.Join(t.TempDir(), "tuning.txt")
		t.Setenv("SPARSEK_TUNING_CACHE", path)
		p := newProduct[BFloat16, int32](shape{rows: 333, cols: 220, n: 40, blockM: 16, blockK: 16, density: 0.5, alpha: 1, seed: 41})
		m := must(NewMatrix(context.Background(), engine, p.a))(t)
		defer m.Close()
		choose := func(tuning time.Duration, without bool) ChosenBy {
			t.Helper()
			plan := must(m.Plan(context.Background(), PlanOptions{N: p.n, Tuning: tuning, NoUserCache: without}))(t)
			defer plan.Close()
			return plan.Info().ChosenBy
		}
		for _, step := range []struct {
			tuning  time.Duration
			without bool
			want    ChosenBy
			stored  bool
		}{
			{time.Millisecond, true, ChosenByTuning, false},
			{0, false, ChosenByModel, false},
			{time.Millisecond, false, ChosenByTuning, true},
			{0, false, ChosenByCache, true},
			{0, true, ChosenByModel, true},
		} {
			got := choose(step.tuning, step.without)
			_, err := os.Stat(path)
			if what := fmt.Sprintf("%+v", step); got != step.want || (err == nil) != step.stored {
				t.Errorf("%s: chosen by %v, stored: %t", what, got, err == nil)
			}
		}
	})
}

// With OwnKernels another library's are neither named nor chosen.
func TestOwnKernels(t *testing.T) {
	onLibraryKernels(t, func(t *testing.T, engine *Engine, kernel Kernel) {
		p := usual(kernel)
		m := must(NewMatrix(context.Background(), engine, p.a))(t)
		defer m.Close()
		options := p.planOptions(16)
		options.AllowDense, options.OwnKernels = true, true
		_, err := m.Plan(context.Background(), options)
		wantFault(t, err, ErrNoSuchKernel, kernel.Library)
		options.Kernel = ""
		plan := must(m.Plan(context.Background(), options))(t)
		defer plan.Close()
		for _, own := range kernelsOf(t, engine) {
			if own.Name == plan.Info().Kernel {
				return
			}
		}
		t.Errorf("kernel %s was chosen", plan.Info().Kernel)
	})
}
