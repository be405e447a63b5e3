// SPDX-License-Identifier: Apache-2.0

package sparsek_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"

	. "github.com/sparsek/sparsek/wrapper"
)

var orders = []Order{RowMajor, ColumnMajor}

// onDevice is the matrix, its gaps and what lies behind it in a buffer, behind `offset` other elements.
func (m *ordered[T]) onDevice(t rapid.TB, engine *Engine, offset int) (DeviceDense[T], Operand) {
	lines := Dense[T]{Rows: m.rows, Cols: m.cols, Stride: m.stride, Data: m.data}
	if m.order == ColumnMajor {
		lines.Rows, lines.Cols = m.cols, m.rows
		d := inBuffer(t, engine, lines, offset)
		return d, Transpose(d)
	}
	d := inBuffer(t, engine, lines, offset)
	return d, d
}

// lengthOfB is the length of a line of B.
func (s opShape) lengthOfB() int {
	inner := s.cols
	if s.op == DSDT || s.op == DDS {
		inner = s.rows
	}
	if (s.op == DSD || s.op == DSDT) == (s.orderB == RowMajor) {
		return s.n
	}
	return inner
}

// indexPlace is where the index of a matrix lies, and how its plans are made.
type indexPlace int

const (
	indexOnHost indexPlace = iota
	indexOnDevice
	indexInStream
	indexPlaces
)

// runOnDevice multiplies buffers, and looks at all that lies around C in memory.
func (c *opCase[T, C, I]) runOnDevice(t rapid.TB, engine *Engine, place indexPlace, opts PlanOptions) (*ordered[C], PlanInfo) {
	t.Helper()
	background := context.Background()
	var m *Matrix
	done := func() { m.Close() }
	switch place {
	case indexOnDevice:
		made, closeAll, err := onDevice(t, engine, c.a)
		m, done = must(made, err)(t), closeAll
	case indexInStream:
		stream := must(engine.NewStream())(t)
		defer stream.Close()
		made, closeIndex := inStream(t, stream, engine, c.a)
		m, done = made, func() {
			made.Close()
			closeIndex()
		}
	default:
		m = must(NewMatrix(background, engine, c.a))(t)
	}
	defer done()
	plan := must(m.Plan(background, opts))(t)
	defer plan.Close()
	result := c.c0.clone()
	inB, b := c.b.onDevice(t, engine, 0)
	defer inB.Buffer.Close()
	inC, out := result.onDevice(t, engine, 0)
	defer inC.Buffer.Close()
	o := Operands{B: b, C: out}
	if c.biasKind != NoBias {
		bias := inBuffer(t, engine, c.bias, 0)
		defer bias.Buffer.Close()
		o.Bias = bias
	}
	if err := plan.Multiply(background, c.alpha, c.beta, o); err != nil {
		t.Fatal(err)
	}
	if err := inC.Buffer.Read(background, result.data); err != nil {
		t.Fatal(err)
	}
	result.verifyGuards(t)
	return result, plan.Info()
}

// eachMajor calls test with each product in each order of B and C.
func eachMajor(t *testing.T, test func(t *testing.T, s opShape)) {
	for _, op := range []Op{DSD, DSDT, DDS, DDST} {
		for _, orderB := range orders {
			for _, orderC := range orders {
				t.Run(fmt.Sprintf("%v, B %v, C %v", op, orderB, orderC), func(t *testing.T) {
					test(t, opShape{op: op, orderB: orderB, orderC: orderC})
				})
			}
		}
	}
}

// testMajors multiplies by a kernel that reads and writes operands as they lie, with NaN wherever it must not read.
// workers: 0: as many as the plan takes.
func testMajors[T, C Element](t *testing.T, engine *Engine, s opShape, place indexPlace, kernel string, workers int) PlanInfo {
	t.Helper()
	s.gapB += 8 + (8-s.lengthOfB()%8)%8
	c := newOpCase[T, C, int32](s)
	c.poison()
	opts := c.options()
	opts.Kernel, opts.Workers = kernel, workers
	result, info := c.runOnDevice(t, engine, place, opts)
	c.verifyByCheck(t, engine, info, result)
	if workers > 0 && info.Tiles <= int64(workers) {
		t.Errorf("%d tiles for %d workers", info.Tiles, workers)
	}
	return info
}

