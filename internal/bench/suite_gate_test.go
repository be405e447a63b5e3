// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"slices"
	"testing"

	sparsek "github.com/sparsek/sparsek/wrapper"
)

// The gate has every case of roofline, and of each product and order some.
func TestGateCases(t *testing.T) {
	all, err := GateCases(nil)
	if err != nil || len(all) != len(GateNames()) || len(all) != len(rooflineSuite(Settings{}))+len(ofTraining) {
		t.Fatalf("%d cases, %v", len(all), err)
	}
	seen := map[any]bool{}
	for i, c := range all {
		if c.Name != GateNames()[i] || c.Reach != (Reach{}) || c.GraphReach != (Reach{}) || c.Graph || c.Seed != rooflineSeed {
			t.Errorf("%+v", c)
		}
		seen[c.Form.Op] = true
		if c.Form.Op == sparsek.SDD {
			seen[c.BlockM] = true
			continue
		}
		seen[[2]sparsek.Order{c.Form.OrderB, c.Form.OrderC}] = true
	}
	for _, op := range []sparsek.Op{sparsek.DSD, sparsek.DSDT, sparsek.SDD, sparsek.DDS, sparsek.DDST} {
		if !seen[op] {
			t.Errorf("no case of %v", op)
		}
	}
	for _, orderB := range []sparsek.Order{sparsek.RowMajor, sparsek.ColumnMajor} {
		for _, orderC := range []sparsek.Order{sparsek.RowMajor, sparsek.ColumnMajor} {
			if !seen[[2]sparsek.Order{orderB, orderC}] {
				t.Errorf("no case with a %v B and a %v C", orderB, orderC)
			}
		}
	}
	for _, block := range []int{16, 32, 64, 128} {
		if !seen[block] {
			t.Errorf("no SDD of blocks of %d", block)
		}
	}
	for _, c := range rooflineSuite(Settings{}) {
		if !slices.Contains(GateNames(), c.Name) {
			t.Errorf("%s is not under the gate", c.Name)
		}
	}
}

// The gate has a short form of the map, products that memory limits: each kind of pattern, one column and more, and blocks that
// the tensor cores' tiles do not divide into.
func TestGateHasShortMap(t *testing.T) {
	all, err := GateCases(nil)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[any]bool{}
	for _, c := range all {
		if c.Form.Op == sparsek.DSD && c.BlockM <= 8 && c.Shape.N <= 128 {
			seen[c.Pattern], seen[c.DType], seen[c.BlockM], seen[[2]int{c.BlockM, c.Shape.N}] = true, true, true, true
		}
	}
	for _, want := range []any{"stencil27", "random", "zipf", "fp32", "bf16", 1, 3, 4, 8, [2]int{1, 1}, [2]int{3, 1}, [2]int{3, 8}, [2]int{3, 128},
		[2]int{4, 64}, [2]int{8, 8}, [2]int{8, 128}} {
		if !seen[want] {
			t.Errorf("no small product of %v", want)
		}
	}
}
