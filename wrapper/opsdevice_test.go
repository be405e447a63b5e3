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

func testOpOfDeviceIndex[T Element, I Index](t *rapid.T, engine *Engine) {
	background := context.Background()
	s := drawOpShape(t)
	s.n = min(s.n, 1+(4<<20)/max(1, s.rows*s.cols)) // a plain loop checks them
	c := newOpCase[T, T, I](s)
	var m *Matrix
	if rapid.Bool().Draw(t, "in a stream") {
		stream := must(engine.NewStream())(t)
		defer stream.Close()
		made, done := inStream(t, stream, engine, c.a)
		defer done()
		m = made
	} else {
		made, done, err := onDevice(t, engine, c.a)
		m = must(made, err)(t)
		defer done()
	}
	plan := must(m.Plan(background, c.options()))(t)
	defer plan.Close()
	result := c.c0.clone()
	if err := plan.Multiply(background, c.alpha, c.beta, c.operands(result)); err != nil {
		t.Fatal(err)
	}
	result.verifyGuards(t)
	c.verifyPlainly(t, plan.Info(), result)
}

// The index lies in device memory, where its transpose is made too.
func TestOpsOfDeviceIndex(t *testing.T) {
	engine := newEngine(t, CUDA)
	t.Run("bf16", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) { testOpOfDeviceIndex[BFloat16, int32](t, engine) })
	})
	t.Run("fp32", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) { testOpOfDeviceIndex[float32, int64](t, engine) })
	})
}

// More block columns than one pass of the scan over them has.
func TestOpsOfManyColumns(t *testing.T) {
	engine := newEngine(t, CUDA)
	for _, op := range []Op{DSDT, DDS} {
		c := newOpCase[float32, float32, int32](opShape{op: op, shape: shape{rows: 30, cols: 9000, n: 3, blockM: 4, blockK: 2, density: 0.3, alpha: 1, seed: 2}})
		m, done, err := onDevice(t, engine, c.a)
		must(m, err)(t)
		plan := must(m.Plan(t.Context(), c.options()))(t)
		result := c.c0.clone()
		if err := plan.Multiply(t.Context(), c.alpha, c.beta, c.operands(result)); err != nil {
			t.Fatal(err)
		}
		c.verifyPlainly(t, plan.Info(), result)
		plan.Close()
		done()
	}
}

// A plan in buffers serves one index after another; a faulty one is a matrix without blocks.
func TestTransposedPlansInBuffers(t *testing.T) {
	engine := newEngine(t, CUDA)
	for _, op := range []Op{DSD, DSDT, DDS} {
		t.Run(op.String(), func(t *testing.T) { serveTransposed[float32](t, engine, op, 8, 16, "") })
		// Blocks that are read as they lie.
		t.Run(op.String()+" of bf16", func(t *testing.T) {
			serveTransposed[BFloat16](t, engine, op, 64, 128, blocksKernel(op, BF16, [2]int{64, 128}))
		})
	}
}

