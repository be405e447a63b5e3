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
	"github.com/sparsek/sparsek/wrapper/check"
)

// pagedCase is attention whose keys and values lie in pages of a cache: k and v in place of those of its operands.
type pagedCase[T, S Element] struct {
	*attentionCase[T, S]
	k, v   Heads[T]
	table  []int32
	stride int
}

// pagesOf are the sizes of a cache.
type pagesOf struct {
	rows     int
	holes    bool // some pages are none of the cache
	gap      int  // between rows
	rowFirst bool // (pages, rows, heads, size), else (pages, heads, rows, size)
}

func drawPages(t *rapid.T, rows *rapid.Generator[int], gap int) pagesOf {
	return pagesOf{rows: rows.Draw(t, "pageRows"), holes: rapid.Bool().Draw(t, "holes"), rowFirst: rapid.Bool().Draw(t, "rowFirst"),
		gap: rapid.SampledFrom([]int{0, gap}).Draw(t, "gapInPages")}
}

// inPages puts keys and values into a cache, whose other pages hold NaN. Numbers that nothing may look up are none of it.
func (c *attentionCase[T, S]) inPages(random *rand.Rand, of pagesOf) *pagedCase[T, S] {
	o := c.opts
	own := (o.SeqK + of.rows - 1) / of.rows
	count := o.Batch*own + 1 + random.IntN(3)
	k, v := c.o.K.(Heads[T]), c.o.V.(Heads[T])
	p := &pagedCase[T, S]{attentionCase: c, stride: own + random.IntN(3), k: newCache[T](count, o.HeadsK, k.Size, of), v: newCache[T](count, o.HeadsK, v.Size, of)}
	none := func() int32 {
		return []int32{-1, int32(count), math.MaxInt32, math.MinInt32, int32(-count)}[random.IntN(5)]
	}
	p.table = make([]int32, o.Batch*p.stride)
	for i := range p.table {
		p.table[i] = none()
	}
	c.hidden = make([][]bool, o.Batch)
	order := random.Perm(count)
	for b := range o.Batch {
		c.hidden[b] = make([]bool, o.SeqK)
		for j := range length(c.lengthsK, b, o.SeqK) {
			at := b*p.stride + j/of.rows
			if j%of.rows == 0 && !(of.holes && random.IntN(4) == 0) {
				p.table[at] = int32(order[b*own+j/of.rows])
			}
			if page := int(p.table[at]); page >= 0 && page < count {
				for head := range o.HeadsK {
					copy(p.k.Data[placeOf(p.k, page, head, j%of.rows):], k.Data[placeOf(k, b, head, j):][:k.Size])
					copy(p.v.Data[placeOf(p.v, page, head, j%of.rows):], v.Data[placeOf(v, b, head, j):][:v.Size])
				}
			} else {
				c.hidden[b][j] = true
			}
		}
	}
	return p
}

// newCache has NaN in all its pages.
func newCache[T Element](count, heads, size int, of pagesOf) Heads[T] {
	h := Heads[T]{Batch: count, Heads: heads, Rows: of.rows, Size: size}
	row := size + of.gap
	switch {
	case of.rowFirst:
		h.Stride = [3]int{of.rows * heads * row, row, heads * row}
	case of.gap > 0:
		h.Stride = [3]int{heads * of.rows * row, of.rows * row, row}
	}
	h.Data = make([]T, count*heads*of.rows*row)
	for i := range h.Data {
		h.Data[i] = FromFloat32[T](float32(math.NaN()))
	}
	return h
}

// operands are those of a forward pass in pages, in buffers where inBuffers says so, with the table and the lengths, until the function
// that comes with them is called.
func (p *pagedCase[T, S]) operands(t rapid.TB, engine *Engine, inBuffers bool) (o AttentionOperands, end func()) {
	t.Helper()
	table := filled(t, engine, p.table)
	closers := []func(){func() { table.Close() }}
	o = AttentionOperands{Q: p.o.Q, K: p.k, V: p.v, O: p.o.O, LSE: p.o.LSE, Bias: p.o.Bias,
		ScaleQ: p.o.ScaleQ, ScaleK: p.o.ScaleK, ScaleV: p.o.ScaleV, Pages: &AttentionPages{Table: table, Stride: p.stride}}
	if inBuffers {
		in := func(h HeadsOperand) Heads[T] {
			on := inDeviceMemory(t, engine, h.(Heads[T]))
			closers = append(closers, func() { on.Buffer.Close() })
			return on
		}
		lse := inDeviceMemory(t, engine, p.o.LSE.(Heads[S]))
		closers = append(closers, func() { lse.Buffer.Close() })
		o.Q, o.K, o.V, o.O, o.LSE = in(o.Q), in(o.K), in(o.V), in(o.O), lse
	}
	closers = append(closers, p.writeLengths(t, engine, &o), p.writeTerms(t, engine, &o, false))
	return o, func() {
		for _, end := range closers {
			end()
		}
	}
}

