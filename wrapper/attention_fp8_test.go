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

// fp8Case is attention of E4M3 with an O of type O: the forward pass, with scales of each head.
type fp8Case[O Element] struct {
	*attentionCase[Float8E4M3, float32]
}

// newFP8 takes over a case whose Q, K and V are drawn. spread: scales are from 2^-spread to 2^spread.
func newFP8[O Element](t *rapid.T, c *attentionCase[Float8E4M3, float32], spread float64) *fp8Case[O] {
	random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "scales"), 33))
	c.opts.Output = DTypeOf[O]()
	if c.opts.Output == BF16 && rapid.Bool().Draw(t, "defaultOutput") {
		c.opts.Output = 0
	}
	out := c.o.O.(Heads[Float8E4M3])
	c.o.O = like(Heads[O]{Batch: out.Batch, Heads: out.Heads, Rows: out.Rows, Size: out.Size, Stride: out.Stride, Data: make([]O, len(out.Data))})
	c.o.Mass, c.o.GradO, c.o.GradQ, c.o.GradK, c.o.GradV, c.o.GradBias = nil, nil, nil, nil, nil, nil
	if c.terms.bias && !c.terms.ofSums {
		c.o.Bias = newBias[O](random, c)
	}
	for _, x := range []struct {
		heads int
		to    *HeadsOperand
	}{{c.opts.HeadsQ, &c.o.ScaleQ}, {c.opts.HeadsK, &c.o.ScaleK}, {c.opts.HeadsK, &c.o.ScaleV}} {
		if rapid.IntRange(0, 3).Draw(t, "scaled") == 0 {
			continue
		}
		scale := newHeads[float32](random, c.opts.Batch, x.heads, 1, 1, 0)
		for i := range scale.Data {
			scale.Data[i] = float32(math.Exp2(spread * (2*random.Float64() - 1)))
		}
		*x.to = scale
	}
	return &fp8Case[O]{c}
}

// run computes O and LSE.
func (c *fp8Case[O]) run(t rapid.TB, engine *Engine) (AttentionInfo, error) {
	t.Helper()
	ctx := context.Background()
	a, err := NewAttention(ctx, engine, c.layout, c.opts)
	if err != nil {
		return AttentionInfo{}, err
	}
	defer a.Close()
	s := must(engine.NewStream())(t)
	defer s.Close()
	on := c.o
	if engine.Info().Backend == CUDA {
		var end func()
		on, end = c.inBuffers(t, engine)
		defer end()
	}
	defer c.writeLengths(t, engine, &on)()
	defer c.writeTerms(t, engine, &on, false)()
	if err := errors.Join(a.Forward(ctx, s, on), s.Wait(ctx)); err != nil {
		return a.Info(), err
	}
	if engine.Info().Backend == CUDA {
		read(t, on.O.(Heads[O]), c.o.O)
		read(t, on.LSE.(Heads[float32]), c.o.LSE)
	}
	return a.Info(), nil
}

// inBuffers are the operands in device memory.
func (c *fp8Case[O]) inBuffers(t rapid.TB, engine *Engine) (on AttentionOperands, end func()) {
	t.Helper()
	var closers []func() error
	on = c.o
	for _, x := range []*HeadsOperand{&on.Q, &on.K, &on.V, &on.O, &on.LSE, &on.ScaleQ, &on.ScaleK, &on.ScaleV, &on.Bias} {
		switch h := (*x).(type) {
		case Heads[Float8E4M3]:
			copied := inDeviceMemory(t, engine, h)
			*x, closers = copied, append(closers, copied.Buffer.Close)
		case Heads[O]:
			copied := inDeviceMemory(t, engine, h)
			*x, closers = copied, append(closers, copied.Buffer.Close)
		case Heads[float32]:
			copied := inDeviceMemory(t, engine, h)
			*x, closers = copied, append(closers, copied.Buffer.Close)
		}
	}
	return on, func() {
		for _, end := range closers {
			if err := end(); err != nil {
				t.Error(err)
			}
		}
	}
}

func (c *fp8Case[O]) check(t rapid.TB, lib *Library, info AttentionInfo, threads int) {
	t.Helper()
	for _, output := range []check.AttentionOutput{check.O, check.LSE} {
		report, err := check.Attention(lib, c.layout, check.AttentionArgs{Options: c.opts, Operands: c.o, LengthsQ: c.lengthsQ, LengthsK: c.lengthsK,
			MaskIndex: c.terms.maskIndex, MaskBits: c.terms.maskBits, MaskBlocks: c.terms.masked, Info: info, Output: output, Threads: threads})
		if err != nil {
			t.Fatalf("%v: %v (%+v)", output, err, c.opts)
		}
		if report.Elements == 0 {
			t.Fatalf("%v: no elements were checked", output)
		}
	}
}