func serveTransposed[T Element](t *testing.T, engine *Engine, op Op, blockM, blockK int, kernel string) {
	background := t.Context()
	sizes := PatternSizes{Rows: 12 * blockM, Cols: 10 * blockK, BlockM: blockM, BlockK: blockK, Blocks: 100, DType: DTypeOf[T]()}
	options := PlanOptions{N: 20, Op: op, Kernel: kernel}
	layout := must(engine.MeasurePlan(sizes, options))(t)
	memory, faults := must(NewBuffer[int64](engine, layout.MemoryLen()))(t), must(NewBuffer[int64](engine, 1))(t)
	var workspace *DeviceBuffer[int64]
	if layout.WorkspaceLen() > 0 {
		workspace = must(NewBuffer[int64](engine, layout.WorkspaceLen()))(t)
	}
	plan := must(layout.Plan(memory, workspace))(t)
	s := must(engine.NewStream())(t)
	defer s.Close()
	for seed := range uint64(4) {
		c := newOpCase[T, T, int32](opShape{op: op, shape: shape{rows: sizes.Rows, cols: sizes.Cols, n: options.N, blockM: blockM, blockK: blockK, density: 0.5, alpha: 1, seed: seed}})
		faulty := seed == 3
		colIdx := slices.Clone(c.a.ColIdx)
		if faulty {
			colIdx[1] = 10 // of 0 to 9
		}
		room := append(slices.Clone(c.a.Values), make([]T, sizes.Blocks*blockM*blockK-len(c.a.Values))...)
		columns, values := filled(t, engine, colIdx), filled(t, engine, room)
		a := DeviceBSR[T, int32]{Rows: sizes.Rows, Cols: sizes.Cols, BlockM: blockM, BlockK: blockK, RowPtr: filled(t, engine, c.a.RowPtr), ColIdx: columns}
		b := inBuffer(t, engine, Dense[T]{Rows: c.b.rows, Cols: c.b.cols, Data: c.b.data}, 0)
		out := inBuffer(t, engine, Dense[T]{Rows: c.c0.rows, Cols: c.c0.cols, Data: c.c0.data}, 0)
		fault := []int64{-1}
		if err := errors.Join(WritePlan(background, s, layout, a, memory, faults), plan.Enqueue(background, s, 1, 0, Operands{B: b, C: out, Values: DeviceDense[T]{Rows: sizes.Blocks * blockM, Cols: blockK, Buffer: values}}),
			faults.ReadAsync(s, fault), s.Wait(background)); err != nil {
			t.Fatal(err)
		}
		if (fault[0] != 0) != faulty {
			t.Fatalf("fault %#x", fault[0])
		}
		result := c.c0.clone()
		if err := out.Buffer.Read(background, result.data); err != nil {
			t.Fatal(err)
		}
		if faulty {
			if at := slices.IndexFunc(result.data[:result.rows*result.cols], func(x T) bool { return exactly(x) != 0 }); at >= 0 {
				t.Fatalf("a faulty index has blocks: element %d is %v, by kernel %s", at, result.data[at], plan.Info().Kernel)
			}
			continue
		}
		info := plan.Info()
		info.UnitRoundoff = 1. / (1 << 23)
		c.verifyPlainly(t, info, result)
	}
	if err := errors.Join(memory.Close(), plan.Close()); err != nil {
		t.Fatal(err)
	}
}

// Tiles of several block rows, of several parts of high blocks, and of a number of rows that no tile divides. A few
// workers have many tiles each, and many have few.
func TestSampledTiles(t *testing.T) {
	engine := newEngine(t, CUDA)
	narrow := [][2]int{{16, 16}, {32, 32}, {64, 64}, {64, 128}}
	t.Run("bf16", func(t *testing.T) {
		testSampledTiles[BFloat16, BFloat16](t, engine, "bf16", append(narrow, [2]int{16, 8}, [2]int{16, 64}, [2]int{32, 16}, [2]int{32, 40}, [2]int{48, 24},
			[2]int{64, 32}, [2]int{128, 16}, [2]int{128, 128}, [2]int{192, 64}, [2]int{256, 256}))
	})
	t.Run("fp16 to fp32", func(t *testing.T) { testSampledTiles[Float16, float32](t, engine, "fp16", narrow) })
}

func testSampledTiles[T, C Element](t *testing.T, engine *Engine, suffix string, blocks [][2]int) {
	for _, block := range blocks {
		down, along := 7, 9 // blocks; not so many that a test takes long
		if block[0] >= 128 {
			down = 3
		}
		if block[1] >= 128 {
			along = 5
		}
		for i, n := range []int{1, 31, 200, 640} {
			for order := range 4 {
				s := opShape{op: SDD, orderX: Order(order % 2), orderB: Order(order / 2), shape: shape{rows: down*block[0] - 5, cols: along*block[1] - 3, n: n,
					blockM: block[0], blockK: block[1], density: []float64{0.1, 0.7}[(i+order/2)%2], alpha: 1, beta: 0.5, seed: 5}}
				if n > 31 { // whole vectors in every line
					s.rows, s.cols = down*block[0]-8, along*block[1]-8
				}
				if n == 200 {
					s.beta = 0
				}
				serves := func(extent int) bool { return extent == 16 || extent == 32 || extent%64 == 0 }
				families := []string{"simt", "mma"}
				if serves(block[0]) && serves(block[1]) {
					families = []string{"wgmma", "mma"}
				}
				c := newOpCase[T, C, int32](s)
				c.workers = []int{0, 1, 3}[(i+order)%3]
				if n%2 == 0 {
					c.poison()
				}
				for _, family := range families {
					result, info := c.run(t, engine, "sampled_"+family+"_"+suffix)
					c.verifyByCheck(t, engine, info, result)
					lies := c.b.stride%8 == 0 && (s.orderB == ColumnMajor || block[1] >= 64)
					if family == "wgmma" && info.CopiesB == lies {
						t.Errorf("%v, order %v, stride %d: copies of B: %v", block, s.orderB, c.b.stride, info.CopiesB)
					}
				}
			}
		}
	}
}

