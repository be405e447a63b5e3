// SPDX-License-Identifier: Apache-2.0

package sparsek_test

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"

	. "github.com/sparsek/sparsek/wrapper"
)

// own is a product with what it need not share with the other products of its plan.
type own[T, C Element] struct {
	product[T, C, int32]
	values, input         bool // of its own
	alphaScale, betaScale float32
	scaled                bool
	strideIn              int
	oneRow                bool // the input is a row for all
}

// drawOwn draws a product with a plan of `of`: fewer columns, other strides, and what else it may be given. The strides
// are multiples of 8 where the plan needs that. Baselines take neither factors in memory nor an input of one row.
func drawOwn[T, C Element](t *rapid.T, of *product[T, C, int32], s shape, baseline bool) *own[T, C] {
	s.n = rapid.IntRange(1, s.n).Draw(t, "n of the product")
	gap := rapid.IntRange(0, 9)
	s.gapB, s.gapC = gap.Draw(t, "own gap of B"), gap.Draw(t, "own gap of C")
	if of.b.Stride%8 == 0 && of.c0.Stride%8 == 0 {
		s.gapB = (s.n+s.gapB+7)/8*8 - s.n
	}
	p := &own[T, C]{product: *newProductTo[T, C, int32](s), alphaScale: 1, betaScale: 1}
	p.a = of.a
	if rapid.Bool().Draw(t, "values of its own") {
		p.values = true
		p.a.Values = otherValues(of.a.Values, rapid.Uint64().Draw(t, "seed of values"))
	}
	if rapid.Bool().Draw(t, "input of its own") {
		p.input = true
		p.strideIn = s.n + gap.Draw(t, "gap of the input")
		p.oneRow = !baseline && rapid.Bool().Draw(t, "one row for all")
	}
	if !baseline && rapid.Bool().Draw(t, "scaled") {
		scale := rapid.SampledFrom([]float32{1, 0, -2, 0.75})
		p.scaled, p.alphaScale, p.betaScale = true, scale.Draw(t, "scale of alpha"), scale.Draw(t, "scale of beta")
	}
	return p
}

// otherValues are values of the same pattern: zeros stay what they are, since those beyond K have to.
func otherValues[T Element](values []T, seed uint64) []T {
	random := rand.New(rand.NewPCG(seed, 11))
	others := slices.Clone(values)
	for i, v := range others {
		others[i] = FromFloat32[T](ToFloat32(v) * float32(math.Ldexp(float64(1-2*random.IntN(2)), random.IntN(3)-1)))
	}
	return others
}

func valueRows[T Element](a BSR[T, int32]) Dense[T] {
	return Dense[T]{Rows: len(a.ColIdx) * a.BlockM, Cols: a.BlockK, Data: a.Values}
}

// operandOf is d, on a GPU in a buffer of its own, behind `offset` elements.
func operandOf[T Element](t rapid.TB, engine *Engine, d Dense[T], offset int) (o Operand, done func()) {
	if engine.Info().Backend == CPU {
		return d, func() {}
	}
	x := inBuffer(t, engine, d, offset)
	return x, func() { x.Buffer.Close() }
}

