// SPDX-License-Identifier: Apache-2.0

package sparsek_test

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	. "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/check"
)

// attentionCase is attention with its operands in host memory. S is the type of the sums.
type attentionCase[T, S Element] struct {
	opts               AttentionOptions
	layout             *BSR[T, int32] // nil: every block
	lengthsQ, lengthsK []int32
	terms              attentionTerms
	hidden             [][]bool // (batch, keys): those in pages that are not there; nil: none
	o                  AttentionOperands
}

// gap makes rows and heads lie apart, with NaN between them.
func newHeads[T Element](random *rand.Rand, batch, heads, rows, size, gap int) Heads[T] {
	h := Heads[T]{Batch: batch, Heads: heads, Rows: rows, Size: size}
	row := size + gap
	h.Stride = [3]int{heads * row, row, batch * heads * row} // (rows, batch, heads, size)
	if gap == 0 {
		h.Stride = [3]int{}
	}
	h.Data = make([]T, batch*heads*rows*row)
	for i := range h.Data {
		h.Data[i] = FromFloat32[T](float32(math.NaN()))
		if i%row < size {
			h.Data[i] = FromFloat32[T](float32(random.NormFloat64()))
		}
	}
	return h
}

func like[T Element](h Heads[T]) Heads[T] {
	h.Data = make([]T, len(h.Data))
	for i := range h.Data {
		h.Data[i] = FromFloat32[T](float32(math.NaN()))
	}
	return h
}

// placeOf is the place of an element.
func placeOf[T Element](h Heads[T], b, head, i int) int {
	if h.Stride == [3]int{} {
		return ((b*h.Heads+head)*h.Rows + i) * h.Size
	}
	return b*h.Stride[0] + head*h.Stride[1] + i*h.Stride[2]
}

// drawAttention draws sizes, rules, a layout and operands.
func drawAttention[T, S Element](t *rapid.T) *attentionCase[T, S] {
	random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 20))
	c := &attentionCase[T, S]{}
	o := &c.opts
	o.Batch = rapid.IntRange(1, 2).Draw(t, "batch")
	o.HeadsK = rapid.IntRange(1, 2).Draw(t, "heads")
	o.HeadsQ = o.HeadsK * rapid.IntRange(1, 3).Draw(t, "group")
	o.SeqQ = rapid.OneOf(rapid.IntRange(1, 40), rapid.IntRange(60, 200)).Draw(t, "seqQ")
	o.SeqK = rapid.OneOf(rapid.IntRange(1, 40), rapid.IntRange(60, 200)).Draw(t, "seqK")
	o.HeadSize = rapid.OneOf(rapid.SampledFrom([]int{64, 96, 128, 256}), rapid.IntRange(1, 40)).Draw(t, "size")
	o.HeadSizeV = rapid.OneOf(rapid.Just(o.HeadSize), rapid.IntRange(1, 70)).Draw(t, "sizeV")
	o.Causal = rapid.Bool().Draw(t, "causal")
	limit := func(name string) *int {
		if !rapid.Bool().Draw(t, name) {
			return nil
		}
		return new(rapid.OneOf(rapid.IntRange(-20, 60), rapid.SampledFrom([]int{0, 1 << 40, -1 << 50})).Draw(t, name))
	}
	if !o.Causal {
		o.WindowRight = limit("right")
	}
	o.WindowLeft = limit("left")
	o.AlignEnds = rapid.Bool().Draw(t, "align")
	o.Scale = rapid.SampledFrom([]float64{0, 0.3, -0.2}).Draw(t, "scale")
	o.SoftCap = rapid.SampledFrom([]float64{0, 0, 2, 30}).Draw(t, "cap")
	o.AnyOrder = rapid.Bool().Draw(t, "any order") // makes no difference on the CPU
	if rapid.IntRange(0, 4).Draw(t, "layout") > 0 {
		c.drawLayout(t, random)
	}
	gap := rapid.SampledFrom([]int{0, 0, 3}).Draw(t, "gap")
	c.lengthsQ, c.lengthsK = c.drawLengths(t, "lengthsQ", o.SeqQ), c.drawLengths(t, "lengthsK", o.SeqK)
	c.drawTerms(t, random)
	c.fill(random, gap)
	return c
}

