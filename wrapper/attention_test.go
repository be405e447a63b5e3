// SPDX-License-Identifier: Apache-2.0

package sparsek_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	. "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/check"
)

// Every rule, size of heads and blocks, ratio of heads and length, by each kernel of the CPU.
func TestAttentionIsWithinItsBounds(t *testing.T) {
	engine := newEngine(t, CPU)
	for _, kernel := range []string{"cpu_avx512", "cpu_avx2", "cpu_generic"} {
		t.Run(kernel, func(t *testing.T) {
			eachAttentionType(t, attentionWithinBounds[BFloat16, float32](engine, kernel), attentionWithinBounds[Float16, float32](engine, kernel),
				attentionWithinBounds[float32, float32](engine, kernel), attentionWithinBounds[float64, float64](engine, kernel))
		})
	}
}

func attentionWithinBounds[T, S Element](engine *Engine, kernel string) func(t *testing.T) {
	return func(t *testing.T) {
		// Outside of rapid, which fails where each case is skipped.
		one := AttentionOptions{Batch: 1, HeadsQ: 1, HeadsK: 1, SeqQ: 1, SeqK: 1, HeadSize: 1, Kernel: kernel}
		a, err := NewAttention[T, int32](context.Background(), engine, nil, one)
		if errors.Is(err, ErrNoSuchKernel) {
			t.Skip("skipped: not for this processor")
		}
		if err != nil {
			t.Fatal(err)
		}
		a.Close()
		rapid.Check(t, func(t *rapid.T) {
			c := drawAttention[T, S](t)
			c.opts.Kernel = kernel
			c.check(t, engine.Library(), c.run(t, engine), 1)
		})
	}
}

func TestAttentionHasTheSameBitsWithAnyThreads(t *testing.T) {
	lib := library(t)
	eachAttentionType(t, sameAttentionBits[BFloat16, float32](lib), sameAttentionBits[Float16, float32](lib),
		sameAttentionBits[float32, float32](lib), sameAttentionBits[float64, float64](lib))
}

func sameAttentionBits[T, S Element](lib *Library) func(t *testing.T) {
	return func(t *testing.T) {
		var engines []*Engine
		for _, threads := range []int{1, 2, 7} {
			engine, err := lib.NewEngine(EngineOptions{Backend: CPU, Threads: threads})
			if err != nil {
				t.Fatal(err)
			}
			defer engine.Close()
			engines = append(engines, engine)
		}
		rapid.Check(t, func(t *rapid.T) {
			c := drawAttention[T, S](t)
			c.run(t, engines[0])
			want, wantSums := c.outputs()
			for _, engine := range engines[1:] {
				c.run(t, engine)
				got, gotSums := c.outputs()
				for i := range want {
					if bitsOf(got[i]) != bitsOf(want[i]) {
						t.Fatalf("element %d of the outputs is %v with %d threads and %v with 1", i, got[i], engine.Info().Threads, want[i])
					}
				}
				for i := range wantSums {
					if bitsOf(gotSums[i]) != bitsOf(wantSums[i]) {
						t.Fatalf("LSE or mass %d is %v with %d threads and %v with 1", i, gotSums[i], engine.Info().Threads, wantSums[i])
					}
				}
			}
		})
	}
}

func bitsOf[T Element](x T) uint64 {
	switch v := any(x).(type) {
	case BFloat16:
		return uint64(v)
	case Float16:
		return uint64(v)
	case Float8E4M3:
		return uint64(v)
	case float32:
		return uint64(math.Float32bits(v))
	case float64:
		return math.Float64bits(v)
	}
	return 0
}

// The formulas of dense attention with a mask, in fp64, written down anew.
func TestAttentionIsDenseAttentionWithAMask(t *testing.T) {
	engine := newEngine(t, CPU)
	rapid.Check(t, func(t *rapid.T) {
		c := drawAttention[float64, float64](t)
		c.run(t, engine)
		for b := range c.opts.Batch {
			for head := range c.opts.HeadsQ {
				c.compareForward(t, b, head)
			}
		}
		c.compareBackward(t)
	})
}

// A gradient is the limit of differences of the loss sum(O GradO).
func TestAttentionGradientsAreThoseOfDifferences(t *testing.T) {
	engine := newEngine(t, CPU)
	rapid.Check(t, func(t *rapid.T) {
		c := drawAttention[float64, float64](t)
		c.lengthsQ, c.lengthsK = nil, nil // whose rows hold NaN
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "values"), 21))
		c.fill(random, 0)
		c.run(t, engine)
		gradients := []Heads[float64]{c.o.GradQ.(Heads[float64]), c.o.GradK.(Heads[float64]), c.o.GradV.(Heads[float64])}
		want := make([]float64, len(gradients))
		places := make([]int, len(gradients))
		for i, g := range gradients {
			places[i] = random.IntN(len(g.Data))
			want[i] = g.Data[places[i]]
		}
		const step = 1e-5
		for i, x := range []Heads[float64]{c.o.Q.(Heads[float64]), c.o.K.(Heads[float64]), c.o.V.(Heads[float64])} {
			before := x.Data[places[i]]
			x.Data[places[i]] = before + step
			c.run(t, engine)
			above := c.loss()
			x.Data[places[i]] = before - step
			c.run(t, engine)
			below := c.loss()
			x.Data[places[i]] = before
			got := (above - below) / (2 * step)
			if math.Abs(got-want[i]) > 2e-6*(1+math.Abs(want[i])) {
				t.Fatalf("gradient %d at %d is %g and the difference %g (%+v)", i, places[i], want[i], got, c.opts)
			}
		}
	})
}