// multiply runs the product with the plan, with operands in host memory or where the back-end has them, and gives C.
func (p *own[T, C]) multiply(t rapid.TB, engine *Engine, plan *Plan, staged bool) Dense[C] {
	t.Helper()
	var free []func()
	defer func() {
		for _, done := range free {
			done()
		}
	}()
	place := func(o Operand, done func()) Operand {
		free = append(free, done)
		return o
	}
	put := func(d Dense[T]) Operand {
		if staged {
			return d
		}
		return place(operandOf(t, engine, d, 8))
	}
	putC := func(d Dense[C], offset int) Operand {
		if staged {
			return d
		}
		return place(operandOf(t, engine, d, offset))
	}
	putScale := func(x float32) Operand {
		d := Dense[float32]{Rows: 1, Cols: 1, Data: []float32{x}}
		if staged {
			return d
		}
		return place(operandOf(t, engine, d, 1))
	}
	c := p.newC()
	reads := p.beta != 0 && p.betaScale != 0
	o := Operands{B: put(p.b)}
	if p.input || !reads { // C itself is not to be read
		for i := range c.Rows {
			for j := range c.Cols {
				c.Data[i*c.Stride+j] = FromFloat32[C](float32(math.NaN()))
			}
		}
	}
	if p.input {
		in := Dense[C]{Rows: c.Rows, Cols: c.Cols, Stride: p.strideIn, Data: make([]C, c.Rows*p.strideIn)}
		for i := range c.Rows {
			copy(in.Data[i*in.Stride:][:c.Cols], p.c0.Data[i*p.c0.Stride:])
			for j := range c.Cols {
				if !reads {
					in.Data[i*in.Stride+j] = FromFloat32[C](float32(math.NaN()))
				}
			}
		}
		if p.oneRow && in.Rows > 0 {
			in.Rows, in.Data = 1, in.Data[:in.Stride]
			for i := range c.Rows { // the product on paper has it in each row
				copy(p.c0.Data[i*p.c0.Stride:][:c.Cols], p.c0.Data)
			}
		}
		o.Input = putC(in, 1)
	}
	if p.values {
		o.Values = put(valueRows(p.a))
	}
	if p.scaled {
		o.AlphaScale, o.BetaScale = putScale(p.alphaScale), putScale(p.betaScale)
	}
	if p.biasKind != NoBias {
		o.Bias = putC(p.bias, 1)
	}
	o.C = putC(c, 16)
	if err := plan.Multiply(context.Background(), p.alpha, p.beta, o); err != nil {
		t.Fatal(err)
	}
	if d, ok := o.C.(DeviceDense[C]); ok {
		all := make([]C, d.Buffer.Len())
		if err := d.Buffer.Read(context.Background(), all); err != nil {
			t.Fatal(err)
		}
		c.Data = all[d.Offset:]
	}
	return c
}

// scaledProduct is the product on paper: with the factors of both.
func (p *own[T, C]) scaledProduct() *product[T, C, int32] {
	x := p.product
	x.alpha *= p.alphaScale
	if x.beta != 0 {
		x.beta *= p.betaScale
	}
	return &x
}

func testOwnArguments[T Element](t *testing.T, engine *Engine, kernel Kernel) {
	rapid.Check(t, func(rt *rapid.T) {
		s := drawServed(rt, kernel)
		if !serves[T, T](rt, engine, s) {
			s.n, s.gapB, s.gapC = (s.n+7)/8*8, s.gapB/8*8, s.gapC/8*8
		}
		of := newProduct[T, int32](s)
		pattern := of.a
		pattern.Values = nil
		m := must(NewMatrix(context.Background(), engine, pattern))(rt)
		defer m.Close()
		alignment := 16
		if of.b.Stride%8 != 0 {
			alignment = SizeOf[T]()
		}
		plan := must(m.Plan(context.Background(), of.planOptions(alignment)))(rt)
		defer plan.Close()
		given := false
		for range 3 {
			p := drawOwn(rt, of, s, kernel.Baseline)
			if !given && !p.values {
				if err := SetValues(context.Background(), m, of.a.Values); err != nil {
					rt.Fatal(err)
				}
				given = true
			}
			c := p.multiply(rt, engine, plan, rapid.Bool().Draw(rt, "staged"))
			p.scaledProduct().verify(rt, engine, plan.Info(), c)
		}
	})
}

// Each product of a plan may have its own values, number of columns, strides, input and factors.
func TestOwnArguments(t *testing.T) {
	onEachKernel(t, testOwnArguments[BFloat16], testOwnArguments[Float16], testOwnArguments[float32], testOwnArguments[float64])
}