// drawLengths draws how long sequences of at most seq are, or nil.
func (c *attentionCase[T, S]) drawLengths(t *rapid.T, name string, seq int) []int32 {
	if !rapid.Bool().Draw(t, name) {
		return nil
	}
	all := make([]int32, c.opts.Batch)
	for i := range all {
		all[i] = int32(rapid.IntRange(-2, seq+2).Draw(t, name))
	}
	return all
}

// writeLengths gives operands the lengths, in buffers that the function it returns closes.
func (c *attentionCase[T, S]) writeLengths(t rapid.TB, engine *Engine, on *AttentionOperands) (close func()) {
	t.Helper()
	var buffers []*DeviceBuffer[int32]
	for _, x := range []struct {
		from []int32
		to   **DeviceBuffer[int32]
	}{{c.lengthsQ, &on.LengthsQ}, {c.lengthsK, &on.LengthsK}} {
		if x.from == nil {
			continue
		}
		*x.to = must(NewBuffer[int32](engine, len(x.from)))(t)
		buffers = append(buffers, *x.to)
		if err := (*x.to).Write(context.Background(), x.from); err != nil {
			t.Fatal(err)
		}
	}
	return func() {
		for _, b := range buffers {
			b.Close()
		}
	}
}

func (c *attentionCase[T, S]) fill(random *rand.Rand, gap int) {
	o := c.opts
	q := newHeads[T](random, o.Batch, o.HeadsQ, o.SeqQ, o.HeadSize, gap)
	k := newHeads[T](random, o.Batch, o.HeadsK, o.SeqK, o.HeadSize, gap)
	sizeV := o.HeadSizeV
	if sizeV == 0 {
		sizeV = o.HeadSize
	}
	v := newHeads[T](random, o.Batch, o.HeadsK, o.SeqK, sizeV, gap)
	out := newHeads[T](random, o.Batch, o.HeadsQ, o.SeqQ, v.Size, gap)
	poison(q, c.lengthsQ)
	poison(out, c.lengthsQ)
	poison(k, c.lengthsK)
	poison(v, c.lengthsK)
	block, _ := c.block()
	mass := newHeads[S](random, o.Batch, o.HeadsQ, (o.SeqQ+block[0]-1)/block[0], (o.SeqK+block[1]-1)/block[1], 0)
	c.o = AttentionOperands{Q: q, K: k, V: v, O: like(out), GradO: out,
		LSE: like(newHeads[S](random, o.Batch, o.HeadsQ, o.SeqQ, 1, 0)), Mass: like(mass),
		GradQ: like(q), GradK: like(k), GradV: like(v)}
	c.fillTerms(random)
}

// poison writes NaN beyond the lengths, where nothing may be read, and into every other row one Inf, which makes scores infinite, not NaN.
func poison[T Element](h Heads[T], lengths []int32) {
	for b := range lengths {
		for head := range h.Heads {
			for i := max(0, int(lengths[b])); i < h.Rows; i++ {
				row := h.Data[placeOf(h, b, head, i):][:h.Size]
				if i%2 == 0 {
					row[i/2%h.Size] = FromFloat32[T](float32(math.Inf(1)))
					continue
				}
				for d := range row {
					row[d] = FromFloat32[T](float32(math.NaN()))
				}
			}
		}
	}
}

func (c *attentionCase[T, S]) drawLayout(t *rapid.T, random *rand.Rand) {
	c.drawLayoutOf(t, random, rapid.OneOf(rapid.SampledFrom([]int{1, 16, 64, 80, 128}), rapid.IntRange(1, 100)))
}