// run computes O and LSE.
func (p *pagedCase[T, S]) run(t rapid.TB, engine *Engine) AttentionInfo {
	t.Helper()
	ctx := context.Background()
	a := must(NewAttention(ctx, engine, p.layout, p.opts))(t)
	defer a.Close()
	s := must(engine.NewStream())(t)
	defer s.Close()
	onGPU := engine.Info().Backend == CUDA
	on, end := p.operands(t, engine, onGPU)
	defer end()
	if err := errors.Join(a.Forward(ctx, s, on), s.Wait(ctx)); err != nil {
		t.Fatal(err)
	}
	if onGPU {
		read(t, on.O.(Heads[T]), p.o.O)
		read(t, on.LSE.(Heads[S]), p.o.LSE)
	}
	return a.Info()
}

// check compares O and LSE with the reference in float64, which reads the same pages.
func (p *pagedCase[T, S]) check(t rapid.TB, lib *Library, info AttentionInfo, threads int) {
	t.Helper()
	for _, output := range []check.AttentionOutput{check.O, check.LSE} {
		report, err := check.Attention(lib, p.layout, check.AttentionArgs{Options: p.opts,
			Operands: AttentionOperands{Q: p.o.Q, K: p.k, V: p.v, O: p.o.O, LSE: p.o.LSE, Bias: p.o.Bias,
				ScaleQ: p.o.ScaleQ, ScaleK: p.o.ScaleK, ScaleV: p.o.ScaleV}, LengthsQ: p.lengthsQ, LengthsK: p.lengthsK,
			MaskIndex: p.terms.maskIndex, MaskBits: p.terms.maskBits, MaskBlocks: p.terms.masked, PageTable: p.table, PageStride: p.stride,
			Info: info, Output: output, Threads: threads})
		if err != nil {
			t.Fatalf("%v: %v (%+v)", output, err, p.opts)
		}
		if report.Elements == 0 {
			t.Fatalf("%v: no elements were checked", output)
		}
	}
}

// Keys and values in pages of any size, by each kernel of the CPU, with every rule.
func TestAttentionInPagesIsWithinItsBounds(t *testing.T) {
	engine := newEngine(t, CPU)
	for _, kernel := range []string{"cpu_avx512", "cpu_avx2", "cpu_generic"} {
		t.Run(kernel, func(t *testing.T) {
			eachAttentionType(t, pagesWithinBounds[BFloat16, float32](engine, kernel), pagesWithinBounds[Float16, float32](engine, kernel),
				pagesWithinBounds[float32, float32](engine, kernel), pagesWithinBounds[float64, float64](engine, kernel))
		})
	}
}

func pagesWithinBounds[T, S Element](engine *Engine, kernel string) func(t *testing.T) {
	return func(t *testing.T) {
		one := AttentionOptions{Batch: 1, HeadsQ: 1, HeadsK: 1, SeqQ: 1, SeqK: 1, HeadSize: 1, Kernel: kernel}
		if _, err := NewAttention[T, int32](context.Background(), engine, nil, one); errors.Is(err, ErrNoSuchKernel) {
			t.Skip("skipped: not for this processor")
		}
		rapid.Check(t, func(t *rapid.T) {
			p := drawPaged[T, S](t)
			p.opts.Kernel = kernel
			p.check(t, engine.Library(), p.run(t, engine), 1)
		})
	}
}

// drawPaged draws what the CPU serves.
func drawPaged[T, S Element](t *rapid.T) *pagedCase[T, S] {
	c := drawAttention[T, S](t)
	of := drawPages(t, rapid.OneOf(rapid.SampledFrom([]int{16, 32, 64}), rapid.IntRange(1, 80)), 3)
	return c.inPages(rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "pages"), 26)), of)
}

// The formulas of dense attention in which keys without a page are hidden.
func TestAttentionInPagesIsDenseAttentionWithAMask(t *testing.T) {
	engine := newEngine(t, CPU)
	rapid.Check(t, func(t *rapid.T) {
		p := drawPaged[float64, float64](t)
		p.run(t, engine)
		for b := range p.opts.Batch {
			for head := range p.opts.HeadsQ {
				p.compareForward(t, b, head)
			}
		}
	})
}

