// SPDX-License-Identifier: Apache-2.0

package sparsek_test

import (
	"errors"
	"slices"
	"testing"

	. "github.com/sparsek/sparsek/wrapper"
)

// Each product by a plan in buffers, of fewer blocks than there is room for.
func TestOpsPlanData(t *testing.T) {
	onEach(t, func(t *testing.T, engine *Engine) {
		for _, op := range allOps {
			c := newOpCase[float32, float32, int32](opShape{op: op, shape: shape{rows: 30, cols: 44, n: 13, blockM: 4, blockK: 8, density: 0.5, alpha: 1, beta: 1, seed: 7}})
			room := len(c.a.ColIdx) + 9
			layout := must(engine.MeasurePlan(PatternSizes{Rows: 30, Cols: 44, BlockM: 4, BlockK: 8, Blocks: room, DType: FP32}, c.options()))(t)
			memory, faults := must(NewBuffer[int64](engine, layout.MemoryLen()))(t), must(NewBuffer[int64](engine, 1))(t)
			var workspace *DeviceBuffer[int64]
			if layout.WorkspaceLen() > 0 {
				workspace = must(NewBuffer[int64](engine, layout.WorkspaceLen()))(t)
			}
			plan := must(layout.Plan(memory, workspace))(t)
			s := must(engine.NewStream())(t)
			rowPtr, colIdx := filled(t, engine, c.a.RowPtr), filled(t, engine, c.a.ColIdx)
			a := DeviceBSR[float32, int32]{Rows: 30, Cols: 44, BlockM: 4, BlockK: 8, RowPtr: rowPtr, ColIdx: colIdx}
			padded := func(data []float32) []float32 {
				return append(slices.Clone(data[:len(c.a.Values)]), make([]float32, room*32-len(c.a.Values))...)
			}
			result := c.c0.clone()
			o := c.operands(result)
			blocks := Dense[float32]{Rows: room * 4, Cols: 8, Data: padded(c.a.Values)}
			if op == SDD {
				blocks.Data = padded(result.data)
				o.C = blocks
			} else {
				o.Values = blocks
			}
			// Multiply has a stream of its own, which knows nothing of what s is writing.
			if err := errors.Join(memory.Fill(t.Context(), 0x7f), WritePlan(t.Context(), s, layout, a, memory, faults), s.Wait(t.Context())); err != nil {
				t.Fatalf("%v: %v", op, err)
			}
			if err := plan.Multiply(t.Context(), c.alpha, c.beta, o); err != nil {
				t.Fatalf("%v: %v", op, err)
			}
			if op == SDD {
				copy(result.data, blocks.Data[:len(c.a.Values)])
				if slices.ContainsFunc(blocks.Data[len(c.a.Values):], func(x float32) bool { return x != 0 }) {
					t.Errorf("%v: blocks that are not there were written", op)
				}
			}
			info := plan.Info()
			info.UnitRoundoff = 1. / (1 << 23)
			c.verifyPlainly(t, info, result)
			if err := errors.Join(plan.Close(), s.Close(), memory.Close(), faults.Close(), rowPtr.Close(), colIdx.Close()); err != nil {
				t.Error(err)
			}
		}
	})
}

// A pattern without values serves SDD, and its kernels can be measured.
func TestSDDWithoutValues(t *testing.T) {
	onEach(t, func(t *testing.T, engine *Engine) {
		c := newOpCase[float32, float32, int32](opShape{op: SDD, shape: shape{rows: 30, cols: 44, n: 13, blockM: 4, blockK: 8, density: 0.5, alpha: 1, seed: 7}})
		pattern := c.a
		pattern.Values = nil
		m := must(NewMatrix(t.Context(), engine, pattern))(t)
		defer m.Close()
		opts := c.options()
		opts.Tuning = 1
		plan := must(m.Plan(t.Context(), opts))(t)
		defer plan.Close()
		result := c.c0.clone()
		if err := plan.Multiply(t.Context(), c.alpha, c.beta, c.operands(result)); err != nil {
			t.Fatal(err)
		}
		c.verifyPlainly(t, plan.Info(), result)
		if plan.Info().ChosenBy != ChosenByTuning {
			t.Errorf("the kernel was chosen by %v", plan.Info().ChosenBy)
		}
	})
}
