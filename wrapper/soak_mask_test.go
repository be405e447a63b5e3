// SPDX-License-Identifier: Apache-2.0

package sparsek_test

import (
	"context"
	"errors"
	"slices"

	. "github.com/sparsek/sparsek/wrapper"
)

// indexOfMask is made from a mask of blocks, in the order of a stream.
type indexOfMask[I Index] struct {
	DeviceIndex[I]
	stream *Stream
	mask   *DeviceBuffer[byte]
}

func newIndexOfMask[T Element, I Index](t soakTB, stream *Stream, engine *Engine, a BSR[T, I]) *indexOfMask[I] {
	blockCols := (a.Cols + a.BlockK - 1) / a.BlockK
	mask := make([]byte, (len(a.RowPtr)-1)*blockCols)
	for r := range len(a.RowPtr) - 1 {
		for _, col := range a.ColIdx[a.RowPtr[r]:a.RowPtr[r+1]] {
			mask[r*blockCols+int(col)] = 1
		}
	}
	m := &indexOfMask[I]{stream: stream, mask: filled(t, engine, mask), DeviceIndex: DeviceIndex[I]{Rows: a.Rows, Cols: a.Cols, BlockM: a.BlockM,
		BlockK: a.BlockK, RowPtr: must(NewBuffer[I](engine, len(a.RowPtr)))(t), ColIdx: must(NewBuffer[I](engine, len(a.ColIdx)))(t),
		Fault: must(NewBuffer[int64](engine, 1))(t)}}
	if err := PatternFromMask(context.Background(), stream, m.DeviceIndex, m.mask, 0); err != nil {
		t.Fatal(err)
	}
	return m
}

// verify makes sure that the index is that of a, when it is made.
func (m *indexOfMask[I]) verify(t soakTB, rowPtr, colIdx []I) {
	ctx := context.Background()
	fault, gotRows, gotCols := []int64{-1}, make([]I, len(rowPtr)), make([]I, len(colIdx))
	if err := errors.Join(m.stream.Wait(ctx), m.Fault.Read(ctx, fault), m.RowPtr.Read(ctx, gotRows), m.ColIdx.Read(ctx, gotCols)); err != nil {
		t.Fatal(err)
	}
	if fault[0] != 0 || !slices.Equal(gotRows, rowPtr) || !slices.Equal(gotCols, colIdx) {
		t.Fatalf("fault %#x; the index of a mask is\n%v\n%v\nand not\n%v\n%v", fault[0], gotRows, gotCols, rowPtr, colIdx)
	}
}

func (m *indexOfMask[I]) close() {
	m.mask.Close()
	m.RowPtr.Close()
	m.ColIdx.Close()
	m.Fault.Close()
}
