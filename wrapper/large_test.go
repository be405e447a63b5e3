// SPDX-License-Identifier: Apache-2.0

package sparsek_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/sparsek/sparsek/internal/bench/workload"
	sparsek "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/bsr"
	"github.com/sparsek/sparsek/wrapper/matio"
)

// gpu makes an engine, or skips the test where there is no GPU or where the host has less memory free.
func gpu(t *testing.T, hostBytes int64) *sparsek.Engine {
	t.Helper()
	engine, err := sparsek.NewEngine(sparsek.EngineOptions{Backend: sparsek.CUDA})
	if errors.Is(err, sparsek.ErrLibraryNotFound) {
		t.Skip("skipped: libsparsek.so not found")
	}
	if errors.Is(err, sparsek.ErrNoDevice) {
		t.Skip("skipped: no GPU")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { engine.Close() })
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		t.Skipf("skipped: whether %d bytes are free is not known: %v", hostBytes, err)
	}
	free := int64(0)
	for line := range strings.Lines(string(text)) {
		if _, err := fmt.Sscanf(line, "MemAvailable: %d kB", &free); err == nil {
			break
		}
	}
	if free<<10 < hostBytes {
		t.Skipf("skipped: %d bytes of host memory are free, and %d are needed", free<<10, hostBytes)
	}
	return engine
}

