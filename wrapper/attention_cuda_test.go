// SPDX-License-Identifier: Apache-2.0

package sparsek_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"pgregory.net/rapid"

	. "github.com/sparsek/sparsek/wrapper"
)

// Both passes on a GPU: every rule, layout, ratio of heads and length that their kernels serve.
func TestAttentionOnTheGPUIsWithinItsBounds(t *testing.T) {
	engine := newEngine(t, CUDA)
	t.Run("bf16", attentionOnGPU[BFloat16](engine))
	t.Run("fp16", attentionOnGPU[Float16](engine))
}

func attentionOnGPU[T Element](engine *Engine) func(t *testing.T) {
	return func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			c := drawAttentionForGPU[T](t, 64, 16)
			c.check(t, engine.Library(), c.runInBuffers(t, engine), 4)
		})
	}
}

// Heads of at most 64 columns with so many tiles that pairs of warpgroups compute them, on up to 144 SMs, and exponents that move far.
func TestAttentionOfManyTilesOnTheGPUIsWithinItsBounds(t *testing.T) {
	engine := newEngine(t, CUDA)
	t.Run("bf16", manyTilesOnGPU[BFloat16](engine))
	t.Run("fp16", manyTilesOnGPU[Float16](engine))
}

func manyTilesOnGPU[T Element](engine *Engine) func(t *testing.T) {
	return func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			c := &attentionCase[T, float32]{}
			o := &c.opts
			random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 23))
			group := rapid.IntRange(1, 3).Draw(t, "group")
			o.Batch, o.HeadsK, o.HeadsQ = rapid.IntRange(12, 14).Draw(t, "batch"), 24/group, 24/group*group
			o.SeqQ, o.SeqK = rapid.IntRange(129, 200).Draw(t, "seqQ"), rapid.OneOf(rapid.IntRange(1, 150), rapid.IntRange(1, 600)).Draw(t, "seqK")
			o.HeadSize = rapid.SampledFrom([]int{64, 64, 40}).Draw(t, "size")
			o.Causal = rapid.Bool().Draw(t, "causal")
			if rapid.Bool().Draw(t, "left") {
				o.WindowLeft = new(rapid.IntRange(-100, 400).Draw(t, "windowLeft"))
			}
			o.Scale = rapid.SampledFrom([]float64{0, 0.3, 20}).Draw(t, "scale")
			o.Workers = rapid.SampledFrom([]int{0, 1, 3}).Draw(t, "workers")
			if rapid.IntRange(0, 3).Draw(t, "layout") > 0 {
				c.drawLayoutOf(t, random, rapid.SampledFrom([]int{64, 128, 192}))
			}
			c.fill(random, 0)
			c.check(t, engine.Library(), c.runInBuffers(t, engine), 4)
		})
	}
}