// A plan of SDD in buffers, whose list of tiles is made anew with each index; a faulty one has no tiles.
func TestSampledPlansInBuffers(t *testing.T) {
	engine := newEngine(t, CUDA)
	for _, block := range [][2]int{{16, 16}, {32, 64}, {64, 64}, {128, 128}} {
		t.Run(fmt.Sprint(block), func(t *testing.T) { serveSampled(t, engine, block) })
	}
}

func serveSampled(t *testing.T, engine *Engine, block [2]int) {
	background := t.Context()
	s := opShape{op: SDD, shape: shape{rows: 5*block[0] - 8, cols: 6 * block[1], n: 136, blockM: block[0], blockK: block[1], density: 0.5, alpha: 1}}
	sizes := PatternSizes{Rows: s.rows, Cols: s.cols, BlockM: block[0], BlockK: block[1], Blocks: 30, DType: BF16}
	options := newOpCase[BFloat16, BFloat16, int32](s).options()
	options.Kernel = "sampled_wgmma_bf16"
	layout := must(engine.MeasurePlan(sizes, options))(t)
	memory, faults := must(NewBuffer[int64](engine, layout.MemoryLen()))(t), must(NewBuffer[int64](engine, 1))(t)
	defer memory.Close()
	defer faults.Close()
	var workspace *DeviceBuffer[int64]
	if layout.WorkspaceLen() > 0 {
		workspace = must(NewBuffer[int64](engine, layout.WorkspaceLen()))(t)
		defer workspace.Close()
	}
	plan := must(layout.Plan(memory, workspace))(t)
	defer plan.Close()
	stream := must(engine.NewStream())(t)
	defer stream.Close()
	for s.seed = range uint64(4) {
		c := newOpCase[BFloat16, BFloat16, int32](s)
		faulty := s.seed == 2
		colIdx := slices.Clone(c.a.ColIdx)
		if faulty {
			colIdx[0] = 6 // of 0 to 5
		}
		rowPtr, columns := filled(t, engine, c.a.RowPtr), filled(t, engine, colIdx)
		a := DeviceBSR[BFloat16, int32]{Rows: s.rows, Cols: s.cols, BlockM: block[0], BlockK: block[1], RowPtr: rowPtr, ColIdx: columns}
		x := inBuffer(t, engine, Dense[BFloat16]{Rows: c.x.rows, Cols: c.x.cols, Data: c.x.data}, 0)
		b := inBuffer(t, engine, Dense[BFloat16]{Rows: c.b.rows, Cols: c.b.cols, Data: c.b.data}, 0)
		before := append(slices.Clone(c.c0.data[:len(c.a.Values)]), make([]BFloat16, (sizes.Blocks-len(c.a.ColIdx))*block[0]*block[1])...)
		for i := range before {
			before[i] = guardValue[BFloat16]()
		}
		out := DeviceDense[BFloat16]{Rows: sizes.Blocks * block[0], Cols: block[1], Buffer: filled(t, engine, before)}
		blocks, fault := slices.Clone(before), []int64{-1}
		if err := errors.Join(WritePlan(background, stream, layout, a, memory, faults), plan.Enqueue(background, stream, c.alpha, c.beta, Operands{X: x, B: b, C: out}),
			faults.ReadAsync(stream, fault), stream.Wait(background), out.Buffer.Read(background, blocks)); err != nil {
			t.Fatal(err)
		}
		if (fault[0] != 0) != faulty {
			t.Fatalf("fault %#x", fault[0])
		}
		written := len(c.a.Values)
		if faulty {
			written = 0
		}
		if !slices.Equal(blocks[written:], before[written:]) {
			t.Errorf("blocks that are not there were written: the index is faulty: %v", faulty)
		}
		if !faulty {
			result := c.c0.clone()
			copy(result.data, blocks[:written])
			info := plan.Info()
			info.UnitRoundoff = 1. / (1 << 23)
			c.verifyByCheck(t, engine, info, result)
		}
		if err := errors.Join(rowPtr.Close(), columns.Close()); err != nil {
			t.Error(err)
		}
	}
}