// blocksKernel is the kernel that reads operands of op as they lie.
func blocksKernel(op Op, dtype DType, block [2]int) string {
	height := block[0]
	if op == DSDT || op == DDS {
		height = block[1]
	}
	if height == 64 {
		return fmt.Sprintf("blocks_%v_64x2_256", dtype)
	}
	return fmt.Sprintf("blocks_%v_128_256", dtype)
}

// Nothing is copied where blocks are multiples of 64 and types have 16 bits, whatever the order of operands: each
// product, every epilogue, extents that no vector or tile divides, with more tiles than workers.
func TestOpsAsTheyLie(t *testing.T) {
	engine := newEngine(t, CUDA)
	eachMajor(t, func(t *testing.T, s opShape) {
		random := rand.New(rand.NewPCG(uint64(s.op), uint64(s.orderB)*2+uint64(s.orderC)))
		for _, block := range [][2]int{{64, 64}, {128, 128}, {64, 128}, {128, 64}, {256, 128}} {
			for _, short := range []int{0, 3} {
				s.shape = shape{rows: (1+256/block[0])*block[0] - short, cols: (1+256/block[1])*block[1] - short, n: 320 - short,
					blockM: block[0], blockK: block[1], density: 0.5, gapC: short * 3, alpha: 1.5, seed: random.Uint64()}
				plain := s
				s.beta, s.bias, s.activation = -0.5, []Bias{NoBias, RowBias, ColumnBias}[random.IntN(3)], SiLU
				bf16, fp16 := blocksKernel(s.op, BF16, block), blocksKernel(s.op, FP16, block)
				for _, info := range []PlanInfo{
					testMajors[BFloat16, BFloat16](t, engine, plain, indexOnHost, bf16, 3),
					testMajors[BFloat16, BFloat16](t, engine, s, indexInStream, bf16, 3),
					testMajors[Float16, Float16](t, engine, plain, indexOnDevice, fp16, 3),
					testMajors[Float16, float32](t, engine, s, indexOnHost, fp16, 3),
				} {
					if info.CopiesA || info.CopiesB || info.CopiesC {
						t.Fatalf("operands are copied: %+v", info)
					}
				}
			}
		}
	})
}

// Two CTAs of a cluster share A.
func TestOpsAsTheyLieInClusters(t *testing.T) {
	engine := newEngine(t, CUDA)
	eachMajor(t, func(t *testing.T, s opShape) {
		for _, block := range [][2]int{{64, 64}, {128, 128}} {
			for _, short := range []int{0, 5} {
				s.shape = shape{rows: 1024 - short, cols: 1024 - short, n: 1280 - short, blockM: block[0], blockK: block[1], density: 0.9, alpha: 1, seed: 17}
				kernel := blocksKernel(s.op, BF16, block)
				if info := testMajors[BFloat16, BFloat16](t, engine, s, indexPlace(short)%indexPlaces, kernel, 4); info.TileN != 512 {
					t.Errorf("tiles of %d columns: %+v", info.TileN, info)
				}
			}
		}
	})
}

// Kernels for few columns copy neither B nor C, whatever their order, and A's blocks only of A^T: each epilogue, blocks of
// each width of their stages, tiles that CTAs share along K, and vectors.
func TestOpsOfFewColumnsAsTheyLie(t *testing.T) {
	engine := newEngine(t, CUDA)
	eachMajor(t, func(t *testing.T, s opShape) {
		random := rand.New(rand.NewPCG(uint64(s.op), uint64(s.orderB)*2+uint64(s.orderC)))
		for _, block := range [][2]int{{64, 64}, {16, 16}, {32, 96}, {128, 32}, {16, 128}} {
			for _, n := range []int{1, 7, 16, 41, 67} {
				short := random.IntN(2) * 3
				s.shape = shape{rows: (1+256/block[0])*block[0] - short, cols: (1+256/block[1])*block[1] - short, n: n,
					blockM: block[0], blockK: block[1], density: 0.5, gapC: short * 3, alpha: 1.5, seed: random.Uint64()}
				plain := s
				s.beta, s.bias, s.activation = -0.5, []Bias{NoBias, RowBias, ColumnBias}[random.IntN(3)], SiLU
				tile := []int{16, 64}[random.IntN(2)]
				bf16, fp16 := fmt.Sprintf("skinny_bf16_64_%d", tile), fmt.Sprintf("skinny_fp16_64_%d", tile)
				long := plain
				long.rows, long.cols = 64+block[0], 64*block[1]
				for _, info := range []PlanInfo{
					testMajors[BFloat16, BFloat16](t, engine, plain, indexOnHost, bf16, 3),
					testMajors[BFloat16, BFloat16](t, engine, s, indexInStream, bf16, 3),
					testMajors[Float16, Float16](t, engine, plain, indexOnDevice, fp16, 3),
					testMajors[Float16, float32](t, engine, s, indexOnHost, fp16, 3),
					testMajors[BFloat16, float32](t, engine, long, indexOnHost, bf16, 0),
				} {
					if info.CopiesA != copiesA(bf16, s.op) || info.CopiesB || info.CopiesC {
						t.Fatalf("which operands are copied: %+v", info)
					}
				}
			}
		}
	})
}

