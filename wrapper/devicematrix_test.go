// SPDX-License-Identifier: Apache-2.0

package sparsek_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	. "github.com/sparsek/sparsek/wrapper"
)

// onDevice puts a into device memory and makes a matrix of it there. done frees both.
func onDevice[T Element, I Index](t rapid.TB, engine *Engine, a BSR[T, I]) (m *Matrix, done func(), err error) {
	t.Helper()
	rowPtr, colIdx, values := filled(t, engine, a.RowPtr), filled(t, engine, a.ColIdx), filled(t, engine, a.Values)
	device := DeviceBSR[T, I]{Rows: a.Rows, Cols: a.Cols, BlockM: a.BlockM, BlockK: a.BlockK, RowPtr: rowPtr, ColIdx: colIdx, Values: values, Unsorted: a.Unsorted}
	index := []*DeviceBuffer[I]{rowPtr, colIdx}
	if a.BlockIdx != nil {
		device.BlockIdx = filled(t, engine, a.BlockIdx)
		index = append(index, device.BlockIdx)
	}
	m, err = NewDeviceMatrix(context.Background(), engine, device)
	// The index was copied: what becomes of it is of no concern any more.
	for _, index := range index {
		if fillErr := index.Fill(context.Background(), 0xff); fillErr != nil {
			t.Fatal(fillErr)
		}
		index.Close()
	}
	return m, func() {
		if m != nil {
			m.Close()
		}
		values.Close()
	}, err
}

func filled[T Element | Index | byte](t rapid.TB, engine *Engine, data []T) *DeviceBuffer[T] {
	t.Helper()
	buffer := must(NewBuffer[T](engine, len(data)))(t)
	if err := buffer.Write(context.Background(), data); err != nil {
		t.Fatal(err)
	}
	return buffer
}

// comparePlans multiplies by a plan that was made on the host and by one that was made on the GPU.
func comparePlans[T Element, I Index](t rapid.TB, engine *Engine, p *product[T, T, I]) {
	t.Helper()
	host := must(NewMatrix(context.Background(), engine, p.a))(t)
	defer host.Close()
	device, done, err := onDevice(t, engine, p.a)
	must(device, err)(t)
	defer done()
	var c [2]Dense[T]
	var info [2]PlanInfo
	for i, m := range []*Matrix{host, device} {
		alignment := SizeOf[T]()
		if p.b.Stride%8 == 0 && p.c0.Stride%8 == 0 {
			alignment = 16
		}
		plan := must(m.Plan(context.Background(), PlanOptions{N: p.n, LDB: p.b.Stride, LDC: p.c0.Stride, Alignment: alignment, Kernel: p.kernel, Compute: computeOf(p.kernel)}))(t)
		defer plan.Close()
		c[i], info[i] = p.newC(), plan.Info()
		if err := plan.Multiply(context.Background(), p.alpha, p.beta, Operands{B: p.b, C: c[i]}); err != nil {
			t.Fatal(err)
		}
	}
	p.verify(t, engine, info[1], c[1])
	// On the host, tiles may be split. Sums of parts are rounded otherwise.
	if info[0].Tiles > info[1].Tiles {
		p.verify(t, engine, info[0], c[0])
		return
	}
	// On the GPU there are gaps between the entries; and of values that are referred to, nothing is kept.
	info[0].WorkspaceBytes, info[0].KeptBytes = info[1].WorkspaceBytes, info[1].KeptBytes
	if info[0] != info[1] {
		t.Fatalf("planned on the host: %+v\non the GPU:          %+v", info[0], info[1])
	}
	if !slices.Equal(c[0].Data, c[1].Data) {
		t.Fatalf("the products by kernel %s differ", info[0].Kernel)
	}
}

func compareEach[T Element](t *testing.T, engine *Engine, kernel Kernel) {
	rapid.Check(t, func(rt *rapid.T) {
		s := drawServed(rt, kernel)
		s.rows *= rapid.IntRange(1, 4).Draw(rt, "rows again")
		if !serves[T, T](rt, engine, s) {
			s.n, s.gapB, s.gapC = (s.n+7)/8*8, s.gapB/8*8, s.gapC/8*8
		}
		p := newProduct[T, int32](s)
		comparePlans(rt, engine, p)
	})
}

