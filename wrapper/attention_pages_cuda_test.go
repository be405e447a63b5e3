// SPDX-License-Identifier: Apache-2.0

package sparsek_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	. "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/internal/foreign"
)

// Pages of all sizes that the kernels serve, with every rule, layout, ratio of heads and length, and few queries.
func TestAttentionInPagesOnTheGPUIsWithinItsBounds(t *testing.T) {
	engine := newEngine(t, CUDA)
	t.Run("bf16", pagesOnGPU[BFloat16](engine))
	t.Run("fp16", pagesOnGPU[Float16](engine))
}

func pagesOnGPU[T Element](engine *Engine) func(t *testing.T) {
	return func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			p := drawPagedForGPU[T](t)
			p.check(t, engine.Library(), p.run(t, engine), 4)
		})
	}
}

// drawPagedForGPU draws what the GPU serves: pages without a bias or bits.
func drawPagedForGPU[T Element](t *rapid.T) *pagedCase[T, float32] {
	c := drawAttentionForGPU[T](t, 64, 16)
	c.terms = attentionTerms{}
	c.o.Bias, c.o.GradBias = nil, nil
	rows := rapid.OneOf(rapid.SampledFrom([]int{16, 32, 64, 128}), rapid.Map(rapid.IntRange(1, 20), func(n int) int { return 16 * n }))
	return c.inPages(rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "pages"), 26)), drawPages(t, rows, 8))
}

// Where each page is there, and lengths have the same kernels compute keys in one piece, pages change no bit.
func TestAttentionInPagesOnTheGPUHasTheBitsOfKeysInOnePiece(t *testing.T) {
	engine := newEngine(t, CUDA)
	rapid.Check(t, func(t *rapid.T) {
		c := drawAttentionForGPU[BFloat16](t, 64, 16)
		c.terms = attentionTerms{}
		c.o.Bias, c.o.GradBias = nil, nil
		if c.lengthsK == nil {
			c.lengthsK = slices.Repeat([]int32{int32(c.opts.SeqK)}, c.opts.Batch)
		}
		of := drawPages(t, rapid.SampledFrom([]int{16, 32, 48, 64, 128}), 8)
		of.holes = false
		c.runInBuffers(t, engine)
		o, lse := slices.Clone(c.o.O.(Heads[BFloat16]).Data), slices.Clone(c.o.LSE.(Heads[float32]).Data)
		c.inPages(rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "pages"), 26)), of).run(t, engine)
		requireBits(t, "O", c.o.O.(Heads[BFloat16]), o)
		requireBits(t, "LSE", c.o.LSE.(Heads[float32]), lse)
	})
}

// One query, and some, of sequences in pages: the keys are shared by several CTAs, whose number has no influence.
func TestAttentionOfFewQueriesInPages(t *testing.T) {
	engine := newEngine(t, CUDA)
	for _, queries := range []int{1, 20} {
		for _, rows := range []int{16, 64, 256} {
			c := &attentionCase[BFloat16, float32]{opts: AttentionOptions{Batch: 2, HeadsQ: 8, HeadsK: 2, SeqQ: queries, SeqK: 6000, HeadSize: 128}}
			c.lengthsK = []int32{5990, 1234}
			c.fill(rand.New(rand.NewPCG(2, 28)), 0)
			p := c.inPages(rand.New(rand.NewPCG(3, 28)), pagesOf{rows: rows, holes: true, rowFirst: true})
			var want []BFloat16
			for _, workers := range []int{0, 1, 3} {
				c.opts.Workers = workers
				p.check(t, engine.Library(), p.run(t, engine), 4)
				got := c.o.O.(Heads[BFloat16])
				if want == nil {
					want = slices.Clone(got.Data)
				}
				requireBits(t, "O", got, want)
			}
		}
	}
}

// Of a table of no pages at all nothing is read, and no query sees a key.
func TestAttentionWithoutAnyPage(t *testing.T) {
	onEach(t, func(t *testing.T, engine *Engine) {
		c := &attentionCase[BFloat16, float32]{opts: AttentionOptions{Batch: 2, HeadsQ: 4, HeadsK: 2, SeqQ: 70, SeqK: 300, HeadSize: 64}}
		c.fill(rand.New(rand.NewPCG(2, 29)), 0)
		p := c.inPages(rand.New(rand.NewPCG(3, 29)), pagesOf{rows: 32})
		for i := range p.table {
			p.table[i] = []int32{-1, math.MaxInt32, math.MinInt32, int32(p.k.Batch)}[i%4]
		}
		p.check(t, engine.Library(), p.run(t, engine), 1)
		for i, lse := range c.o.LSE.(Heads[float32]).Data {
			if !math.IsInf(float64(lse), -1) {
				t.Fatalf("LSE %d is %g", i, lse)
			}
		}
	})
}