// A B that bulk copies cannot read is copied, and the product is right.
func TestOpsOfUnalignedB(t *testing.T) {
	engine := newEngine(t, CUDA)
	eachMajor(t, func(t *testing.T, s opShape) {
		for kernel, n := range kernelsOfAnyOrder(s.op) {
			s.shape = shape{rows: 320, cols: 320, n: n, blockM: 64, blockK: 64, density: 0.5, gapB: 3, gapC: 1, alpha: 1, beta: 1, seed: 5}
			c := newOpCase[BFloat16, BFloat16, int32](s)
			c.poison()
			opts := c.options()
			opts.Kernel = kernel
			result, info := c.runOnDevice(t, engine, indexOnHost, opts)
			c.verifyByCheck(t, engine, info, result)
			if across := s.lengthOfB() != s.n; info.CopiesB != across || info.CopiesA != copiesA(kernel, s.op) || info.CopiesC {
				t.Errorf("%s: B lies across: %v; %+v", kernel, across, info)
			}
		}
	})
}

// kernelsOfAnyOrder are those that multiply by op without a copy of an aligned B or C, each with a number of columns.
func kernelsOfAnyOrder(op Op) map[string]int {
	return map[string]int{blocksKernel(op, BF16, [2]int{64, 64}): 300, "skinny_bf16_64_16": 12, "skinny_bf16_64_64": 60,
		"scatter_bf16_128_64": 60, "scatter_bf16_128_256": 300}
}

// copiesA reports whether such a kernel, which reads A's blocks by rows, copies them: those of A^T.
func copiesA(kernel string, op Op) bool {
	byRows := strings.HasPrefix(kernel, "skinny_") || strings.HasPrefix(kernel, "scatter_")
	return byRows && (op == DSDT || op == DDS)
}

// What beta is multiplied with, where it is one row for all.
func TestOpsOfOneInputRow(t *testing.T) {
	engine := newEngine(t, CUDA)
	eachMajor(t, func(t *testing.T, s opShape) {
		for kernel, n := range kernelsOfAnyOrder(s.op) {
			s.shape = shape{rows: 192, cols: 320, n: n, blockM: 64, blockK: 64, density: 0.5, alpha: 1, beta: 0.5, seed: 6}
			c := newOpCase[BFloat16, BFloat16, int32](s)
			row := Dense[BFloat16]{Rows: 1, Cols: c.c0.cols, Data: make([]BFloat16, c.c0.cols)}
			for j := range row.Data {
				row.Data[j] = FromFloat32[BFloat16](float32(j % 50))
				for i := range c.c0.rows {
					c.c0.data[c.c0.place(i, j)] = row.Data[j]
				}
			}
			m := must(NewMatrix(t.Context(), engine, c.a))(t)
			defer m.Close()
			opts := c.options()
			opts.Kernel = kernel
			plan := must(m.Plan(t.Context(), opts))(t)
			defer plan.Close()
			result := newOrdered(rand.New(rand.NewPCG(1, 1)), c.c0.rows, c.c0.cols, s.orderC, 0, guardValue[BFloat16]())
			o := c.operands(result)
			o.Input = row
			if err := plan.Multiply(t.Context(), c.alpha, c.beta, o); err != nil {
				t.Fatal(err)
			}
			result.verifyGuards(t)
			c.verifyByCheck(t, engine, plan.Info(), result)
		}
	})
}

// The model chooses the kernel that copies nothing where copies would take most of the time.
func TestOpsChooseWhatCopiesNothing(t *testing.T) {
	engine := newEngine(t, CUDA)
	eachMajor(t, func(t *testing.T, s opShape) {
		testChoiceCopiesNothing(t, engine, s, 4096)
		if s.op == DSD || s.op == DDST {
			testChoiceCopiesNothing(t, engine, s, 8)
		}
	})
}

