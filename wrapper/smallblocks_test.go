// SPDX-License-Identifier: Apache-2.0

package sparsek_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	. "github.com/sparsek/sparsek/wrapper"
)

// onFewColumns runs a test on each kernel for small blocks and few columns.
func onFewColumns(t *testing.T, bf16, fp16, fp32, fp64 func(t *testing.T, engine *Engine, kernel Kernel)) {
	onFamily(t, "few_columns_", bf16, fp16, fp32, fp64)
}

// onRowWindow runs a test on each kernel for blocks of one size whose rows share B.
func onRowWindow(t *testing.T, fp32, fp64 func(t *testing.T, engine *Engine, kernel Kernel)) {
	skip := func(*testing.T, *Engine, Kernel) {}
	onFamily(t, "window_", skip, skip, fp32, fp64)
}

// blocksOf is of the blocks that a kernel serves the one it is made for, or else all that are given.
func blocksOf(kernel Kernel, all [][2]int) [][2]int {
	if isForOneBlock(kernel) {
		return [][2]int{{kernel.BlockM, kernel.BlockKMultiple}}
	}
	return all
}

func drawSmallBlocks(t *rapid.T, kernel Kernel) shape {
	edge := rapid.OneOf(rapid.IntRange(1, 8), rapid.IntRange(1, 32))
	s := shape{blockM: edge.Draw(t, "block height"), blockK: edge.Draw(t, "block width"), kernel: kernel.Name}
	if isForOneBlock(kernel) {
		s.blockM, s.blockK = leastBlock(kernel)
		return drawSmallExtents(t, s)
	}
	// Some blocks have ways of their own.
	switch rapid.SampledFrom([]string{"any", "square", "eights"}).Draw(t, "kind of block") {
	case "square":
		s.blockM = rapid.IntRange(1, 8).Draw(t, "side")
		s.blockK = s.blockM
	case "eights":
		s.blockM, s.blockK = 8*rapid.IntRange(1, 4).Draw(t, "eights high"), 8*rapid.IntRange(1, 4).Draw(t, "eights wide")
	}
	return drawSmallExtents(t, s)
}

// drawSmallExtents draws all but the block.
func drawSmallExtents(t *rapid.T, s shape) shape {
	extent := func(block, most int, name string) int {
		return rapid.IntRange(1, most).Draw(t, name)*block - rapid.IntRange(0, block-1).Draw(t, name+" short of whole blocks")
	}
	// Few rows are so long that some are cut.
	if rapid.Bool().Draw(t, "long rows") {
		s.rows, s.cols = extent(s.blockM, 4, "rows"), extent(s.blockK, 4000/s.blockK, "columns")
	} else {
		s.rows, s.cols = extent(s.blockM, max(1, 600/s.blockM), "rows"), extent(s.blockK, max(1, 200/s.blockK), "columns")
	}
	if rapid.Bool().Draw(t, "whole blocks") {
		s.rows, s.cols = (s.rows+s.blockM-1)/s.blockM*s.blockM, (s.cols+s.blockK-1)/s.blockK*s.blockK
	}
	s.n = rapid.OneOf(rapid.IntRange(1, 9), rapid.SampledFrom([]int{1, 8, 16, 32, 64, 128}), rapid.IntRange(1, 140)).Draw(t, "n")
	s.density = rapid.SampledFrom([]float64{0, 0.02, 0.3, 1}).Draw(t, "density")
	gap := rapid.OneOf(rapid.Just(0), rapid.IntRange(0, 4))
	s.gapB, s.gapC = gap.Draw(t, "gap of B"), gap.Draw(t, "gap of C")
	scalar := rapid.SampledFrom([]float32{0, 1, -0.5})
	s.alpha, s.beta = scalar.Draw(t, "alpha"), scalar.Draw(t, "beta")
	s.seed = rapid.Uint64().Draw(t, "seed")
	return s
}

func testSmallBlocks[T Element](t *testing.T, engine *Engine, kernel Kernel) {
	testBlocks[T](t, engine, kernel, drawSmallBlocks)
}

func testBlocks[T Element](t *testing.T, engine *Engine, kernel Kernel, draw func(*rapid.T, Kernel) shape) {
	rapid.Check(t, func(rt *rapid.T) {
		s := draw(rt, kernel)
		if rapid.Bool().Draw(rt, "plain") {
			testKernelTo[T, T](rt, engine, s)
			return
		}
		s.bias, s.activation = drawEpilogue(rt)
		if DTypeOf[T]() == FP64 {
			testKernelTo[T, T](rt, engine, s)
			return
		}
		testKernelTo[T, float32](rt, engine, s)
	})
}

