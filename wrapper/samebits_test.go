// SPDX-License-Identifier: Apache-2.0

package sparsek

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
)

// repeatable is a plan whose products show in what order they are summed: terms of many magnitudes, and a C that takes
// away what the sums are rounded to, so that their last digits are left.
type repeatable[T Element] struct {
	ctx  *Engine
	p    *product[T, T, int32]
	plan *Plan[T]
	b    DeviceDense[T]
	c0   []T // - A B, rounded
}

// fewTiles is a product of some tiles of a kernel.
func fewTiles(kernel Kernel) shape {
	blockM, blockK := leastBlock(kernel)
	blockRows, blockCols := max(3, 384/blockM), max(4, 448/blockK)
	return shape{rows: blockRows * blockM, cols: blockCols * blockK, n: 520, blockM: blockM, blockK: blockK, density: 0.6, alpha: 1, seed: 21, kernel: kernel.Name}
}

func newRepeatable[T Element](t *testing.T, ctx *Engine, s shape) *repeatable[T] {
	p := newProduct[T, int32](s)
	random := rand.New(rand.NewPCG(22, 1))
	for _, list := range [][]T{p.a.Values, p.b.Data} {
		for i := range list {
			list[i] = FromFloat32[T](float32(random.NormFloat64()))
		}
	}
	m := must(NewMatrix(ctx, p.a))(t)
	plan := must(m.Plan(context.Background(), PlanOptions{N: p.n, Kernel: s.kernel}))(t)
	t.Cleanup(func() { plan.Close(); m.Close() })
	b := DeviceDense[T]{Rows: p.b.Rows, Cols: p.b.Cols, Buffer: upload(t, ctx, p.b.Data)}
	r := &repeatable[T]{ctx: ctx, p: p, plan: plan, b: b, c0: make([]T, p.a.Rows*p.n)}
	c := must(r.multiply(0))(t)
	report, err := Check(ctx.Library(), p.a, CheckArgs[T]{Alpha: 1, B: p.b, UnitRoundoff: plan.Info().UnitRoundoff, C: Dense[T]{Rows: p.a.Rows, Cols: p.n, Data: c}})
	if err != nil {
		t.Fatalf("%v\n%+v", err, report)
	}
	for i := range c {
		r.c0[i] = FromFloat32[T](-ToFloat32(c[i]))
	}
	return r
}

// multiply gives A B + beta c0.
func (s *repeatable[T]) multiply(beta float32, opts ...MultiplyOption) ([]T, error) {
	buffer, err := NewBuffer[T](s.ctx, len(s.c0))
	if err != nil {
		return nil, err
	}
	defer buffer.Close()
	if err := buffer.Write(s.c0); err != nil {
		return nil, err
	}
	c := DeviceDense[T]{Rows: s.p.a.Rows, Cols: s.p.n, Buffer: buffer}
	if err := s.plan.Multiply(context.Background(), 1, s.b, beta, c, opts...); err != nil {
		return nil, err
	}
	out := make([]T, buffer.Len())
	return out, buffer.Read(out)
}

func testSameBits[T Element](t *testing.T, ctx *Engine, kernel Kernel) {
	newRepeatable[T](t, ctx, fewTiles(kernel)).repeat(t)
}

func (s *repeatable[T]) repeat(t *testing.T) {
	t.Helper()
	want := must(s.multiply(1))(t)
	for i := range 20 {
		if !slices.Equal(must(s.multiply(1))(t), want) {
			t.Fatalf("product %d after the first has other bits", i+1)
		}
	}
}

// The same plan gives the same bits, every time.
func TestSameBits(t *testing.T) {
	onEachKernel(t, testSameBits[BFloat16], testSameBits[Float16], testSameBits[float32])
}

func testManyStreams[T Element](t *testing.T, ctx *Engine, kernel Kernel) {
	s := newRepeatable[T](t, ctx, fewTiles(kernel))
	want := must(s.multiply(1))(t)
	var group sync.WaitGroup
	for worker := range 8 {
		group.Go(func() {
			var opts []MultiplyOption
			if worker%2 == 0 {
				stream, err := ctx.NewStream()
				if err != nil {
					t.Error(err)
					return
				}
				defer stream.Close()
				opts = append(opts, WithStream(stream))
			}
			for range 10 {
				got, err := s.multiply(1, opts...)
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
	onEachKernel(t, testManyStreams[BFloat16], testManyStreams[Float16], testManyStreams[float32])
}
