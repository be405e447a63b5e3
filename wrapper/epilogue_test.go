// SPDX-License-Identifier: Apache-2.0

package sparsek_test

import (
	"cmp"
	"context"
	"errors"
	"math"
	"os"
	"slices"
	"testing"

	. "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/check"
	"github.com/sparsek/sparsek/wrapper/timing"
)

var activations = []Activation{NoActivation, ReLU, GELU, SiLU}

// activateOnly computes act(x) for each x: a product without blocks, with beta = 1.
func activateOnly[C Element](t *testing.T, engine *Engine, kernel string, activation Activation, x []C) (Dense[C], error) {
	t.Helper()
	const n = 256
	a := BSR[BFloat16, int32]{Rows: len(x) / n, Cols: 16, BlockM: 16, BlockK: 16, RowPtr: make([]int32, len(x)/n/16+1)}
	m := must(NewMatrix(context.Background(), engine, a))(t)
	defer m.Close()
	plan := must(m.Plan(context.Background(), PlanOptions{N: n, Kernel: kernel, Output: DTypeOf[C](), Activation: activation}))(t)
	defer plan.Close()
	b := Dense[BFloat16]{Rows: 16, Cols: n, Data: make([]BFloat16, 16*n)}
	before := Dense[C]{Rows: a.Rows, Cols: n, Data: x}
	c := Dense[C]{Rows: a.Rows, Cols: n, Data: slices.Clone(x)}
	if err := plan.Multiply(context.Background(), 1, 1, Operands{B: b, C: c}); err != nil {
		t.Fatal(err)
	}
	_, err := check.Product(engine.Library(), a, check.Args{Alpha: 1, Beta: 1, B: b, C0: before, C: c,
		UnitRoundoff: plan.Info().UnitRoundoff, Activation: activation})
	return c, err
}

// testActivations holds each activation of x against float64: within roundings of the argument that the bound of
// sparsek.h has for evaluating it, and a rounding to C's type, but without what it has for the sums before.
func testActivations[C Element](t *testing.T, engine *Engine, kernel string, activations []Activation, x []C) {
	for _, activation := range activations {
		c, err := activateOnly(t, engine, kernel, activation, x)
		if err != nil {
			t.Errorf("%v: %v", activation, err)
		}
		roundings := 0.0
		if activation == GELU || activation == SiLU {
			roundings = 4
		}
		// Half of the smallest subnormal of C's type, and two of float32's.
		tiny := math.Ldexp(1, -149)
		switch DTypeOf[C]() {
		case BF16:
			tiny += math.Ldexp(1, -134)
		case FP16:
			tiny += math.Ldexp(1, -25)
		}
		for i := range x {
			in, got := float64(ToFloat32(x[i])), float64(ToFloat32(c.Data[i]))
			want := activated(activation, in)
			if math.IsNaN(want) || math.IsInf(want, 0) || math.IsInf(in, 0) {
				if got != want && !(math.IsNaN(want) && math.IsNaN(got)) {
					t.Fatalf("%v(%g) = %g, want %g", activation, in, got, want)
				}
				continue
			}
			tolerance := math.Ldexp(roundings*math.Abs(in), -24) + roundoff[C]()*math.Abs(want)*(1+0x1p-20) + tiny
			if !(math.Abs(got-want) <= tolerance) {
				t.Fatalf("%v(%g) = %g, want %g within %g", activation, in, got, want, tolerance)
			}
		}
	}
}

// Every number of 16 bits, NaNs and infinities among them; of float32, as many.
func TestActivations(t *testing.T) {
	onEach(t, func(t *testing.T, engine *Engine) {
		const count = 1 << 16
		bf16, fp16, fp32 := make([]BFloat16, count), make([]Float16, count), make([]float32, count)
		for i := range count {
			bf16[i], fp16[i] = BFloat16(i), Float16(i)
			fp32[i] = math.Float32frombits(uint32(i) * 0x10001)
			if i%2 == 1 { // where the activations bend
				fp32[i] = float32(i-count/2) / (count / 2) * 16
			}
		}
		copy(fp32, []float32{float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()), float32(math.Copysign(0, -1)),
			math.MaxFloat32, -math.MaxFloat32, math.SmallestNonzeroFloat32, -math.SmallestNonzeroFloat32})
		for _, kernel := range kernels(t, engine) {
			t.Run(cmp.Or(kernel, "chosen"), func(t *testing.T) {
				testActivations(t, engine, kernel, activations, bf16)
				testActivations(t, engine, kernel, activations, fp16)
				testActivations(t, engine, kernel, activations, fp32)
				if os.Getenv("SPARSEK_LONG") != "" {
					testAllActivations(t, engine, kernel)
				}
			})
		}
	})
}

