// SPDX-License-Identifier: Apache-2.0

package sparsek_test

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"pgregory.net/rapid"

	. "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/check"
)

// ordered is a dense matrix of either order, with room between its lines and behind them.
type ordered[T Element] struct {
	rows, cols int
	order      Order
	stride     int
	data       []T
}

func newOrdered[T Element](random *rand.Rand, rows, cols int, order Order, gap int, fill T) *ordered[T] {
	lines, length := rows, cols
	if order == ColumnMajor {
		lines, length = cols, rows
	}
	d := randomDense(random, lines, length, gap, guardBand, fill)
	return &ordered[T]{rows: rows, cols: cols, order: order, stride: d.Stride, data: d.Data}
}

func (m *ordered[T]) place(i, j int) int {
	if m.order == ColumnMajor {
		return j*m.stride + i
	}
	return i*m.stride + j
}

func (m *ordered[T]) at(i, j int) float64 { return exactly(m.data[m.place(i, j)]) }

func (m *ordered[T]) operand() Operand {
	if m.order == ColumnMajor {
		return Transpose(Dense[T]{Rows: m.cols, Cols: m.rows, Stride: m.stride, Data: m.data})
	}
	return Dense[T]{Rows: m.rows, Cols: m.cols, Stride: m.stride, Data: m.data}
}

func (m *ordered[T]) clone() *ordered[T] {
	c := *m
	c.data = slices.Clone(m.data)
	return &c
}

// verifyGuards makes sure that nothing outside of the matrix is other than guardValue.
func (m *ordered[T]) verifyGuards(t rapid.TB) {
	t.Helper()
	inside := make([]bool, len(m.data))
	for i := range m.rows {
		for j := range m.cols {
			inside[m.place(i, j)] = true
		}
	}
	for at, x := range m.data {
		if !inside[at] && x != guardValue[T]() {
			t.Fatalf("element %d, outside of C, was written", at)
		}
	}
}

// opCase is a product of any kind on paper.
type opCase[T, C Element, I Index] struct {
	op          Op
	a           BSR[T, I]
	n           int
	x, b        *ordered[T]
	c0          *ordered[C]
	alpha, beta float32
	biasKind    Bias
	bias        Dense[C]
	activation  Activation
	workers     int
}

type opShape struct {
	shape
	op                     Op
	orderX, orderB, orderC Order
	gapX                   int  // of X, as gapB
	batch                  int  // products, whose operands lie one below the other; 0: one
	oneB                   bool // that B is the same for all of the batch
}

// extents are those of X (of SDD alone), B and C (of all others) of one product, rows and columns.
func (s opShape) extents() (x, b, c [2]int) {
	switch s.op {
	case DSD:
		return x, [2]int{s.cols, s.n}, [2]int{s.rows, s.n}
	case DSDT:
		return x, [2]int{s.rows, s.n}, [2]int{s.cols, s.n}
	case DDS:
		return x, [2]int{s.n, s.rows}, [2]int{s.n, s.cols}
	case DDST:
		return x, [2]int{s.n, s.cols}, [2]int{s.n, s.rows}
	}
	return [2]int{s.rows, s.n}, [2]int{s.n, s.cols}, c
}

var allOps = []Op{DSD, DSDT, SDD, DDS, DDST}

func drawOpShape(t *rapid.T) opShape {
	s := opShape{shape: drawShape(t)}
	s.op = rapid.SampledFrom(allOps).Draw(t, "op")
	orders := rapid.SampledFrom([]Order{RowMajor, ColumnMajor})
	s.orderB = orders.Draw(t, "order of B")
	if s.op == SDD {
		s.orderX, s.gapX = orders.Draw(t, "order of X"), s.gapB
	} else {
		s.orderC = orders.Draw(t, "order of C")
		s.bias = rapid.SampledFrom([]Bias{NoBias, RowBias, ColumnBias}).Draw(t, "bias")
	}
	s.activation = rapid.SampledFrom([]Activation{NoActivation, NoActivation, ReLU, GELU, SiLU}).Draw(t, "activation")
	return s
}

func newOpCase[T, C Element, I Index](s opShape) *opCase[T, C, I] {
	return newOpCaseOf[T, C](newProductTo[T, C, I](s.shape).a, s)
}