// Every block that the kernels for few columns serve, long rows and short ones.
func TestSmallBlocks(t *testing.T) {
	onFewColumns(t, testSmallBlocks[BFloat16], testSmallBlocks[Float16], testSmallBlocks[float32], testSmallBlocks[float64])
}

// The same of those for blocks of one size.
func TestRowWindow(t *testing.T) { onRowWindow(t, testSmallBlocks[float32], testSmallBlocks[float64]) }

func testSmallBlocksOnDevice[T Element](t *testing.T, engine *Engine, kernel Kernel) {
	rapid.Check(t, func(rt *rapid.T) { comparePlans(rt, engine, newProduct[T, int32](drawSmallBlocks(rt, kernel))) })
}

// The planner on the GPU cuts rows where the one on the host does.
func TestSmallBlocksOnDevice(t *testing.T) {
	skip := func(*testing.T, *Engine, Kernel) {}
	onFewColumns(t, skip, skip, testSmallBlocksOnDevice[float32], testSmallBlocksOnDevice[float64])
	onRowWindow(t, testSmallBlocksOnDevice[float32], testSmallBlocksOnDevice[float64])
}

func testChunksWithoutBlocks[T Element](t *testing.T, engine *Engine, kernel Kernel) {
	for _, block := range blocksOf(kernel, [][2]int{{1, 1}, {3, 3}, {16, 8}}) {
		n := 33
		if block == [2]int{1, 1} {
			n = 72 // a line of every type, and some columns more
		}
		t.Run(fmt.Sprintf("%dx%d", block[0], block[1]), func(t *testing.T) {
			p := newProduct[T, int32](shape{rows: 4000 * block[0], cols: 20 * block[1], n: n, blockM: block[0], blockK: block[1], alpha: 1, seed: 9, kernel: kernel.Name})
			pattern := make([][]int32, 4000)
			pattern[0], pattern[2000] = []int32{0, 3, 4, 7, 19}, []int32{2, 5, 11}
			next := 0
			p.setPattern(pattern, func() T { next++; return FromFloat32[T](float32(next%31-15) / 8) })
			for _, onDevice := range []bool{false, true} {
				c, info := p.run(t, engine, onDevice)
				p.verify(t, engine, info, c)
			}
		})
	}
}

// So many block rows without blocks follow each other that they fill whole chunks, which lie between entries that no copy
// begins with.
func TestChunksWithoutBlocks(t *testing.T) {
	onFewColumns(t, testChunksWithoutBlocks[BFloat16], testChunksWithoutBlocks[Float16], testChunksWithoutBlocks[float32], testChunksWithoutBlocks[float64])
	onRowWindow(t, testChunksWithoutBlocks[float32], testChunksWithoutBlocks[float64])
}

func testSinglesInLongRows[T Element](t *testing.T, engine *Engine, kernel Kernel) {
	lengths := []int{0, 82, 513, 1, 0, 0, 9, 82, 7, 8, 82, 82, 513, 0}
	for _, n := range []int{2, 3, 4, 7, 8, 16, 24, 31, 32, 33, 64, 72, 130} {
		for _, rows := range []int{len(lengths), 2000} {
			for _, beta := range []float32{0, 1} {
				t.Run(fmt.Sprintf("N = %d, %d rows, beta %g", n, rows, beta), func(t *testing.T) {
					p := newProduct[T, int32](shape{rows: rows, cols: 600, n: n, blockM: 1, blockK: 1, alpha: -0.5, beta: beta, seed: 13, kernel: kernel.Name})
					pattern := make([][]int32, rows)
					for row := range pattern {
						length := lengths[row%len(lengths)]
						for i := range length {
							pattern[row] = append(pattern[row], int32((row+i*(599/length))%600))
						}
						slices.Sort(pattern[row])
					}
					next := 0
					p.setPattern(pattern, func() T { next++; return FromFloat32[T](float32(next%31-15) / 8) })
					for _, onDevice := range []bool{false, true} {
						c, info := p.run(t, engine, onDevice)
						p.verify(t, engine, info, c)
					}
				})
			}
		}
	}
}