// testAllActivations tries every float32 from 2^-14, below which the smooth ones are all but x/2, to 2^7, above which each
// is x or 0, and their negatives.
func testAllActivations(t *testing.T, engine *Engine, kernel string) {
	x := make([]float32, 1<<20)
	first, last := math.Float32bits(0x1p-14), math.Float32bits(0x1p7)
	for bits := first; bits < last; bits += uint32(len(x) / 2) {
		for i := range len(x) / 2 {
			x[2*i] = math.Float32frombits(bits + uint32(i))
			x[2*i+1] = -x[2*i]
		}
		testActivations(t, engine, kernel, []Activation{GELU, SiLU}, x)
	}
}

// NaN, Inf and -Inf that are in A, in B or in the bias, and so in the sums, come out as an activation makes them.
func TestActivationsOfSpecialSums(t *testing.T) {
	onEach(t, func(t *testing.T, engine *Engine) {
		inf := float32(math.Inf(1))
		nan := float32(math.NaN())
		test := func(activation Activation, kernel string) {
			p := newProductTo[BFloat16, float32, int32](shape{rows: 32, cols: 16, n: 8, blockM: 16, blockK: 16, density: 2, alpha: 1,
				bias: ColumnBias, activation: activation, kernel: kernel, seed: 3})
			for i := range p.a.Values {
				p.a.Values[i] = ToBFloat16(1)
			}
			copy(p.b.Data, []BFloat16{ToBFloat16(inf), ToBFloat16(-inf), ToBFloat16(nan), ToBFloat16(inf)})
			p.bias.Data = []float32{0, 0, 0, -inf, nan, inf, -inf, -1e30}
			want := []float32{inf, 0, nan, nan, nan, inf, 0, 0}
			for _, onDevice := range []bool{false, true} {
				c, info := p.run(t, engine, onDevice)
				for i, got := range c.Data[:len(p.c0.Data)-guardBand] {
					if w := want[i%8]; p.a.RowPtr[i/8/16+1] > p.a.RowPtr[i/8/16] && got != w && !(got != got && w != w) {
						t.Errorf("%v: C[%d, %d] = %g, want %g", activation, i/8, i%8, got, w)
					}
				}
				if report, err := check.Product(engine.Library(), p.a, p.checkArgs(c, info)); err != nil {
					t.Errorf("%v: %v, %+v", activation, err, report)
				}
			}
		}
		for _, kernel := range kernels(t, engine) {
			for _, activation := range activations[1:] {
				test(activation, kernel)
			}
		}
	})
}

// The check of a product with an epilogue finds what is wrong with it, and does not take one epilogue for another.
func TestCheckOfEpilogues(t *testing.T) {
	engine := newEngine(t, CPU)
	p := newProductTo[Float16, BFloat16, int32](shape{rows: 40, cols: 48, n: 24, blockM: 8, blockK: 16, density: 0.6, gapC: 2, alpha: 1,
		beta: 0.5, bias: RowBias, activation: GELU, seed: 9})
	c, info := p.run(t, engine, false)
	args := p.checkArgs(c, info)
	if _, err := check.Product(engine.Library(), p.a, args); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*check.Args){
		"no activation":      func(a *check.Args) { a.Activation = NoActivation },
		"another activation": func(a *check.Args) { a.Activation = SiLU },
		"no bias":            func(a *check.Args) { a.BiasKind = NoBias },
		"another bias": func(a *check.Args) {
			a.BiasKind, a.Bias = ColumnBias, Dense[BFloat16]{Rows: 1, Cols: p.n, Data: p.bias.Data}
		},
	} {
		spoilt := args
		spoil(&spoilt)
		if _, err := check.Product(engine.Library(), p.a, spoilt); !errors.Is(err, ErrCheckFailed) {
			t.Errorf("%s: error is %v", name, err)
		}
	}
	at := &c.Data[17*c.Stride+5]
	for _, wrong := range []float32{at.Float32()*1.02 + 0.02, float32(math.Inf(-1)), float32(math.NaN())} {
		right := *at
		*at = ToBFloat16(wrong)
		_, err := check.Product(engine.Library(), p.a, args)
		wantFault(t, err, ErrCheckFailed, "C[17, 5]")
		*at = right
	}

	buffer := must(NewBuffer[BFloat16](engine, len(c.Data)))(t)
	onDevice := DeviceDense[BFloat16]{Rows: c.Rows, Cols: c.Cols, Stride: c.Stride, Buffer: buffer}
	var none *Dense[BFloat16]
	for _, fault := range []struct {
		spoil    func(*check.Args)
		status   Status
		speaksOf string
	}{
		{func(a *check.Args) { a.C = none }, ErrNullPointer, "C is nil"},
		{func(a *check.Args) { a.C = onDevice }, ErrWrongMemory, "C is in a buffer"},
		{func(a *check.Args) { a.C0 = nil }, ErrNullPointer, "C0 is nil"},
		{func(a *check.Args) { a.C0 = Dense[float32]{} }, ErrBadArgument, "C0 is of fp32 and C of bf16"},
		{func(a *check.Args) { a.Bias = nil }, ErrNullPointer, "the bias is nil"},
		{func(a *check.Args) { a.Bias = Dense[Float16]{} }, ErrBadArgument, "the bias is of fp16 and C of bf16"},
		{func(a *check.Args) { a.BiasKind = ColumnBias }, ErrBadSize, "the bias is 40 x 1 where 1 x 24 is needed"},
		{func(a *check.Args) { a.BiasKind = 3 }, ErrBadSize, "the bias is 40 x 1"},
		{func(a *check.Args) { a.Activation = 4 }, ErrBadArgument, "activation = 4"},
	} {
		spoilt := args
		fault.spoil(&spoilt)
		_, err := check.Product(engine.Library(), p.a, spoilt)
		wantFault(t, err, fault.status, fault.speaksOf)
	}
}