// drawAttentionForGPU draws what the kernel serves, longer than drawAttention, since its tiles and units are 128 and 64.
// multiples: that blocks are multiples of one of.
func drawAttentionForGPU[T Element](t *rapid.T, multiples ...int) *attentionCase[T, float32] {
	c := &attentionCase[T, float32]{}
	o := &c.opts
	random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 22))
	o.Batch = rapid.IntRange(1, 3).Draw(t, "batch")
	o.HeadsK = rapid.IntRange(1, 2).Draw(t, "heads")
	o.HeadsQ = o.HeadsK * rapid.IntRange(1, 3).Draw(t, "group")
	seq := rapid.OneOf(rapid.IntRange(1, 200), rapid.SampledFrom([]int{64, 128, 256, 512}), rapid.IntRange(200, 700))
	o.SeqQ, o.SeqK = seq.Draw(t, "seqQ"), seq.Draw(t, "seqK")
	if rapid.IntRange(0, 7).Draw(t, "few") == 0 { // whose keys several CTAs share
		o.SeqQ, o.SeqK = rapid.SampledFrom([]int{1, 1, 2, 20}).Draw(t, "seqQ"), rapid.IntRange(100, 2600).Draw(t, "seqK")
	}
	o.HeadSize = rapid.OneOf(rapid.SampledFrom([]int{64, 128}), rapid.SampledFrom([]int{8, 40, 72, 96, 120, 136, 192, 256})).Draw(t, "size")
	o.Causal = rapid.Bool().Draw(t, "causal")
	limit := rapid.OneOf(rapid.IntRange(-100, 400), rapid.SampledFrom([]int{0, 63, 64, 1 << 40, -1 << 50}))
	if !o.Causal && rapid.Bool().Draw(t, "right") {
		o.WindowRight = new(limit.Draw(t, "windowRight"))
	}
	if rapid.Bool().Draw(t, "left") {
		o.WindowLeft = new(limit.Draw(t, "windowLeft"))
	}
	o.AlignEnds, o.AnyOrder = rapid.Bool().Draw(t, "align"), rapid.Bool().Draw(t, "any order")
	o.Scale = rapid.SampledFrom([]float64{0, 0.3, 2}).Draw(t, "scale")
	o.SoftCap = rapid.SampledFrom([]float64{0, 0, 0, 2, 30}).Draw(t, "cap")
	o.Workers = rapid.SampledFrom([]int{0, 0, 1, 3}).Draw(t, "workers")
	if rapid.IntRange(0, 4).Draw(t, "layout") > 0 {
		multiple := rapid.SampledFrom(multiples).Draw(t, "multiple")
		c.drawLayoutOf(t, random, rapid.Map(rapid.SampledFrom([]int{1, 2, 3, 4, 5}), func(n int) int { return n * multiple }))
	}
	c.lengthsQ, c.lengthsK = c.drawLengths(t, "lengthsQ", o.SeqQ), c.drawLengths(t, "lengthsK", o.SeqK)
	c.drawTerms(t, random)
	c.fill(random, rapid.SampledFrom([]int{0, 0, 16 / int(unsafe.Sizeof(*new(T)))}).Draw(t, "gap")) // rows begin at multiples of 16 bytes
	return c
}

// runInBuffers computes O, LSE, the mass of blocks and all gradients in buffers of the engine, the gradients twice, and reads them back.
func (c *attentionCase[T, S]) runInBuffers(t rapid.TB, engine *Engine) AttentionInfo {
	t.Helper()
	a := must(NewAttention(context.Background(), engine, c.layout, c.opts))(t)
	defer a.Close()
	s := must(engine.NewStream())(t)
	defer s.Close()
	return c.runInBuffersBy(t, engine, a, s)
}

func (c *attentionCase[T, S]) runInBuffersBy(t rapid.TB, engine *Engine, a *Attention, s *Stream) AttentionInfo {
	t.Helper()
	ctx := context.Background()
	in := func(h HeadsOperand) Heads[T] { return inDeviceMemory(t, engine, h.(Heads[T])) }
	q, k, v, o, gradO := in(c.o.Q), in(c.o.K), in(c.o.V), in(c.o.O), in(c.o.GradO)
	gradQ, gradK, gradV := in(c.o.GradQ), in(c.o.GradK), in(c.o.GradV)
	for _, x := range []Heads[T]{q, k, v, o, gradO, gradQ, gradK, gradV} {
		defer x.Buffer.Close()
	}
	lse := inDeviceMemory(t, engine, c.o.LSE.(Heads[S]))
	defer lse.Buffer.Close()
	mass := inDeviceMemory(t, engine, c.o.Mass.(Heads[S]))
	defer mass.Buffer.Close()
	on := AttentionOperands{Q: q, K: k, V: v, O: o, LSE: lse, Mass: mass, GradO: gradO, GradQ: gradQ, GradK: gradK, GradV: gradV}
	defer c.writeLengths(t, engine, &on)()
	defer c.writeTerms(t, engine, &on, true)()
	if err := a.Forward(ctx, s, on); err != nil {
		t.Fatal(err)
	}
	if err := a.Backward(ctx, s, on); err != nil {
		t.Fatal(err)
	}
	if err := s.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	read(t, lse, c.o.LSE)
	read(t, mass, c.o.Mass)
	read(t, o, c.o.O)
	var firstOfBias []S
	if on.GradBias != nil {
		read(t, on.GradBias.(Heads[S]), c.o.GradBias)
		firstOfBias = slices.Clone(c.o.GradBias.(Heads[S]).Data)
	}
	gradients := []struct {
		of Heads[T]
		to HeadsOperand
	}{{gradQ, c.o.GradQ}, {gradK, c.o.GradK}, {gradV, c.o.GradV}}
	var first [][]T
	for _, x := range gradients {
		read(t, x.of, x.to)
		first = append(first, slices.Clone(x.to.(Heads[T]).Data))
	}
	if err := a.Backward(ctx, s, on); err != nil {
		t.Fatal(err)
	}
	if err := s.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	if on.GradBias != nil {
		read(t, on.GradBias.(Heads[S]), c.o.GradBias)
		for e, value := range c.o.GradBias.(Heads[S]).Data {
			if bitsOf(value) != bitsOf(firstOfBias[e]) {
				t.Fatalf("element %d of the bias's gradient was %v and is %v", e, firstOfBias[e], value)
			}
		}
	}
	for i, x := range gradients {
		read(t, x.of, x.to)
		if i == 0 && c.opts.AnyOrder {
			continue
		}
		for e, value := range x.to.(Heads[T]).Data {
			if bitsOf(value) != bitsOf(first[i][e]) {
				t.Fatalf("element %d of gradient %d was %v and is %v", e, i, ToFloat32(first[i][e]), ToFloat32(value))
			}
		}
	}
	return a.Info()
}

