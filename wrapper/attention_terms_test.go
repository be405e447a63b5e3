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
)

// attentionTerms are what scores have besides Q K^T.
type attentionTerms struct {
	bias   bool
	shared [3]bool // by all batches, heads, queries
	ofSums bool    // the bias is of the type of the sums
	hides  bool    // it has elements of -Inf

	masked              int // blocks
	maskIndex, maskBits []int32
}

// drawTerms draws whether there is a bias, a mask, both or neither. It comes before fill.
func (c *attentionCase[T, S]) drawTerms(t *rapid.T, random *rand.Rand) {
	c.terms = attentionTerms{bias: rapid.IntRange(0, 2).Draw(t, "bias") == 0}
	if c.terms.bias {
		for i := range c.terms.shared {
			c.terms.shared[i] = rapid.Bool().Draw(t, "shared")
		}
		c.terms.ofSums, c.terms.hides = rapid.Bool().Draw(t, "biasOfSums"), rapid.Bool().Draw(t, "biasHides")
	}
	if rapid.IntRange(0, 2).Draw(t, "mask") == 0 {
		c.drawMask(random)
	}
}

// block is the extents of a block, and grid how many block rows the layout has and how many blocks they have.
func (c *attentionCase[T, S]) block() (block, grid [2]int) {
	block, layouts := [2]int{128, 128}, 1
	if c.layout != nil {
		block = [2]int{c.layout.BlockM, c.layout.BlockK}
		layouts = max(1, c.opts.LayoutBatch) * max(1, c.opts.LayoutHeads)
	}
	return block, [2]int{layouts * ((c.opts.SeqQ + block[0] - 1) / block[0]), (c.opts.SeqK + block[1] - 1) / block[1]}
}

// drawMask gives about half of the blocks bits, of which some have none or all.
func (c *attentionCase[T, S]) drawMask(random *rand.Rand) {
	block, grid := c.block()
	words := (block[1] + 31) / 32
	c.terms.maskIndex, c.terms.maskBits = make([]int32, grid[0]*grid[1]), []int32{}
	for i := range c.terms.maskIndex {
		c.terms.maskIndex[i] = int32(-1 - random.IntN(2)*100)
		if random.IntN(2) == 0 {
			continue
		}
		c.terms.maskIndex[i] = int32(c.terms.masked)
		c.terms.masked++
		density := []float64{0, 0.2, 0.8, 1}[random.IntN(4)]
		for range block[0] * words {
			word := uint32(0)
			for bit := range 32 {
				if random.Float64() < density {
					word |= 1 << bit
				}
			}
			c.terms.maskBits = append(c.terms.maskBits, int32(word))
		}
	}
	for i := range c.terms.maskIndex { // one that no block has
		if c.terms.maskIndex[i] < -50 {
			c.terms.maskIndex[i] = int32(c.terms.masked)
		}
	}
}

// fillTerms makes the arrays of the bias. Where nothing may be read there is NaN.
func (c *attentionCase[T, S]) fillTerms(random *rand.Rand) {
	c.o.Bias, c.o.GradBias = nil, nil
	if !c.terms.bias {
		return
	}
	if c.terms.ofSums {
		c.o.Bias = newBias[S](random, c)
	} else {
		c.o.Bias = newBias[T](random, c)
	}
	o := c.opts
	c.o.GradBias = like(newHeads[S](random, o.Batch, o.HeadsQ, o.SeqQ, o.SeqK, 0))
}

