// SPDX-License-Identifier: Apache-2.0

package sparsek_test

import (
	"errors"
	"fmt"
	"testing"

	. "github.com/sparsek/sparsek/wrapper"
)

// Tiles of which some load so few columns that not every loading warp has one, and which are long.
func TestSampledTilesOfFewColumns(t *testing.T) {
	engine := newEngine(t, CUDA)
	for _, block := range [][2]int{{16, 16}, {32, 32}, {64, 16}, {64, 64}} {
		for _, workers := range []int{0, 1, 3} {
			s := opShape{op: SDD, orderB: ColumnMajor, shape: shape{rows: 12 * block[0], cols: 20 * block[1], n: 3000, blockM: block[0], blockK: block[1],
				density: 0.04, alpha: 1, seed: 9}}
			c := newOpCase[BFloat16, BFloat16, int32](s)
			c.workers = workers
			result, info := c.run(t, engine, "sampled_wgmma_bf16")
			c.verifyByCheck(t, engine, info, result)
		}
	}
}

// A plan keeps its index when another plan of the matrix gets a new one.
func TestSampledPlansKeepTheirIndex(t *testing.T) {
	engine := newEngine(t, CUDA)
	for _, kernel := range []string{"simt", "mma", "wgmma"} {
		for _, named := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/block_idx %v", kernel, named), func(t *testing.T) { updateOneOfTwo(t, engine, "sampled_"+kernel+"_bf16", named) })
		}
	}
}

// named: the first index names its blocks, the second one does not.
func updateOneOfTwo(t *testing.T, engine *Engine, kernel string, named bool) {
	background := t.Context()
	of := func(seed uint64, density float64) *opCase[BFloat16, BFloat16, int32] {
		return newOpCase[BFloat16, BFloat16, int32](opShape{op: SDD, shape: shape{rows: 200, cols: 320, n: 72, blockM: 32, blockK: 32, density: density, alpha: 1, seed: seed}})
	}
	cases := []*opCase[BFloat16, BFloat16, int32]{of(3, 0.7), of(4, 0.3)}
	if named {
		blocks := len(cases[0].a.ColIdx)
		for e := range blocks {
			cases[0].a.BlockIdx = append(cases[0].a.BlockIdx, int32(blocks-1-e))
		}
	}
	s := must(engine.NewStream())(t)
	defer s.Close()
	m, done := inStream(t, s, engine, cases[0].a)
	defer done()
	options := cases[0].options()
	options.Kernel = kernel
	var plans []*Plan
	for range 2 {
		plan := must(m.Plan(background, options))(t)
		defer plan.Close()
		plans = append(plans, plan)
	}
	next := cases[1].a
	rowPtr, colIdx := filled(t, engine, next.RowPtr), filled(t, engine, next.ColIdx)
	defer rowPtr.Close()
	defer colIdx.Close()
	if err := UpdatePlan(background, s, plans[1], DeviceBSR[BFloat16, int32]{Rows: next.Rows, Cols: next.Cols, BlockM: next.BlockM, BlockK: next.BlockK, RowPtr: rowPtr, ColIdx: colIdx}); err != nil {
		t.Fatal(err)
	}
	for i, c := range cases {
		x := inBuffer(t, engine, Dense[BFloat16]{Rows: c.x.rows, Cols: c.x.cols, Data: c.x.data}, 0)
		b := inBuffer(t, engine, Dense[BFloat16]{Rows: c.b.rows, Cols: c.b.cols, Data: c.b.data}, 0)
		out := DeviceDense[BFloat16]{Rows: len(cases[0].a.ColIdx) * 32, Cols: 32, Buffer: filled(t, engine, make([]BFloat16, len(cases[0].a.Values)))}
		blocks := make([]BFloat16, len(cases[0].a.Values))
		if err := errors.Join(plans[i].Enqueue(background, s, 1, 0, Operands{X: x, B: b, C: out}), s.Wait(background), out.Buffer.Read(background, blocks)); err != nil {
			t.Fatal(err)
		}
		result := c.c0.clone()
		copy(result.data, blocks[:len(c.a.Values)])
		c.verifyByCheck(t, engine, plans[i].Info(), result)
	}
}

// Full tiles whose fifth cell is in both strips of a pair, in the upper one or in the lower one. With a worker for
// each full tile, which they take at once, a small tile for what is left would be a second round, so that fifth cells are
// chosen; with five workers none are.
func TestSampledTilesOfFiveCells(t *testing.T) {
	engine := newEngine(t, CUDA)
	blocks := [][2]int{{64, 64}, {64, 128}, {128, 64}, {128, 128}, {192, 64}, {32, 64}, {16, 64}}
	t.Run("bf16", func(t *testing.T) { testFiveCells[BFloat16, BFloat16](t, engine, "bf16", blocks) })
	t.Run("fp16 to fp32", func(t *testing.T) { testFiveCells[Float16, float32](t, engine, "fp16", blocks[:2]) })
}

func testFiveCells[T, C Element](t *testing.T, engine *Engine, suffix string, blocks [][2]int) {
	for i, block := range blocks {
		for order := range 4 {
			s := opShape{op: SDD, orderX: Order(order % 2), orderB: Order(order / 2), shape: shape{n: []int{40, 72, 136}[(i+order)%3], blockM: block[0], blockK: block[1], alpha: 0.5,
				beta: float32(order % 2), seed: 3}}
			const pairs, tiles, strip = 6, 6, 64 // tiles: full ones of a pair
			s.rows, s.cols = pairs*2*strip, 2304
			rows := make([][]int32, s.rows/block[0])
			for row := range rows {
				// Columns that are left of the pair: in both strips, in the upper one, in the lower one.
				left := [pairs][3]int{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}, {0, 1, 1}, {1, 1, 1}, {1, 0, 2}}[row*block[0]/(2*strip)]
				add := func(first, blocks int) {
					for col := range blocks {
						rows[row] = append(rows[row], int32(first+col))
					}
				}
				full := tiles * 4 * 64 / block[1]
				add(0, full+left[0])
				switch {
				case block[0] > strip: // both strips
				case row*block[0]/strip%2 == 0:
					add(full+2, left[1])
				default:
					add(full+3, left[2])
				}
			}
			for _, workers := range []int{tiles * pairs, 5} {
				p := newProductTo[T, C, int32](s.shape)
				p.setPattern(rows, func() T { return FromFloat32[T](0) })
				c := newOpCaseOf[T, C](p.a, s)
				c.workers = workers
				c.poison()
				result, info := c.run(t, engine, "sampled_wgmma_"+suffix)
				c.verifyByCheck(t, engine, info, result)
				result.verifyGuards(t)
			}
		}
	}
}