// A bias by columns has as many as the product.
func TestOwnColumnsOfBias(t *testing.T) {
	onEach(t, func(t *testing.T, engine *Engine) {
		rapid.Check(t, func(rt *rapid.T) {
			s := drawShape(rt)
			s.bias, s.activation = drawEpilogue(rt)
			of := newProductTo[BFloat16, float32, int32](s)
			m := must(NewMatrix(context.Background(), engine, of.a))(rt)
			defer m.Close()
			plan := must(m.Plan(context.Background(), of.planOptions(SizeOf[BFloat16]())))(rt)
			defer plan.Close()
			p := drawOwn(rt, of, s, false)
			c := p.multiply(rt, engine, plan, true)
			p.scaledProduct().verify(rt, engine, plan.Info(), c)
		})
	})
}

// Goroutines that multiply one pattern by values of their own do not disturb each other.
func TestOwnValuesAtOnce(t *testing.T) {
	onEach(t, func(t *testing.T, engine *Engine) {
		const callers, products = 4, 40
		of := newProduct[BFloat16, int32](shape{rows: 256, cols: 256, n: 64, blockM: 64, blockK: 64, density: 0.6, alpha: 1, seed: 5})
		pattern := of.a
		pattern.Values = nil
		m := must(NewMatrix(context.Background(), engine, pattern))(t)
		plan := must(m.Plan(context.Background(), of.planOptions(16)))(t)
		var wait sync.WaitGroup
		for caller := range callers {
			p := &own[BFloat16, BFloat16]{product: *of, values: true, alphaScale: 1, betaScale: 1}
			p.a.Values = otherValues(of.a.Values, uint64(caller))
			want := p.multiply(t, engine, plan, true)
			p.verify(t, engine, plan.Info(), want)
			wait.Go(func() {
				for range products {
					if c := p.multiply(t, engine, plan, true); !slices.Equal(c.Data, want.Data) {
						t.Errorf("caller %d: another result than alone", caller)
						return
					}
				}
			})
		}
		wait.Wait()
	})
}

