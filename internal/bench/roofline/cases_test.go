// SPDX-License-Identifier: Apache-2.0

package roofline

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

func TestCases(t *testing.T) {
	all := Cases()
	names := map[string]bool{}
	for _, c := range all {
		if names[c.Name] {
			t.Errorf("%s comes twice", c.Name)
		}
		names[c.Name] = true
	}
	for _, c := range all {
		p, err := c.Generate()
		if err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
		if err := p.Validate(); err != nil || p.BlockRows*c.BlockM < c.M || p.BlockCols*c.BlockK < c.K {
			t.Errorf("%s: %d x %d blocks, %v", c.Name, p.BlockRows, p.BlockCols, err)
		}
		if c.Reach.String() == "" || c.Reach.Of != "" && (!names[c.Reach.Of] || c.Reach.Of == c.Name) {
			t.Errorf("%s is to reach %+v", c.Name, c.Reach)
		}
		if decode := c.N <= 64; decode != (c.GraphReach.Seconds > 0) || decode && c.GraphReach.Seconds >= c.Reach.Seconds {
			t.Errorf("%s is to reach %+v in a graph and %+v launched", c.Name, c.GraphReach, c.Reach)
		}
	}
}

// What the names promise: blocks in a block row, the same in every one.
func TestRandomRows(t *testing.T) {
	for name, want := range map[string]int{
		"b64-random-4096": 8, "b64-random": 16, "b64-random-2": 3, "b64-random-50": 64, "b128-random": 8, "b128-random-50": 32,
		"b256-random-25": 8, "b32-random": 32, "b16-random": 64, "b64x32-random": 32, "b32x64-random": 16, "b128x64-random": 16,
		"b512x112-random": 16, "decode-16": 26, "decode-64": 26,
	} {
		list, err := Find([]string{name})
		if err != nil {
			t.Fatal(err)
		}
		p, err := list[0].Generate()
		if err != nil {
			t.Fatal(err)
		}
		for r := range p.BlockRows {
			if got := len(p.Row(r)); got != want {
				t.Fatalf("%s: block row %d has %d blocks, want %d", name, r, got, want)
			}
		}
	}
}

func TestShuffled(t *testing.T) {
	list, err := Find([]string{"b64-window", "b64-shuffled"})
	if err != nil {
		t.Fatal(err)
	}
	window, err := list[0].Generate()
	if err != nil {
		t.Fatal(err)
	}
	shuffled, err := list[1].Generate()
	if err != nil {
		t.Fatal(err)
	}
	if density := window.Density(); math.Abs(density-0.128) > 0.001 {
		t.Errorf("the window holds %v of all blocks", density)
	}
	var rows [2][]string
	near := 0
	for r := range window.BlockRows {
		rows[0] = append(rows[0], fmt.Sprint(window.Row(r)))
		rows[1] = append(rows[1], fmt.Sprint(shuffled.Row(r)))
		if rows[0][r] == rows[1][r] {
			near++
		}
	}
	if near > window.BlockRows/8 {
		t.Errorf("%d of %d block rows stayed where they were", near, window.BlockRows)
	}
	slices.Sort(rows[0])
	slices.Sort(rows[1])
	if !slices.Equal(rows[0], rows[1]) {
		t.Error("the block rows are not the same ones")
	}
}

func TestFind(t *testing.T) {
	if list, err := Find(nil); err != nil || len(list) != len(Cases()) {
		t.Errorf("%d cases, %v", len(list), err)
	}
	if list, err := Find([]string{"decode-64", "b16-window"}); err != nil || len(list) != 2 || list[0].N != 64 || list[1].BlockM != 16 {
		t.Errorf("%+v, %v", list, err)
	}
	if _, err := Find([]string{"decode-64", "no such"}); err == nil {
		t.Error("a case that does not exist was found")
	}
}
