// SPDX-License-Identifier: Apache-2.0

package sparsek_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"

	. "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/timing"
)

// onSplitting runs a test on each kernel that takes parts of tiles.
func onSplitting(t *testing.T, bf16, fp16 func(t *testing.T, engine *Engine, kernel Kernel)) {
	onFamily(t, "gather_", bf16, fp16, nil, nil)
}

// wantSplit sees that a plan has more tiles than C: parts.
func wantSplit(t rapid.TB, rows int, n int, info PlanInfo) {
	t.Helper()
	whole := int64((rows+info.TileM-1)/info.TileM) * int64((n+info.TileN-1)/info.TileN)
	if info.Tiles <= whole {
		t.Fatalf("kernel %s: %d tiles of C, and none is split", info.Kernel, info.Tiles)
	}
}

// longRows is a product whose block rows are so long that they are split.
func longRows(kernel Kernel, block [2]int, n int) shape {
	return shape{rows: max(40, block[0]+8), cols: 6000, n: n, blockM: block[0], blockK: block[1], density: 0.9, alpha: 1.5, seed: 6, kernel: kernel.Name}
}

func testLongRows[T Element](t *testing.T, engine *Engine, kernel Kernel) {
	for _, block := range [][2]int{{8, 8}, {16, 64}, {48, 48}, {64, 64}, {128, 96}, {8, 200}} {
		for _, n := range []int{1, 16, 72, 264} {
			t.Run(fmt.Sprintf("%dx%d, N = %d", block[0], block[1], n), func(t *testing.T) {
				s := longRows(kernel, block, n)
				s.gapB, s.gapC = (n+7)/8*8-n, (n+7)/8*8-n+n%2*8
				s.beta = float32(n%3) / 2
				p := newProduct[T, int32](s)
				c, info := p.run(t, engine, n%16 == 0)
				wantSplit(t, s.rows, n, info)
				p.verify(t, engine, info, c)
			})
		}
	}
}

// Long block rows are cut into parts, whose sums are added up: for narrow and wide B, ragged tiles, blocks of all kinds.
func TestSplitLongRows(t *testing.T) {
	onSplitting(t, testLongRows[BFloat16], testLongRows[Float16])
}

// One long row among many short ones: whole tiles and parts in one product.
func testOneLongRow[T Element](t *testing.T, engine *Engine, kernel Kernel) {
	const blockRows, blockCols, block = 64, 120, 32
	for _, long := range [][]int{{0}, {blockRows - 1}, {13, 14, 40}} {
		p := newProduct[T, int32](shape{rows: blockRows*block - 5, cols: blockCols*block - 7, n: 280, blockM: block, blockK: block, alpha: 1, beta: 1, seed: 3, kernel: kernel.Name})
		pattern := make([][]int32, blockRows)
		for row := range pattern {
			pattern[row] = []int32{int32(row % blockCols), int32(row%7 + 64)}
		}
		for _, row := range long {
			pattern[row] = nil
			for col := range int32(blockCols) {
				pattern[row] = append(pattern[row], col)
			}
		}
		next := 0
		p.setPattern(pattern, func() T { next++; return FromFloat32[T](float32(next%31-15) / 8) })
		p.poison()
		c, info := p.run(t, engine, true)
		wantSplit(t, p.a.Rows, p.n, info)
		p.verify(t, engine, info, c)
	}
}

func TestSplitOneLongRow(t *testing.T) {
	needsAllWorkers(t) // few have nothing to wait for
	onSplitting(t, testOneLongRow[BFloat16], testOneLongRow[Float16])
}

func drawLongRows(t *rapid.T, kernel Kernel) shape {
	block := rapid.SampledFrom([][2]int{{8, 8}, {16, 16}, {24, 40}, {32, 64}, {64, 64}, {136, 32}}).Draw(t, "block")
	s := longRows(kernel, block, rapid.OneOf(rapid.IntRange(1, 40), rapid.SampledFrom([]int{256, 264})).Draw(t, "n"))
	s.rows = rapid.IntRange(1, block[0]+20).Draw(t, "rows")
	s.cols = rapid.IntRange(3000, 6000).Draw(t, "cols")
	s.density = rapid.SampledFrom([]float64{0.2, 0.6, 1}).Draw(t, "density")
	align := (s.n+7)/8*8 - s.n
	gap := rapid.SampledFrom([]int{0, 8})
	s.gapB, s.gapC = align+gap.Draw(t, "gap of B"), align+gap.Draw(t, "gap of C")
	s.alpha = rapid.SampledFrom([]float32{1, -0.5}).Draw(t, "alpha")
	s.beta = rapid.SampledFrom([]float32{0, 1}).Draw(t, "beta")
	s.bias, s.activation = drawEpilogue(t)
	s.seed = rapid.Uint64().Draw(t, "seed")
	return s
}

func testSplitProducts[T Element](t *testing.T, engine *Engine, kernel Kernel) {
	rapid.Check(t, func(rt *rapid.T) {
		s := drawLongRows(rt, kernel)
		switch rapid.SampledFrom([]DType{BF16, FP16, FP32}).Draw(rt, "type of C") {
		case BF16:
			testProduct[T, BFloat16, int32](rt, engine, s)
		case FP16:
			testProduct[T, Float16, int32](rt, engine, s)
		case FP32:
			testProduct[T, float32, int32](rt, engine, s)
		}
	})
}

// Every epilogue behind the sum of the parts, and NaN and Inf in B.
func TestSplitProducts(t *testing.T) {
	onSplitting(t, testSplitProducts[BFloat16], testSplitProducts[Float16])
}

