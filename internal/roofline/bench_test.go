// SPDX-License-Identifier: Apache-2.0

package roofline

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sparsek/sparsek/internal/product"
	sparsek "github.com/sparsek/sparsek/wrapper"
)

// All take turns, and every time is kept.
func TestInterleave(t *testing.T) {
	var turns []string
	fake := func(name string, each time.Duration) timer {
		return func(_ context.Context, repeats int) ([]time.Duration, error) {
			turns = append(turns, name)
			return slices.Repeat([]time.Duration{each}, repeats), nil
		}
	}
	all, err := interleave(context.Background(), 3, []turn{{fake("ours", 1), 4}, {fake("graph", 2), 1}, {fake("dense", 3), 2}})
	if err != nil || len(all) != 3 {
		t.Fatalf("%v, %v", all, err)
	}
	for i, want := range []int{12, 3, 6} {
		if !slices.Equal(all[i], slices.Repeat([]time.Duration{time.Duration(i + 1)}, want)) {
			t.Errorf("timer %d: %v", i, all[i])
		}
	}
	if got := strings.Join(turns, " "); got != strings.TrimSpace(strings.Repeat("ours graph dense ", 3)) {
		t.Errorf("turns: %s", got)
	}
	broken := errors.New("broken")
	fails := func(context.Context, int) ([]time.Duration, error) { return nil, broken }
	for _, list := range [][]turn{{{fails, 1}, {fake("dense", 1), 1}}, {{fake("ours", 1), 1}, {fails, 1}}} {
		if _, err = interleave(context.Background(), 2, list); !errors.Is(err, broken) {
			t.Error(err)
		}
	}
}

func TestOursPer(t *testing.T) {
	for one, want := range map[time.Duration]int{0: 8, 10 * time.Microsecond: 8, 3 * time.Millisecond: 3, time.Second: 1} {
		if got := oursPer(one); got != want {
			t.Errorf("%v: %d, want %d", one, got, want)
		}
	}
}

func TestCopies(t *testing.T) {
	const mib = 1 << 20
	b := &Bench{l2: 60 * mib}
	for _, c := range []struct {
		of     Case
		values int
		want   int
	}{
		{Case{M: 8192, N: 8192, K: 8192}, 8 * mib, 2},  // 272 MiB a product
		{Case{M: 4096, N: 4096, K: 4096}, 2 * mib, 3},  // 68
		{Case{M: 8192, N: 16, K: 8192}, 13 * mib, 6},   // 26 of A: only they are new
		{Case{M: 8192, N: 512, K: 8192}, 13 * mib, 6},  // 42, of which B and C stay
		{Case{M: 512, N: 16, K: 512}, mib / 16, 16},    // small all over
		{Case{M: 8192, N: 8192, K: 8192}, 64 * mib, 2}, // 384
	} {
		if got := b.copies(c.of, c.values); got != c.want {
			t.Errorf("%+v with %d values: %d copies, want %d", c.of, c.values, got, c.want)
		}
	}
}

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
		c, err := lib.NewContext(sparsek.Options{Backend: backend})
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
			if r.Timing.Runs < 2 || r.Timing.Runs > 2*mostOurs || r.Effective(r.Timing) <= 0 || r.Fraction(r.Timing) <= 0 || r.PlanTime <= 0 || r.Plan.Kernel == "" {
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
	a := product.RandomA[element](p, c.M, c.K, c.BlockM, c.BlockK, Seed)
	rotation, err := product.NewRotation(context.Background(), b.context, a, c.N, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer rotation.Close()
	for r := range p.BlockRows {
		other := a
		other.Values = slices.Clone(a.Values)
		other.Values[int(p.RowPtr[r])*c.BlockM*c.BlockK+7] += 0x100
		err := b.check(context.Background(), c, other, rotation)
		looked := r == 0 || r == p.BlockRows/2 || r == p.BlockRows-1
		if looked != errors.Is(err, ErrWrong) || !looked && err != nil {
			t.Errorf("block row %d: %v", r, err)
		}
	}
	// A NaN in A makes the row of C NaN.
	broken := a
	broken.Values = slices.Clone(a.Values)
	broken.Values[0] = 0x7fff
	nan, err := product.NewRotation(context.Background(), b.context, broken, c.N, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer nan.Close()
	if err := b.check(context.Background(), c, a, nan); !errors.Is(err, ErrWrong) || !strings.Contains(err.Error(), "C[0, 0]") {
		t.Errorf("NaN in C: %v", err)
	}
}
