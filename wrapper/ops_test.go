// SPDX-License-Identifier: Apache-2.0

package sparsek_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	. "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/check"
	"github.com/sparsek/sparsek/wrapper/timing"
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

func testOp[T, C Element, I Index](t *rapid.T, engine *Engine, names []string) {
	s := drawOpShape(t)
	s.n = min(s.n, 1+(4<<20)/max(1, s.rows*s.cols)) // a plain loop checks them
	c := newOpCase[T, C, I](s)
	if rapid.Bool().Draw(t, "poison") {
		c.poison()
	}
	result, info := c.run(t, engine, rapid.SampledFrom(names).Draw(t, "kernel"))
	if info.CopiesB && c.b.order == RowMajor && (c.op == DSD || c.op == DSDT) {
		t.Fatalf("a row-major B is copied: %+v", info)
	}
	result.verifyGuards(t)
	c.verifyPlainly(t, info, result)
	c.verifyByCheck(t, engine, info, result)
}

// Every product, in every order of its operands, against a plain loop and the library's check.
func TestOps(t *testing.T) {
	onEach(t, func(t *testing.T, engine *Engine) {
		names := kernels(t, engine)
		run := func(name string, test func(*rapid.T)) {
			t.Run(name, func(t *testing.T) { rapid.Check(t, test) })
		}
		run("bf16", func(t *rapid.T) { testOp[BFloat16, BFloat16, int32](t, engine, names) })
		run("bf16 to fp32", func(t *rapid.T) { testOp[BFloat16, float32, int32](t, engine, names) })
		run("fp16", func(t *rapid.T) { testOp[Float16, Float16, int64](t, engine, names) })
		run("fp32", func(t *rapid.T) { testOp[float32, float32, int32](t, engine, names) })
		run("fp32 to bf16", func(t *rapid.T) { testOp[float32, BFloat16, int64](t, engine, names) })
		run("fp64", func(t *rapid.T) { testOp[float64, float64, int32](t, engine, names) })
	})
}

// The same bits with any number of threads, from the same plan or another of the same kind.
func TestOpsSameBits(t *testing.T) {
	lib := library(t)
	one := must(lib.NewEngine(EngineOptions{Backend: CPU, Threads: 1}))(t)
	defer one.Close()
	three := must(lib.NewEngine(EngineOptions{Backend: CPU, Threads: 3}))(t)
	defer three.Close()
	for _, op := range allOps {
		for _, block := range [][2]int{{3, 5}, {16, 8}, {64, 48}} {
			s := opShape{op: op, shape: shape{rows: 9*block[0] - 1, cols: 7*block[1] - 1, n: 97, blockM: block[0], blockK: block[1],
				density: 0.5, alpha: 1.5, seed: 3}}
			c := newOpCase[float32, float32, int32](s)
			random := rand.New(rand.NewPCG(5, 1))
			for i := range c.b.data {
				c.b.data[i] = float32(random.NormFloat64())
			}
			first, _ := c.run(t, one, "")
			for range 3 {
				again, _ := c.run(t, three, "")
				if !slices.Equal(first.data, again.data) {
					t.Errorf("%v of blocks of %v: other bits with three threads", op, block)
				}
			}
		}
	}
}

// A block that stands in another place of values is read there, and written there.
func TestOpsBlockIdx(t *testing.T) {
	onEach(t, func(t *testing.T, engine *Engine) {
		for _, op := range allOps {
			c := newOpCase[float32, float32, int32](opShape{op: op, shape: shape{rows: 40, cols: 33, n: 20, blockM: 8, blockK: 3, density: 0.6, alpha: 1, beta: 0.5, seed: 8}})
			for i := range c.a.ColIdx {
				c.a.BlockIdx = append(c.a.BlockIdx, int32(len(c.a.ColIdx)-1-i))
			}
			for r := range len(c.a.RowPtr) - 1 { // what lies beyond A is 0 for the blocks that are there now
				for _, block := range c.blocksOf(r) {
					if block < 0 {
						continue
					}
					for i := range c.a.BlockM * c.a.BlockK {
						if !c.inMatrix()[block*c.a.BlockM*c.a.BlockK+i] {
							c.a.Values[block*c.a.BlockM*c.a.BlockK+i] = 0
						}
					}
				}
			}
			result, info := c.run(t, engine, "")
			c.verifyPlainly(t, info, result)
			c.verifyByCheck(t, engine, info, result)
		}
		c := newOpCase[float32, float32, int32](opShape{op: SDD, shape: shape{rows: 16, cols: 16, n: 4, blockM: 8, blockK: 8, density: 1, alpha: 1, seed: 4}})
		c.a.BlockIdx = make([]int32, len(c.a.ColIdx))
		if len(c.a.BlockIdx) > 1 {
			m := must(NewMatrix(t.Context(), engine, c.a))(t)
			defer m.Close()
			_, err := m.Plan(t.Context(), c.options())
			wantFault(t, err, ErrBadArgument, "names block 0 twice")
		}
	})
}