// newOpCaseOf is a product with that A.
func newOpCaseOf[T, C Element, I Index](a BSR[T, I], s opShape) *opCase[T, C, I] {
	random := rand.New(rand.NewPCG(s.seed, 21))
	batch := max(1, s.batch)
	c := &opCase[T, C, I]{op: s.op, a: a, n: s.n, alpha: s.alpha, beta: s.beta, biasKind: s.bias, activation: s.activation}
	// What blocks have beyond A's columns is 0, and where A is transposed beyond its rows.
	transposed := s.op == DSDT || s.op == DDS
	for r := range len(c.a.RowPtr) - 1 {
		for e := int(c.a.RowPtr[r]); e < int(c.a.RowPtr[r+1]); e++ {
			for i := range s.blockM {
				for k := range s.blockK {
					if transposed && r*s.blockM+i >= s.rows || int(c.a.ColIdx[e])*s.blockK+k >= s.cols {
						c.a.Values[(e*s.blockM+i)*s.blockK+k] = 0
					}
				}
			}
		}
	}
	nan := FromFloat32[T](float32(math.NaN()))
	sizeX, sizeB, sizeC := s.extents()
	batchOfB := batch
	if s.oneB {
		batchOfB = 1
	}
	c.b = newOrdered(random, batchOfB*sizeB[0], sizeB[1], s.orderB, s.gapB, nan)
	if s.op == SDD {
		c.x = newOrdered(random, batch*sizeX[0], sizeX[1], s.orderX, s.gapX, nan)
		c.c0 = newOrdered(random, batch*len(c.a.ColIdx)*s.blockM, s.blockK, RowMajor, 0, guardValue[C]())
		return c
	}
	c.c0 = newOrdered(random, batch*sizeC[0], sizeC[1], s.orderC, s.gapC, guardValue[C]())
	switch s.bias {
	case RowBias:
		c.bias = randomDense[C](random, sizeC[0], 1, 0, 0, 0)
	case ColumnBias:
		c.bias = randomDense[C](random, 1, sizeC[1], 0, 0, 0)
	}
	return c
}

// blocksOf are where each block column of a block row is stored; -1: it is absent.
func (c *opCase[T, C, I]) blocksOf(blockRow int) []int {
	blocks := make([]int, (c.a.Cols+c.a.BlockK-1)/c.a.BlockK)
	for i := range blocks {
		blocks[i] = -1
	}
	for e := int(c.a.RowPtr[blockRow]); e < int(c.a.RowPtr[blockRow+1]); e++ {
		blocks[c.a.ColIdx[e]] = e
		if c.a.BlockIdx != nil {
			blocks[c.a.ColIdx[e]] = int(c.a.BlockIdx[e])
		}
	}
	return blocks
}

// forEachTerm calls f with each product that is summed into an element of C.
func (c *opCase[T, C, I]) forEachTerm(f func(row, col int, term float64)) {
	for i := range c.a.Rows {
		blocks := c.blocksOf(i / c.a.BlockM)
		for k := range c.a.Cols {
			block := blocks[k/c.a.BlockK]
			if block < 0 {
				continue
			}
			row := block*c.a.BlockM + i%c.a.BlockM
			v := exactly(c.a.Values[row*c.a.BlockK+k%c.a.BlockK])
			for j := range c.n {
				switch c.op {
				case DSD:
					f(i, j, v*c.b.at(k, j))
				case DSDT:
					f(k, j, v*c.b.at(i, j))
				case DDS:
					f(j, k, v*c.b.at(j, i))
				case DDST:
					f(j, i, v*c.b.at(j, k))
				case SDD:
					f(row, k%c.a.BlockK, c.x.at(i, j)*c.b.at(j, k))
				}
			}
		}
	}
}

// inMatrix returns whether an element of the blocks of SDD lies within A.
func (c *opCase[T, C, I]) inMatrix() []bool {
	inside := make([]bool, len(c.a.Values))
	for i := range c.a.Rows {
		blocks := c.blocksOf(i / c.a.BlockM)
		for k := range c.a.Cols {
			if block := blocks[k/c.a.BlockK]; block >= 0 {
				inside[(block*c.a.BlockM+i%c.a.BlockM)*c.a.BlockK+k%c.a.BlockK] = true
			}
		}
	}
	return inside
}

func (c *opCase[T, C, I]) verifyPlainly(t rapid.TB, info PlanInfo, result *ordered[C]) {
	t.Helper()
	size := result.rows * result.cols
	sum, bound, terms := make([]float64, size), make([]float64, size), make([]int, size)
	c.forEachTerm(func(row, col int, term float64) {
		at := row*result.cols + col
		sum[at] += term
		bound[at] += math.Abs(term)
		terms[at]++
	})
	var inside []bool
	if c.op == SDD {
		inside = c.inMatrix()
	}
	for i := range result.rows {
		for j := range result.cols {
			at := i*result.cols + j
			got := result.at(i, j)
			if inside != nil && !inside[at] {
				if got != 0 {
					t.Fatalf("element %d of the blocks is beyond A and %g", at, got)
				}
				continue
			}
			want := float64(c.alpha) * sum[at]
			tolerance := float64(terms[at]+4) * info.UnitRoundoff * 2 * math.Abs(float64(c.alpha)) * bound[at]
			if c.beta != 0 {
				c0 := float64(c.beta) * c.c0.at(i, j)
				want += c0
				tolerance += math.Ldexp(math.Abs(c0), -22)
			}
			switch c.biasKind {
			case RowBias:
				want += exactly(c.bias.Data[i])
			case ColumnBias:
				want += exactly(c.bias.Data[j])
			}
			tolerance = 1.13*tolerance + math.Ldexp(4+math.Abs(want), -20)
			infinite := math.IsInf(want, 0)
			want = activated(c.activation, want)
			tolerance += 2*roundoff[C]()*math.Abs(want) + math.Ldexp(1, -24)
			if infinite {
				tolerance = 0 // the activations of -Inf are 0, not about 0
			}
			if !within(got, want, tolerance) {
				t.Fatalf("%v: C[%d, %d] = %g, want %g within %g", c.op, i, j, got, want, tolerance)
			}
		}
	}
}