// Block row 0 alone has a block in the middle column, where B holds a NaN and an Inf. Only the part with that column is
// computed again, and only block row 0 gets them.
func testSplitRecomputed[T Element](t *testing.T, engine *Engine, kernel Kernel) {
	const block, blockRows, blockCols, n = 16, 4, 400, 40
	p := newProduct[T, int32](shape{rows: blockRows * block, cols: blockCols * block, n: n, blockM: block, blockK: block, alpha: 1, kernel: kernel.Name})
	pattern := make([][]int32, blockRows)
	for row := range pattern {
		for col := range int32(blockCols) {
			if row == 0 || col != blockCols/2 {
				pattern[row] = append(pattern[row], col)
			}
		}
	}
	p.setPattern(pattern, func() T { return FromFloat32[T](-0.75) })
	p.infinite = true
	p.b.Data[blockCols/2*block*n+3] = FromFloat32[T](float32(math.NaN()))
	p.b.Data[(blockCols/2*block+5)*n+8] = FromFloat32[T](float32(math.Inf(1)))
	m := must(NewMatrix(context.Background(), engine, p.a))(t)
	defer m.Close()
	plan := must(m.Plan(context.Background(), PlanOptions{N: n, Kernel: kernel.Name, Compute: computeOf(kernel.Name)}))(t)
	defer plan.Close()
	wantSplit(t, p.a.Rows, n, plan.Info())
	const slabs = 4 // the warps that have rows in this warpgroup
	for round := int64(1); round < 3; round++ {
		c := p.newC()
		if err := plan.Multiply(context.Background(), p.alpha, p.beta, Operands{B: p.b, C: c}); err != nil {
			t.Fatal(err)
		}
		p.verify(t, engine, plan.Info(), c)
		if again := must(plan.Recomputed(context.Background()))(t); again != round*slabs {
			t.Errorf("%d slabs were computed again after %d products, want %d", again, round, round*slabs)
		}
	}
}

func TestSplitRecomputed(t *testing.T) {
	onSplitting(t, testSplitRecomputed[BFloat16], testSplitRecomputed[Float16])
}

func testSplitSameBits[T Element](t *testing.T, engine *Engine, kernel Kernel) {
	for _, n := range []int{24, 264} {
		s := newRepeatable[T](t, engine, longRows(kernel, [2]int{16, 16}, n))
		wantSplit(t, s.p.a.Rows, n, s.plan.Info())
		s.repeat(t)
	}
}

// Parts are added up in the same order every time.
func TestSplitSameBits(t *testing.T) {
	onSplitting(t, testSplitSameBits[BFloat16], testSplitSameBits[Float16])
}

// others are products by the plan of s with a B of their own each, so that what one leaves in memory is wrong for each
// other; and what they are when nothing else runs.
func (s *repeatable[T]) others(t *testing.T, count int) (others []*repeatable[T], want [][]T) {
	for i := range count {
		other := *s
		other.b.Buffer = upload(t, s.engine, slices.Concat(s.p.b.Data[i:], s.p.b.Data[:i]))
		others = append(others, &other)
		want = append(want, must(other.multiply(0, nil))(t))
	}
	if slices.Equal(want[0], want[1]) {
		t.Fatal("the products are the same: nothing would be seen")
	}
	return others, want
}

func testSplitAtOnce[T Element](t *testing.T, engine *Engine, kernel Kernel) {
	s := newRepeatable[T](t, engine, longRows(kernel, [2]int{16, 16}, 72))
	wantSplit(t, s.p.a.Rows, s.p.n, s.plan.Info())
	others, want := s.others(t, 6)
	var group sync.WaitGroup
	for i, other := range others {
		group.Go(func() {
			stream, err := engine.NewStream()
			if err != nil {
				t.Error(err)
				return
			}
			defer stream.Close()
			for range 20 {
				if got, err := other.multiply(0, stream); err != nil || !slices.Equal(got, want[i]) {
					t.Errorf("goroutine %d: other bits than those of one product alone, or error %v", i, err)
					return
				}
				// Into a graph, and from there: what a graph had, the next one may get.
				if err := other.replay(want[i]); err != nil {
					t.Errorf("goroutine %d: %v", i, err)
					return
				}
			}
		})
	}
	group.Wait()
}

// replay captures products into a graph, replays it, and compares each product with want.
func (s *repeatable[T]) replay(want []T) error {
	options := timing.GraphOptions{Options: timing.Options{Alpha: 1, Warmup: 1, Repeats: 5}, Products: 6}
	var results []*DeviceBuffer[T]
	for range 3 {
		c, err := NewBuffer[T](s.engine, len(want))
		if err != nil {
			return err
		}
		defer c.Close()
		if err := c.Fill(context.Background(), 0xff); err != nil {
			return err
		}
		results = append(results, c)
		options.Operands = append(options.Operands, Operands{B: s.b, C: DeviceDense[T]{Rows: s.p.a.Rows, Cols: s.p.n, Buffer: c}})
	}
	if _, err := timing.Graph(context.Background(), []*Plan{s.plan}, options); err != nil {
		return err
	}
	for _, c := range results {
		got := make([]T, len(want))
		if err := c.Read(context.Background(), got); err != nil {
			return err
		}
		if !slices.Equal(got, want) {
			return errors.New("a replayed product has other bits than one that was launched")
		}
	}
	return nil
}

// One plan in many streams and graphs at once: no product works in another's memory.
func TestSplitAtOnce(t *testing.T) {
	onSplitting(t, testSplitAtOnce[BFloat16], testSplitAtOnce[Float16])
}