func testChoiceCopiesNothing(t *testing.T, engine *Engine, s opShape, n int) {
	t.Helper()
	s.shape = shape{rows: 4096, cols: 4096, n: 1, blockM: 64, blockK: 64, density: 0.1, alpha: 1, seed: 3}
	m := must(NewMatrix(t.Context(), engine, newOpCase[BFloat16, BFloat16, int32](s).a))(t)
	defer m.Close()
	plan := must(m.Plan(t.Context(), PlanOptions{Op: s.op, N: n, OrderB: s.orderB, OrderC: s.orderC, NoUserCache: true}))(t)
	defer plan.Close()
	if info := plan.Info(); info.CopiesA || info.CopiesB || info.CopiesC || info.ProductBytes != 0 {
		t.Errorf("%d columns: %+v", n, info)
	}
}

// testScatteredMajors multiplies blocks that lie anywhere by a kernel that copies neither B nor C, with Inf and NaN in
// some of B where blocks read them.
func testScatteredMajors[T, C Element](t *testing.T, engine *Engine, s opShape, place indexPlace, kernel string, workers int, nonFinite bool) {
	t.Helper()
	s.gapB += 8 + (8-s.lengthOfB()%8)%8
	c := newOpCase[T, C, int32](s)
	c.poison()
	if nonFinite {
		random := rand.New(rand.NewPCG(s.seed, 9))
		for _, value := range []float64{math.Inf(1), math.Inf(1), math.Inf(-1), math.NaN()} {
			c.b.data[c.b.place(random.IntN(c.b.rows), random.IntN(c.b.cols))] = FromFloat32[T](float32(value))
		}
	}
	opts := c.options()
	opts.Kernel, opts.Workers = kernel, workers
	result, info := c.runOnDevice(t, engine, place, opts)
	c.verifyByCheck(t, engine, info, result)
	width := s.blockK // of the blocks of op(A)
	if s.op == DSDT || s.op == DDS {
		width = s.blockM
	}
	across := s.lengthOfB() != s.n && 64/width*width%8 != 0
	if info.CopiesA != copiesA(kernel, s.op) || info.CopiesB != across || info.CopiesC {
		t.Fatalf("which operands are copied: %+v", info)
	}
}

// Kernels for blocks anywhere copy neither B nor C, whatever their order, but a B whose stages begin at no multiple of 16
// bytes: each epilogue, stages of 64 columns and of fewer, tiles that CTAs share along K, more tiles than CTAs, from lists
// and from stages that the plan keeps.
func TestOpsOfScatteredBlocksAsTheyLie(t *testing.T) {
	engine := newEngine(t, CUDA)
	eachMajor(t, func(t *testing.T, s opShape) {
		random := rand.New(rand.NewPCG(uint64(s.op), uint64(s.orderB)*2+uint64(s.orderC)))
		for _, block := range [][2]int{{1, 1}, {4, 4}, {8, 8}, {12, 12}, {3, 5}, {5, 48}} {
			for _, n := range []int{5, 72, 300} {
				t.Logf("blocks of %v, N = %d", block, n)
				short := random.IntN(2) * 3
				s.shape = shape{rows: 400 - short, cols: 640 - short, n: n, blockM: block[0], blockK: block[1],
					density: 0.1, gapC: short * 3, alpha: 1.5, seed: random.Uint64()}
				plain := s
				s.beta, s.bias, s.activation = -0.5, []Bias{NoBias, RowBias, ColumnBias}[random.IntN(3)], SiLU
				tile, bad := []int{64, 256}[random.IntN(2)], random.IntN(2) == 0
				bf16, fp16 := fmt.Sprintf("scatter_bf16_128_%d", tile), fmt.Sprintf("scatter_fp16_128_%d", tile)
				testScatteredMajors[BFloat16, BFloat16](t, engine, plain, indexOnHost, bf16, 0, bad)
				testScatteredMajors[BFloat16, BFloat16](t, engine, plain, indexInStream, bf16, 3, bad)
				testScatteredMajors[Float16, Float16](t, engine, plain, indexOnHost, fp16, 1, !bad)
				testScatteredMajors[Float16, float32](t, engine, s, indexOnDevice, fp16, 3, bad)
				testScatteredMajors[BFloat16, BFloat16](t, engine, s, indexOnHost, bf16, 2, !bad)
				testScatteredMajors[BFloat16, float32](t, engine, s, indexOnHost, bf16, 0, bad)
			}
		}
	})
}
