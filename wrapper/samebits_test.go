// SPDX-License-Identifier: Apache-2.0

package sparsek_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	. "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/check"
)

// repeatable is a plan whose products show in what order they are summed: terms of many magnitudes, and a C that takes
// away what the sums are rounded to, so that their last digits are left.
type repeatable[T Element] struct {
	engine *Engine
	p      *product[T, T, int32]
	plan   *Plan
	b      DeviceDense[T]
	c0     []T // - A B, rounded
}

// fewTiles is a product of some tiles of a kernel.
func fewTiles(kernel Kernel) shape {
	blockM, blockK := leastBlock(kernel)
	blockRows, blockCols := max(3, 384/blockM), max(4, 448/blockK)
	return shape{rows: blockRows * blockM, cols: blockCols * blockK, n: 520, blockM: blockM, blockK: blockK, density: 0.6, alpha: 1, seed: 21, kernel: kernel.Name}
}

func newRepeatable[T Element](t *testing.T, engine *Engine, s shape) *repeatable[T] {
	p := newProduct[T, int32](s)
	random := rand.New(rand.NewPCG(22, 1))
	for _, list := range [][]T{p.a.Values, p.b.Data} {
		for i := range list {
			list[i] = FromFloat32[T](float32(random.NormFloat64()))
		}
	}
	m := must(NewMatrix(context.Background(), engine, p.a))(t)
	plan := must(m.Plan(context.Background(), PlanOptions{N: p.n, Kernel: s.kernel, Compute: computeOf(s.kernel)}))(t)
	t.Cleanup(func() { plan.Close(); m.Close() })
	b := DeviceDense[T]{Rows: p.b.Rows, Cols: p.b.Cols, Buffer: upload(t, engine, p.b.Data)}
	r := &repeatable[T]{engine: engine, p: p, plan: plan, b: b, c0: make([]T, p.a.Rows*p.n)}
	c := must(r.multiply(0, nil))(t)
	report, err := check.Product(engine.Library(), p.a, check.Args{Alpha: 1, B: p.b, UnitRoundoff: plan.Info().UnitRoundoff, ProductRoundoff: plan.Info().ProductRoundoff, C: Dense[T]{Rows: p.a.Rows, Cols: p.n, Data: c}})
	if err != nil {
		t.Fatalf("%v\n%+v", err, report)
	}
	for i := range c {
		r.c0[i] = FromFloat32[T](-ToFloat32(c[i]))
	}
	return r
}

// multiply gives A B + beta c0.
func (s *repeatable[T]) multiply(beta float32, stream *Stream) ([]T, error) {
	buffer, err := NewBuffer[T](s.engine, len(s.c0))
	if err != nil {
		return nil, err
	}
	defer buffer.Close()
	if err := buffer.Write(context.Background(), s.c0); err != nil {
		return nil, err
	}
	c := DeviceDense[T]{Rows: s.p.a.Rows, Cols: s.p.n, Buffer: buffer}
	if err := multiplyIn(s.plan, stream, 1, beta, Operands{B: s.b, C: c}); err != nil {
		return nil, err
	}
	out := make([]T, buffer.Len())
	return out, buffer.Read(context.Background(), out)
}

func testSameBits[T Element](t *testing.T, engine *Engine, kernel Kernel) {
	newRepeatable[T](t, engine, fewTiles(kernel)).repeat(t)
}

func (s *repeatable[T]) repeat(t *testing.T) {
	t.Helper()
	want := must(s.multiply(1, nil))(t)
	for i := range 20 {
		if !slices.Equal(must(s.multiply(1, nil))(t), want) {
			t.Fatalf("product %d after the first has other bits", i+1)
		}
	}
}

// The same plan gives the same bits, every time.
func TestSameBits(t *testing.T) {
	onEachKernel(t, testSameBits[BFloat16], testSameBits[Float16], testSameBits[float32], testSameBits[float64])
}

func testFewWorkers[T Element](t *testing.T, engine *Engine, kernel Kernel) {
	s := newRepeatable[T](t, engine, fewTiles(kernel))
	m := must(NewMatrix(context.Background(), engine, s.p.a))(t)
	defer m.Close()
	var want []T
	for _, workers := range []int{1, 2, 3, 5} {
		s.plan = must(m.Plan(context.Background(), PlanOptions{N: s.p.n, Kernel: kernel.Name, Compute: computeOf(kernel.Name), Workers: workers}))(t)
		got, err := s.multiply(1, nil)
		s.plan.Close()
		if err != nil {
			t.Fatal(err)
		}
		if want == nil {
			want = got
		}
		if !slices.Equal(got, want) {
			t.Fatalf("at most %d workers give other bits than one", workers)
		}
	}
	if _, err := m.Plan(context.Background(), PlanOptions{N: s.p.n, Workers: -1}); !errors.Is(err, ErrBadArgument) {
		t.Errorf("Workers -1 gave %v", err)
	}
}

