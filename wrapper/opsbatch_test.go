// SPDX-License-Identifier: Apache-2.0

package sparsek_test

import (
	"context"
	"testing"

	"pgregory.net/rapid"

	. "github.com/sparsek/sparsek/wrapper"
)

// Batches of one pattern, whose operands lie one below the other; all of a batch may have the same B.
func TestOpsOfBatches(t *testing.T) {
	onEach(t, func(t *testing.T, engine *Engine) {
		run := func(name string, test func(*rapid.T, *Engine)) {
			t.Run(name, func(t *testing.T) { rapid.Check(t, func(t *rapid.T) { test(t, engine) }) })
		}
		run("fp64", testOpOfBatch[float64, float64])
		run("fp32", testOpOfBatch[float32, float32])
		run("fp32 to bf16", testOpOfBatch[float32, BFloat16])
		run("bf16", testOpOfBatch[BFloat16, BFloat16])
		run("bf16 to fp32", testOpOfBatch[BFloat16, float32])
		run("fp16", testOpOfBatch[Float16, Float16])
		run("fp16 to fp32", testOpOfBatch[Float16, float32])
	})
}

func testOpOfBatch[T, C Element](t *rapid.T, engine *Engine) {
	s := drawOpShape(t)
	s.batch, s.oneB = rapid.IntRange(1, 4).Draw(t, "batch"), rapid.Bool().Draw(t, "one B")
	s.n = min(s.n, 1+(1<<20)/max(1, s.rows*s.cols)) // a plain loop checks them
	p := drawnProduct[T, C, int32]{newOpCase[T, C, int32](s), s.batch}
	m := must(NewMatrix(context.Background(), engine, p.a))(t)
	defer m.Close()
	options := p.options()
	options.Alignment = min(SizeOf[T](), SizeOf[C]()) // products of a batch begin anywhere
	plan := must(m.Plan(context.Background(), options))(t)
	defer plan.Close()
	result := p.c0.clone()
	o := p.operands(result)
	o.Batch = s.batch
	if err := plan.Multiply(context.Background(), p.alpha, p.beta, o); err != nil {
		t.Fatal(err)
	}
	result.verifyGuards(t)
	for i := range s.batch {
		p.one(i).verifyPlainly(t, plan.Info(), result.part(i, result.rows/s.batch))
	}
}

// Batches of patterns that have sizes of their own, as one block-diagonal matrix: members may have no rows, no columns or no
// blocks. Their part of a row-major B or C of a product with A on the right has the lines of the whole one.
func TestOpsOfRaggedBatches(t *testing.T) {
	onEach(t, func(t *testing.T, engine *Engine) {
		s := must(engine.NewStream())(t)
		defer s.Close()
		run := func(name string, test func(*rapid.T, *Stream, *Engine)) {
			t.Run(name, func(t *testing.T) { rapid.Check(t, func(t *rapid.T) { test(t, s, engine) }) })
		}
		run("fp64", testOpOfRaggedBatch[float64, float64])
		run("fp32", testOpOfRaggedBatch[float32, float32])
		run("fp32 to bf16", testOpOfRaggedBatch[float32, BFloat16])
		run("bf16", testOpOfRaggedBatch[BFloat16, BFloat16])
		run("bf16 to fp32", testOpOfRaggedBatch[BFloat16, float32])
		run("fp16", testOpOfRaggedBatch[Float16, Float16])
		run("fp16 to fp32", testOpOfRaggedBatch[Float16, float32])
	})
}