// read copies what is in device memory to the host's array of an operand.
func read[E Element](t rapid.TB, from Heads[E], to HeadsOperand) {
	t.Helper()
	if err := from.Buffer.Read(context.Background(), to.(Heads[E]).Data); err != nil {
		t.Fatal(err)
	}
}

// inDeviceMemory is a copy in a buffer of the engine's.
func inDeviceMemory[T Element](t rapid.TB, engine *Engine, h Heads[T]) Heads[T] {
	t.Helper()
	h.Buffer = must(NewBuffer[T](engine, len(h.Data)))(t)
	if err := h.Buffer.Write(context.Background(), h.Data); err != nil {
		t.Fatal(err)
	}
	h.Data = nil
	return h
}

// What is infinite or NaN in values of a block that a query does not have stays out of its output and gradient.
func TestAttentionOnTheGPUReadsNoOtherBlocks(t *testing.T) {
	engine := newEngine(t, CUDA)
	const seq, block = 512, 64
	c := &attentionCase[BFloat16, float32]{opts: AttentionOptions{Batch: 1, HeadsQ: 1, HeadsK: 1, SeqQ: seq, SeqK: seq, HeadSize: 128}}
	// Block row r has columns r and r + 3: of neighbouring rows, which one tile computes, no column is the same.
	layout := &BSR[BFloat16, int32]{Rows: seq, Cols: seq, BlockM: block, BlockK: block, RowPtr: []int32{0}}
	for r := range seq / block {
		columns := []int32{int32(r), int32((r + 3) % (seq / block))}
		slices.Sort(columns)
		layout.ColIdx = append(layout.ColIdx, columns...)
		layout.RowPtr = append(layout.RowPtr, int32(len(layout.ColIdx)))
	}
	c.layout = layout
	c.fill(rand.New(rand.NewPCG(1, 23)), 0)
	v := c.o.V.(Heads[BFloat16])
	const poisoned = 2 // block of values
	for i := range block * 128 {
		v.Data[poisoned*block*128+i] = FromFloat32[BFloat16](float32(math.Inf(1)))
	}
	c.runInBuffers(t, engine)
	for name, output := range map[string]HeadsOperand{"O": c.o.O, "gradient of Q": c.o.GradQ} {
		for i, x := range output.(Heads[BFloat16]).Data {
			row := i / 128 / block
			has := row == poisoned || (row+3)%(seq/block) == poisoned
			if finite := !math.IsInf(float64(ToFloat32(x)), 0) && !math.IsNaN(float64(ToFloat32(x))); finite == has {
				t.Fatalf("%s: element %d of query %d is %v", name, i%128, i/128, ToFloat32(x))
			}
		}
	}
}

func TestAttentionOnTheGPUOfNothing(t *testing.T) {
	checkAttentionOfNothing(t, newEngine(t, CUDA))
}

