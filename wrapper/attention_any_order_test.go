// SPDX-License-Identifier: Apache-2.0

package sparsek_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	. "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/internal/foreign"
)

// The order of the CPU is fixed: AnyOrder changes no bit.
func TestAttentionInAnyOrderOnTheCPU(t *testing.T) {
	engine := newEngine(t, CPU)
	rapid.Check(t, func(t *rapid.T) {
		c := drawAttention[float32, float32](t)
		c.opts.AnyOrder = false
		c.run(t, engine)
		want, wantSums := c.outputs()
		c.opts.AnyOrder = true
		c.run(t, engine)
		got, gotSums := c.outputs()
		for i := range want {
			if bitsOf(got[i]) != bitsOf(want[i]) {
				t.Fatalf("element %d of the outputs is %v in any order and else %v", i, got[i], want[i])
			}
		}
		for i := range wantSums {
			if bitsOf(gotSums[i]) != bitsOf(wantSums[i]) {
				t.Fatalf("LSE or mass %d is %v in any order and else %v", i, gotSums[i], wantSums[i])
			}
		}
	})
}

// The backward pass by one walk, of layouts on the host and in device memory: within its bounds, with the same bits of the
// gradients of K and V each time.
func TestAttentionInAnyOrderIsWithinItsBounds(t *testing.T) {
	engine := newEngine(t, CUDA)
	t.Run("bf16", attentionInAnyOrder[BFloat16](engine))
	t.Run("fp16", attentionInAnyOrder[Float16](engine))
}

func attentionInAnyOrder[T Element](engine *Engine) func(t *testing.T) {
	return func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			c := drawAnyOrder[T](t)
			c.check(t, engine.Library(), c.runInBuffers(t, engine), 4)
			if c.layout == nil {
				return
			}
			s := must(engine.NewStream())(t)
			defer s.Close()
			rowPtr, colIdx := filled(t, engine, c.layout.RowPtr), filled(t, engine, append(slices.Clone(c.layout.ColIdx), 0))
			defer rowPtr.Close()
			defer colIdx.Close()
			device := DeviceBSR[T, int32]{Rows: c.layout.Rows, Cols: c.layout.Cols, BlockM: c.layout.BlockM, BlockK: c.layout.BlockK,
				RowPtr: rowPtr, ColIdx: colIdx, Bound: true}
			a := must(NewDeviceAttentionIn(context.Background(), s, device, c.opts))(t)
			defer a.Close()
			c.check(t, engine.Library(), c.runInBuffersBy(t, engine, a, s), 4)
		})
	}
}

// drawAnyOrder draws what one walk serves.
func drawAnyOrder[T Element](t *rapid.T) *attentionCase[T, float32] {
	c := drawAttentionForGPU[T](t, 64)
	c.opts.AnyOrder, c.opts.SoftCap = true, 0
	c.opts.HeadSize = rapid.SampledFrom([]int{8, 40, 64, 64, 104, 120, 128, 128}).Draw(t, "size of one walk")
	c.lengthsQ, c.lengthsK, c.terms = nil, nil, attentionTerms{}
	c.fill(rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "values"), 31)), rapid.SampledFrom([]int{0, 0, 8}).Draw(t, "gap of one walk"))
	return c
}