func testOpOfRaggedBatch[T, C Element](t *rapid.T, stream *Stream, engine *Engine) {
	s := drawOpShape(t)
	s.bias = NoBias
	a, members, free := drawRagged[T](t, engine, s.blockM, s.blockK)
	defer free()
	s.rows, s.cols = a.Rows, a.Cols
	s.n = min(s.n, 1+(1<<20)/max(1, s.rows*s.cols)) // a plain loop checks them
	c := newOpCaseOf[T, C](a, s)
	places := len(a.ColIdx)
	index := newMadeIndex[int32](t, engine, patternSizes{rows: a.Rows, cols: a.Cols, blockM: s.blockM, blockK: s.blockK}, places)
	defer index.close()
	index.BlockIdx = index.blockIdx.front
	joined := IndexedBy[T](index.DeviceIndex, nil)
	joined.BlockIdx, joined.Bound = index.BlockIdx, false

	ctx, options := context.Background(), c.options()
	layout := must(engine.MeasurePlan(PatternSizes{Rows: a.Rows, Cols: a.Cols, BlockM: s.blockM, BlockK: s.blockK, Blocks: places, DType: DTypeOf[T]()}, options))(t)
	memory, workspace := must(NewBuffer[int64](engine, layout.MemoryLen()))(t), must(NewBuffer[int64](engine, layout.WorkspaceLen()))(t)
	defer memory.Close()
	defer workspace.Close()
	plan := must(layout.Plan(memory, workspace))(t)
	defer plan.Close()
	result := c.c0.clone()
	b, operandB := c.b.onDevice(t, engine, 0)
	defer b.Buffer.Close()
	out, operandC := result.onDevice(t, engine, 0)
	defer out.Buffer.Close()
	values := filled(t, engine, c.a.Values)
	defer values.Close()
	o := Operands{B: operandB, C: operandC}
	if c.op == SDD {
		x, operandX := c.x.onDevice(t, engine, 0)
		defer x.Buffer.Close()
		o.X = operandX
	} else {
		o.Values = DeviceDense[T]{Rows: places * s.blockM, Cols: s.blockK, Buffer: values}
	}
	enqueued(t, stream, BlockDiagonal(ctx, stream, index.DeviceIndex, members), WritePlan(ctx, stream, layout, joined, memory, nil))
	enqueued(t, stream, plan.Enqueue(ctx, stream, c.alpha, c.beta, o)) // only of what has been written
	if err := out.Buffer.Read(ctx, result.data); err != nil {
		t.Fatal(err)
	}
	result.verifyGuards(t)
	c.verifyPlainly(t, plan.Info(), result)
}

// drawRagged draws matrices in buffers, and makes the block-diagonal one of them, whose blocks are those of the members in
// their order.
func drawRagged[T Element](t *rapid.T, engine *Engine, blockM, blockK int) (whole BSR[T, int32], members []DeviceBSR[T, int32], free func()) {
	whole = BSR[T, int32]{BlockM: blockM, BlockK: blockK, RowPtr: []int32{0}, ColIdx: []int32{}, BlockIdx: []int32{}, Values: []T{}}
	most := max(1, 96/max(blockM, blockK))
	var frees []func()
	for range rapid.IntRange(1, 5).Draw(t, "matrices") {
		sizes := patternSizes{rows: rapid.IntRange(0, most).Draw(t, "block rows") * blockM, cols: rapid.IntRange(0, most).Draw(t, "block columns") * blockK,
			blockM: blockM, blockK: blockK, seed: rapid.Uint64().Draw(t, "seed")}
		a := randomBSR[T, int32](sizes, rapid.SampledFrom([]float64{0, 0.3, 0.8}).Draw(t, "density"), rapid.Bool().Draw(t, "named"))
		d, close := inBuffers(t, engine, a, 0)
		members, frees = append(members, d), append(frees, close)
		before := int32(len(whole.ColIdx))
		for r := range sizes.blockRows() {
			for e := a.RowPtr[r]; e < a.RowPtr[r+1]; e++ {
				block := e
				if a.BlockIdx != nil {
					block = a.BlockIdx[e]
				}
				whole.ColIdx = append(whole.ColIdx, int32(whole.Cols/blockK)+a.ColIdx[e])
				whole.BlockIdx = append(whole.BlockIdx, before+block)
			}
			whole.RowPtr = append(whole.RowPtr, int32(len(whole.ColIdx)))
		}
		whole.Values = append(whole.Values, a.Values...)
		whole.Rows, whole.Cols = whole.Rows+sizes.rows, whole.Cols+sizes.cols
	}
	return whole, members, func() {
		for _, f := range frees {
			f()
		}
	}
}
