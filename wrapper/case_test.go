// SPDX-License-Identifier: Apache-2.0

package sparsek_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"

	"pgregory.net/rapid"

	. "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/check"
)

// product is a product on paper: its operands with room between and behind the rows. C is of elements C.
type product[T, C Element, I Index] struct {
	a           BSR[T, I]
	narrow      narrowA // A, where the library gets it in a narrower type than T; else nil
	n           int
	b           Dense[T]
	c0          Dense[C]
	alpha, beta float32
	biasKind    Bias
	bias        Dense[C]
	activation  Activation
	kernel      string // by name; empty: the library chooses
	allowDense  bool
	infinite    bool // B holds NaN or Inf
}

// shape is what a product is made from.
type shape struct {
	rows, cols, n  int
	blockM, blockK int
	density        float64 // of blocks; whole block rows stay empty here and there
	gapB, gapC     int     // elements behind each row
	alpha, beta    float32
	bias           Bias
	activation     Activation
	kernel         string // by name; empty: the library chooses
	typeA          DType  // of A where it is narrower than that of B; else 0
	seed           uint64
}

// guardBand elements lie behind C; they and those between its rows must stay what they are.
const guardBand = 64

func guardValue[T Element]() T { return FromFloat32[T](-12345) }

// newProduct makes a product with a C of the type of A and B.
func newProduct[T Element, I Index](s shape) *product[T, T, I] { return newProductTo[T, T, I](s) }

func newProductTo[T, C Element, I Index](s shape) *product[T, C, I] {
	random := rand.New(rand.NewPCG(s.seed, 7))
	value := func() T { return smallValue[T](random) }
	p := &product[T, C, I]{n: s.n, alpha: s.alpha, beta: s.beta, biasKind: s.bias, activation: s.activation, kernel: s.kernel}
	p.a = BSR[T, I]{Rows: s.rows, Cols: s.cols, BlockM: s.blockM, BlockK: s.blockK}
	rows := make([][]I, (s.rows+s.blockM-1)/s.blockM)
	for i := range rows {
		if random.IntN(6) > 0 {
			for col := range (s.cols + s.blockK - 1) / s.blockK {
				if random.Float64() < s.density {
					rows[i] = append(rows[i], I(col))
				}
			}
		}
	}
	p.setPattern(rows, value)
	p.narrow = narrowed(&p.a, s.typeA)
	p.b = randomDense(random, s.cols, s.n, s.gapB, 0, FromFloat32[T](float32(math.NaN())))
	p.c0 = randomDense(random, s.rows, s.n, s.gapC, guardBand, guardValue[C]())
	switch s.bias {
	case RowBias:
		p.bias = randomDense[C](random, s.rows, 1, 0, 0, 0)
	case ColumnBias:
		p.bias = randomDense[C](random, 1, s.n, 0, 0, 0)
	}
	return p
}

func smallValue[T Element](random *rand.Rand) T {
	var out T
	if p, ok := any(&out).(*float64); ok { // with all its bits: sums in fp32 would show
		*p = 4*random.Float64() - 2
		return out
	}
	return FromFloat32[T](float32(random.IntN(513)-256) / 128)
}

// randomDense holds `fill` in the gaps behind its rows and in the `behind` elements after the last.
func randomDense[T Element](random *rand.Rand, rows, cols, gap, behind int, fill T) Dense[T] {
	d := Dense[T]{Rows: rows, Cols: cols, Stride: cols + gap, Data: make([]T, rows*(cols+gap)+behind)}
	for i := range d.Data {
		d.Data[i] = fill
	}
	for i := range rows {
		for j := range cols {
			d.Data[i*d.Stride+j] = smallValue[T](random)
		}
	}
	return d
}

// setPattern gives A other blocks, of random values: those of each block row, by their columns.
func (p *product[T, C, I]) setPattern(rows [][]I, value func() T) {
	p.a.RowPtr, p.a.ColIdx, p.a.Values = []I{0}, nil, []T{}
	for _, cols := range rows {
		for _, col := range cols {
			p.a.ColIdx = append(p.a.ColIdx, col)
			for range p.a.BlockM {
				for k := range p.a.BlockK {
					v := value()
					if int(col)*p.a.BlockK+k >= p.a.Cols {
						v = 0
					}
					p.a.Values = append(p.a.Values, v)
				}
			}
		}
		p.a.RowPtr = append(p.a.RowPtr, I(len(p.a.ColIdx)))
	}
}

// poison makes NaN or Inf of the rows of B that no block reads, and of C where it must not be read.
func (p *product[T, C, I]) poison() {
	p.infinite = true
	read := make(map[int]bool)
	for _, col := range p.a.ColIdx {
		for k := range p.a.BlockK {
			read[int(col)*p.a.BlockK+k] = true
		}
	}
	for k := range p.b.Rows {
		if !read[k] {
			for j := range p.n {
				p.b.Data[k*p.b.Stride+j] = FromFloat32[T](float32(math.Inf(1 - 2*(j&1))))
				if j%3 == 0 {
					p.b.Data[k*p.b.Stride+j] = FromFloat32[T](float32(math.NaN()))
				}
			}
		}
	}
	if p.beta == 0 {
		for i := range p.c0.Rows {
			for j := range p.n {
				p.c0.Data[i*p.c0.Stride+j] = FromFloat32[C](float32(math.NaN()))
			}
		}
	}
}

