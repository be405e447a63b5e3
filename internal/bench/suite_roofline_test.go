// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/sparsek/sparsek/internal/bench/workload"
	"github.com/sparsek/sparsek/wrapper/bsr"
)

// patternOf is the pattern of a case of the roofline suite.
func patternOf(t *testing.T, name string) bsr.Pattern {
	t.Helper()
	list, err := Cases(Roofline, Settings{}, []string{name})
	if err != nil {
		t.Fatal(err)
	}
	c := list[0]
	p, err := c.Generate()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestRooflineCases(t *testing.T) {
	all, err := Cases(Roofline, Settings{}, nil)
	if err != nil {
		t.Fatalf("%d cases, %v", len(all), err)
	}
	for _, c := range all {
		p := patternOf(t, c.Name)
		if err := p.Validate(); err != nil || p.BlockRows*c.BlockM < c.Shape.M || p.BlockCols*c.BlockK < c.Shape.K {
			t.Errorf("%s: %d x %d blocks, %v", c.Name, p.BlockRows, p.BlockCols, err)
		}
		if small := c.BlockM <= 8; c.Seed != 1 || c.DType != workload.BFloat16.Name && !small {
			t.Errorf("%s: %+v", c.Name, c)
		}
		if c.Reach.String() == "" || c.Reach.Of != "" && (!slices.ContainsFunc(all, func(o Case) bool { return o.Name == c.Reach.Of }) || c.Reach.Of == c.Name) {
			t.Errorf("%s is to reach %+v", c.Name, c.Reach)
		}
		if decode := c.Shape.N <= 64; decode != (c.GraphReach.Seconds > 0) || decode != c.Graph || decode && c.GraphReach.Seconds > c.Reach.Seconds {
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
		p := patternOf(t, name)
		for r := range p.BlockRows {
			if got := len(p.Row(r)); got != want {
				t.Fatalf("%s: block row %d has %d blocks, want %d", name, r, got, want)
			}
		}
	}
}

func TestShuffled(t *testing.T) {
	window, shuffled := patternOf(t, "b64-window"), patternOf(t, "b64-shuffled")
	if density := window.Density(); math.Abs(density-0.128) > 0.001 {
		t.Errorf("the window holds %v of all blocks", density)
	}
	var rows [2][]string
	stayed := 0
	for r := range window.BlockRows {
		rows[0] = append(rows[0], fmt.Sprint(window.Row(r)))
		rows[1] = append(rows[1], fmt.Sprint(shuffled.Row(r)))
		if rows[0][r] == rows[1][r] {
			stayed++
		}
	}
	if stayed > window.BlockRows/8 {
		t.Errorf("%d of %d block rows stayed where they were", stayed, window.BlockRows)
	}
	slices.Sort(rows[0])
	slices.Sort(rows[1])
	if !slices.Equal(rows[0], rows[1]) {
		t.Error("the block rows are not the same ones")
	}
}

// What a case reaches of its goal, whatever kind the goal is of.
func TestGoals(t *testing.T) {
	const flop = 2e9
	result := func(name string, rate, dense float64) *Result {
		r := &Result{Name: name, EffectiveFLOP: flop, DenseFLOP: flop, Timed: []Timed{{Name: Ours, Effective: rate}}}
		if dense > 0 {
			r.Timed = append(r.Timed, Timed{Name: CUBLAS, DenseEquivalent: dense}, Timed{Name: CUBLASFull, DenseEquivalent: dense / 2})
		}
		return r
	}
	decode, dense := result("decode", 100, 0), result("attention", 300, 0)
	dense.Timed = append(dense.Timed, Timed{Name: FA3, Dense: true, Effective: 100, DenseEquivalent: 500}, Timed{Name: Flex, Effective: 400, DenseEquivalent: 900})
	decode.Timed = append(decode.Timed, Timed{Name: OursGraph, Effective: 400})
	results := []*Result{
		result("rate", 200, 0), result("dense", 210, 200), result("dense, not measured", 210, 0), result("other", 190, 0),
		result("other, not measured", 190, 0), decode,
		dense, result("beside flex", 300, 0), result("nothing wanted", 5, 0),
	}
	cases := []Case{
		{Name: "rate", Reach: Reach{TFLOPs: 400}}, {Name: "dense", Reach: Reach{DenseShare: 1.05}}, {Name: "dense, not measured", Reach: Reach{DenseShare: 1.05}},
		{Name: "other", Reach: Reach{Share: 0.95, Of: "rate"}}, {Name: "other, not measured", Reach: Reach{Share: 0.95, Of: "elsewhere"}},
		{Name: "decode", Reach: Reach{Seconds: 10e-6}, GraphReach: Reach{Seconds: 4e-6}},
		{Name: "attention", Reach: Reach{Share: 0.9, Of: "attention", By: FA3}}, {Name: "beside flex", Reach: Reach{Share: 0.5, Of: "attention", By: Flex}}, {Name: "nothing wanted"}, {Name: "no result", Reach: Reach{TFLOPs: 1}},
	}
	setGoals(results, cases)
	for i, want := range []float64{0.5, 1, 0, 1, 0, 0.5, 300. / 450, 1.5} {
		if got := results[i].Timed[0].Goal; got == nil || math.Abs(got.Reached-want) > 1e-9 || got.Text != cases[i].Reach.String() {
			t.Errorf("%s: %+v, want %v", results[i].Name, got, want)
		}
	}
	if graph := decode.Timed[1].Goal; graph == nil || math.Abs(graph.Reached-0.8) > 1e-9 || graph.Text != "4.0 us" {
		t.Errorf("in a graph: %+v", graph)
	}
	if last := results[len(results)-1]; last.Timed[0].Goal != nil {
		t.Errorf("%+v", last.Timed[0].Goal)
	}
}
