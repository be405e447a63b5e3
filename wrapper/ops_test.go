// SPDX-License-Identifier: Apache-2.0

package sparsek_test

import (
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
