// SPDX-License-Identifier: Apache-2.0

package sparsek_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	. "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/check"
	"github.com/sparsek/sparsek/wrapper/timing"
)

// small is a matrix of 4 x 6 in blocks of 2 x 3 with three blocks.
func small() BSR[float32, int64] {
	return BSR[float32, int64]{Rows: 4, Cols: 6, BlockM: 2, BlockK: 3,
		RowPtr: []int64{0, 1, 3}, ColIdx: []int64{1, 0, 1}, Values: make([]float32, 18)}
}

func wantFault(t *testing.T, err error, status Status, speaksOf string) {
	t.Helper()
	var fault *Error
	if !errors.Is(err, status) || !errors.As(err, &fault) || !strings.Contains(fault.Msg, speaksOf) || fault.Op == "" {
		t.Errorf("error is %q, want %v and %q", err, status, speaksOf)
	}
}

func TestMatrixFaults(t *testing.T) {
	faults := map[string]struct {
		spoil    func(a *BSR[float32, int64])
		status   Status
		speaksOf string
	}{
		"negative rows":     {func(a *BSR[float32, int64]) { a.Rows = -4 }, ErrBadSize, "-4"},
		"negative columns":  {func(a *BSR[float32, int64]) { a.Cols = -6 }, ErrBadSize, "-6"},
		"no block height":   {func(a *BSR[float32, int64]) { a.BlockM = 0 }, ErrBadSize, "block"},
		"no block width":    {func(a *BSR[float32, int64]) { a.BlockK = 0 }, ErrBadSize, "block"},
		"short RowPtr":      {func(a *BSR[float32, int64]) { a.RowPtr = a.RowPtr[:2] }, ErrBadSize, "RowPtr has 2 entries"},
		"no RowPtr":         {func(a *BSR[float32, int64]) { a.RowPtr = nil }, ErrBadSize, "RowPtr has 0 entries"},
		"short Values":      {func(a *BSR[float32, int64]) { a.Values = a.Values[:17] }, ErrBadSize, "Values has 17 elements"},
		"empty Values":      {func(a *BSR[float32, int64]) { a.Values = a.Values[:0] }, ErrBadSize, "Values has 0 elements"},
		"overflowing block": {func(a *BSR[float32, int64]) { a.BlockK = math.MaxInt }, ErrBadSize, ""},
		"start":             {func(a *BSR[float32, int64]) { a.RowPtr[0] = 1 }, ErrRowPtrStart, "row_ptr[0] = 1"},
		"not monotone":      {func(a *BSR[float32, int64]) { a.RowPtr[1] = 4 }, ErrRowPtrNotMonotone, "row_ptr["},
		"end":               {func(a *BSR[float32, int64]) { a.RowPtr[2] = 2 }, ErrRowPtrEnd, "row_ptr[2] = 2"},
		"hostile end":       {func(a *BSR[float32, int64]) { a.RowPtr[2] = math.MaxInt64 }, ErrRowPtrEnd, "row_ptr[2]"},
		"range":             {func(a *BSR[float32, int64]) { a.ColIdx[2] = 2 }, ErrColIdxRange, "col_idx[2] = 2"},
		"far out of range":  {func(a *BSR[float32, int64]) { a.ColIdx[0] = 1<<32 + 1 }, ErrColIdxRange, "col_idx[0] = 4294967297"},
		"negative column":   {func(a *BSR[float32, int64]) { a.ColIdx[1] = -1 }, ErrColIdxRange, "col_idx[1] = -1"},
		"unsorted":          {func(a *BSR[float32, int64]) { a.ColIdx[1], a.ColIdx[2] = 1, 0 }, ErrColIdxUnsorted, "col_idx[2] = 0"},
		"repeated":          {func(a *BSR[float32, int64]) { a.ColIdx[1] = 1 }, ErrColIdxRepeated, "col_idx[2] = 1"},
	}
	onEach(t, func(t *testing.T, engine *Engine) {
		for name, fault := range faults {
			t.Run(name, func(t *testing.T) {
				a := small()
				fault.spoil(&a)
				m, err := NewMatrix(context.Background(), engine, a)
				if m != nil {
					t.Error("a matrix was made")
				}
				wantFault(t, err, fault.status, fault.speaksOf)
			})
		}
	})
}