func (c *opCase[T, C, I]) verifyByCheck(t rapid.TB, engine *Engine, info PlanInfo, result *ordered[C]) {
	t.Helper()
	args := c.checkArgs(info, result)
	report, err := check.Product(engine.Library(), c.a, args)
	if err != nil {
		t.Fatalf("%v: %v\n%+v", c.op, err, report)
	}
	want := result.rows * result.cols
	if c.op == SDD {
		want = 0
		for _, inside := range c.inMatrix() {
			if inside {
				want++
			}
		}
	}
	if report.Elements != want || report.Failures != 0 || report.MaxRatio > 1 {
		t.Fatalf("%v: check of %d elements: %+v", c.op, want, report)
	}
}

func (c *opCase[T, C, I]) checkArgs(info PlanInfo, result *ordered[C]) check.Args {
	args := check.Args{Op: c.op, Alpha: c.alpha, Beta: c.beta, B: c.b.operand(), C: result.operand(), C0: c.c0.operand(),
		UnitRoundoff: info.UnitRoundoff, ProductRoundoff: info.ProductRoundoff, BiasKind: c.biasKind, Bias: c.bias, Activation: c.activation}
	if c.op == SDD {
		args.X = c.x.operand()
	}
	return args
}

func (c *opCase[T, C, I]) options() PlanOptions {
	opts := PlanOptions{Op: c.op, N: c.n, OrderB: c.b.order, OrderC: c.c0.order, LDB: c.b.stride, Output: DTypeOf[C](),
		Bias: c.biasKind, Activation: c.activation, Workers: c.workers}
	if c.op == SDD {
		opts.OrderX, opts.LDX = c.x.order, c.x.stride
	} else {
		opts.LDC = c.c0.stride
	}
	return opts
}

func (c *opCase[T, C, I]) operands(result *ordered[C]) Operands {
	o := Operands{B: c.b.operand(), C: result.operand()}
	if c.op == SDD {
		o.X = c.x.operand()
	}
	if c.biasKind != NoBias {
		o.Bias = c.bias
	}
	return o
}

func (c *opCase[T, C, I]) run(t rapid.TB, engine *Engine, kernel string) (*ordered[C], PlanInfo) {
	t.Helper()
	m := must(NewMatrix(context.Background(), engine, c.a))(t)
	defer m.Close()
	opts := c.options()
	opts.Kernel = kernel
	plan := must(m.Plan(context.Background(), opts))(t)
	defer plan.Close()
	result := c.c0.clone()
	if err := plan.Multiply(context.Background(), c.alpha, c.beta, c.operands(result)); err != nil {
		t.Fatal(err)
	}
	return result, plan.Info()
}

// poison makes NaN or Inf of what no block reads, and NaN of C where it must not be read.
func (c *opCase[T, C, I]) poison() {
	rows, cols := make([]bool, c.a.Rows), make([]bool, c.a.Cols)
	for i := range rows {
		for k, block := range c.blocksOf(i / c.a.BlockM) {
			if block >= 0 {
				rows[i] = true
				for col := k * c.a.BlockK; col < min((k+1)*c.a.BlockK, c.a.Cols); col++ {
					cols[col] = true
				}
			}
		}
	}
	c.b.spoil(func(i, j int) bool {
		switch c.op {
		case DSD:
			return !cols[i]
		case DSDT:
			return !rows[i]
		case DDS:
			return !rows[j]
		}
		return !cols[j]
	})
	if c.op == SDD {
		c.x.spoil(func(i, j int) bool { return !rows[i] })
	}
	if c.beta == 0 {
		for i := range c.c0.rows {
			for j := range c.c0.cols {
				c.c0.data[c.c0.place(i, j)] = FromFloat32[C](float32(math.NaN()))
			}
		}
	}
}

// spoil makes NaN or Inf of those elements.
func (m *ordered[T]) spoil(which func(i, j int) bool) {
	for i := range m.rows {
		for j := range m.cols {
			if which(i, j) {
				m.data[m.place(i, j)] = FromFloat32[T](float32([]float64{math.NaN(), math.Inf(1), math.Inf(-1)}[(i+j)%3]))
			}
		}
	}
}
