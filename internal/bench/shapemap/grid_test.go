// SPDX-License-Identifier: Apache-2.0

package shapemap

import (
	"slices"
	"strings"
	"testing"

	"github.com/sparsek/sparsek/internal/matrix/pattern"
	sparsek "github.com/sparsek/sparsek/wrapper"
)

// Each matrix of the whole grid can be made, comes once, and has a size that a map can afford.
func TestWholeGrid(t *testing.T) {
	for _, backend := range []sparsek.Backend{sparsek.CPU, sparsek.CUDA} {
		grid := Grid{}.Whole(backend)
		if err := grid.Check(); err != nil {
			t.Fatal(err)
		}
		list := grid.Matrices()
		if want := len(grid.Types) * len(Blocks) * len(Patterns); len(list) != want || len(grid.N)*len(list) < 1000 {
			t.Errorf("%d matrices, want %d", len(list), want)
		}
		seen := map[Key]bool{}
		for _, m := range list {
			key := Key{m.DType, m.Pattern, m.Block, 0}
			if seen[key] {
				t.Errorf("%v comes twice", key)
			}
			seen[key] = true
			spec := m.Spec(backend, 5)
			blocks, err := spec.Blocks()
			if err != nil {
				t.Errorf("%v: %v", key, err)
			}
			values := blocks * float64(m.Block*m.Block)
			if uses, err := pattern.UsesDensity(spec.Name); err != nil || uses && !(spec.Density > 0) || spec.BlockRows != spec.BlockCols || values < 1e5 || values > 1e8 {
				t.Errorf("%v: %+v, %g values, %v", key, spec, values, err)
			}
		}
	}
}

// What is measured first is spread over the blocks.
func TestOrder(t *testing.T) {
	if sorted := slices.Sorted(slices.Values(order)); !slices.Equal(sorted, Blocks) {
		t.Errorf("blocks in order: %v", sorted)
	}
	list := Grid{Types: []string{"fp32"}, Patterns: []string{"window"}, Blocks: []int{2, 16, 1}, N: []int{1}}.Matrices()
	if len(list) != 3 || list[0].Block != 16 || list[1].Block != 1 || list[2].Block != 2 {
		t.Errorf("%+v", list)
	}
}

func TestGridCheck(t *testing.T) {
	for want, g := range map[string]Grid{
		"no type fp8":       {Types: []string{"fp32", "fp8"}},
		"no pattern spiral": {Patterns: []string{"spiral"}},
		"no block 5":        {Blocks: []int{4, 5}},
		"no N 3":            {N: []int{3}},
	} {
		if err := g.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
