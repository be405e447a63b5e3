// SPDX-License-Identifier: Apache-2.0

package sparsek_test

import (
	"context"
	"errors"
	"math"
	"testing"

	. "github.com/sparsek/sparsek/wrapper"
)

func TestPatternArguments(t *testing.T) {
	onEach(t, func(t *testing.T, engine *Engine) {
		s := must(engine.NewStream())(t)
		defer s.Close()
		background := context.Background()
		sizes := patternSizes{rows: 64, cols: 64, blockM: 16, blockK: 16}
		x := newMadeIndex[int32](t, engine, sizes, 16)
		mask := filled(t, engine, make([]byte, 16))
		short, unjudged := x.DeviceIndex, x.DeviceIndex
		short.RowPtr, unjudged.Fault = filled(t, engine, make([]int32, 4)), nil
		named := x.DeviceIndex
		named.BlockIdx = x.blockIdx.front
		floats := filled(t, engine, make([]float32, 16))
		scores := DeviceDense[float32]{Rows: 4, Cols: 4, Buffer: floats}
		large := newMadeIndex[int16](t, engine, patternSizes{rows: 64, cols: 64, blockM: 16, blockK: 16}, 40_000)
		a := randomBSR[float32, int32](sizes, 0.5, false)
		d, free := inBuffers(t, engine, a, 0)
		defer free()
		doubles := filled(t, engine, make([]float64, 16))
		const many = 200
		every := DeviceBSR[float32, int32]{Rows: many, Cols: many, BlockM: 1, BlockK: 1,
			RowPtr: filled(t, engine, make([]int32, many+1)), ColIdx: filled(t, engine, make([]int32, many*many))}
		few := newMadeIndex[int16](t, engine, patternSizes{rows: many, cols: many, blockM: 1, blockK: 1}, 1000)
		few.BlockIdx = few.blockIdx.front
		ofEvery := filled(t, engine, make([]float32, many*many))
		for name, c := range map[string]struct {
			err  error
			want Status
		}{
			"a mask that is too short":         {PatternFromMask(background, s, x.DeviceIndex, mask, 5), ErrBadSize},
			"no mask":                          {PatternFromMask(background, s, x.DeviceIndex, nil, 0), ErrNullPointer},
			"a stride below the columns":       {PatternFromMask(background, s, x.DeviceIndex, mask, 3), ErrBadLeadingDimension},
			"bits at odd places":               {PatternFromBits(background, s, x.DeviceIndex, mask, 9), ErrBadLeadingDimension},
			"RowPtr that is too short":         {PatternFromMask(background, s, short, mask, 0), ErrBadSize},
			"nowhere to tell a fault":          {PatternFromMask(background, s, unjudged, mask, 0), ErrNullPointer},
			"BlockIdx that is not read":        {PatternFromMask(background, s, named, mask, 0), ErrBadArgument},
			"more than an index can number":    {PatternFromMask(background, s, large.DeviceIndex, mask, 0), ErrBadSize},
			"a threshold of NaN":               {PatternAbove(background, s, x.DeviceIndex, scores, math.NaN()), ErrBadArgument},
			"a negative count":                 {PatternOfHighest(background, s, x.DeviceIndex, scores, -1), ErrBadSize},
			"scores of other sizes":            {PatternOfHighest(background, s, x.DeviceIndex, DeviceDense[float32]{Rows: 4, Cols: 3, Buffer: floats}, 1), ErrBadSize},
			"experts that have no columns":     {PatternFromCounts(background, s, x.DeviceIndex, filled(t, engine, make([]int32, 3)), filled(t, engine, make([]int32, 4))), ErrBadSize},
			"a transpose of other sizes":       {TransposeIndex(background, s, x.DeviceIndex, DeviceBSR[float32, int32]{Rows: 64, Cols: 48, BlockM: 16, BlockK: 16, RowPtr: d.RowPtr, ColIdx: d.ColIdx}), ErrBadSize},
			"a transpose without BlockIdx":     {TransposeIndex(background, s, x.DeviceIndex, d), ErrNullPointer},
			"matrices of other sizes":          {BlockDiagonal(background, s, x.DeviceIndex, []DeviceBSR[float32, int32]{d, d}), ErrBadSize},
			"blocks that BlockIdx cannot name": {PatternOfBlocks[float32](background, s, few.DeviceIndex, nil, every, ofEvery, 1, 0), ErrBadSize},
			"CSR in blocks":                    {ToCSR(background, s, x.DeviceIndex, nil, d), ErrBadSize},
			"blocks of blocks":                 {PatternFromCSR(background, s, x.DeviceIndex, nil, d), ErrBadSize},
			"norms of the wrong type":          {BlockNorms(background, s, d, MaxNorm, doubles), ErrUnsupportedDType},
			"sums of the wrong type":           {SumRows(background, s, d, filled(t, engine, make([]float64, 64))), ErrUnsupportedDType},
			"a norm that does not exist":       {BlockNorms(background, s, d, 3, filled(t, engine, make([]float32, 16))), ErrBadArgument},
			"an output that is too short":      {BlockNorms(background, s, d, MaxNorm, filled(t, engine, make([]float32, 1))), ErrBadSize},
			"values of two that are too few":   {AddValues(background, s, 1, d, 1, floats, floats), ErrBadSize},
			"a dense matrix in host memory":    {ToDense(background, s, d, Dense[float32]{Rows: 64, Cols: 64, Data: make([]float32, 64*64)}), ErrWrongMemory},
			"a dense matrix of another type":   {ToDense(background, s, d, DeviceDense[float64]{Rows: 4, Cols: 4, Buffer: doubles}), ErrUnsupportedDType},
			"a dense matrix of another shape":  {ToDense(background, s, d, scores), ErrBadSize},
		} {
			if !errors.Is(c.err, c.want) {
				t.Errorf("%s: %v", name, c.err)
			}
		}
	})
}
