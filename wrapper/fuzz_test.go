// SPDX-License-Identifier: Apache-2.0

package sparsek_test

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"testing"
	"unsafe"

	. "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/internal/native"
)

// maxIndex is the number of index entries up to which a matrix is tried out: the arrays must be there.
const maxIndex = 1 << 12

// FuzzMatrix gives the library whatever matrix: it refuses it with an error of its own, or multiplies it.
func FuzzMatrix(f *testing.F) {
	index := func(entries ...int32) (out []byte) {
		for _, e := range entries {
			out = binary.LittleEndian.AppendUint32(out, uint32(e))
		}
		return out
	}
	f.Add(int64(4), int64(6), int64(2), int64(3), int64(3), int32(3), int32(1), index(0, 1, 3), index(1, 0, 1), int64(8))
	f.Add(int64(4), int64(6), int64(2), int64(3), int64(3), int32(1), int32(1), index(0, 1, 2), index(1, 0, 9), int64(8))
	f.Add(int64(0), int64(0), int64(1), int64(1), int64(0), int32(2), int32(2), index(0, 0), index(), int64(0))
	f.Add(int64(1)<<62, int64(1)<<62, int64(1)<<62, int64(1)<<62, int64(1), int32(1), int32(1), index(0, 1), index(0), int64(1)<<62)
	f.Add(int64(-1), int64(-1), int64(0), int64(0), int64(-1), int32(9), int32(9), index(), index(), int64(-1))
	engine := newEngine(f, CPU)
	lib, pointer := engine.Library().Native(), engine.Native()
	f.Fuzz(func(t *testing.T, rows, cols, blockM, blockK, nnzb int64, dtype, indexType int32, rowPtr, colIdx []byte, n int64) {
		a := native.BSR{
			Rows: int(rows), Cols: int(cols), BlockM: int(blockM), BlockK: int(blockK), Blocks: int(nnzb),
			DType: dtype, IndexType: indexType, Memory: native.Host,
		}
		// The arrays must be as long as the sizes say: what the fuzzer gave, and zeros. Sizes beyond maxIndex are given
		// only where the library must refuse them before it looks at an array.
		entries := int64(2)
		if blockM > 0 && rows >= 0 {
			entries += rows / blockM
		}
		hostile := rows < 0 || cols < 0 || blockM < 1 || blockK < 1 || nnzb < 0 || nnzb > math.MaxInt32 || entries-2 > math.MaxInt32
		if !hostile && (entries > maxIndex || nnzb > maxIndex) {
			t.Skip("skipped: large")
		}
		a.RowPtr = indexArray(rowPtr, min(entries, maxIndex))
		a.ColIdx = indexArray(colIdx, min(max(nnzb, 0), maxIndex))
		small := !hostile && blockM <= 64 && blockK <= 64 && rows <= maxIndex && cols <= maxIndex
		if small {
			values := make([]float32, 1+nnzb*blockM*blockK)
			a.Values = unsafe.Pointer(&values[0])
		}
		matrix, err := lib.MatrixCreate(pointer, a)
		if err != nil {
			wantOwnError(t, err)
			return
		}
		defer lib.MatrixDestroy(matrix)
		if hostile {
			t.Fatalf("%+v was taken", a)
		}
		if !small {
			return
		}
		plan, err := lib.PlanCreate(matrix, native.PlanOptions{N: int(n % 40), Alignment: 4})
		if err != nil {
			wantOwnError(t, err)
			return
		}
		defer lib.PlanDestroy(plan)
		b, c := make([]float32, 1+cols*40), make([]float32, 1+rows*40)
		for i := range c {
			c[i] = float32(math.NaN()) // to be written, or to be left alone
		}
		if err := lib.Multiply(plan, native.Product{Alpha: 1, B: native.Operand{Data: unsafe.Pointer(&b[0])}, C: native.Operand{Data: unsafe.Pointer(&c[0])}}); err != nil {
			t.Fatal(err)
		}
		for i, v := range c {
			if inside := int64(i) < rows*(n%40); inside != (v == 0) {
				t.Fatalf("element %d of a product of zeros into %d x %d is %g", i, rows, n%40, v)
			}
		}
	})
}

// FuzzBSR does the same by way of the Go API, whose own checks come first.
func FuzzBSR(f *testing.F) {
	f.Add(4, 6, 2, 3, []byte{0, 1, 3}, []byte{1, 0, 1}, 8, 8, 8)
	f.Add(1<<40, 1<<40, 1<<39, 1<<39, []byte{0, 1, 2}, []byte{0, 1}, 1, 1, 1)
	f.Add(-1, 0, 0, -5, []byte{}, []byte{}, -1, 0, 0)
	engine := newEngine(f, CPU)
	f.Fuzz(func(t *testing.T, rows, cols, blockM, blockK int, rowPtr, colIdx []byte, n, ldb, ldc int) {
		a := BSR[BFloat16, int32]{Rows: rows, Cols: cols, BlockM: blockM, BlockK: blockK}
		for _, v := range rowPtr {
			a.RowPtr = append(a.RowPtr, int32(int8(v)))
		}
		for _, v := range colIdx {
			a.ColIdx = append(a.ColIdx, int32(int8(v)))
		}
		if size := uint64(blockM) * uint64(blockK); size < 1<<16 && blockM > 0 && blockM < 1<<16 {
			a.Values = make([]BFloat16, len(colIdx)*int(size))
		}
		m, err := NewMatrix(context.Background(), engine, a)
		if err != nil {
			wantOwnError(t, err)
			return
		}
		defer m.Close()
		if n > 1<<10 || cols > 1<<10 || rows > 1<<10 {
			return
		}
		plan, err := m.Plan(context.Background(), PlanOptions{N: n, LDB: ldb, LDC: ldc})
		if err != nil {
			wantOwnError(t, err)
			return
		}
		defer plan.Close()
		b := Dense[BFloat16]{Rows: cols, Cols: n, Stride: ldb, Data: make([]BFloat16, 1<<12)}
		c := Dense[BFloat16]{Rows: rows, Cols: n, Stride: ldc, Data: make([]BFloat16, 1<<12)}
		if err := plan.Multiply(context.Background(), 1, 0, Operands{B: b, C: c}); err != nil {
			wantOwnError(t, err)
		}
	})
}

// indexArray is an array of at least that many int64, with the bytes at its front.
func indexArray(bytes []byte, entries int64) unsafe.Pointer {
	array := make([]int64, entries+1)
	raw := unsafe.Slice((*byte)(unsafe.Pointer(&array[0])), len(array)*8)
	copy(raw, bytes)
	return unsafe.Pointer(&array[0])
}

func wantOwnError(t *testing.T, err error) {
	t.Helper()
	var fault *Error
	if !errors.As(err, &fault) || fault.Msg == "" || fault.Status == ErrInternal || StatusNames[fault.Status] == "" {
		t.Fatalf("%#v is no error of the library's own", err)
	}
}