// The planner on the GPU gives the plan of the one on the host.
func TestPlansOnDevice(t *testing.T) {
	engine := newEngine(t, CUDA)
	for _, kernel := range kernelsOf(t, engine) {
		t.Run(kernel.Name, func(t *testing.T) {
			ofType(kernel, compareEach[BFloat16], compareEach[Float16], compareEach[float32], compareEach[float64])(t, engine, kernel)
		})
	}
}

// Patterns that the planner takes special ways with: columns so far apart that they are gone through in several passes,
// more tiles than workers, a long row among empty ones, no block at all, no row or no column of A.
func TestOddPlansOnDevice(t *testing.T) {
	engine := newEngine(t, CUDA)
	for name, s := range map[string]shape{
		"several passes":  {rows: 40, cols: 150_000, n: 8, blockM: 8, blockK: 1, density: 0.004},
		"far apart":       {rows: 16, cols: 150_000, n: 8, blockM: 16, blockK: 1, density: 0.0001},
		"many tiles":      {rows: 4000, cols: 24, n: 200, blockM: 2, blockK: 3, density: 0.5},
		"many row groups": {rows: 20_000, cols: 6, n: 8, blockM: 2, blockK: 3, density: 0.4},
		"no block":        {rows: 300, cols: 64, n: 100, blockM: 16, blockK: 16},
		"no row":          {rows: 0, cols: 64, n: 100, blockM: 16, blockK: 16, density: 1},
		"no column of A":  {rows: 300, cols: 0, n: 40, blockM: 16, blockK: 16, density: 1},
	} {
		t.Run(name, func(t *testing.T) {
			s.alpha, s.beta, s.seed = 1, 1, 9
			comparePlans(t, engine, newProduct[float32, int64](s))
		})
	}
	t.Run("several passes of many slots", func(t *testing.T) {
		comparePlans(t, engine, newProduct[BFloat16, int32](shape{rows: 250, cols: 320_000, n: 8, blockM: 8, blockK: 8, density: 0.001, alpha: 1, seed: 5}))
	})
	t.Run("one long row", func(t *testing.T) {
		p := newProduct[BFloat16, int32](shape{rows: 64 * 64, cols: 64 * 30, n: 2048, blockM: 64, blockK: 64, alpha: 1, seed: 3})
		p.kernel = "tma_bf16_64x2_256" // which splits no tiles; and less is known of a pattern on the GPU, to choose by
		p.a.RowPtr = make([]int32, 65)
		for col := range 30 {
			p.a.ColIdx = append(p.a.ColIdx, int32(col))
		}
		for row := 41; row < len(p.a.RowPtr); row++ {
			p.a.RowPtr[row] = 30
		}
		for range 30 * 64 * 64 {
			p.a.Values = append(p.a.Values, FromFloat32[BFloat16](0.5))
		}
		comparePlans(t, engine, p)
	})
}

// An index is as wrong in device memory as it is on the host.
func TestDeviceIndexFaults(t *testing.T) {
	engine := newEngine(t, CUDA)
	rapid.Check(t, func(rt *rapid.T) {
		s := shape{rows: 12, cols: 300, blockM: 4, blockK: 2, n: 8, density: 0.5, seed: rapid.Uint64().Draw(rt, "seed")}
		a := newProduct[float32, int64](s).a
		array := a.RowPtr
		if rapid.Bool().Draw(rt, "in col_idx") && len(a.ColIdx) > 0 {
			array = a.ColIdx
		}
		value := rapid.OneOf(rapid.Int64Range(-2, 152), rapid.SampledFrom(a.RowPtr), rapid.SampledFrom([]int64{1 << 32, 1<<32 + 1, -1 << 40}))
		array[rapid.IntRange(0, len(array)-1).Draw(rt, "place")] = value.Draw(rt, "value")

		m, hostErr := NewMatrix(context.Background(), engine, a)
		if hostErr == nil {
			m.Close()
		}
		_, done, deviceErr := onDevice(rt, engine, a)
		done()
		var want, got *Error
		if errors.As(hostErr, &want) != errors.As(deviceErr, &got) || want != nil && want.Status != got.Status {
			rt.Fatalf("on the host: %v\non the GPU:  %v", hostErr, deviceErr)
		}
	})
}
