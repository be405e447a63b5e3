// SPDX-License-Identifier: Apache-2.0

package sparsek_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	. "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/check"
)

// oneHead is a head of rows of a size.
func oneHead[T Element](size int, data ...T) Heads[T] {
	return Heads[T]{Batch: 1, Heads: 1, Rows: len(data) / size, Size: size, Data: data}
}

// Two keys with weights of 4 and 1/8, worked out by hand.
func TestAttentionOfFP8ByHand(t *testing.T) {
	engine := newEngine(t, CPU)
	s := must(engine.NewStream())(t)
	defer s.Close()
	// S = log 2 * 0.5 * 2 * 2 (1, -1.5) = log 2 (2, -3). Values are 448 and -6, 2^-9 and -0.
	o := AttentionOperands{Q: oneHead[Float8E4M3](1, 0x40), K: oneHead[Float8E4M3](1, 0x38, 0xbc), V: oneHead[Float8E4M3](2, 0x7e, 0x01, 0xcc, 0x80),
		LSE: oneHead[float32](1, 0), ScaleQ: oneHead[float32](1, 0.5), ScaleK: oneHead[float32](1, 2), ScaleV: oneHead[float32](1, 0.25)}
	total := 4 + 1./8
	want := [2]float64{0.25 * (4*448 - 6./8) / total, 0.25 * 4 * 0x1p-9 / total}
	for _, output := range []DType{0, BF16, FP16} {
		a := must(NewAttention[Float8E4M3, int32](t.Context(), engine, nil,
			AttentionOptions{Batch: 1, HeadsQ: 1, HeadsK: 1, SeqQ: 1, SeqK: 2, HeadSize: 1, HeadSizeV: 2, Scale: math.Ln2, Output: output}))(t)
		var got [2]float64
		var unit float64
		if output == FP16 {
			out := oneHead[Float16](2, 0, 0)
			o.O, unit = out, 0x1p-11
			if err := a.Forward(t.Context(), s, o); err != nil {
				t.Fatal(err)
			}
			got = [2]float64{float64(out.Data[0].Float32()), float64(out.Data[1].Float32())}
		} else {
			out := oneHead[BFloat16](2, 0, 0)
			o.O, unit = out, 0x1p-8
			if err := a.Forward(t.Context(), s, o); err != nil {
				t.Fatal(err)
			}
			got = [2]float64{float64(out.Data[0].Float32()), float64(out.Data[1].Float32())}
		}
		for i := range got {
			if math.Abs(got[i]/want[i]-1) > 1.01*unit {
				t.Errorf("output %v: O %d is %v, want %v", output, i, got[i], want[i])
			}
		}
		if lse := float64(o.LSE.(Heads[float32]).Data[0]); math.Abs(lse-math.Log(total)) > 1e-6 {
			t.Errorf("output %v: LSE is %v, want %v", output, lse, math.Log(total))
		}
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A query of one key has its value: each of the 256 codes, exactly, as values and, against a key of 1, as queries.
func TestAttentionOfEveryFP8Code(t *testing.T) {
	engine := newEngine(t, CPU)
	s := must(engine.NewStream())(t)
	defer s.Close()
	const codes = 256
	all := make([]Float8E4M3, codes)
	for i := range all {
		all[i] = Float8E4M3(i)
	}
	for _, kernel := range cpuAttentionKernels(t, engine) {
		a := must(NewAttention[Float8E4M3, int32](t.Context(), engine, nil,
			AttentionOptions{Batch: 1, HeadsQ: 1, HeadsK: 1, SeqQ: codes, SeqK: 1, HeadSize: 1, HeadSizeV: codes, Scale: 1, Kernel: kernel}))(t)
		out, lse := oneHead(codes, make([]BFloat16, codes*codes)...), oneHead(1, make([]float32, codes)...)
		o := AttentionOperands{Q: oneHead(1, all...), K: oneHead[Float8E4M3](1, 0x38), V: oneHead(codes, all...), O: out, LSE: lse}
		if err := a.Forward(t.Context(), s, o); err != nil {
			t.Fatal(err)
		}
		for i, code := range all {
			want := code.Float32()
			if got := lse.Data[i]; got != want && (got == got || want == want) {
				t.Errorf("%s: the score of %#02x is %v, want %v", kernel, code, got, want)
			}
			if got := out.Data[i].Float32(); got != want && (got == got || want == want) {
				t.Errorf("%s: the value of %#02x is %v, want %v", kernel, code, got, want)
			}
		}
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Kernels that round weights to E4M3 lose those below 2^-16 of the greatest, of which there may be many: the check allows that, no more,
// and only where a kernel says that it rounds.
func TestCheckOfAttentionWithRoundedWeights(t *testing.T) {
	lib := newEngine(t, CPU).Library()
	const keys, rounds = 4001, 0x1p-4
	k, v := make([]Float8E4M3, keys), make([]Float8E4M3, keys)
	for i := 1; i < keys; i++ { // all but the first, whose weight is the greatest, have a value
		k[i], v[i] = ToFloat8E4M3(-13), ToFloat8E4M3(1)
	}
	for _, x := range []struct {
		exponent, rounds float64 // of the small weights, relative to the greatest
		passes           bool
	}{{16.01, rounds, true}, {16.01, 0, false}, {15.5, rounds, false}} {
		score := -x.exponent * math.Ln2
		lse := math.Log1p((keys - 1) * math.Exp(score))
		_, err := check.Attention[Float8E4M3, int32](lib, nil, check.AttentionArgs{
			Options: AttentionOptions{Batch: 1, HeadsQ: 1, HeadsK: 1, SeqQ: 1, SeqK: keys, HeadSize: 1, Scale: 1},
			Operands: AttentionOperands{Q: oneHead(1, ToFloat8E4M3(1)), K: oneHead(1, k...), V: oneHead(1, v...), O: oneHead[BFloat16](1, 0),
				LSE: oneHead(1, float32(lse)), ScaleQ: oneHead(1, float32(score/-13))},
			Info: AttentionInfo{UnitRoundoff: 0x1p-24, ProductRoundoff: x.rounds}, Output: check.O})
		if x.passes && err != nil || !x.passes && !errors.Is(err, ErrCheckFailed) {
			t.Errorf("weights of 2^-%v that are lost, rounded by %v: %v", x.exponent, x.rounds, err)
		}
	}
}

func TestAttentionOfFP8Refuses(t *testing.T) {
	engine := newEngine(t, CPU)
	s := must(engine.NewStream())(t)
	defer s.Close()
	ctx := t.Context()
	random := rand.New(rand.NewPCG(4, 35))
	options := AttentionOptions{Batch: 2, HeadsQ: 4, HeadsK: 2, SeqQ: 10, SeqK: 12, HeadSize: 8}
	c := &attentionCase[Float8E4M3, float32]{opts: options}
	c.fill(random, 0)
	out := newHeads[BFloat16](random, 2, 4, 10, 8, 0)
	good := AttentionOperands{Q: c.o.Q, K: c.o.K, V: c.o.V, O: out, LSE: c.o.LSE, ScaleQ: newHeads[float32](random, 2, 4, 1, 1, 0)}
	a := must(NewAttention[Float8E4M3, int32](ctx, engine, nil, options))(t)
	defer a.Close()
	backward := func(o AttentionOperands) error { return a.Backward(ctx, s, o) }
	forward := func(o AttentionOperands) error { return a.Forward(ctx, s, o) }
	for _, x := range []struct {
		name   string
		call   func(AttentionOperands) error
		change func(o *AttentionOperands)
		want   error
	}{
		{"as it is", forward, func(*AttentionOperands) {}, nil},
		{"backward", backward, func(*AttentionOperands) {}, ErrNoSuchKernel},
		{"mass", forward, func(o *AttentionOperands) { o.Mass = c.o.Mass }, ErrNoSuchKernel},
		{"O of e4m3", forward, func(o *AttentionOperands) { o.O = c.o.O }, ErrBadArgument},
		{"O of fp16", forward, func(o *AttentionOperands) { o.O = newHeads[Float16](random, 2, 4, 10, 8, 0) }, ErrBadArgument},
		{"bias of e4m3", forward, func(o *AttentionOperands) { o.Bias = newHeads[Float8E4M3](random, 2, 4, 10, 12, 0) }, ErrBadArgument},
		{"bias of fp16", forward, func(o *AttentionOperands) { o.Bias = newHeads[Float16](random, 2, 4, 10, 12, 0) }, ErrBadArgument},
		{"bias of bf16", forward, func(o *AttentionOperands) { o.Bias = newHeads[BFloat16](random, 2, 4, 10, 12, 0) }, nil},
		{"scales of key heads", forward, func(o *AttentionOperands) { o.ScaleQ = newHeads[float32](random, 2, 2, 1, 1, 0) }, ErrBadSize},
		{"scales of fp64", forward, func(o *AttentionOperands) { o.ScaleV = newHeads[float64](random, 2, 2, 1, 1, 0) }, ErrBadArgument},
		{"scales with strides", forward, func(o *AttentionOperands) { o.ScaleK = newHeads[float32](random, 2, 2, 1, 1, 1) }, ErrBadLeadingDimension},
	} {
		o := good
		x.change(&o)
		if err := x.call(o); !errors.Is(err, x.want) {
			t.Errorf("%s: %v, and not %v", x.name, err, x.want)
		}
	}
	for _, output := range []DType{FP32, FP64, E4M3, 9} {
		o := options
		o.Output = output
		if _, err := NewAttention[Float8E4M3, int32](ctx, engine, nil, o); !errors.Is(err, ErrUnsupportedDType) {
			t.Errorf("an output of %v: %v", output, err)
		}
	}
	o := options
	o.Output = FP16
	if _, err := NewAttention[BFloat16, int32](ctx, engine, nil, o); !errors.Is(err, ErrUnsupportedDType) {
		t.Errorf("Q of bf16 with O of fp16: %v", err)
	}
	wide := &attentionCase[BFloat16, float32]{opts: options}
	wide.fill(random, 0)
	wide.o.ScaleK = newHeads[float32](random, 2, 2, 1, 1, 0)
	b := must(NewAttention[BFloat16, int32](ctx, engine, nil, options))(t)
	defer b.Close()
	if err := b.Forward(ctx, s, wide.o); !errors.Is(err, ErrBadArgument) {
		t.Errorf("scales of bf16: %v", err)
	}
	for _, scale := range []float64{0, -1, math.Inf(1), math.NaN()} {
		wrong := good
		scales := oneHead(1, 1, float32(scale), 1, 1)
		scales.Batch, scales.Heads, scales.Rows = 2, 2, 1
		wrong.ScaleV = scales
		_, err := check.Attention[Float8E4M3, int32](engine.Library(), nil, check.AttentionArgs{Options: options, Operands: wrong, Info: a.Info(), Output: check.O})
		if !errors.Is(err, ErrBadArgument) {
			t.Errorf("a check with a scale of %v: %v", scale, err)
		}
	}
}

// No other work has elements of E4M3.
func TestFP8IsOfAttentionAlone(t *testing.T) {
	engine := newEngine(t, CPU)
	ctx := t.Context()
	matrix := BSR[Float8E4M3, int32]{Rows: 4, Cols: 4, BlockM: 4, BlockK: 4, RowPtr: []int32{0, 1}, ColIdx: []int32{0}, Values: make([]Float8E4M3, 16)}
	if _, err := NewMatrix(ctx, engine, matrix); !errors.Is(err, ErrUnsupportedDType) {
		t.Errorf("a matrix: %v", err)
	}
	plain := BSR[BFloat16, int32]{Rows: 4, Cols: 4, BlockM: 4, BlockK: 4, RowPtr: []int32{0, 1}, ColIdx: []int32{0}, Values: make([]BFloat16, 16)}
	m := must(NewMatrix(ctx, engine, plain))(t)
	defer m.Close()
	for _, o := range []PlanOptions{{N: 4, Output: E4M3}, {N: 4, DTypeB: E4M3}} {
		if _, err := m.Plan(ctx, o); !errors.Is(err, ErrUnsupportedDType) {
			t.Errorf("a plan of %+v: %v", o, err)
		}
	}
}