// fits passes on what a call returned, or skips the test where that took more memory than the device has.
func fits[T any](value T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if errors.Is(err, sparsek.ErrOutOfMemory) {
			t.Skipf("skipped: %v", err)
		}
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

func normal[T sparsek.Element](count int, seed uint64) []T {
	random := rand.New(rand.NewPCG(seed, 3))
	list := make([]T, count)
	for i := range list {
		list[i] = sparsek.FromFloat32[T](float32(random.NormFloat64()))
	}
	return list
}

// testLarge multiplies a by a random B with every kernel that serves it, and looks at the block rows that are given:
// those hold what they should. empty looks at the rest of C.
func testLarge[T sparsek.Element](t *testing.T, engine *sparsek.Engine, a bsr.Matrix[T], n int, rows []int, empty func(t *testing.T, c []T)) {
	matrix := fits(sparsek.NewMatrix(context.Background(), engine, sparsek.BSR[T, int32]{
		Rows: a.Rows, Cols: a.Cols, BlockM: a.BlockM, BlockK: a.BlockK, RowPtr: a.RowPtr, ColIdx: a.ColIdx, Values: a.Values,
	}))(t)
	defer matrix.Close()
	b := matio.Dense[T]{Rows: a.Cols, Cols: n, Data: normal[T](a.Cols*n, 42)}
	deviceB := fits(sparsek.NewBuffer[T](engine, len(b.Data)))(t)
	defer deviceB.Close()
	if err := deviceB.Write(context.Background(), b.Data); err != nil {
		t.Fatal(err)
	}
	deviceC := fits(sparsek.NewBuffer[T](engine, a.Rows*n))(t)
	defer deviceC.Close()
	c := matio.Dense[T]{Rows: a.Rows, Cols: n, Data: make([]T, a.Rows*n)}

	kernels := fits(engine.Library().Kernels())(t)
	ran := 0
	for _, kernel := range kernels {
		if kernel.Backend != sparsek.CUDA || kernel.DType != sparsek.DTypeOf[T]() {
			continue
		}
		plan, err := matrix.Plan(context.Background(), sparsek.PlanOptions{N: n, Kernel: kernel.Name})
		if errors.Is(err, sparsek.ErrNoSuchKernel) {
			continue
		}
		fits(plan, err)(t)
		ran++
		if err := deviceC.Fill(context.Background(), 0xff); err != nil {
			t.Fatal(err)
		}
		err = plan.Multiply(context.Background(), 1, 0, sparsek.Operands{
			B: sparsek.DeviceDense[T]{Rows: a.Cols, Cols: n, Buffer: deviceB}, C: sparsek.DeviceDense[T]{Rows: a.Rows, Cols: n, Buffer: deviceC}})
		if err := errors.Join(err, plan.Close(), deviceC.Read(context.Background(), c.Data)); err != nil {
			t.Fatalf("%s: %v", kernel.Name, err)
		}
		for _, r := range rows {
			if report, err := workload.CheckBlockRow(engine.Library(), a, b.Data, c.Data, r, plan.Info().UnitRoundoff); err != nil {
				t.Errorf("%s: block row %d: %v\n%+v", kernel.Name, r, err, report)
			}
		}
		empty(t, c.Data)
		if t.Failed() {
			t.Fatalf("kernel %s", kernel.Name)
		}
	}
	if ran == 0 {
		t.Error("no kernel served the matrix")
	}
}

const many = 1 << 31 // elements

// A C of more than 2^31 elements, with blocks in a few block rows: the first and the last ones, and one in the middle.
func TestLargeC(t *testing.T) {
	const block, n, rows = 64, 8, 1<<28 + 64
	const blockRows = rows / block
	engine := gpu(t, 3*rows*n) // two bytes an element of C, and room
	full := []int{0, 1, blockRows / 2, blockRows - 2, blockRows - 1}
	a := bsr.Matrix[sparsek.Float16]{Rows: rows, Cols: 2 * block, BlockM: block, BlockK: block}
	a.Pattern = bsr.Pattern{BlockRows: blockRows, BlockCols: 2, RowPtr: make([]int32, blockRows+1)}
	for r := range blockRows {
		if i := slices.Index(full, r); i >= 0 {
			a.ColIdx = append(a.ColIdx, int32(i%2))
		}
		a.RowPtr[r+1] = int32(len(a.ColIdx))
	}
	a.Values = normal[sparsek.Float16](len(full)*block*block, 41)
	if rows*n <= many {
		t.Fatal("C is too small")
	}
	testLarge(t, engine, a, n, full, func(t *testing.T, c []sparsek.Float16) {
		var zeros [block * n]sparsek.Float16
		for r := range blockRows {
			if [block * n]sparsek.Float16(c[r*block*n:]) != zeros && !slices.Contains(full, r) {
				t.Errorf("block row %d has no blocks and is not 0", r)
				return
			}
		}
	})
}

// More than 2^31 elements in the blocks of A.
func TestLargeValues(t *testing.T) {
	const block, n, blockRows, blockCols = 512, 8, 82, 100
	const count = blockRows * blockCols * block * block
	engine := gpu(t, 3*count) // two bytes an element of A, and room
	a := bsr.Matrix[sparsek.BFloat16]{Rows: blockRows * block, Cols: blockCols * block, BlockM: block, BlockK: block}
	a.Pattern = bsr.Pattern{BlockRows: blockRows, BlockCols: blockCols, RowPtr: []int32{0}}
	for range blockRows {
		for col := range int32(blockCols) {
			a.ColIdx = append(a.ColIdx, col)
		}
		a.RowPtr = append(a.RowPtr, int32(len(a.ColIdx)))
	}
	if count <= many {
		t.Fatal("A is too small")
	}
	// The same numbers over and over, at no distance of which blocks begin: no two blocks are alike.
	chunk := normal[sparsek.BFloat16](1<<20+7, 43)
	a.Values = make([]sparsek.BFloat16, count)
	for at := 0; at < count; {
		at += copy(a.Values[at:], chunk)
	}
	testLarge(t, engine, a, n, []int{0, blockRows / 2, blockRows - 2, blockRows - 1}, func(t *testing.T, c []sparsek.BFloat16) {
		for i, v := range c {
			if v&0x7fff > 0x7f80 { // the exponent of infinity with a fraction
				t.Errorf("C[%d, %d] is NaN or was not written", i/n, i%n)
				return
			}
		}
	})
}