// Another matrix in place of C, and one row for all of them.
func TestOpsInput(t *testing.T) {
	onEach(t, func(t *testing.T, engine *Engine) {
		for _, op := range []Op{DSD, DSDT, DDS, DDST} {
			for _, order := range []Order{RowMajor, ColumnMajor} {
				s := opShape{op: op, orderC: order, shape: shape{rows: 37, cols: 25, n: 19, blockM: 4, blockK: 6, density: 0.5, gapC: 3, alpha: 1, beta: -0.5, seed: 6}}
				c := newOpCase[float32, float32, int32](s)
				m := must(NewMatrix(t.Context(), engine, c.a))(t)
				plan := must(m.Plan(t.Context(), c.options()))(t)
				for _, oneRow := range []bool{false, true} {
					result := newOrdered(rand.New(rand.NewPCG(1, 1)), c.c0.rows, c.c0.cols, order, 3, guardValue[float32]())
					for i := range result.data { // whatever C holds
						if result.data[i] != guardValue[float32]() {
							result.data[i] = float32(math.NaN())
						}
					}
					o := c.operands(result)
					o.Input = c.c0.operand()
					if oneRow {
						for i := range c.c0.rows {
							for j := range c.c0.cols {
								c.c0.data[c.c0.place(i, j)] = float32(j)
							}
						}
						row := Dense[float32]{Rows: 1, Cols: c.c0.cols, Data: make([]float32, c.c0.cols)}
						for j := range row.Data {
							row.Data[j] = float32(j)
						}
						o.Input = row
					}
					if err := plan.Multiply(t.Context(), c.alpha, c.beta, o); err != nil {
						t.Fatal(err)
					}
					result.verifyGuards(t)
					c.verifyPlainly(t, plan.Info(), result)
				}
				plan.Close()
				m.Close()
			}
		}
	})
}

// A batch computes what its products do alone.
func TestOpsBatch(t *testing.T) {
	onEach(t, func(t *testing.T, engine *Engine) {
		const batch = 3
		for _, op := range allOps {
			for _, order := range []Order{RowMajor, ColumnMajor} {
				s := opShape{op: op, orderX: order, orderB: order, orderC: order, shape: shape{rows: 24, cols: 20, n: 11, blockM: 4, blockK: 5, density: 0.6, alpha: 2, beta: 1, seed: 12}}
				if op == SDD {
					s.orderC = RowMajor
				} else {
					s.orderX = RowMajor
				}
				c := newOpCase[float32, float32, int32](s)
				m := must(NewMatrix(t.Context(), engine, c.a))(t)
				opts := c.options()
				opts.Alignment = SizeOf[float32]() // products of a batch begin anywhere
				plan := must(m.Plan(t.Context(), opts))(t)
				random := rand.New(rand.NewPCG(3, 3))
				tall := func(of *ordered[float32]) *ordered[float32] {
					return newOrdered(random, batch*of.rows, of.cols, of.order, 0, guardValue[float32]())
				}
				all := *c
				all.b, all.c0 = tall(c.b), tall(c.c0)
				if op == SDD {
					all.x = tall(c.x)
				}
				result := all.c0.clone()
				o := all.operands(result)
				o.Batch = batch
				if err := plan.Multiply(t.Context(), c.alpha, c.beta, o); err != nil {
					t.Fatalf("%v, %v: %v", op, order, err)
				}
				result.verifyGuards(t)
				sub := func(of *ordered[float32], one, i int) *ordered[float32] {
					part := *of
					part.rows = one
					part.data = of.data[of.place(i*one, 0):]
					return &part
				}
				for i := range batch {
					single := *c
					single.b, single.c0 = sub(all.b, c.b.rows, i), sub(all.c0, c.c0.rows, i)
					if op == SDD {
						single.x = sub(all.x, c.x.rows, i)
					}
					single.verifyPlainly(t, plan.Info(), sub(result, c.c0.rows, i))
				}
				plan.Close()
				m.Close()
			}
		}
	})
}

