// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/sparsek/sparsek/internal/bench/workload"
	"github.com/sparsek/sparsek/internal/matrix/pattern"
	sparsek "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/bsr"
)

// Every case of every suite can be made: names differ, densities are of patterns that take one.
func TestSuites(t *testing.T) {
	for _, suite := range Suites() {
		name := suite.Name
		for _, backend := range []sparsek.Backend{sparsek.CPU, sparsek.CUDA} {
			cases, err := Cases(name, Settings{Backend: backend, Seed: 9, Files: []*File{{"a.mtx", &bsr.Entries{Rows: 8, Cols: 4}}}}, nil)
			if err != nil || len(cases) == 0 {
				t.Fatalf("%s: %d cases, %v", name, len(cases), err)
			}
			seen := map[string]bool{}
			for _, c := range cases {
				if seen[c.Name] {
					t.Errorf("%s: %s comes twice", name, c.Name)
				}
				seen[c.Name] = true
				if c.Attention != nil {
					attentionOfSuite(t, c, backend)
					continue
				}
				if fixed := slices.Contains([]string{Roofline, PeerTable, Shared, InfAndNaN, Steps, Training, Gate}, name); fixed != (c.Seed == 1) || fixed == (c.Seed == 9) || c.Shape.M < 1 || c.Shape.N < 1 || c.Shape.K < 1 || c.BlockM < 1 || c.BlockK < 1 {
					t.Errorf("%s: %+v", name, c)
				}
				if !slices.Contains([]string{"bf16", "fp16", "fp32", "fp64"}, c.DType) {
					t.Errorf("%s, %s: type %q", name, c.Name, c.DType)
				}
				if c.File != nil {
					continue
				}
				if bytes := HostBytes([]Case{c}, backend, true); bytes > 10<<30 {
					t.Errorf("%s, %s: the operands take %.3g bytes", name, c.Name, bytes)
				}
				if c.Experts != nil { // by counts
					continue
				}
				if uses, err := pattern.UsesDensity(c.Pattern); err != nil || uses != (c.Density > 0) {
					t.Errorf("%s, %s: pattern %s with density %v, %v", name, c.Name, c.Pattern, c.Density, err)
				}
			}
			if one, err := Cases(name, Settings{Backend: backend, Files: []*File{{"a.mtx", &bsr.Entries{Rows: 8, Cols: 4}}}}, []string{cases[0].Name}); err != nil || len(one) != 1 {
				t.Errorf("%s, %s: %v, %v", name, cases[0].Name, one, err)
			}
		}
	}
	if _, err := Cases("none", Settings{}, nil); err == nil || !strings.Contains(err.Error(), "basic, sweep") {
		t.Error(err)
	}
	if _, err := Cases(Sweep, Settings{}, []string{"b17"}); err == nil || !strings.Contains(err.Error(), "b16-d1") {
		t.Error(err)
	}
}

// attentionOfSuite is for a case of attention what TestSuites is for products.
func attentionOfSuite(t *testing.T, c Case, backend sparsek.Backend) {
	t.Helper()
	a := c.Attention
	if _, _, err := a.Layout(); err != nil || a.Seed != rooflineSeed || c.Seed != rooflineSeed || c.DType == "" {
		t.Errorf("%s: %+v, %v", c.Name, c, err)
	}
	if a.Pattern != workload.AllBlocks {
		if uses, err := pattern.UsesDensity(a.Pattern); err != nil || uses != (a.Density > 0) || a.BlockQ < 1 || a.BlockK < 1 || a.HeadsQ%max(1, a.LayoutHeads) != 0 {
			t.Errorf("%s: %+v, %v", c.Name, a, err)
		}
	}
	if bytes := HostBytes([]Case{c}, backend, true); bytes > 2<<30 {
		t.Errorf("%s: the operands take %.3g bytes", c.Name, bytes)
	}
}