// scatter makes NaN or Inf of some elements of B, whether or not blocks read them: those that do not must stay as they
// would be without.
func (p *product[T, C, I]) scatter(seed uint64) {
	p.infinite = true
	random := rand.New(rand.NewPCG(seed, 9))
	values := []float64{math.Inf(1), math.Inf(-1), math.NaN()}
	for range 4 {
		if p.b.Rows*p.n > 0 {
			at := random.IntN(p.b.Rows)*p.b.Stride + random.IntN(p.n)
			p.b.Data[at] = FromFloat32[T](float32(values[random.IntN(len(values))]))
		}
	}
}

func (p *product[T, C, I]) newC() Dense[C] {
	c := p.c0
	c.Data = append([]C(nil), p.c0.Data...)
	return c
}

// verify compares c with a plain loop in float64, with the library's own check, and looks at the guard bands.
func (p *product[T, C, I]) verify(t rapid.TB, engine *Engine, info PlanInfo, c Dense[C]) {
	t.Helper()
	p.verifyGuards(t, c)
	p.verifyPlainly(t, info, c)
	p.verifyByCheck(t, engine, info, c)
}

// verifyGuards makes sure that nothing outside of C was written.
func (p *product[T, C, I]) verifyGuards(t rapid.TB, c Dense[C]) {
	t.Helper()
	for i := range c.Data {
		row, col := 0, i
		if c.Stride > 0 {
			row, col = i/c.Stride, i%c.Stride
		}
		if (row >= c.Rows || col >= c.Cols) && c.Data[i] != guardValue[C]() {
			t.Fatalf("element %d, outside of C, was written: row %d, column %d", i, row, col)
		}
	}
}

// exactly is the value of x.
func exactly[T Element](x T) float64 {
	if v, ok := any(x).(float64); ok {
		return v
	}
	return float64(ToFloat32(x))
}

// verifyPlainly compares c with a plain loop in float64.
func (p *product[T, C, I]) verifyPlainly(t rapid.TB, info PlanInfo, c Dense[C]) {
	t.Helper()
	sum, bound := make([]float64, p.n), make([]float64, p.n)
	for i := range p.a.Rows {
		clear(sum)
		clear(bound)
		terms := 0
		blockRow := i / p.a.BlockM
		for e := int(p.a.RowPtr[blockRow]); e < int(p.a.RowPtr[blockRow+1]); e++ {
			for k := range p.a.BlockK {
				row := int(p.a.ColIdx[e])*p.a.BlockK + k
				if row >= p.a.Cols {
					continue
				}
				terms++
				v := exactly(p.a.Values[(e*p.a.BlockM+i%p.a.BlockM)*p.a.BlockK+k])
				for j := range p.n {
					term := v * exactly(p.b.Data[row*p.b.Stride+j])
					sum[j] += term
					bound[j] += math.Abs(term)
				}
			}
		}
		for j := range p.n {
			want := float64(p.alpha) * sum[j]
			tolerance := float64(terms+4) * info.UnitRoundoff * 2 * math.Abs(float64(p.alpha)) * bound[j]
			if p.beta != 0 {
				c0 := float64(p.beta) * exactly(p.c0.Data[i*p.c0.Stride+j])
				want += c0
				tolerance += math.Ldexp(math.Abs(c0), -22)
			}
			switch p.biasKind {
			case RowBias:
				want += exactly(p.bias.Data[i])
			case ColumnBias:
				want += exactly(p.bias.Data[j])
			}
			tolerance = 1.13*tolerance + math.Ldexp(4+math.Abs(want), -20)
			infinite := math.IsInf(want, 0)
			want = activated(p.activation, want)
			tolerance += 2*roundoff[C]()*math.Abs(want) + math.Ldexp(1, -24)
			if infinite {
				tolerance = 0 // the activations of -Inf are 0, not about 0
			}
			got := exactly(c.Data[i*c.Stride+j])
			if !within(got, want, tolerance) {
				t.Fatalf("C[%d, %d] = %g, want %g within %g", i, j, got, want, tolerance)
			}
		}
	}
}

// verifyByCheck compares every element of c with the library's own check.
func (p *product[T, C, I]) verifyByCheck(t rapid.TB, engine *Engine, info PlanInfo, c Dense[C]) {
	t.Helper()
	report, err := p.check(engine, p.checkArgs(c, info))
	if err != nil {
		t.Fatalf("%v\n%+v", err, report)
	}
	if report.Elements != p.a.Rows*p.n || report.Failures != 0 || report.MaxRatio > 1 {
		t.Fatalf("check of %d x %d elements: %+v", p.a.Rows, p.n, report)
	}
}