// Each replay of a graph begins its sums anew.
func TestAttentionInAnyOrderInGraph(t *testing.T) {
	engine := newEngine(t, CUDA)
	library := must(foreign.Open(true, engine.Info().Device))(t)
	defer library.Close()
	s := must(engine.StreamAt(library.Stream()))(t)
	defer s.Close()
	ctx := context.Background()
	for _, size := range []int{64, 128} {
		c := &attentionCase[BFloat16, float32]{opts: AttentionOptions{Batch: 2, HeadsQ: 4, HeadsK: 2, SeqQ: 300, SeqK: 500, HeadSize: size, AnyOrder: true}}
		c.fill(rand.New(rand.NewPCG(2, 31)), 0)
		a := must(NewAttention(ctx, engine, c.layout, c.opts))(t)
		c.runInBuffersBy(t, engine, a, s) // makes what a capture may not
		want := [2][]BFloat16{slices.Clone(c.o.GradK.(Heads[BFloat16]).Data), slices.Clone(c.o.GradV.(Heads[BFloat16]).Data)}
		on := AttentionOperands{O: inDeviceMemory(t, engine, c.o.O.(Heads[BFloat16])), LSE: inDeviceMemory(t, engine, c.o.LSE.(Heads[float32]))}
		on.Q, on.K, on.V = inDeviceMemory(t, engine, c.o.Q.(Heads[BFloat16])), inDeviceMemory(t, engine, c.o.K.(Heads[BFloat16])), inDeviceMemory(t, engine, c.o.V.(Heads[BFloat16]))
		on.GradO, on.GradQ = inDeviceMemory(t, engine, c.o.GradO.(Heads[BFloat16])), inDeviceMemory(t, engine, c.o.GradQ.(Heads[BFloat16]))
		on.GradK, on.GradV = inDeviceMemory(t, engine, c.o.GradK.(Heads[BFloat16])), inDeviceMemory(t, engine, c.o.GradV.(Heads[BFloat16]))
		graph := must(library.Capture(foreign.CaptureGlobal, func() error { return a.Backward(ctx, s, on) }))(t)
		for range 3 {
			for _, x := range []HeadsOperand{on.GradQ, on.GradK, on.GradV} {
				if err := x.(Heads[BFloat16]).Buffer.Fill(ctx, 0xff); err != nil {
					t.Fatal(err)
				}
			}
			if err := errors.Join(graph.Launch(), library.Wait()); err != nil {
				t.Fatal(err)
			}
			read(t, on.GradQ.(Heads[BFloat16]), c.o.GradQ)
			read(t, on.GradK.(Heads[BFloat16]), c.o.GradK)
			read(t, on.GradV.(Heads[BFloat16]), c.o.GradV)
			c.check(t, engine.Library(), a.Info(), 4)
			requireBits(t, "gradient of K", c.o.GradK.(Heads[BFloat16]), want[0])
			requireBits(t, "gradient of V", c.o.GradV.(Heads[BFloat16]), want[1])
		}
		graph.Close()
		a.Close()
		for _, x := range []HeadsOperand{on.Q, on.K, on.V, on.O, on.GradO, on.GradQ, on.GradK, on.GradV} {
			x.(Heads[BFloat16]).Buffer.Close()
		}
		on.LSE.(Heads[float32]).Buffer.Close()
	}
}

// One walk needs memory for the sums, which is asked for only where there is one.
func TestAttentionInAnyOrderTakesMemoryWhereItIsServed(t *testing.T) {
	engine := newEngine(t, CUDA)
	const heads, seq, tiles = 2, 500, 512 // in whole tiles
	bytes := func(layout *BSR[BFloat16, int32], o AttentionOptions, anyOrder bool) int64 {
		o.Batch, o.HeadsQ, o.HeadsK, o.SeqQ, o.SeqK, o.AnyOrder = 1, heads, heads, seq, seq, anyOrder
		a := must(NewAttention(context.Background(), engine, layout, o))(t)
		defer a.Close()
		return a.Info().BackwardBytes
	}
	// Of neighbouring columns no row has both.
	alone := &BSR[BFloat16, int32]{Rows: 512, Cols: seq, BlockM: 64, BlockK: 64, RowPtr: []int32{0}}
	for r := range int32(8) {
		alone.ColIdx = append(alone.ColIdx, r%2, 2+r%2)
		alone.RowPtr = append(alone.RowPtr, int32(len(alone.ColIdx)))
	}
	for _, x := range []struct {
		name    string
		layout  *BSR[BFloat16, int32]
		opts    AttentionOptions
		columns int64
	}{
		{"head size 40", nil, AttentionOptions{HeadSize: 40}, 64},
		{"head size 64", nil, AttentionOptions{HeadSize: 64}, 64},
		{"head size 96", nil, AttentionOptions{HeadSize: 96}, 0},
		{"head size 104", nil, AttentionOptions{HeadSize: 104}, 128},
		{"head size 128", nil, AttentionOptions{HeadSize: 128, Causal: true}, 128},
		{"head size 192", nil, AttentionOptions{HeadSize: 192}, 0},
		{"soft cap", nil, AttentionOptions{HeadSize: 128, SoftCap: 9}, 0},
		{"blocks alone", alone, AttentionOptions{HeadSize: 128}, 0},
	} {
		if more := bytes(x.layout, x.opts, true) - bytes(x.layout, x.opts, false); more != heads*tiles*x.columns*4 {
			t.Errorf("%s: %d bytes more, want %d columns", x.name, more, x.columns)
		}
	}
}