// What the user may change is changed, and the sweep has no two cases of the same number of blocks.
func TestSettings(t *testing.T) {
	shape := workload.Shape{M: 512, N: 32, K: 256}
	settings := Settings{Backend: sparsek.CPU, DType: "fp16", Shape: shape, BlockM: 8, BlockK: 16, Density: 0.25, N: 5,
		Files: []*File{{"x/a.mtx", &bsr.Entries{Rows: 8, Cols: 4}}, {"y/a.mtx", &bsr.Entries{Rows: 8, Cols: 4}}}}
	for _, suite := range Suites() {
		name := suite.Name
		cases, err := Cases(name, settings, nil)
		if err != nil {
			t.Fatal(err)
		}
		takes := func(setting string) bool { return slices.Contains(suite.Takes, setting) }
		for _, c := range cases {
			if takes("size") && c.Shape != shape || takes("dtype") && c.DType != "fp16" || takes("block") && (c.BlockM != 8 || c.BlockK != 16) ||
				takes("density") && c.Density != 0.25 && c.Density != 0 || takes("n") && c.Shape.N != 5 {
				t.Errorf("%s: %+v", name, c)
			}
		}
		if name == Files && (cases[0].Name != "a.mtx" || cases[1].Name != "y/a.mtx") {
			t.Errorf("files: %+v", cases)
		}
	}
	counts := map[int][]int{}
	cases, err := Cases(Sweep, settings, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		a, _, err := load(c, workload.Float16)
		if err != nil {
			t.Fatal(err)
		}
		if slices.Contains(counts[c.BlockM], a.Blocks()) {
			t.Errorf("%s has as many blocks as another", c.Name)
		}
		counts[c.BlockM] = append(counts[c.BlockM], a.Blocks())
	}
}

// Of attention there are the random numbers and the results on the host, and on the CPU the operands.
func TestHostBytesOfAttention(t *testing.T) {
	a := workload.Attention{Batch: 2, HeadsQ: 4, HeadsK: 2, Seq: 1000, HeadSize: 64, Pattern: workload.AllBlocks}
	const q, k, element = 2 * 4 * 1000 * 64, 2 * 2 * 1000 * 64, 4
	for _, one := range []struct {
		backend  sparsek.Backend
		backward bool
		want     float64
	}{{sparsek.CUDA, false, element * (q + q + k)}, {sparsek.CUDA, true, element * (q + 2*(q+k))}, {sparsek.CPU, true, element * (q + 2*(q+k) + 4*(q+k))}} {
		c := attentionCase("a", a, "fp32")
		c.Backward = one.backward
		if got := HostBytes([]Case{c, c}, one.backend, true); math.Abs(got/one.want-1) > 0.1 {
			t.Errorf("%v, %v: %v bytes, want %v", one.backend, one.backward, got, one.want)
		}
	}
}

// On the CPU the operands are on the host too, and files are counted by their elements.
func TestHostBytes(t *testing.T) {
	c := Case{Shape: workload.Shape{M: 1000, N: 100, K: 1000}, BlockM: 10, BlockK: 10, DType: "fp32", Pattern: "random", Density: 0.5}
	const a, b, out = 4e6, 4e5, 4e5
	index := workload.IndexBytes(200, 5000)
	for _, one := range []struct {
		backend sparsek.Backend
		dense   bool
		want    float64
	}{
		{sparsek.CUDA, false, a/2 + b + out},
		{sparsek.CUDA, true, a/2 + a + out},
		{sparsek.CPU, false, a/2 + b + out + 3*(b+out)},
		{sparsek.CPU, true, a/2 + b + out + 3*(b+out) + a},
	} {
		if got := HostBytes([]Case{c, c}, one.backend, one.dense); got != one.want+index {
			t.Errorf("%v, dense %v: %v, want %v", one.backend, one.dense, got, one.want+index)
		}
	}
	c.Shape, c.File = workload.Shape{M: 1e6, N: 100, K: 1e6}, &File{Entries: &bsr.Entries{Rows: 1e6, Cols: 1e6, Value: make([]float64, 7)}}
	if got, want := HostBytes([]Case{c}, sparsek.CUDA, true), 7*100*4+workload.IndexBytes(2e5, 7)+1e8*4+1e8*4.; got != want {
		t.Errorf("a large file: %v, want %v", got, want)
	}
}