func TestEpilogueFaults(t *testing.T) {
	onEach(t, func(t *testing.T, engine *Engine) {
		background := context.Background()
		m := must(NewMatrix(context.Background(), engine, small()))(t)
		for _, fault := range []struct {
			opts     PlanOptions
			status   Status
			speaksOf string
		}{
			{PlanOptions{N: 8, Output: 5}, ErrUnsupportedDType, "dtype_c = 5"},
			{PlanOptions{N: 8, Output: -1}, ErrUnsupportedDType, "dtype_c = -1"},
			{PlanOptions{N: 8, Bias: 3}, ErrBadArgument, "bias = 3"},
			{PlanOptions{N: 8, Activation: 4}, ErrBadArgument, "activation = 4"},
			{PlanOptions{N: 8, Output: BF16, Alignment: 1}, ErrBadArgument, "alignment = 1 is no power of two from 2"},
		} {
			_, err := m.Plan(background, fault.opts)
			wantFault(t, err, fault.status, fault.speaksOf)
		}

		plain := must(m.Plan(background, PlanOptions{N: 8}))(t)
		byRow := must(m.Plan(background, PlanOptions{N: 8, Output: FP16, Bias: RowBias}))(t)
		byColumn := must(m.Plan(background, PlanOptions{N: 8, Bias: ColumnBias}))(t)
		b := Dense[float32]{Rows: 6, Cols: 8, Data: make([]float32, 48)}
		c := Dense[float32]{Rows: 4, Cols: 8, Data: make([]float32, 32)}
		half := Dense[Float16]{Rows: 4, Cols: 8, Data: make([]Float16, 32)}
		row := Dense[Float16]{Rows: 4, Cols: 1, Data: make([]Float16, 4)}
		column := Dense[float32]{Rows: 1, Cols: 8, Data: make([]float32, 8)}
		other := must(NewBuffer[float32](newEngine(t, CPU), 8))(t)
		closed := must(NewBuffer[float32](engine, 8))(t)
		if err := closed.Close(); err != nil {
			t.Fatal(err)
		}
		var none *Dense[Float16]
		for _, fault := range []struct {
			plan     *Plan
			c        Operand
			bias     Operand
			status   Status
			speaksOf string
		}{
			{plain, half, nil, ErrBadArgument, "C is of fp16 where the plan gives fp32"},
			{plain, c, column, ErrBadArgument, "a plan without one"},
			{byRow, c, row, ErrBadArgument, "C is of fp32 where the plan gives fp16"},
			{byRow, half, nil, ErrNullPointer, "set Operands.Bias"},
			{byRow, half, none, ErrNullPointer, "set Operands.Bias"},
			{byRow, half, column, ErrBadSize, "the bias is 1 x 8 where 4 x 1 is needed"},
			{byRow, half, Dense[Float16]{Rows: 4, Cols: 1, Data: make([]Float16, 3)}, ErrBadSize, "the bias has 3 elements"},
			{byRow, half, Dense[Float16]{Rows: 4, Cols: 1, Stride: 2, Data: make([]Float16, 7)}, ErrBadLeadingDimension, "the bias is row-major with a stride of 2"},
			{byRow, half, Dense[BFloat16]{Rows: 4, Cols: 1, Data: make([]BFloat16, 4)}, ErrBadArgument, "the bias is of bf16 where the plan gives fp16"},
			{byColumn, c, DeviceDense[float32]{Rows: 1, Cols: 8, Buffer: other}, ErrBadArgument, "another engine"},
			{byColumn, c, DeviceDense[float32]{Rows: 1, Cols: 8, Buffer: other, Offset: 1}, ErrBadSize, "the bias has 7 elements"},
		} {
			wantFault(t, fault.plan.Multiply(background, 1, 0, Operands{B: b, C: fault.c, Bias: fault.bias}), fault.status, fault.speaksOf)
		}
		err := byColumn.Multiply(background, 1, 0, Operands{B: b, C: c, Bias: DeviceDense[float32]{Rows: 1, Cols: 8, Buffer: closed}})
		if !errors.Is(err, ErrClosed) {
			t.Errorf("a closed bias: error is %v", err)
		}
		// None of these has kept anything: the plans work, and close.
		if err := errors.Join(byRow.Multiply(background, 1, 0, Operands{B: b, C: half, Bias: &row}), byColumn.Multiply(background, 1, 0, Operands{B: b, C: c, Bias: column}),
			plain.Close(), byRow.Close(), byColumn.Close(), m.Close()); err != nil {
			t.Error(err)
		}
	})
}