// Whichever worker computes a tile, and however many tiles it takes, the bits are the same. With so few workers no
// kernel splits tiles.
func TestFewWorkers(t *testing.T) {
	onEachKernel(t, testFewWorkers[BFloat16], testFewWorkers[Float16], testFewWorkers[float32], testFewWorkers[float64])
}

func testManyTilesOfAWorker[T Element](t *testing.T, engine *Engine, kernel Kernel) {
	blockM, blockK := leastBlock(kernel)
	small := shape{rows: (1536 + blockM - 1) / blockM * blockM, cols: blockK, n: 2049, blockM: blockM, blockK: blockK, density: 1, alpha: 1, seed: 24, kernel: kernel.Name}
	if !serves[T, T](t, engine, small) {
		small.n = 2048
	}
	s := newRepeatable[T](t, engine, small)
	want := must(s.multiply(1, nil))(t)
	m := must(NewMatrix(context.Background(), engine, s.p.a))(t)
	defer m.Close()
	for _, workers := range []int{1, 8, 12} {
		s.plan = must(m.Plan(context.Background(), PlanOptions{N: s.p.n, Kernel: kernel.Name, Compute: computeOf(kernel.Name), Workers: workers}))(t)
		defer s.plan.Close()
		for range 5 {
			if !slices.Equal(must(s.multiply(1, nil))(t), want) {
				t.Fatalf("%d workers give other bits than all", workers)
			}
		}
	}
}

// Few workers compute a hundred tiles of one block each, whose rows of C are stored element by element: what a tile
// takes is stored, and the next tiles are taken meanwhile. Of eight workers and more, the last ones have no tile of their
// own to begin with.
func TestManyTilesOfAWorker(t *testing.T) {
	onEachKernel(t, testManyTilesOfAWorker[BFloat16], testManyTilesOfAWorker[Float16], testManyTilesOfAWorker[float32], testManyTilesOfAWorker[float64])
}

func testNeighbours[T Element](t *testing.T, engine *Engine, kernel Kernel) {
	if !strings.HasPrefix(kernel.Name, "blocks_") && computeOf(kernel.Name) != TF32 {
		t.Skip("its CTAs share no loads")
	}
	// Columns of whole panels, and of five with a part of a vector beyond them: the sixth of a cluster has none.
	for _, n := range []int{1024, 1029} {
		blockM, blockK := leastBlock(kernel)
		s := newRepeatable[T](t, engine, shape{rows: 1024, cols: 1536, n: n, blockM: blockM, blockK: blockK, density: 0.6, alpha: 1, seed: 23, kernel: kernel.Name})
		m := must(NewMatrix(context.Background(), engine, s.p.a))(t)
		defer m.Close()
		var want []T
		for workers, tileN := range []int{1: 256, 2: 512, 3: 512, 4: 512} {
			if workers == 0 {
				continue
			}
			s.plan = must(m.Plan(context.Background(), PlanOptions{N: n, Kernel: kernel.Name, Compute: computeOf(kernel.Name), Workers: workers}))(t)
			if got := s.plan.Info().TileN; got != tileN {
				t.Errorf("%d workers: tiles of %d columns, not %d", workers, got, tileN)
			}
			got, err := s.multiply(1, nil)
			s.plan.Close()
			if err != nil {
				t.Fatal(err)
			}
			if want == nil {
				want = got
			}
			if !slices.Equal(got, want) {
				t.Fatalf("N = %d: %d CTAs, side by side, give other bits than one", n, workers)
			}
		}
	}
}

// CTAs that share the loads of A give the bits that one gives alone.
func TestNeighbours(t *testing.T) {
	onEachKernel(t, testNeighbours[BFloat16], testNeighbours[Float16], testNeighbours[float32], testNeighbours[float64])
}

func testManyStreams[T Element](t *testing.T, engine *Engine, kernel Kernel) {
	s := newRepeatable[T](t, engine, fewTiles(kernel))
	want := must(s.multiply(1, nil))(t)
	var group sync.WaitGroup
	for worker := range 8 {
		group.Go(func() {
			var stream *Stream
			if worker%2 == 0 {
				var err error
				if stream, err = engine.NewStream(); err != nil {
					t.Error(err)
					return
				}
				defer stream.Close()
			}
			for range 10 {
				got, err := s.multiply(1, stream)
				if err != nil {
					t.Error(err)
					return
				}
				if !slices.Equal(got, want) {
					t.Errorf("goroutine %d: other bits than those of one product alone", worker)
					return
				}
			}
		})
	}
	group.Wait()
}

// And so it does in many streams and goroutines at once.
func TestManyStreams(t *testing.T) {
	onEachKernel(t, testManyStreams[BFloat16], testManyStreams[Float16], testManyStreams[float32], testManyStreams[float64])
}