// A layout that lies in device memory.
func TestAttentionInPagesOfLayoutsInDeviceMemory(t *testing.T) {
	engine := newEngine(t, CUDA)
	rapid.Check(t, func(t *rapid.T) {
		p := drawPagedForGPU[BFloat16](t)
		layout := p.layout
		if layout == nil || layout.BlockM%64 != 0 || layout.BlockK%64 != 0 || p.opts.HeadSize > 128 || p.lengthsMoveRules() {
			t.Skip("no layout that is served in device memory")
		}
		ctx := context.Background()
		s := must(engine.NewStream())(t)
		defer s.Close()
		rowPtr, colIdx := filled(t, engine, layout.RowPtr), filled(t, engine, append(slices.Clone(layout.ColIdx), 0))
		defer rowPtr.Close()
		defer colIdx.Close()
		a := must(NewDeviceAttentionIn(ctx, s, DeviceBSR[BFloat16, int32]{Rows: layout.Rows, Cols: layout.Cols, BlockM: layout.BlockM,
			BlockK: layout.BlockK, RowPtr: rowPtr, ColIdx: colIdx, Bound: true}, p.opts))(t)
		defer a.Close()
		on, end := p.operands(t, engine, true)
		defer end()
		if err := errors.Join(a.Check(ctx), a.Forward(ctx, s, on), s.Wait(ctx)); err != nil {
			t.Fatal(err)
		}
		read(t, on.O.(Heads[BFloat16]), p.o.O)
		read(t, on.LSE.(Heads[float32]), p.o.LSE)
		p.check(t, engine.Library(), a.Info(), 4)
	})
}

// Replays of a graph read the table and the lengths as they are by then.
func TestAttentionInPagesInGraph(t *testing.T) {
	engine := newEngine(t, CUDA)
	library := must(foreign.Open(true, engine.Info().Device))(t)
	defer library.Close()
	s := must(engine.StreamAt(library.Stream()))(t)
	defer s.Close()
	ctx := context.Background()
	for _, queries := range []int{1, 200} {
		c := &attentionCase[BFloat16, float32]{opts: AttentionOptions{Batch: 3, HeadsQ: 4, HeadsK: 2, SeqQ: queries, SeqK: 1000, HeadSize: 128}}
		c.lengthsK = []int32{1000, 1000, 1000}
		random := rand.New(rand.NewPCG(2, 30))
		c.fill(random, 0)
		p := c.inPages(random, pagesOf{rows: 16})
		on, end := p.operands(t, engine, true)
		a := must(NewAttention(ctx, engine, c.layout, c.opts))(t)
		if err := errors.Join(a.Forward(ctx, s, on), library.Wait()); err != nil { // makes what a capture may not
			t.Fatal(err)
		}
		graph := must(library.Capture(foreign.CaptureGlobal, func() error { return a.Forward(ctx, s, on) }))(t)
		for range 4 {
			random.Shuffle(len(p.table), func(i, j int) { p.table[i], p.table[j] = p.table[j], p.table[i] })
			for i := range p.lengthsK {
				p.lengthsK[i] = int32(random.IntN(c.opts.SeqK + 1))
			}
			// The last page of a sequence of full length has rows behind it, which hold NaN wherever the page comes to lie.
			for i, page := range p.table {
				if page >= 0 && int(page) < p.k.Batch && math.IsNaN(float64(ToFloat32(p.k.Data[placeOf(p.k, int(page), 0, 15)]))) {
					p.table[i] = -1
				}
			}
			if err := errors.Join(on.Pages.Table.Write(ctx, p.table), on.LengthsK.Write(ctx, p.lengthsK), graph.Launch(), library.Wait()); err != nil {
				t.Fatal(err)
			}
			read(t, on.O.(Heads[BFloat16]), p.o.O)
			read(t, on.LSE.(Heads[float32]), p.o.LSE)
			p.check(t, engine.Library(), a.Info(), 4)
		}
		graph.Close()
		end()
		a.Close()
	}
}