// Timed products have the bias too, wherever it lies.
func TestTimedEpilogue(t *testing.T) {
	onEach(t, func(t *testing.T, engine *Engine) {
		m := must(NewMatrix(context.Background(), engine, small()))(t)
		plan := must(m.Plan(context.Background(), PlanOptions{N: 8, Output: BF16, Bias: RowBias, Activation: ReLU}))(t)
		b, c := must(NewBuffer[float32](engine, 48))(t), must(NewBuffer[BFloat16](engine, 32))(t)
		if err := b.Fill(context.Background(), 0); err != nil {
			t.Fatal(err)
		}
		operands := []Operands{{B: DeviceDense[float32]{Rows: 6, Cols: 8, Buffer: b}, C: DeviceDense[BFloat16]{Rows: 4, Cols: 8, Buffer: c}}}
		host := Dense[BFloat16]{Rows: 4, Cols: 1, Data: []BFloat16{ToBFloat16(1), ToBFloat16(-2), ToBFloat16(3), ToBFloat16(4)}}
		inMemory := inBuffer(t, engine, host, 3)
		// With its bias where the back-end reads it, and in host memory, which the CPU reads too.
		with := func(bias Operand) timing.Options {
			set := operands[0]
			set.Bias = bias
			return timing.Options{Alpha: 1, Operands: []Operands{set}, Repeats: 2}
		}
		graph := timing.GraphOptions{Options: with(inMemory), Products: 2}
		timed := map[string]func() error{
			"Time, bias in a buffer": func() error {
				_, err := timing.Products(context.Background(), plan, with(inMemory))
				return err
			},
			"TimeInTurn": func() error {
				_, err := timing.InTurn(context.Background(), []*Plan{plan}, timing.InTurnOptions{Options: with(inMemory), Between: 1})
				return err
			},
		}
		if engine.Info().Backend == CUDA {
			timed["TimeGraph"] = func() error {
				_, err := timing.Graph(context.Background(), []*Plan{plan}, graph)
				return err
			}
		} else { // as far as the library, and past its check of the bias
			_, err := timing.Graph(context.Background(), []*Plan{plan}, graph)
			wantFault(t, err, ErrNoDevice, "no GPU")
		}
		if _, err := timing.Products(context.Background(), plan, with(host)); engine.Info().Backend == CUDA {
			wantFault(t, err, ErrWrongMemory, "the bias is in host memory")
		} else if err != nil {
			t.Error(err)
		}
		for name, time := range timed {
			if err := errors.Join(c.Fill(context.Background(), 0xff), time()); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			got := make([]BFloat16, 32)
			if err := c.Read(context.Background(), got); err != nil {
				t.Fatal(err)
			}
			for i, want := range []float32{1, 0, 3, 4} {
				if got[i*8].Float32() != want || got[i*8+7].Float32() != want {
					t.Errorf("%s: row %d of C is %v, want %g", name, i, got[i*8:i*8+8], want)
				}
			}
		}
		_, err := timing.Products(context.Background(), plan, with(nil))
		wantFault(t, err, ErrNullPointer, "Operands.Bias")
		graph.Operands = operands
		_, err = timing.Graph(context.Background(), []*Plan{plan}, graph)
		wantFault(t, err, ErrNullPointer, "Operands.Bias")
	})
}