// blocks: their extents.
func (c *attentionCase[T, S]) drawLayoutOf(t *rapid.T, random *rand.Rand, blocks *rapid.Generator[int]) {
	o := &c.opts
	blockQ, blockK := blocks.Draw(t, "blockQ"), blocks.Draw(t, "blockK")
	o.LayoutBatch = rapid.SampledFrom([]int{0, 1, o.Batch}).Draw(t, "layoutBatch")
	o.LayoutHeads = rapid.SampledFrom([]int{0, 1, o.HeadsK, o.HeadsQ}).Draw(t, "layoutHeads")
	rows := max(1, o.LayoutBatch) * max(1, o.LayoutHeads) * ((o.SeqQ + blockQ - 1) / blockQ)
	c.layout = &BSR[T, int32]{Rows: rows * blockQ, Cols: o.SeqK, BlockM: blockQ, BlockK: blockK, RowPtr: []int32{0}, ColIdx: []int32{}}
	density := rapid.SampledFrom([]float64{0, 0.1, 0.5, 1}).Draw(t, "density")
	for range rows {
		for col := range (o.SeqK + blockK - 1) / blockK {
			if random.Float64() < density {
				c.layout.ColIdx = append(c.layout.ColIdx, int32(col))
			}
		}
		c.layout.RowPtr = append(c.layout.RowPtr, int32(len(c.layout.ColIdx)))
	}
}

// run computes O, LSE, the mass of blocks and the gradients.
func (c *attentionCase[T, S]) run(t rapid.TB, engine *Engine) AttentionInfo {
	t.Helper()
	ctx := context.Background()
	a := must(NewAttention(ctx, engine, c.layout, c.opts))(t)
	defer a.Close()
	s := must(engine.NewStream())(t)
	defer s.Close()
	o := c.o
	defer c.writeLengths(t, engine, &o)()
	defer c.writeTerms(t, engine, &o, false)()
	if err := a.Forward(ctx, s, o); err != nil {
		t.Fatal(err)
	}
	if err := a.Backward(ctx, s, o); err != nil {
		t.Fatal(err)
	}
	return a.Info()
}

// lengthsMoveRules tells whether the lengths of a call change which keys its rules show.
func (c *attentionCase[T, S]) lengthsMoveRules() bool {
	o := c.opts
	return o.AlignEnds && (o.Causal || o.WindowLeft != nil || o.WindowRight != nil) && (c.lengthsQ != nil || c.lengthsK != nil)
}

func (c *attentionCase[T, S]) check(t rapid.TB, lib *Library, info AttentionInfo, threads int) {
	t.Helper()
	for output := check.O; output <= check.GradBias; output++ {
		if output == check.GradBias && c.o.GradBias == nil {
			continue
		}
		report, err := check.Attention(lib, c.layout, check.AttentionArgs{Options: c.opts, Operands: c.o, LengthsQ: c.lengthsQ, LengthsK: c.lengthsK,
			MaskIndex: c.terms.maskIndex, MaskBits: c.terms.maskBits, MaskBlocks: c.terms.masked,
			Info: info, Output: output, Threads: threads})
		if err != nil {
			t.Fatalf("%v: %v (%+v)", output, err, c.opts)
		}
		if report.Elements == 0 {
			t.Fatalf("%v: no elements were checked", output)
		}
	}
}

// outputs are the bits of all that was computed. sums: LSE, the mass of blocks and the gradient of the bias.
func (c *attentionCase[T, S]) outputs() (all []T, sums []S) {
	for _, x := range []HeadsOperand{c.o.O, c.o.GradQ, c.o.GradK, c.o.GradV} {
		all = append(all, x.(Heads[T]).Data...)
	}
	sums = slices.Concat(c.o.LSE.(Heads[S]).Data, c.o.Mass.(Heads[S]).Data)
	if c.o.GradBias != nil {
		sums = append(sums, c.o.GradBias.(Heads[S]).Data...)
	}
	return all, sums
}

func eachAttentionType(t *testing.T, bf16, fp16, fp32, fp64 func(t *testing.T)) {
	t.Run("bf16", bf16)
	t.Run("fp16", fp16)
	t.Run("fp32", fp32)
	t.Run("fp64", fp64)
}