// Single nonzeros in rows that are long on average: some have fewer than a team of lanes takes at once, none, or one more,
// and columns are a part of a line of B, a line, or more.
func TestSinglesInLongRows(t *testing.T) {
	onFewColumns(t, testSinglesInLongRows[BFloat16], testSinglesInLongRows[Float16], testSinglesInLongRows[float32], testSinglesInLongRows[float64])
}

func testCutRowsSameBits[T Element](t *testing.T, engine *Engine, s shape) {
	newRepeatable[T](t, engine, s).repeat(t)
}

// Rows that are cut have the same bits each time.
func TestCutRowsSameBits(t *testing.T) {
	of := func(test func(t *testing.T, engine *Engine, s shape)) func(t *testing.T, engine *Engine, kernel Kernel) {
		return func(t *testing.T, engine *Engine, kernel Kernel) {
			for _, block := range blocksOf(kernel, [][2]int{{1, 1}, {3, 3}, {5, 7}, {16, 16}}) {
				for _, n := range []int{1, 3, 4, 8, 16, 33, 64} {
					t.Run(fmt.Sprintf("%dx%d, N = %d", block[0], block[1], n), func(t *testing.T) {
						test(t, engine, shape{rows: 3 * block[0], cols: 30000, n: n, blockM: block[0], blockK: block[1], density: 0.9, alpha: 1, seed: 5, kernel: kernel.Name})
					})
				}
			}
		}
	}
	skip := func(*testing.T, *Engine, Kernel) {}
	onFewColumns(t, skip, skip, of(testCutRowsSameBits[float32]), of(testCutRowsSameBits[float64]))
	onRowWindow(t, of(testCutRowsSameBits[float32]), of(testCutRowsSameBits[float64]))
}

func testValuesAnywhere[T Element](t *testing.T, engine *Engine, kernel Kernel) {
	background := context.Background()
	for _, block := range blocksOf(kernel, [][2]int{{1, 1}, {3, 3}, {4, 4}, {5, 7}, {8, 8}, {16, 8}}) {
		for _, n := range []int{1, 8, 16, 33, 64} {
			t.Run(fmt.Sprintf("%dx%d, N = %d", block[0], block[1], n), func(t *testing.T) {
				p := newProduct[T, int32](shape{rows: 40 * block[0], cols: 120 * block[1], n: n, blockM: block[0], blockK: block[1], density: 0.3, alpha: 1, seed: 6, kernel: kernel.Name})
				m := must(NewMatrix(background, engine, p.a))(t)
				defer m.Close()
				plan := must(m.Plan(background, p.planOptions(SizeOf[T]())))(t)
				defer plan.Close()
				for _, offset := range []int{1, 4} {
					values, b, c := inBuffer(t, engine, valueRows(p.a), offset), inBuffer(t, engine, p.b, offset), p.newC()
					staged := inBuffer(t, engine, c, offset)
					if err := plan.Multiply(background, p.alpha, p.beta, Operands{B: b, C: staged, Values: values}); err != nil {
						t.Fatal(err)
					}
					all := make([]T, staged.Buffer.Len())
					if err := errors.Join(staged.Buffer.Read(background, all), values.Buffer.Close(), b.Buffer.Close(), staged.Buffer.Close()); err != nil {
						t.Fatal(err)
					}
					c.Data = all[offset:]
					p.verify(t, engine, plan.Info(), c)
				}
			})
		}
	}
}

// Values, B and C at addresses that are multiples of an element alone.
func TestValuesAnywhere(t *testing.T) {
	onFewColumns(t, testValuesAnywhere[BFloat16], testValuesAnywhere[Float16], testValuesAnywhere[float32], testValuesAnywhere[float64])
	onRowWindow(t, testValuesAnywhere[float32], testValuesAnywhere[float64])
}

// Where rows are cut and columns are so many that sums of their parts would take much memory, a product is computed in
// several passes over the columns.
func TestManyColumnsOfCutRows(t *testing.T) {
	compute := func(t *testing.T, engine *Engine, kernel Kernel) {
		p := newProduct[float64, int32](shape{rows: 32, cols: 480, n: 20000, blockM: 32, blockK: 1, density: 1, alpha: 1, beta: 1, bias: ColumnBias, seed: 8, kernel: kernel.Name})
		if len(p.a.ColIdx) == 0 {
			t.Fatal("no blocks")
		}
		c, info := p.run(t, engine, true)
		p.verify(t, engine, info, c)
		if most := int64(256 << 20); info.ProductBytes > most {
			t.Errorf("a product takes %d bytes", info.ProductBytes)
		}
	}
	skip := func(*testing.T, *Engine, Kernel) {}
	onFewColumns(t, skip, skip, skip, compute)
}

