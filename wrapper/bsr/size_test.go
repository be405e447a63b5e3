// SPDX-License-Identifier: Apache-2.0

package bsr

import (
	"context"
	"testing"
)

// blocky is a matrix of n x n with full blocks of size x size at the given block places.
func blocky(n, size int, places ...[2]int) *Entries {
	e := &Entries{Rows: n, Cols: n}
	for _, p := range places {
		for i := range size {
			for j := range size {
				e.Add(int32(p[0]*size+i), int32(p[1]*size+j), 1)
			}
		}
	}
	return e
}

func TestCompareSizes(t *testing.T) {
	e := blocky(96, 16, [2]int{0, 0}, [2]int{2, 3}, [2]int{5, 5})
	list, err := CompareSizes(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	want := map[int]Fit{ // by size
		1:   {Blocks: 768, Stored: 768, FillIn: 1},
		16:  {Blocks: 3, Stored: 768, FillIn: 1, Best: true},
		32:  {Blocks: 3, Stored: 3072, FillIn: 4},
		64:  {Blocks: 2, Stored: 8192, FillIn: 8192. / 768},
		128: {Blocks: 1, Stored: 16384, FillIn: 16384. / 768},
	}
	for _, f := range list {
		w, ok := want[f.BlockM]
		if delete(want, f.BlockM); ok && (f.Blocks != w.Blocks || f.Stored != w.Stored || f.FillIn != w.FillIn) || f.Best != w.Best || f.Own {
			t.Errorf("%+v, want %+v", f, w)
		}
	}
	if len(want) > 0 {
		t.Errorf("missing: %v", want)
	}
}

// The sizes of a file are among them, in their order.
func TestOwnBlocks(t *testing.T) {
	e := blocky(90, 3, [2]int{0, 0}, [2]int{7, 9}, [2]int{20, 20}, [2]int{29, 0})
	e.BlockM, e.BlockK = 3, 3
	list, err := CompareSizes(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	if f := list[2]; !f.Own || f.BlockM != 3 || f.Blocks != 4 || f.FillIn != 1 || !f.Best {
		t.Errorf("%+v", list)
	}
	if m, k, err := BestSize(t.Context(), e); m != 3 || k != 3 || err != nil {
		t.Error(m, k, err)
	}
}

func TestSmallAndStopped(t *testing.T) {
	for _, e := range []*Entries{{}, {Rows: 1, Cols: 1}, blocky(5, 5, [2]int{0, 0})} {
		if list, err := CompareSizes(t.Context(), e); err != nil || len(list) == 0 || list[len(list)-1].BlockM > 8 {
			t.Errorf("%+v, %v", list, err)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := CompareSizes(ctx, &Entries{}); err == nil {
		t.Error("not stopped")
	}
}

// A block costs as much as 32 elements more: a few zeros in fewer blocks are better than many small blocks.
func TestBlocksCost(t *testing.T) {
	e := &Entries{Rows: 64, Cols: 64}
	e.Add(0, 0, 1)
	e.Add(1, 1, 1)
	if m, k, err := BestSize(t.Context(), e); m != 2 || k != 2 || err != nil {
		t.Error(m, k, err)
	}
}