// Every rule, size of heads and blocks, ratio of heads, length, bias and mask, by each kernel of the CPU.
func TestAttentionOfFP8IsWithinItsBounds(t *testing.T) {
	engine := newEngine(t, CPU)
	for _, kernel := range cpuAttentionKernels(t, engine) {
		t.Run(kernel, func(t *testing.T) {
			t.Run("bf16", fp8WithinBounds[BFloat16](engine, kernel))
			t.Run("fp16", fp8WithinBounds[Float16](engine, kernel))
		})
	}
}

// cpuAttentionKernels are those that serve this processor.
func cpuAttentionKernels(t *testing.T, engine *Engine) (list []string) {
	t.Helper()
	for _, kernel := range []string{"cpu_avx512", "cpu_avx2", "cpu_generic"} {
		one := AttentionOptions{Batch: 1, HeadsQ: 1, HeadsK: 1, SeqQ: 1, SeqK: 1, HeadSize: 1, Kernel: kernel}
		a, err := NewAttention[Float8E4M3, int32](t.Context(), engine, nil, one)
		if errors.Is(err, ErrNoSuchKernel) {
			continue // not for this processor
		}
		if err != nil {
			t.Fatal(err)
		}
		a.Close()
		list = append(list, kernel)
	}
	return list
}

func fp8WithinBounds[O Element](engine *Engine, kernel string) func(t *testing.T) {
	return func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			c := newFP8[O](t, drawAttention[Float8E4M3, float32](t), 3)
			c.opts.Kernel = kernel
			info, err := c.run(t, engine)
			if err != nil {
				t.Fatal(err)
			}
			if info.Backward != "" {
				t.Fatalf("the backward pass is %q", info.Backward)
			}
			c.check(t, engine.Library(), info, 1)
		})
	}
}

// What the kernels of a GPU serve. Cases that they refuse by ErrNoSuchKernel are left out, but not all of them.
func TestAttentionOfFP8OnTheGPUIsWithinItsBounds(t *testing.T) {
	engine := newEngine(t, CUDA)
	_, err := NewAttention[Float8E4M3, int32](t.Context(), engine, nil, AttentionOptions{Batch: 1, HeadsQ: 1, HeadsK: 1, SeqQ: 128, SeqK: 128, HeadSize: 128})
	if errors.Is(err, ErrNoSuchKernel) {
		t.Skipf("skipped: %v", err)
	}
	t.Run("bf16", fp8OnGPU[BFloat16](engine))
	t.Run("fp16", fp8OnGPU[Float16](engine))
}

func fp8OnGPU[O Element](engine *Engine) func(t *testing.T) {
	return func(t *testing.T) {
		served, refused := 0, 0
		rapid.Check(t, func(t *rapid.T) {
			c := newFP8[O](t, drawAttentionForGPU[Float8E4M3](t, 64, 16), 1)
			info, err := c.run(t, engine)
			switch {
			case errors.Is(err, ErrNoSuchKernel):
				refused++
			case err != nil:
				t.Fatal(err)
			default:
				served++
				c.check(t, engine.Library(), info, 4)
			}
		})
		t.Logf("%d cases were served, and %d refused", served, refused)
		if served == 0 {
			t.Error("no case was served")
		}
	}
}

// The same bits with any number of threads.
func TestAttentionOfFP8HasTheSameBitsWithAnyThreads(t *testing.T) {
	lib := library(t)
	one, more := must(lib.NewEngine(EngineOptions{Backend: CPU, Threads: 1}))(t), must(lib.NewEngine(EngineOptions{Backend: CPU, Threads: 7}))(t)
	defer one.Close()
	defer more.Close()
	rapid.Check(t, func(t *rapid.T) {
		c := newFP8[Float16](t, drawAttention[Float8E4M3, float32](t), 3)
		if _, err := c.run(t, one); err != nil {
			t.Fatal(err)
		}
		o, lse := c.o.O.(Heads[Float16]), c.o.LSE.(Heads[float32])
		c.o.O, c.o.LSE = like(o), like(lse)
		if _, err := c.run(t, more); err != nil {
			t.Fatal(err)
		}
		requireBits(t, "O", c.o.O.(Heads[Float16]), o.Data)
		requireBits(t, "LSE", c.o.LSE.(Heads[float32]), lse.Data)
	})
}

// Keys and values in pages of a cache, each sequence with scales of its own.
func TestAttentionOfFP8InPages(t *testing.T) {
	engine := newEngine(t, CPU)
	rapid.Check(t, func(t *rapid.T) {
		c := newFP8[BFloat16](t, drawAttention[Float8E4M3, float32](t), 3)
		p := c.inPages(rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "pages"), 34)), drawPages(t, rapid.IntRange(1, 70), 3))
		p.check(t, engine.Library(), p.run(t, engine), 1)
	})
}