func TestPlanFaults(t *testing.T) {
	onEach(t, func(t *testing.T, engine *Engine) {
		m := must(NewMatrix(context.Background(), engine, small()))(t)
		defer m.Close()
		for _, fault := range []struct {
			opts     PlanOptions
			status   Status
			speaksOf string
		}{
			{PlanOptions{N: -1}, ErrBadSize, "N is -1"},
			{PlanOptions{N: 8, LDB: 7}, ErrBadLeadingDimension, "ldb = 7"},
			{PlanOptions{N: 8, LDC: -1}, ErrBadLeadingDimension, "ldc = -1"},
			{PlanOptions{N: 8, LDB: math.MaxInt}, ErrBadSize, "ldb"},
			{PlanOptions{}, ErrBadSize, "set PlanOptions.N"},
			{PlanOptions{N: 8, Alignment: 12}, ErrBadArgument, "alignment = 12"},
			{PlanOptions{N: 8, Alignment: 1 << 40}, ErrBadArgument, "alignment = -1"},
			{PlanOptions{N: 8, Kernel: "no such thing"}, ErrNoSuchKernel, "no such thing"},
			{PlanOptions{N: 8, Kernel: "zero\x00byte"}, ErrNoSuchKernel, "zero"},
		} {
			_, err := m.Plan(context.Background(), fault.opts)
			wantFault(t, err, fault.status, fault.speaksOf)
		}
	})
}

func TestMultiplyFaults(t *testing.T) {
	onEach(t, func(t *testing.T, engine *Engine) {
		background := context.Background()
		m := must(NewMatrix(context.Background(), engine, small()))(t)
		plan := must(m.Plan(background, PlanOptions{N: 8, LDC: 10}))(t)
		b := Dense[float32]{Rows: 6, Cols: 8, Data: make([]float32, 48)}
		c := Dense[float32]{Rows: 4, Cols: 8, Stride: 10, Data: make([]float32, 38)}
		if err := plan.Multiply(background, 1, 0, Operands{B: b, C: c}); err != nil {
			t.Fatal(err)
		}
		with := func(d Dense[float32], change func(*Dense[float32])) Dense[float32] {
			change(&d)
			return d
		}
		for _, fault := range []struct {
			b, c     Operand
			status   Status
			speaksOf string
		}{
			{nil, c, ErrNullPointer, "nil"},
			{b, with(c, func(d *Dense[float32]) { d.Data = d.Data[:37] }), ErrBadSize, "C has 37 elements"},
			{with(b, func(d *Dense[float32]) { d.Data = nil }), c, ErrBadSize, "B has 0 elements"},
			{with(b, func(d *Dense[float32]) { d.Rows = 5 }), c, ErrBadSize, "B is 5 x 8 where 6 x 8"},
			{b, with(c, func(d *Dense[float32]) { d.Cols = 9 }), ErrBadSize, "C is 4 x 9 where 4 x 8"},
			{b, with(c, func(d *Dense[float32]) { d.Stride = 7 }), ErrBadLeadingDimension, "stride 7"},
			{DeviceDense[float32]{Rows: 6, Cols: 8}, c, ErrBadSize, "B has 0 elements"},
		} {
			wantFault(t, plan.Multiply(background, 1, 0, Operands{B: fault.b, C: fault.c}), fault.status, fault.speaksOf)
		}

		buffer := must(NewBuffer[float32](engine, 48))(t)
		defer buffer.Close()
		for offset, speaksOf := range map[int]string{1: "B has 47 elements", 49: "offset 49", -1: "offset -1"} {
			view := DeviceDense[float32]{Rows: 6, Cols: 8, Buffer: buffer, Offset: offset}
			wantFault(t, plan.Multiply(background, 1, 0, Operands{B: view, C: c}), ErrBadSize, speaksOf)
		}
		_, err := timing.Products(background, plan, timing.Options{Repeats: 1})
		wantFault(t, err, ErrBadSize, "no operands")
		wantFault(t, SetValues(context.Background(), m, make([]float32, 17)), ErrBadSize, "Values has 17 elements")
		wantFault(t, buffer.Write(context.Background(), make([]float32, 49)), ErrBadSize, "49 elements")
		wantFault(t, buffer.Read(context.Background(), make([]float32, 49)), ErrBadSize, "49 elements")
		_, err = NewBuffer[float32](engine, -1)
		wantFault(t, err, ErrBadSize, "-1 elements")
	})
}

// What belongs to one engine is refused by another.
func TestEnginesDoNotMix(t *testing.T) {
	one, other := newEngine(t, CPU), newEngine(t, CPU)
	m := must(NewMatrix(context.Background(), one, small()))(t)
	plan := must(m.Plan(context.Background(), PlanOptions{N: 8}))(t)
	buffer := must(NewBuffer[float32](other, 48))(t)
	stream := must(other.NewStream())(t)
	b := DeviceDense[float32]{Rows: 6, Cols: 8, Buffer: buffer}
	c := Dense[float32]{Rows: 4, Cols: 8, Data: make([]float32, 32)}
	wantFault(t, plan.Multiply(context.Background(), 1, 0, Operands{B: b, C: c}), ErrBadArgument, "another engine")
	hostB := Dense[float32]{Rows: 6, Cols: 8, Data: make([]float32, 48)}
	wantFault(t, plan.Enqueue(context.Background(), stream, 1, 0, Operands{B: hostB, C: c}), ErrBadArgument, "another engine")
}