func (p *product[T, C, I]) checkArgs(c Dense[C], info PlanInfo) check.Args {
	return check.Args{Alpha: p.alpha, Beta: p.beta, B: p.b, C0: p.c0, C: c, UnitRoundoff: info.UnitRoundoff, ProductRoundoff: info.ProductRoundoff,
		BiasKind: p.biasKind, Bias: p.bias, Activation: p.activation}
}

// activated is the activation in float64.
func activated(activation Activation, x float64) float64 {
	if math.IsInf(x, -1) && activation != NoActivation {
		return 0
	}
	switch activation {
	case ReLU:
		return max(x, 0)
	case GELU:
		return x / 2 * math.Erfc(-x/math.Sqrt2)
	case SiLU:
		return x / (1 + math.Exp(-x))
	}
	return x
}

// within returns whether got is want, give or take the tolerance; NaN and Inf must be the same.
func within(got, want, tolerance float64) bool {
	if math.IsNaN(want) || math.IsInf(want, 0) {
		return got == want || math.IsNaN(got) && math.IsNaN(want)
	}
	return math.Abs(got-want) <= tolerance
}

// run multiplies by way of host memory, or of device memory, and gives C. Operands are aligned to 16 bytes, as the fast
// kernels need it, where the strides allow that, and to an element else. With a finite B nothing may have been computed
// again.
func (p *product[T, C, I]) run(t rapid.TB, engine *Engine, onDevice bool) (Dense[C], PlanInfo) {
	t.Helper()
	m := must(p.matrix(engine))(t)
	defer m.Close()
	alignment, offsetB, offsetC := min(SizeOf[T](), SizeOf[C]()), 3, 5
	vectors := p.b.Stride == 1 && p.c0.Stride == 1 && p.kernel == byVector // aligned, too
	if p.b.Stride%8 == 0 && p.c0.Stride%8 == 0 || vectors {
		alignment, offsetB, offsetC = 16, 8, 16
	}
	plan := must(m.Plan(context.Background(), p.planOptions(alignment)))(t)
	defer plan.Close()
	defer func() {
		if again := must(plan.Recomputed(context.Background()))(t); again != 0 && !p.infinite {
			t.Fatalf("kernel %s: sums were NaN, and %d slabs were computed again", plan.Info().Kernel, again)
		}
	}()
	c := p.newC()
	if !onDevice {
		if err := plan.Multiply(context.Background(), p.alpha, p.beta, p.operands(p.b, c, p.bias)); err != nil {
			t.Fatal(err)
		}
		return c, plan.Info()
	}
	b, dc := inBuffer(t, engine, p.b, offsetB), inBuffer(t, engine, c, offsetC)
	defer b.Buffer.Close()
	defer dc.Buffer.Close()
	bias := inBuffer(t, engine, p.bias, 1) // aligned to an element, whatever the plan
	defer bias.Buffer.Close()
	if err := plan.Multiply(context.Background(), p.alpha, p.beta, p.operands(b, dc, bias)); err != nil {
		t.Fatal(err)
	}
	padded := make([]C, dc.Buffer.Len())
	if err := dc.Buffer.Read(context.Background(), padded); err != nil {
		t.Fatal(err)
	}
	c.Data = padded[dc.Offset:]
	return c, plan.Info()
}

func (p *product[T, C, I]) planOptions(alignment int) PlanOptions {
	return PlanOptions{N: p.n, LDB: p.b.Stride, LDC: p.c0.Stride, Alignment: alignment,
		DTypeB: DTypeOf[T](), Output: DTypeOf[C](), Bias: p.biasKind, Activation: p.activation, Kernel: p.kernel, Compute: computeOf(p.kernel), AllowDense: p.allowDense}
}

// operands are those of the product, with a bias where it has one.
func (p *product[T, C, I]) operands(b, c, bias Operand) Operands {
	if p.biasKind == NoBias {
		bias = nil
	}
	return Operands{B: b, C: c, Bias: bias}
}

// multiplyIn runs a product in a stream and waits for it, or without one.
func multiplyIn(plan *Plan, s *Stream, alpha, beta float32, o Operands) error {
	ctx := context.Background()
	if s == nil {
		return plan.Multiply(ctx, alpha, beta, o)
	}
	return errors.Join(plan.Enqueue(ctx, s, alpha, beta, o), s.Wait(ctx))
}

// inBuffer copies d to a buffer, behind `offset` other elements.
func inBuffer[T Element](t rapid.TB, engine *Engine, d Dense[T], offset int) DeviceDense[T] {
	buffer := must(NewBuffer[T](engine, len(d.Data)+offset))(t)
	if err := buffer.Write(context.Background(), append(make([]T, offset), d.Data...)); err != nil {
		t.Fatal(err)
	}
	return DeviceDense[T]{Rows: d.Rows, Cols: d.Cols, Stride: d.Stride, Buffer: buffer, Offset: offset}
}