func TestOwnArgumentFaults(t *testing.T) {
	onEach(t, func(t *testing.T, engine *Engine) {
		pattern := small()
		values := pattern.Values
		pattern.Values = nil
		m := must(NewMatrix(context.Background(), engine, pattern))(t)
		plan := must(m.Plan(context.Background(), PlanOptions{N: 8}))(t)
		dense := func(rows, cols int) Dense[float32] {
			return Dense[float32]{Rows: rows, Cols: cols, Data: make([]float32, rows*cols)}
		}
		good := Operands{B: dense(6, 8), C: dense(4, 8), Values: Dense[float32]{Rows: 6, Cols: 3, Data: values}}
		multiply := func(change func(*Operands)) error {
			o := good
			change(&o)
			return plan.Multiply(context.Background(), 1, 1, o)
		}
		if err := multiply(func(*Operands) {}); err != nil {
			t.Fatal(err)
		}
		both := dense(4, 16)
		for _, fault := range []struct {
			change   func(*Operands)
			status   Status
			speaksOf string
		}{
			{func(o *Operands) { o.Values = nil }, ErrNullPointer, "the matrix has no values yet"},
			{func(o *Operands) { o.Values = dense(5, 3) }, ErrBadSize, "Values is 5 x 3 where 6 x 3"},
			{func(o *Operands) { o.Values = Dense[float32]{Rows: 6, Cols: 3, Stride: 4, Data: make([]float32, 24)} }, ErrBadLeadingDimension, "Values's stride 4"},
			{func(o *Operands) { o.Values = Dense[BFloat16]{Rows: 6, Cols: 3, Data: make([]BFloat16, 18)} }, ErrBadArgument, "Values is of bf16"},
			{func(o *Operands) { o.B, o.C = dense(6, 9), dense(4, 9) }, ErrBadSize, "the plan is for 1 to 8 columns"},
			{func(o *Operands) { o.B, o.C = dense(6, 0), dense(4, 0) }, ErrBadSize, "the plan is for 1 to 8 columns"},
			{func(o *Operands) { o.C = dense(4, 7) }, ErrBadSize, "C is 4 x 7 where 4 x 8"},
			{func(o *Operands) { o.Input = dense(4, 7) }, ErrBadSize, "Input is 4 x 7 where 4 x 8"},
			{func(o *Operands) { o.Input = dense(1, 7) }, ErrBadSize, "Input is 1 x 7 where 1 x 8"},
			{func(o *Operands) { o.Input = dense(2, 8) }, ErrBadSize, "Input is 2 x 8 where 4 x 8"},
			{func(o *Operands) { o.Input = Dense[float32]{Rows: 1, Cols: 8, Data: o.C.(Dense[float32]).Data} }, ErrBadArgument, "C overlaps Input"},
			{func(o *Operands) { o.Input = Dense[BFloat16]{Rows: 4, Cols: 8, Data: make([]BFloat16, 32)} }, ErrBadArgument, "Input is of bf16"},
			{func(o *Operands) {
				o.C = Dense[float32]{Rows: 4, Cols: 8, Stride: 16, Data: both.Data}
				o.Input = Dense[float32]{Rows: 4, Cols: 8, Stride: 16, Data: both.Data[1:]}
			}, ErrBadArgument, "C overlaps Input"},
			{func(o *Operands) { o.AlphaScale = dense(1, 2) }, ErrBadSize, "AlphaScale is 1 x 2"},
			{func(o *Operands) { o.BetaScale = Dense[Float16]{Rows: 1, Cols: 1, Data: make([]Float16, 1)} }, ErrBadArgument, "BetaScale is of fp16"},
		} {
			wantFault(t, multiply(fault.change), fault.status, fault.speaksOf)
		}
		// C may be its own input.
		if err := multiply(func(o *Operands) { o.Input = o.C }); err != nil {
			t.Error(err)
		}
	})
}

// Kernels of other libraries take what they can, and say what they cannot.
func TestOwnArgumentsOfLibraryKernels(t *testing.T) {
	onLibraryKernels(t, func(t *testing.T, engine *Engine, kernel Kernel) {
		of := usual(kernel)
		m := must(NewMatrix(context.Background(), engine, of.a))(t)
		defer m.Close()
		plan := must(m.Plan(context.Background(), of.planOptions(16)))(t)
		defer plan.Close()
		p := &own[BFloat16, BFloat16]{product: *of, input: true, strideIn: 136, alphaScale: 1, betaScale: 1}
		p.n = columnsFor(kernel, 128)
		gapB, gapC := 8, 24
		if kernel.Name == byVector {
			gapB, gapC = 0, 0
		}
		random := rand.New(rand.NewPCG(51, 1))
		p.b = randomDense[BFloat16](random, of.b.Rows, p.n, gapB, 0, 0)
		p.c0 = randomDense(random, of.c0.Rows, p.n, gapC, guardBand, guardValue[BFloat16]())
		c := p.multiply(t, engine, plan, false)
		p.verifyGuards(t, c)
		p.verifyByCheck(t, engine, plan.Info(), c)

		buffers := func() Operands {
			return Operands{B: p.b, C: p.newC(), Values: valueRows(p.a)}
		}
		for seed := range uint64(2) { // and again the matrix's
			p.values = seed == 0
			p.a.Values = of.a.Values
			if p.values {
				p.a.Values = otherValues(of.a.Values, seed)
			}
			c := p.multiply(t, engine, plan, false)
			p.verifyByCheck(t, engine, plan.Info(), c)
		}
		o := buffers()
		o.Values, o.AlphaScale = nil, Dense[float32]{Rows: 1, Cols: 1, Data: []float32{1}}
		wantFault(t, plan.Multiply(context.Background(), 1, 0, o), ErrBadArgument, "takes no alpha_device")
	})
}