func newBias[E, T, S Element](random *rand.Rand, c *attentionCase[T, S]) Heads[E] {
	extents := [3]int{c.opts.Batch, c.opts.HeadsQ, c.opts.SeqQ}
	for i, shared := range c.terms.shared {
		if shared {
			extents[i] = 1
		}
	}
	h := newHeads[E](random, extents[0], extents[1], extents[2], c.opts.SeqK, 0)
	for i := range h.Data {
		if c.terms.hides && random.IntN(5) == 0 {
			h.Data[i] = FromFloat32[E](float32(math.Inf(-1)))
		}
	}
	if c.terms.shared != [3]bool{} {
		return h
	}
	block, _ := c.block()
	for b := range extents[0] {
		n, m := length(c.lengthsQ, b, c.opts.SeqQ), length(c.lengthsK, b, c.opts.SeqK)
		for head := range extents[1] {
			for i := range extents[2] {
				for j := range h.Size {
					if i >= n || j >= m || !c.hasBlock(b, head, i/block[0], j/block[1]) {
						h.Data[placeOf(h, b, head, i)+j] = FromFloat32[E](float32(math.NaN()))
					}
				}
			}
		}
	}
	return h
}

// blockRow is that of the layout which a block of queries has.
func (c *attentionCase[T, S]) blockRow(b, head, block int) int {
	if c.layout == nil {
		return block
	}
	if c.opts.LayoutBatch <= 1 {
		b = 0
	}
	layouts := max(1, c.opts.LayoutHeads)
	rows := (c.opts.SeqQ + c.layout.BlockM - 1) / c.layout.BlockM
	return (b*layouts+head/(c.opts.HeadsQ/layouts))*rows + block
}

func (c *attentionCase[T, S]) hasBlock(b, head, blockQ, blockK int) bool {
	if c.layout == nil {
		return true
	}
	row := c.blockRow(b, head, blockQ)
	for _, col := range c.layout.ColIdx[c.layout.RowPtr[row]:c.layout.RowPtr[row+1]] {
		if int(col) == blockK {
			return true
		}
	}
	return false
}

// isMasked tells whether bits hide a key from a query.
func (c *attentionCase[T, S]) isMasked(b, head, i, j int) bool {
	if c.terms.maskIndex == nil {
		return false
	}
	block, grid := c.block()
	number := int(c.terms.maskIndex[c.blockRow(b, head, i/block[0])*grid[1]+j/block[1]])
	if number < 0 || number >= c.terms.masked {
		return false
	}
	words := (block[1] + 31) / 32
	word := uint32(c.terms.maskBits[(number*block[0]+i%block[0])*words+j%block[1]/32])
	return word>>(j%block[1]%32)&1 == 0
}

// bias is what is added to a score.
func (c *attentionCase[T, S]) bias(b, head, i, j int) float64 {
	if c.o.Bias == nil {
		return 0
	}
	h := c.o.Bias.(Heads[float64])
	at := [3]int{b, head, i}
	for d, shared := range c.terms.shared {
		if shared {
			at[d] = 0
		}
	}
	return h.Data[placeOf(h, at[0], at[1], at[2])+j]
}

// writeTerms gives operands the mask, and the bias where it is to lie in buffers, in ones that the function it returns closes.
func (c *attentionCase[T, S]) writeTerms(t rapid.TB, engine *Engine, on *AttentionOperands, inBuffers bool) (end func()) {
	t.Helper()
	var closers []func() error
	if c.terms.maskIndex != nil {
		index, bits := must(NewBuffer[int32](engine, len(c.terms.maskIndex)))(t), must(NewBuffer[int32](engine, max(1, len(c.terms.maskBits))))(t)
		closers = append(closers, index.Close, bits.Close)
		ctx := context.Background()
		if err := errors.Join(index.Write(ctx, c.terms.maskIndex), bits.Write(ctx, append(c.terms.maskBits, 0)[:bits.Len()])); err != nil {
			t.Fatal(err)
		}
		on.Mask = &AttentionMask{Blocks: c.terms.masked, Index: index, Bits: bits}
	}
	if c.terms.bias && inBuffers {
		grad := inDeviceMemory(t, engine, c.o.GradBias.(Heads[S]))
		on.GradBias = grad
		closers = append(closers, grad.Buffer.Close)
		if c.terms.ofSums {
			bias := inDeviceMemory(t, engine, c.o.Bias.(Heads[S]))
			on.Bias = bias
			closers = append(closers, bias.Buffer.Close)
		} else {
			bias := inDeviceMemory(t, engine, c.o.Bias.(Heads[T]))
			on.Bias = bias
			closers = append(closers, bias.Buffer.Close)
		}
	}
	return func() {
		for _, end := range closers {
			if err := end(); err != nil {
				t.Error(err)
			}
		}
	}
}