func (c *attentionCase[T, S]) loss() float64 {
	o, grad := c.o.O.(Heads[float64]), c.o.GradO.(Heads[float64])
	sum := 0.0
	for i := range o.Data {
		sum += o.Data[i] * grad.Data[i]
	}
	return sum
}

// Weights are right to a few roundings. A batch each has one query and one key, whose weight exp(S - LSE) is then the gradient
// of V: nothing else is in its bound, and exponents lie where a series for exp that ends too soon is off the furthest.
func TestAttentionWeightsToAFewRoundings(t *testing.T) {
	engine := newEngine(t, CPU)
	for _, kernel := range []string{"cpu_avx512", "cpu_avx2", "cpu_generic"} {
		t.Run(kernel, func(t *testing.T) {
			t.Run("fp32", weightsToAFewRoundings[float32](engine, kernel))
			t.Run("fp64", weightsToAFewRoundings[float64](engine, kernel))
		})
	}
}

func weightsToAFewRoundings[T float32 | float64](engine *Engine, kernel string) func(t *testing.T) {
	return func(t *testing.T) {
		ctx := context.Background()
		const batch = 801
		options := AttentionOptions{Batch: batch, HeadsQ: 1, HeadsK: 1, SeqQ: 1, SeqK: 1, HeadSize: 1, Scale: 1, Kernel: kernel}
		a, err := NewAttention[T, int32](ctx, engine, nil, options)
		if errors.Is(err, ErrNoSuchKernel) {
			t.Skip("skipped: not for this processor")
		}
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		stream := must(engine.NewStream())(t)
		defer stream.Close()
		heads := func(of func(i int) float64) Heads[T] {
			h := Heads[T]{Batch: batch, Heads: 1, Rows: 1, Size: 1, Data: make([]T, batch)}
			for i := range h.Data {
				h.Data[i] = T(of(i))
			}
			return h
		}
		one := func(int) float64 { return 1 }
		score := func(i int) float64 { return math.Ln2 / 2 * (float64(i)/(batch/2) - 1) }
		o := AttentionOperands{Q: heads(score), K: heads(one), V: heads(one), O: heads(one), GradO: heads(one),
			LSE: heads(func(int) float64 { return 0 }), GradV: heads(one)}
		if err := a.Backward(ctx, stream, o); err != nil {
			t.Fatal(err)
		}
		report, err := check.Attention[T, int32](engine.Library(), nil, check.AttentionArgs{Options: options, Operands: o, Info: a.Info(), Output: check.GradV})
		if err != nil {
			t.Fatal(err)
		}
		if report.Elements != batch {
			t.Errorf("%d elements were checked", report.Elements)
		}
		t.Logf("the largest error is %.2g of its bound", report.MaxRatio)
	}
}

// Queries without keys get zeros, and keys without queries.
func TestAttentionOfNothing(t *testing.T) {
	checkAttentionOfNothing(t, newEngine(t, CPU))
}

func checkAttentionOfNothing(t *testing.T, engine *Engine) {
	t.Helper()
	for _, seq := range [][3]int{{100, 0, 0}, {0, 100, 0}, {100, 0, 1}, {0, 100, 1}} {
		c := &attentionCase[BFloat16, float32]{opts: AttentionOptions{Batch: 2, HeadsQ: 2, HeadsK: 1, SeqQ: seq[0], SeqK: seq[1], HeadSize: 64}}
		c.opts.AnyOrder = seq[2] == 1
		c.fill(rand.New(rand.NewPCG(1, 24)), 0)
		c.runInBuffers(t, engine)
		for name, output := range map[string]HeadsOperand{"O": c.o.O, "gradient of Q": c.o.GradQ, "gradient of K": c.o.GradK, "gradient of V": c.o.GradV} {
			for i, x := range output.(Heads[BFloat16]).Data {
				if ToFloat32(x) != 0 {
					t.Fatalf("%d queries, %d keys: %s: element %d is %v", seq[0], seq[1], name, i, ToFloat32(x))
				}
			}
		}
		for i, x := range c.o.LSE.(Heads[float32]).Data {
			if !math.IsInf(float64(x), -1) {
				t.Fatalf("LSE %d is %v", i, x)
			}
		}
	}
}
