// SPDX-License-Identifier: Apache-2.0

package sparsek_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	. "github.com/sparsek/sparsek/wrapper"
)

// A plan in buffers serves one index after another, of fewer blocks than there is room for; also one whose product needs
// a workspace on a GPU.
func TestPlanData(t *testing.T) {
	onEach(t, func(t *testing.T, engine *Engine) {
		for name, gap := range map[string]int{"aligned": 0, "rows of B at odd places": 3} {
			t.Run(name, func(t *testing.T) { servePatterns(t, engine, gap) })
		}
	})
}

func servePatterns(t *testing.T, engine *Engine, gap int) {
	background := context.Background()
	sizes := PatternSizes{Rows: 512, Cols: 512, BlockM: 64, BlockK: 64, Blocks: 50, DType: BF16}
	options := PlanOptions{N: 64, LDB: 64 + gap, LDC: 64 + gap, Alignment: 2}
	if gap == 0 && engine.Info().Backend == CUDA {
		options.Alignment = 16
	}
	layout := must(engine.MeasurePlan(sizes, options))(t)
	memory, faults := must(NewBuffer[int64](engine, layout.MemoryLen()))(t), must(NewBuffer[int64](engine, 1))(t)
	var workspace *DeviceBuffer[int64]
	if layout.WorkspaceLen() > 0 {
		workspace = must(NewBuffer[int64](engine, layout.WorkspaceLen()))(t)
	} else if gap > 0 && engine.Info().Backend == CUDA {
		t.Log("the kernel needs no workspace for rows at odd places")
	}
	plan := must(layout.Plan(memory, workspace))(t)
	s := must(engine.NewStream())(t)
	defer s.Close()
	for seed := range uint64(5) {
		p := newProduct[BFloat16, int32](shape{rows: 512, cols: 512, n: 64, blockM: 64, blockK: 64, density: 0.4, alpha: 1, seed: seed, gapB: gap, gapC: gap})
		room := append(slices.Clone(p.a.Values), make([]BFloat16, sizes.Blocks*64*64-len(p.a.Values))...)
		rowPtr, colIdx, values := filled(t, engine, p.a.RowPtr), filled(t, engine, p.a.ColIdx), filled(t, engine, room)
		a := DeviceBSR[BFloat16, int32]{Rows: 512, Cols: 512, BlockM: 64, BlockK: 64, RowPtr: rowPtr, ColIdx: colIdx}
		b, c := inBuffer(t, engine, p.b, 0), inBuffer(t, engine, p.newC(), 0)
		blocks := DeviceDense[BFloat16]{Rows: sizes.Blocks * 64, Cols: 64, Buffer: values}
		operands := Operands{B: b, C: c, Values: blocks}
		fault := []int64{-1}
		if err := errors.Join(WritePlan(background, s, layout, a, memory, faults), plan.Enqueue(background, s, 1, 0, operands),
			faults.ReadAsync(s, fault), s.Wait(background)); err != nil {
			t.Fatal(err)
		}
		if fault[0] != 0 {
			t.Fatalf("fault %#x", fault[0])
		}
		got := p.newC()
		if err := c.Buffer.Read(background, got.Data); err != nil {
			t.Fatal(err)
		}
		info := plan.Info()
		info.UnitRoundoff = 1. / (1 << 23)
		p.verify(t, engine, info, got)
		operands.Values = nil
		if err := plan.Enqueue(background, s, 1, 0, operands); !errors.Is(err, ErrNullPointer) {
			t.Fatalf("without values: %v", err)
		}
		for _, close := range []func() error{rowPtr.Close, colIdx.Close, values.Close, b.Buffer.Close, c.Buffer.Close} {
			if err := close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := errors.Join(memory.Close(), plan.Close()); err != nil {
		t.Fatal(err)
	}
	if err := plan.Enqueue(background, s, 1, 0, Operands{}); err == nil {
		t.Fatal("a closed plan multiplies")
	}
}

func TestPlanDataFaults(t *testing.T) {
	engine := newEngine(t, CPU)
	background := context.Background()
	sizes := PatternSizes{Rows: 512, Cols: 512, BlockM: 64, BlockK: 64, Blocks: 50, DType: BF16}
	layout := must(engine.MeasurePlan(sizes, PlanOptions{N: 8}))(t)
	s := must(engine.NewStream())(t)
	memory := must(NewBuffer[int64](engine, layout.MemoryLen()))(t)
	short := must(NewBuffer[int64](engine, layout.MemoryLen()-1))(t)
	p := newProduct[BFloat16, int32](shape{rows: 512, cols: 512, n: 8, blockM: 64, blockK: 64, density: 0.4})
	good := DeviceBSR[BFloat16, int32]{Rows: 512, Cols: 512, BlockM: 64, BlockK: 64,
		RowPtr: filled(t, engine, p.a.RowPtr), ColIdx: filled(t, engine, p.a.ColIdx)}
	valued, taller := good, good
	valued.Values = filled(t, engine, p.a.Values)
	taller.Rows, taller.RowPtr = 513, filled(t, engine, append(p.a.RowPtr, p.a.RowPtr[8]))
	_, measureErr := engine.MeasurePlan(sizes, PlanOptions{N: 8, Tuning: 1})
	_, nameErr := engine.MeasurePlan(sizes, PlanOptions{N: 8, Kernel: "none\x00"})
	_, planErr := layout.Plan(short, nil)
	for _, c := range []struct {
		name string
		err  error
		want Status
	}{
		{"measured by tuning", measureErr, ErrBadArgument},
		{"a name with a zero byte", nameErr, ErrNoSuchKernel},
		{"a plan in too little memory", planErr, ErrBadSize},
		{"written to too little memory", WritePlan(background, s, layout, good, short, nil), ErrBadSize},
		{"written nowhere", WritePlan(background, s, layout, good, nil, nil), ErrNullPointer},
		{"with values", WritePlan(background, s, layout, valued, memory, nil), ErrBadArgument},
		{"of other sizes", WritePlan(background, s, layout, taller, memory, nil), ErrBadSize},
	} {
		if !errors.Is(c.err, c.want) {
			t.Errorf("%s: %v", c.name, c.err)
		}
	}
	if err := WritePlan(background, s, layout, good, memory, nil); err != nil {
		t.Error(err)
	}
}