// Both passes on a GPU with a bias: of each type and alignment of rows, of its own or shared numbers, with every rule, layout,
// ratio of heads and length that their kernels serve, in both orders of the gradient of Q.
func TestAttentionWithABiasOnTheGPUIsWithinItsBounds(t *testing.T) {
	engine := newEngine(t, CUDA)
	t.Run("bf16", attentionWithABiasOnGPU[BFloat16](engine))
	t.Run("fp16", attentionWithABiasOnGPU[Float16](engine))
}

func attentionWithABiasOnGPU[T Element](engine *Engine) func(t *testing.T) {
	return func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			c := drawAttentionForGPU[T](t, 64, 16)
			if !c.terms.bias {
				t.Skip("no bias")
			}
			c.check(t, engine.Library(), c.runInBuffers(t, engine), 4)
		})
	}
}

func TestAttentionTermsThatDoNotFit(t *testing.T) {
	engine := newEngine(t, CPU)
	s := must(engine.NewStream())(t)
	defer s.Close()
	ctx := t.Context()
	c := &attentionCase[BFloat16, float32]{opts: AttentionOptions{Batch: 2, HeadsQ: 2, HeadsK: 1, SeqQ: 100, SeqK: 150, HeadSize: 8}}
	c.terms.bias = true
	random := rand.New(rand.NewPCG(3, 25))
	c.drawMask(random)
	c.fill(random, 0)
	a := must(NewAttention(ctx, engine, c.layout, c.opts))(t)
	defer a.Close()
	c.opts.SoftCap = 0
	index, bits := must(NewBuffer[int32](engine, 2))(t), must(NewBuffer[int32](engine, 128*4))(t)
	defer index.Close()
	defer bits.Close()
	for _, x := range []struct {
		name   string
		change func(o *AttentionOperands)
		want   error
	}{
		{"as it is", func(*AttentionOperands) {}, nil},
		{"type", func(o *AttentionOperands) { o.Bias = newHeads[float64](random, 2, 2, 100, 150, 0) }, ErrBadArgument},
		{"keys", func(o *AttentionOperands) { o.Bias = newHeads[float32](random, 2, 2, 100, 149, 0) }, ErrBadSize},
		{"heads", func(o *AttentionOperands) { o.Bias = newHeads[float32](random, 2, 3, 100, 150, 0) }, ErrBadSize},
		{"gradient with strides", func(o *AttentionOperands) { o.GradBias = newHeads[float32](random, 2, 2, 100, 150, 1) }, ErrBadLeadingDimension},
		{"gradient without a bias", func(o *AttentionOperands) { o.Bias = nil }, ErrBadArgument},
		{"no index", func(o *AttentionOperands) { o.Mask = &AttentionMask{Blocks: 1, Bits: bits} }, ErrNullPointer},
		{"short index", func(o *AttentionOperands) {
			o.Mask = &AttentionMask{Blocks: 1, Index: must(NewBuffer[int32](engine, 1))(t), Bits: bits}
		}, ErrBadSize},
		{"short bits", func(o *AttentionOperands) { o.Mask = &AttentionMask{Blocks: 2, Index: index, Bits: bits} }, ErrBadSize},
		{"blocks", func(o *AttentionOperands) { o.Mask = &AttentionMask{Blocks: -1, Index: index, Bits: bits} }, ErrBadSize},
	} {
		t.Run(x.name, func(t *testing.T) {
			o := c.o
			x.change(&o)
			if err := errors.Join(a.Forward(ctx, s, c.o), a.Backward(ctx, s, o)); !errors.Is(err, x.want) {
				t.Errorf("%v, and not %v", err, x.want)
			}
		})
	}
}
