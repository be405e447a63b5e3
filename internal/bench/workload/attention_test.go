// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	sparsek "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/check"
)

// attentionCases have every rule, layouts of one and of several heads, and a last block that is cut.
var attentionCases = []Attention{
	{Batch: 1, HeadsQ: 2, HeadsK: 2, Seq: 200, HeadSize: 64, Pattern: AllBlocks},
	{Batch: 2, HeadsQ: 4, HeadsK: 2, Seq: 200, HeadSize: 64, Pattern: AllBlocks, Causal: true},
	{Batch: 1, HeadsQ: 4, HeadsK: 1, Seq: 256, HeadSize: 64, Pattern: AllBlocks, Causal: true, Window: 70},
	{Batch: 1, HeadsQ: 2, HeadsK: 1, Seq: 256, HeadSize: 64, Pattern: AllBlocks, Window: 30},
	{Batch: 2, HeadsQ: 4, HeadsK: 2, Seq: 300, HeadSize: 64, BlockQ: 64, BlockK: 64, Pattern: "random", Density: 0.5, LayoutHeads: 2},
	{Batch: 1, HeadsQ: 4, HeadsK: 4, Seq: 256, HeadSize: 128, BlockQ: 64, BlockK: 64, Pattern: "random", Density: 0.5, LayoutHeads: 4, Causal: true, Seed: 5},
	{Batch: 1, HeadsQ: 1, HeadsK: 1, Seq: 320, HeadSize: 64, BlockQ: 64, BlockK: 128, Pattern: "window", Density: 0.3},
}