// The check sees a wrong element of each product, and says where it is.
func TestOpsCheckFinds(t *testing.T) {
	engine := newEngine(t, CPU)
	for _, op := range allOps {
		for _, order := range []Order{RowMajor, ColumnMajor} {
			s := opShape{op: op, orderB: order, orderC: order, shape: shape{rows: 30, cols: 21, n: 9, blockM: 5, blockK: 4, density: 1, alpha: 1, beta: 1, seed: 2}}
			if op == SDD {
				s.orderC = RowMajor
			}
			c := newOpCase[float32, float32, int32](s)
			result, info := c.run(t, engine, "")
			result.data[result.place(3, 2)] += 0.01
			report, err := check.Product(engine.Library(), c.a, c.checkArgs(info, result))
			row, col := 3, 2
			if op == SDD { // the first block
				row, col = 3+5*firstBlockRow(c.a.RowPtr), 2+4*int(c.a.ColIdx[0])
			}
			if !errors.Is(err, ErrCheckFailed) || report.Failures != 1 || report.FirstRow != row || report.FirstCol != col || report.WorstRow != row {
				t.Errorf("%v, %v: %+v, %v, want C[%d, %d]", op, order, report, err, row, col)
			}
		}
	}
	// What a block has beyond A must be 0.
	c := newOpCase[float32, float32, int32](opShape{op: SDD, shape: shape{rows: 9, cols: 7, n: 9, blockM: 5, blockK: 4, density: 1, alpha: 1, seed: 1}})
	result, info := c.run(t, engine, "")
	inside := c.inMatrix()
	at := slices.Index(inside, false)
	if at < 0 {
		t.Fatal("no element is beyond A")
	}
	result.data[at] = 1
	report, err := check.Product(engine.Library(), c.a, c.checkArgs(info, result))
	if !errors.Is(err, ErrCheckFailed) || report.Failures != 1 {
		t.Errorf("%+v, %v", report, err)
	}
}

func firstBlockRow(rowPtr []int32) int {
	return slices.IndexFunc(rowPtr[1:], func(end int32) bool { return end > 0 })
}