// Of rows that lie in many chunks, by many columns, several CTAs add up the sums, and others those of short rows beside them.
func testLongRowsBesideShort[T Element](t *testing.T, engine *Engine, kernel Kernel) {
	for _, block := range blocksOf(kernel, [][2]int{{1, 1}, {3, 3}, {8, 8}, {12, 5}, {16, 16}}) {
		for _, n := range []int{4, 40, 300} {
			t.Run(fmt.Sprintf("%dx%d, N = %d", block[0], block[1], n), func(t *testing.T) {
				blocks := max(2000, 60000/(block[0]*block[1]))
				s := shape{rows: 9*block[0] - block[0]/2, cols: blocks * block[1], n: n, blockM: block[0], blockK: block[1], alpha: -0.5, beta: 1, seed: 11, kernel: kernel.Name}
				p := newProduct[T, int32](s)
				pattern := make([][]int32, 9)
				for row, share := range []int{blocks, 5, blocks / 2, 0, 70, blocks / 8, 1, 40, blocks / 3} {
					for k := range share {
						pattern[row] = append(pattern[row], int32(k*(blocks/share)))
					}
				}
				next := 0
				p.setPattern(pattern, func() T { next++; return FromFloat32[T](float32(next%31-15) / 8) })
				for _, onDevice := range []bool{false, true} {
					c, info := p.run(t, engine, onDevice)
					p.verify(t, engine, info, c)
				}
			})
		}
	}
}

func TestLongRowsBesideShort(t *testing.T) {
	onFewColumns(t, testLongRowsBesideShort[BFloat16], testLongRowsBesideShort[Float16], testLongRowsBesideShort[float32], testLongRowsBesideShort[float64])
	onRowWindow(t, testLongRowsBesideShort[float32], testLongRowsBesideShort[float64])
}

// Block rows without blocks, which are many, leave nothing behind: not in the shared memory of the CTAs that come next on
// an SM, those of products in another stream.
func TestEmptyRowsBesideOthers(t *testing.T) {
	engine := newEngine(t, CUDA)
	background := context.Background()
	type running struct {
		plan   *Plan
		stream *Stream
		o      Operands
	}
	run := func(s shape) (running, *product[BFloat16, BFloat16, int32], *DeviceBuffer[BFloat16]) {
		p := newProduct[BFloat16, int32](s)
		m := must(NewMatrix(background, engine, p.a))(t)
		plan := must(m.Plan(background, p.planOptions(16)))(t)
		stream := must(engine.NewStream())(t)
		b, c := inBuffer(t, engine, p.b, 0), inBuffer(t, engine, p.newC(), 0)
		t.Cleanup(func() {
			if err := errors.Join(stream.Wait(background), plan.Close(), m.Close(), b.Buffer.Close(), c.Buffer.Close(), stream.Close()); err != nil {
				t.Error(err)
			}
		})
		return running{plan, stream, Operands{B: b, C: c}}, p, c.Buffer
	}
	few, _, _ := run(shape{rows: 2176, cols: 16, n: 6592, blockM: 16, blockK: 16, density: 0.02, alpha: 1, kernel: "few_columns_bf16", seed: 1})
	large, p, c := run(shape{rows: 1280, cols: 64, n: 6144, blockM: 64, blockK: 64, density: 1, alpha: 1, kernel: "tma_bf16_64x2_256", seed: 2})
	var want []BFloat16
	for round := range 60 {
		for range 4 {
			if err := errors.Join(few.plan.Enqueue(background, few.stream, 1, 0, few.o), large.plan.Enqueue(background, large.stream, 1, 0, large.o)); err != nil {
				t.Fatal(err)
			}
		}
		got := p.newC()
		if err := errors.Join(few.stream.Wait(background), large.stream.Wait(background), c.Read(background, got.Data)); err != nil {
			t.Fatal(err)
		}
		if round == 0 {
			p.verify(t, engine, large.plan.Info(), got)
			want = got.Data
		} else if !slices.Equal(got.Data, want) {
			t.Fatalf("round %d: another C", round)
		}
	}
}