func TestAttentionThatNoKernelOfTheGPUServes(t *testing.T) {
	engine := newEngine(t, CUDA)
	ok := AttentionOptions{Batch: 1, HeadsQ: 2, HeadsK: 1, SeqQ: 100, SeqK: 100, HeadSize: 64}
	for name, change := range map[string]func(*AttentionOptions){
		"head size":  func(o *AttentionOptions) { o.HeadSize = 100 },
		"large head": func(o *AttentionOptions) { o.HeadSize = 264 },
		"values":     func(o *AttentionOptions) { o.HeadSizeV = 128 },
		"scale":      func(o *AttentionOptions) { o.Scale = -1 },
		"name":       func(o *AttentionOptions) { o.Kernel = "cpu_generic" },
	} {
		t.Run(name, func(t *testing.T) {
			o := ok
			change(&o)
			if _, err := NewAttention[BFloat16, int32](context.Background(), engine, nil, o); !errors.Is(err, ErrNoSuchKernel) {
				t.Errorf("%v", err)
			}
		})
	}
	layout := &BSR[BFloat16, int32]{Rows: 120, Cols: 100, BlockM: 24, BlockK: 24, RowPtr: make([]int32, 6)}
	if _, err := NewAttention(context.Background(), engine, layout, ok); !errors.Is(err, ErrNoSuchKernel) {
		t.Errorf("blocks of 24: %v", err)
	}
	if _, err := NewAttention[float32, int32](context.Background(), engine, nil, ok); !errors.Is(err, ErrNoSuchKernel) {
		t.Errorf("float32: %v", err)
	}
}

// A layout in device memory gives the bits of the same one on the host, in whose place others then come.
func TestAttentionOfLayoutsInDeviceMemory(t *testing.T) {
	engine := newEngine(t, CUDA)
	rapid.Check(t, func(t *rapid.T) {
		c := drawAttentionForGPU[BFloat16](t, 64)
		if c.layout == nil || c.opts.HeadSize > 128 {
			t.Skip("no layout that is served in device memory")
		}
		if c.lengthsMoveRules() {
			c.lengthsQ, c.lengthsK = nil, nil
		}
		c.opts.AnyOrder = false
		background := context.Background()
		s := must(engine.NewStream())(t)
		defer s.Close()
		room := len(c.layout.ColIdx) + rapid.IntRange(0, 20).Draw(t, "room")
		rowPtr, colIdx := filled(t, engine, c.layout.RowPtr), must(NewBuffer[int32](engine, max(room, 1)))(t)
		defer rowPtr.Close()
		defer colIdx.Close()
		device := DeviceBSR[BFloat16, int32]{Rows: c.layout.Rows, Cols: c.layout.Cols, BlockM: c.layout.BlockM, BlockK: c.layout.BlockK,
			RowPtr: rowPtr, ColIdx: colIdx, Bound: true}
		if err := colIdx.Fill(background, 0xff); err != nil {
			t.Fatal(err)
		}
		wrong := must(NewDeviceAttentionIn(background, s, device, c.opts))(t)
		defer wrong.Close()
		if err := wrong.Check(background); len(c.layout.ColIdx) > 0 && !errors.Is(err, ErrColIdxRange) {
			t.Fatalf("columns of -1: %v", err)
		}
		if err := colIdx.WriteAsync(s, append(slices.Clone(c.layout.ColIdx), make([]int32, colIdx.Len()-len(c.layout.ColIdx))...)); err != nil {
			t.Fatal(err)
		}
		made := must(NewDeviceAttentionIn(background, s, device, c.opts))(t)
		defer made.Close()
		if err := errors.Join(UpdateAttention(background, s, wrong, device), wrong.Check(background), made.Check(background)); err != nil {
			t.Fatal(err)
		}
		if info := made.Info(); info.Blocks != -1 || info.Pairs != -1 {
			t.Fatalf("the host knows of %+v", info)
		}
		host := must(NewAttention(background, engine, c.layout, c.opts))(t)
		defer host.Close()
		// Where the layout is on the host, few queries may have keys that several CTAs share, and of one query the heads of a
		// group are packed, by another kernel.
		if c.opts.SeqK > 700 || c.opts.SeqQ == 1 {
			host = made
		}
		want := c.outputsOf(t, engine, host, s)
		for _, a := range []*Attention{made, wrong} {
			for name, got := range c.outputsOf(t, engine, a, s) {
				if !slices.Equal(got, want[name]) {
					t.Fatalf("%s differs", name)
				}
			}
		}
	})
}

