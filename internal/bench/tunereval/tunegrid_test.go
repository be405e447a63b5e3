// SPDX-License-Identifier: Apache-2.0

package tunereval

import (
	"github.com/sparsek/sparsek/wrapper/bsr"
	"reflect"
	"testing"
)

// The grid is what it was when it was fixed: a change of the drawing would choose other cases to be judged by.
func TestGridIsFixed(t *testing.T) {
	grid := Draw(Seed, Count)
	if got, want := grid[0].String(), "1024x400x2048 b16x16 random"; got != want {
		t.Errorf("the first case is %s, want %s", got, want)
	}
	if got, want := grid[Count-1].String(), "1024x6120x4096 b128x128 blockdiag"; got != want {
		t.Errorf("the last case is %s, want %s", got, want)
	}
	if !reflect.DeepEqual(grid, Draw(Seed, Count)) || reflect.DeepEqual(grid, Draw(Seed+1, Count)) {
		t.Error("a grid is not what its seed says")
	}
}

// It has what it promises: 60 cases or more, six patterns, blocks from 16 to 256, N from 16 to 8192 and densities from 1
// to 90 percent.
func TestGridIsWide(t *testing.T) {
	grid := Draw(Seed, Count)
	if len(grid) < 60 {
		t.Fatalf("%d cases", len(grid))
	}
	patterns, blocks := map[string]bool{}, map[int]bool{}
	few, many, sparse, dense := 0, 0, 0, 0
	for _, c := range grid {
		patterns[c.Pattern], blocks[c.BlockM] = true, true
		if c.N < leastN || c.N > mostN || c.N%multipleN != 0 || c.Density < leastDensity || c.Density > mostDensity {
			t.Errorf("%+v", c)
		}
		if c.N <= 64 {
			few++
		}
		if c.N >= 2048 {
			many++
		}
		if c.Density < 0.05 {
			sparse++
		}
		if c.Density > 0.4 {
			dense++
		}
	}
	if len(patterns) != 6 || !blocks[16] || !blocks[256] || min(few, many, sparse, dense) < 5 {
		t.Errorf("%d patterns, blocks %v, %d narrow, %d wide, %d sparse, %d dense", len(patterns), blocks, few, many, sparse, dense)
	}
	for _, c := range grid {
		if c.M*c.K > 1024*2048 { // the others are alike, and take longer
			continue
		}
		if p, err := c.Generate(); err != nil || p.BlockRows*c.BlockM < c.M {
			t.Errorf("%v: %v", c, err)
		}
	}
}

// Block rows of 16 rows: two share one of three columns, one has four of its own, one has none, and one is alone in its
// group.
func TestLoads(t *testing.T) {
	p := bsr.Pattern{BlockRows: 5, BlockCols: 8, RowPtr: []int32{0, 2, 4, 8, 8, 9}, ColIdx: []int32{0, 1, 1, 2, 0, 3, 4, 7, 1}}
	for height, want := range map[int]GroupLoads{16: {9, 4}, 32: {8, 4}, 64: {7, 6}, 8: {18, 4}, 24: {11, 6}} {
		if got := LoadsOf(p, 80, 16, height); got != want {
			t.Errorf("groups of %d rows: %v, want %v", height, got, want)
		}
	}
}