// What a product is not given rightly is refused by name.
func TestOpsFaults(t *testing.T) {
	engine := newEngine(t, CPU)
	m := must(NewMatrix(t.Context(), engine, small()))(t)
	defer m.Close()
	plan := func(opts PlanOptions) error {
		p, err := m.Plan(t.Context(), opts)
		if err == nil {
			p.Close()
		}
		return err
	}
	wantFault(t, plan(PlanOptions{N: 8, Op: 9}), ErrBadArgument, "options->op = 9 is none of SPARSEK_DSD (0)")
	wantFault(t, plan(PlanOptions{N: 8, OrderB: 2}), ErrBadArgument, "options->order_b = 2 is none of")
	wantFault(t, plan(PlanOptions{N: 8, OrderX: 1}), ErrBadArgument, "options->order_x = 1: X is SPARSEK_SDD's")
	wantFault(t, plan(PlanOptions{N: 8, LDX: 8}), ErrBadArgument, "options->ldx = 8")
	wantFault(t, plan(PlanOptions{N: 8, Op: SDD, Bias: RowBias}), ErrBadArgument, "SPARSEK_SDD has none")
	wantFault(t, plan(PlanOptions{N: 8, Op: SDD, OrderC: ColumnMajor}), ErrBadArgument, "the blocks of SPARSEK_SDD are row-major")
	wantFault(t, plan(PlanOptions{N: 8, Op: SDD, LDC: 8}), ErrBadArgument, "follow each other")

	rows, cols := m.Rows(), m.Cols()
	dsd := must(m.Plan(t.Context(), PlanOptions{N: 8}))(t)
	defer dsd.Close()
	multiply := func(p *Plan, o Operands) error { return p.Multiply(t.Context(), 1, 0, o) }
	b, c := wholeNumbers[float32](cols, 8, 8, 1), wholeNumbers[float32](rows, 8, 8, 2)
	wantFault(t, multiply(dsd, Operands{B: Transpose(wholeNumbers[float32](8, cols, cols, 1)), C: c}), ErrBadArgument, "B is column-major where the plan is for a row-major one")
	wantFault(t, multiply(dsd, Operands{B: b, C: c, X: b}), ErrBadArgument, "X is given to a product of dsd")
	wantFault(t, multiply(dsd, Operands{B: b, C: c, Values: Transpose(wholeNumbers[float32](3, m.Blocks()*2, m.Blocks()*2, 1))}), ErrBadArgument, "Values is column-major")
	biased := must(m.Plan(t.Context(), PlanOptions{N: 8, Bias: ColumnBias}))(t)
	defer biased.Close()
	wantFault(t, multiply(biased, Operands{B: b, C: c, Bias: Transpose(wholeNumbers[float32](8, 1, 2, 1))}), ErrBadLeadingDimension, "the bias is column-major with a stride of 2")
	if err := multiply(biased, Operands{B: b, C: c, Bias: Transpose(wholeNumbers[float32](8, 1, 1, 1))}); err != nil {
		t.Error(err)
	}
	sdd := must(m.Plan(t.Context(), PlanOptions{N: 8, Op: SDD}))(t)
	defer sdd.Close()
	blocks := wholeNumbers[float32](m.Blocks()*2, 3, 3, 1)
	o := Operands{X: c, B: wholeNumbers[float32](8, cols, cols, 1), C: blocks}
	if err := multiply(sdd, o); err != nil {
		t.Error(err)
	}
	padded := o
	padded.X = wholeNumbers[float32](rows, 8, 9, 1)
	if _, err := timing.Products(t.Context(), sdd, timing.Options{Operands: []Operands{padded}, Repeats: 1}); !errors.Is(err, ErrBadLeadingDimension) {
		t.Errorf("timing an X with gaps by a plan for one without: %v", err)
	}
	o.X = nil
	wantFault(t, multiply(sdd, o), ErrNullPointer, "X is nil")
	o.X = wholeNumbers[float32](rows, 9, 9, 1)
	wantFault(t, multiply(sdd, o), ErrBadSize, "the plan is for 1 to 8 columns")
	o.X, o.Values = c, wholeNumbers[float32](m.Blocks()*2, 3, 3, 2)
	wantFault(t, multiply(sdd, o), ErrBadArgument, "args->values")
}

// Blocks larger than scratch memory go through it in parts.
func TestOpsWideBlocks(t *testing.T) {
	onEach(t, func(t *testing.T, engine *Engine) {
		for _, block := range [][2]int{{64, 1200}, {1200, 64}, {20, 2000}, {700, 700}} {
			for _, op := range []Op{DSD, DSDT, SDD} {
				for _, n := range []int{3, 70} {
					s := opShape{op: op, shape: shape{rows: 2*block[0] - 7, cols: block[1] + 9, n: n, blockM: block[0], blockK: block[1], density: 0.9, alpha: 1, seed: 5}}
					t.Run(fmt.Sprintf("%v of %dx%d by %d", op, block[0], block[1], n), func(t *testing.T) {
						c := newOpCase[Float16, float32, int32](s)
						result, info := c.run(t, engine, "")
						c.verifyByCheck(t, engine, info, result)
						d := newOpCase[float64, float64, int32](s)
						wide, info := d.run(t, engine, "")
						d.verifyByCheck(t, engine, info, wide)
					})
				}
			}
		}
	})
}