// With any number of workers: few queries, whose keys several CTAs share, and tiles that pairs of warpgroups compute.
func TestAttentionHasTheSameBitsWithAnyWorkers(t *testing.T) {
	engine := newEngine(t, CUDA)
	s := must(engine.NewStream())(t)
	defer s.Close()
	for _, opts := range []AttentionOptions{
		{Batch: 2, HeadsQ: 4, HeadsK: 2, SeqQ: 1, SeqK: 6000, HeadSize: 128},
		{Batch: 2, HeadsQ: 4, HeadsK: 2, SeqQ: 20, SeqK: 6000, HeadSize: 128},
		{Batch: 9, HeadsQ: 64, HeadsK: 64, SeqQ: 64, SeqK: 300, HeadSize: 64},
		{Batch: 1, HeadsQ: 4, HeadsK: 4, SeqQ: 500, SeqK: 300, HeadSize: 64},
	} {
		c := &attentionCase[BFloat16, float32]{opts: opts}
		c.fill(rand.New(rand.NewPCG(2, 24)), 0)
		var want map[string][]uint64
		for _, workers := range []int{0, 1, 3} {
			c.opts.Workers = workers
			a := must(NewAttention(t.Context(), engine, c.layout, c.opts))(t)
			got := c.outputsOf(t, engine, a, s)
			if want == nil {
				want = got
			}
			for name := range want {
				if !slices.Equal(got[name], want[name]) {
					t.Errorf("%+v: %s differs with %d workers", opts, name, workers)
				}
			}
			if err := a.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// outputsOf is the bits of O, LSE, the mass of blocks and the gradients.
func (c *attentionCase[T, S]) outputsOf(t rapid.TB, engine *Engine, a *Attention, s *Stream) map[string][]uint64 {
	t.Helper()
	ctx := context.Background()
	in := func(h HeadsOperand) Heads[T] { return inDeviceMemory(t, engine, h.(Heads[T])) }
	on := AttentionOperands{Q: in(c.o.Q), K: in(c.o.K), V: in(c.o.V), O: in(c.o.O), LSE: inDeviceMemory(t, engine, c.o.LSE.(Heads[S])),
		Mass:  inDeviceMemory(t, engine, c.o.Mass.(Heads[S])),
		GradO: in(c.o.GradO), GradQ: in(c.o.GradQ), GradK: in(c.o.GradK), GradV: in(c.o.GradV)}
	defer c.writeLengths(t, engine, &on)()
	defer c.writeTerms(t, engine, &on, true)()
	if err := errors.Join(a.Forward(ctx, s, on), a.Backward(ctx, s, on), s.Wait(ctx)); err != nil {
		t.Fatal(err)
	}
	bits := map[string][]uint64{"LSE": bitsIn(t, on.LSE.(Heads[S])), "the mass of blocks": bitsIn(t, on.Mass.(Heads[S]))}
	for name, x := range map[string]HeadsOperand{"O": on.O, "gradient of Q": on.GradQ, "gradient of K": on.GradK, "gradient of V": on.GradV} {
		bits[name] = bitsIn(t, x.(Heads[T]))
	}
	for _, x := range []HeadsOperand{on.Q, on.K, on.V, on.GradO} {
		x.(Heads[T]).Buffer.Close()
	}
	return bits
}

// bitsIn reads what is in device memory, and frees it.
func bitsIn[E Element](t rapid.TB, h Heads[E]) []uint64 {
	t.Helper()
	defer h.Buffer.Close()
	data := make([]E, h.Buffer.Len())
	if err := h.Buffer.Read(context.Background(), data); err != nil {
		t.Fatal(err)
	}
	bits := make([]uint64, len(data))
	for i, x := range data {
		bits[i] = bitsOf(x)
	}
	return bits
}