func TestEngineFaults(t *testing.T) {
	lib := library(t)
	for _, fault := range []struct {
		opts     EngineOptions
		status   Status
		speaksOf string
	}{
		{EngineOptions{Backend: 7}, ErrBadArgument, "backend = 7"},
		{EngineOptions{Backend: CPU, Threads: -2}, ErrBadArgument, "threads = -2"},
		{EngineOptions{Device: -1}, ErrBadArgument, "device = -1"},
		{EngineOptions{Backend: CUDA, Device: 1 << 20}, ErrNoDevice, ""},
	} {
		_, err := lib.NewEngine(fault.opts)
		wantFault(t, err, fault.status, fault.speaksOf)
	}
}

// A GPU where there is one, else the CPU, with the reason.
func TestAuto(t *testing.T) {
	lib := library(t)
	usable := false
	for _, device := range must(lib.Devices())(t) {
		usable = usable || device.Usable
	}
	engine := must(lib.NewEngine(EngineOptions{}))(t)
	defer engine.Close()
	info := engine.Info()
	if want := map[bool]Backend{true: CUDA, false: CPU}[usable]; info.Backend != want || info.Reason == "" {
		t.Errorf("the engine is %+v, want %v and a reason", info, want)
	}
}

func TestCheckFindsAWrongElement(t *testing.T) {
	engine := newEngine(t, CPU)
	p := newProduct[BFloat16, int32](shape{rows: 70, cols: 90, n: 33, blockM: 8, blockK: 8, density: 0.5, gapC: 3, alpha: 1, beta: 1, seed: 5})
	c, info := p.run(t, engine, false)
	args := check.Args{Alpha: 1, Beta: 1, B: p.b, C0: p.c0, C: c, UnitRoundoff: info.UnitRoundoff}
	at := &c.Data[41*c.Stride+7]
	*at = ToBFloat16(at.Float32()*1.5 + 3)
	report, err := check.Product(engine.Library(), p.a, args)
	wantFault(t, err, ErrCheckFailed, "C[41, 7]")
	if report.Failures != 1 || report.FirstRow != 41 || report.FirstCol != 7 || report.WorstRow != 41 || report.MaxRatio <= 1 {
		t.Errorf("report is %+v", report)
	}
	*at = ToBFloat16(float32(math.NaN()))
	_, err = check.Product(engine.Library(), p.a, args)
	wantFault(t, err, ErrCheckFailed, "C[41, 7]")

	moved := p.c0
	moved.Stride++
	args.C0 = moved
	_, err = check.Product(engine.Library(), p.a, args)
	wantFault(t, err, ErrBadLeadingDimension, "C0")
}

func TestTime(t *testing.T) {
	onEach(t, func(t *testing.T, engine *Engine) {
		m := must(NewMatrix(context.Background(), engine, small()))(t)
		plan := must(m.Plan(context.Background(), PlanOptions{N: 8}))(t)
		var operands []Operands
		var results []*DeviceBuffer[float32]
		for range 3 {
			b, c := must(NewBuffer[float32](engine, 48))(t), must(NewBuffer[float32](engine, 32))(t)
			if err := errors.Join(b.Fill(context.Background(), 0), c.Fill(context.Background(), 0xff)); err != nil {
				t.Fatal(err)
			}
			operands = append(operands, Operands{B: DeviceDense[float32]{Rows: 6, Cols: 8, Buffer: b}, C: DeviceDense[float32]{Rows: 4, Cols: 8, Buffer: c}})
			results = append(results, c)
		}
		times, err := timing.Products(context.Background(), plan, timing.Options{Alpha: 1, Operands: operands, Warmup: 1, Repeats: 5})
		if err != nil || len(times) != 5 {
			t.Fatalf("%d times, error %v", len(times), err)
		}
		for _, d := range times {
			if d < 0 || d > time.Minute {
				t.Errorf("a product took %v", d)
			}
		}
		// Each pair had its turn.
		for i, c := range results {
			got := make([]float32, 32)
			if err := c.Read(context.Background(), got); err != nil {
				t.Fatal(err)
			}
			if got[31] != 0 {
				t.Errorf("C number %d holds %g, want 0", i, got[31])
			}
		}
		if engine.Info().Backend == CUDA {
			host := Operands{B: Dense[float32]{Rows: 6, Cols: 8, Data: make([]float32, 48)}, C: Dense[float32]{Rows: 4, Cols: 8, Data: make([]float32, 32)}}
			_, err := timing.Products(context.Background(), plan, timing.Options{Alpha: 1, Operands: []Operands{host}, Repeats: 1})
			wantFault(t, err, ErrWrongMemory, "host memory")
		}
	})
}