// Where each page is there, pages change no bit.
func TestAttentionInPagesHasTheBitsOfKeysInOnePiece(t *testing.T) {
	engine := newEngine(t, CPU)
	rapid.Check(t, func(t *rapid.T) {
		c := drawAttention[BFloat16, float32](t)
		of := drawPages(t, rapid.IntRange(1, 80), 3)
		of.holes = false
		c.run(t, engine)
		o, lse := slices.Clone(c.o.O.(Heads[BFloat16]).Data), slices.Clone(c.o.LSE.(Heads[float32]).Data)
		c.inPages(rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "pages"), 26)), of).run(t, engine)
		requireBits(t, "O", c.o.O.(Heads[BFloat16]), o)
		requireBits(t, "LSE", c.o.LSE.(Heads[float32]), lse)
	})
}

func requireBits[E Element](t rapid.TB, name string, got Heads[E], want []E) {
	t.Helper()
	for i, x := range got.Data {
		if bitsOf(x) != bitsOf(want[i]) {
			t.Fatalf("element %d of %s is %v and was %v", i, name, ToFloat32(x), ToFloat32(want[i]))
		}
	}
}

func TestAttentionPagesThatAreRefused(t *testing.T) {
	onEach(t, func(t *testing.T, engine *Engine) {
		s := must(engine.NewStream())(t)
		defer s.Close()
		ctx := t.Context()
		c := &attentionCase[BFloat16, float32]{opts: AttentionOptions{Batch: 2, HeadsQ: 2, HeadsK: 1, SeqQ: 100, SeqK: 150, HeadSize: 8}}
		c.fill(rand.New(rand.NewPCG(3, 27)), 0)
		onGPU := engine.Info().Backend == CUDA
		p := c.inPages(rand.New(rand.NewPCG(4, 27)), pagesOf{rows: 32})
		p.stride, p.table = 0, []int32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2, 3}
		good, end := p.operands(t, engine, onGPU)
		defer end()
		a := must(NewAttention(ctx, engine, c.layout, c.opts))(t)
		defer a.Close()
		in := func(h Heads[BFloat16]) Heads[BFloat16] {
			if onGPU {
				h = inDeviceMemory(t, engine, h)
				t.Cleanup(func() { h.Buffer.Close() })
			}
			return h
		}
		sums := func(h Heads[float32]) Heads[float32] {
			if onGPU {
				h = inDeviceMemory(t, engine, h)
				t.Cleanup(func() { h.Buffer.Close() })
			}
			return h
		}
		short := filled(t, engine, p.table[:9])
		defer short.Close()
		odd := newCache[BFloat16](20, 1, 8, pagesOf{rows: 24})
		servedOnTheCPU := error(nil)
		if onGPU {
			servedOnTheCPU = ErrNoSuchKernel
		}
		for _, x := range []struct {
			name     string
			change   func(o *AttentionOperands)
			backward bool
			want     error
		}{
			{"as it is", func(*AttentionOperands) {}, false, nil},
			{"backward", func(o *AttentionOperands) { o.GradO = in(c.o.GradO.(Heads[BFloat16])) }, true, ErrNoSuchKernel},
			{"mass", func(o *AttentionOperands) { o.Mass = sums(c.o.Mass.(Heads[float32])) }, false, ErrNoSuchKernel},
			{"no table", func(o *AttentionOperands) { o.Pages = &AttentionPages{} }, false, ErrNullPointer},
			{"short table", func(o *AttentionOperands) { o.Pages = &AttentionPages{Table: short} }, false, ErrBadSize},
			{"stride", func(o *AttentionOperands) { o.Pages = &AttentionPages{Table: o.Pages.Table, Stride: -1} }, false, ErrBadLeadingDimension},
			{"long stride", func(o *AttentionOperands) { o.Pages = &AttentionPages{Table: o.Pages.Table, Stride: 12} }, false, ErrBadSize},
			{"values of other pages", func(o *AttentionOperands) { o.V = in(odd) }, false, ErrBadSize},
			{"no pages", func(o *AttentionOperands) { o.K = Heads[BFloat16]{Heads: 1, Rows: 32, Size: 8} }, false, ErrBadSize},
			{"pages of 24 rows", func(o *AttentionOperands) { o.K, o.V = in(odd), in(odd) }, false, servedOnTheCPU},
			{"a bias", func(o *AttentionOperands) {
				o.Bias = in(newHeads[BFloat16](rand.New(rand.NewPCG(5, 27)), 2, 2, 100, 150, 0))
			}, false, servedOnTheCPU},
		} {
			t.Run(x.name, func(t *testing.T) {
				o, call := good, a.Forward
				if x.change(&o); x.backward {
					call = a.Backward
				}
				if err := errors.Join(call(ctx, s, o), s.Wait(ctx)); !errors.Is(err, x.want) {
					t.Errorf("%v, and not %v", err, x.want)
				}
			})
		}
	})
}