// newAttentionRun is one that has computed; nil where the engine has no kernel for it.
func newAttentionRun[T, O, S sparsek.Element](t *testing.T, engine *sparsek.Engine, a Attention) *AttentionRun[T, O, S] {
	t.Helper()
	host := RandomB[T](1, a.RandomElements(), a.Seed).Data
	r, err := NewAttentionRun[T, O, S](context.Background(), engine, a, "", true, host)
	isE4M3 := sparsek.DTypeOf[T]() == sparsek.E4M3
	if (engine.Info().Backend == sparsek.CUDA || isE4M3) && errors.Is(err, sparsek.ErrNoSuchKernel) { // forward alone, or not at all
		if r, err = NewAttentionRun[T, O, S](context.Background(), engine, a, "", false, host); errors.Is(err, sparsek.ErrNoSuchKernel) {
			return nil
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	if err := r.Compute(context.Background()); err != nil {
		t.Fatal(err)
	}
	return r
}

// All that is computed stands the checks, whole and in parts, and is timed.
func TestAttention(t *testing.T) {
	for _, engine := range newEngines(t) {
		t.Run(engine.Info().Backend.String(), func(t *testing.T) {
			for _, a := range attentionCases {
				if r := newAttentionRun[sparsek.BFloat16, sparsek.BFloat16, float32](t, engine, a); r != nil {
					checkAttention(t, r)
				}
			}
			if r := newAttentionRun[float64, float64, float64](t, engine, attentionCases[4]); r != nil {
				checkAttention(t, r)
			}
			for _, a := range attentionCases { // with scales of each head
				if r := newAttentionRun[sparsek.Float8E4M3, sparsek.BFloat16, float32](t, engine, a); r != nil {
					checkAttention(t, r)
				}
			}
			if r := newAttentionRun[sparsek.Float8E4M3, sparsek.Float16, float32](t, engine, attentionCases[4]); r != nil {
				checkAttention(t, r)
			}
		})
	}
}

func checkAttention[T, O, S sparsek.Element](t *testing.T, r *AttentionRun[T, O, S]) {
	t.Helper()
	ctx := context.Background()
	list, err := r.Check(ctx)
	if err != nil || len(list) != len(r.Outputs()) {
		t.Fatalf("%d outputs, %v", len(list), err)
	}
	for _, one := range list {
		want := r.queries()
		switch one.Output {
		case check.LSE:
			want /= r.HeadSize
		case check.GradK, check.GradV:
			want = r.keys()
		}
		if one.Failures > 0 || one.Elements != want {
			t.Errorf("%+v: %+v", r.Attention, one)
		}
	}
	if err := r.CheckSample(ctx); err != nil {
		t.Error(err)
	}
	result, err := r.read(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if s := sample(r.queryParts()); s[0] != 0 || s[len(s)-1] != r.queryParts()-1 || !slices.IsSorted(s) {
		t.Errorf("a sample of %v out of %d parts", s, r.queryParts())
	}
	for i := range r.queryParts() {
		if err := r.checkPart(ctx, r.queryPart(result, i)); err != nil {
			t.Errorf("%+v: %v", r.Attention, err)
		}
	}
	for i := range r.keyParts() {
		if r.backward {
			if err := r.checkPart(ctx, r.keyPart(result, i)); err != nil {
				t.Errorf("%+v: %v", r.Attention, err)
			}
		}
	}
	for _, backward := range []bool{false, r.backward} {
		if times, err := r.Time(ctx, backward, 1, 2); err != nil || len(times) != 2 || times[0] <= 0 {
			t.Errorf("%v, %v", times, err)
		}
	}
	if pairs := float64(r.Info().Pairs); r.IsDense() && pairs != r.DensePairs() || pairs > r.AllPairs() {
		t.Errorf("%+v: %v pairs, %v of dense attention, %v of all", r.Attention, pairs, r.DensePairs(), r.AllPairs())
	}
}

// An element that is off is found in its own part, and one that was not written is found wherever it is.
func TestAttentionFaults(t *testing.T) {
	ctx := context.Background()
	for _, engine := range newEngines(t) {
		if engine.Info().Backend != sparsek.CPU {
			continue
		}
		r := newAttentionRun[float32, float32, float32](t, engine, attentionCases[4])
		for _, output := range r.Outputs() {
			result, err := r.read(ctx)
			if err != nil {
				t.Fatal(err)
			}
			data := map[check.AttentionOutput][]float32{check.O: result.o, check.LSE: result.lse, check.GradQ: result.gradQ, check.GradK: result.gradK, check.GradV: result.gradV}[output]
			size, head := r.HeadSize, 5 // of the second batch
			parts, part := r.queryParts(), r.queryPart
			switch output {
			case check.LSE:
				size = 1
			case check.GradK, check.GradV:
				head, parts, part = 3, r.keyParts(), r.keyPart
			}
			const row = 299 // in the last block, which is cut
			data[(head*r.Seq+row)*size] += 1e-2
			for i := range parts {
				err := r.checkPart(ctx, part(result, i))
				if wrong := i == head*19+18; wrong != errors.Is(err, ErrWrong) {
					t.Errorf("%v, part %d: %v", output, i, err)
				}
			}
		}
		s := r.sets[0]
		for _, out := range []*sparsek.DeviceBuffer[float32]{s.o, s.lse, s.gradK} {
			host := make([]float32, out.Len())
			if err := out.Read(ctx, host); err != nil {
				t.Fatal(err)
			}
			old := host[7]
			host[7] = float32(math.NaN())
			if err := out.Write(ctx, host); err != nil {
				t.Fatal(err)
			}
			if err := r.CheckSample(ctx); !errors.Is(err, ErrWrong) || !strings.Contains(err.Error(), "not written") {
				t.Error(err)
			}
			host[7] = old
			if err := out.Write(ctx, host); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.CheckSample(ctx); err != nil {
			t.Error(err)
		}
	}
}

// Heads that have a layout of their own have another one, and those of one seed are the same.
func TestAttentionLayout(t *testing.T) {
	a := attentionCases[5]
	p, ok, err := a.Layout()
	if err != nil || !ok || p.BlockRows != 4*4 || p.BlockCols != 4 || p.Validate() != nil {
		t.Fatalf("%+v, %v, %v", p, ok, err)
	}
	same := func(i, j int) bool {
		for r := range 4 {
			for k, column := range p.Row(4*i + r) {
				if p.Row(4*j + r)[k] != column {
					return false
				}
			}
		}
		return true
	}
	if same(0, 1) && same(1, 2) && same(2, 3) {
		t.Error("all heads have one layout")
	}
	if predicted, err := a.IndexBytes(); err != nil || predicted < float64(4*len(p.ColIdx)) {
		t.Errorf("%v bytes of an index of %d blocks, %v", predicted, len(p.ColIdx), err)
	}
	a.Pattern = "none"
	if _, _, err := a.Layout(); err == nil {
		t.Error("a pattern of no name")
	}
	if _, ok, err := attentionCases[0].Layout(); ok || err != nil {
		t.Error(ok, err)
	}
}
