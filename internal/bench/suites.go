// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"strings"

	"github.com/sparsek/sparsek/internal/bench/workload"
	"github.com/sparsek/sparsek/internal/matrix/pattern"
	sparsek "github.com/sparsek/sparsek/wrapper"
)

// The suites.
const (
	Basic    = "basic"    // what a first look wants
	Sweep    = "sweep"    // densities from 1 to 100 %, to the break-even with a dense product
	Blocks   = "blocks"   // block sizes at one density
	Decode   = "decode"   // few columns
	Patterns = "patterns" // all of internal/matrix/pattern at one size
	Files    = "files"    // the user's own matrices
)

// Settings are what the user may change of a suite; zero values: the suite's own.
type Settings struct {
	Backend        sparsek.Backend // CPU or CUDA
	DType          string          // default: bf16 on a GPU, fp32 on the CPU
	Shape          workload.Shape
	BlockM, BlockK int
	Density        float64
	Seed           uint64
	N              int     // of Files: columns of B
	Files          []*File // of Files
}

// suite makes the cases of one; what it does not take of the settings, Takes does not list.
type suite struct {
	name  string
	takes []string // settings, by the names of their flags
	cases func(Settings) []Case
}

func suites() []suite {
	return []suite{
		{Basic, nil, basic},
		{Sweep, []string{"size", "dtype"}, sweep},
		{Blocks, []string{"size", "dtype", "density"}, blockSizes},
		{Decode, []string{"dtype", "density", "block"}, decode},
		{Patterns, []string{"size", "dtype", "density", "block"}, patterns},
		{Files, []string{"dtype", "block", "n", "matrix"}, files},
	}
}

// Suites lists the names of the suites.
func Suites() []string {
	var names []string
	for _, s := range suites() {
		names = append(names, s.name)
	}
	return names
}

// Takes lists the settings that a suite takes: of "size", "dtype", "density", "block", "n" and "matrix".
func Takes(name string) []string {
	for _, s := range suites() {
		if s.name == name {
			return s.takes
		}
	}
	return nil
}

// Cases are those of a suite that have one of the names, in that order, or all where there are none.
func Cases(name string, o Settings, names []string) ([]Case, error) {
	for _, s := range suites() {
		if s.name != name {
			continue
		}
		if o.DType == "" {
			o.DType = workload.Float32.Name // the one that dense libraries on the CPU have too
			if o.Backend == sparsek.CUDA {
				o.DType = workload.BFloat16.Name
			}
		}
		all := s.cases(o)
		for i := range all {
			all[i].Seed = o.Seed
		}
		if len(names) == 0 {
			return suitable(all, name, o.Backend), nil
		}
		return pick(all, names)
	}
	return nil, fmt.Errorf("there is no suite %q: take one of %s", name, strings.Join(Suites(), ", "))
}

func pick(all []Case, names []string) ([]Case, error) {
	byName := map[string]Case{}
	var known []string
	for _, c := range all {
		byName[c.Name] = c
		known = append(known, c.Name)
	}
	var list []Case
	for _, name := range names {
		c, ok := byName[name]
		if !ok {
			return nil, fmt.Errorf("there is no case %q: take some of %s", name, strings.Join(known, ", "))
		}
		list = append(list, c)
	}
	return list, nil
}

// or is v, or d where v is zero.
func or[V comparable](v, d V) V {
	var zero V
	if v == zero {
		return d
	}
	return v
}

// shape is the size of a suite, unless the user has another: smaller on the CPU, so that it takes about a minute there
// at most.
func shape(o Settings) workload.Shape {
	own := workload.Shape{M: 2048, N: 256, K: 2048}
	if o.Backend == sparsek.CUDA {
		own = workload.Shape{M: 8192, N: 8192, K: 8192}
	}
	return or(o.Shape, own)
}

func random(name string, shape workload.Shape, blockM, blockK int, density float64, dtype string) Case {
	return Case{Name: name, Shape: shape, BlockM: blockM, BlockK: blockK, DType: dtype, Pattern: "random", Density: density}
}

// basicCases say on which back-ends they run without being named.
var basicCases = []struct {
	name     string
	size     int
	block    int
	pattern  string
	density  float64
	dtype    string
	cpu, gpu bool
}{
	{"random-64", 4096, 64, "random", 0.125, "bf16", true, true},
	{"random-128", 8192, 128, "random", 0.125, "bf16", false, true},
	{"window-64", 4096, 64, "window", 0.125, "bf16", true, true},
	{"causal-64", 4096, 64, "causal", 0, "bf16", false, true},
	{"zipf-64", 4096, 64, "zipf", 0.125, "bf16", false, true},
	{"fp16-64", 4096, 64, "random", 0.125, "fp16", false, true},
	{"fp32-64", 2048, 64, "random", 0.125, "fp32", true, false},
	{"fp32-128", 2048, 128, "random", 0.25, "fp32", true, false},
}

func basic(Settings) []Case {
	var list []Case
	for _, b := range basicCases {
		list = append(list, Case{Name: b.name, Shape: workload.Shape{M: b.size, N: b.size, K: b.size}, BlockM: b.block, BlockK: b.block,
			DType: b.dtype, Pattern: b.pattern, Density: b.density})
	}
	return list
}

// suitable leaves out what is not run on a back-end unless it is named.
func suitable(all []Case, name string, backend sparsek.Backend) []Case {
	if name != Basic {
		return all
	}
	var list []Case
	for i, b := range basicCases {
		if b.gpu && backend == sparsek.CUDA || b.cpu && backend != sparsek.CUDA {
			list = append(list, all[i])
		}
	}
	return list
}

var (
	sweepBlocks    = []int{16, 32, 64, 128}
	sweepDensities = []float64{0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 1}
)

func sweep(o Settings) []Case {
	var list []Case
	size := shape(o)
	for _, block := range sweepBlocks {
		last := 0.0
		for _, density := range sweepDensities {
			inRow := max(1, math.RoundToEven(density*float64(blocks(size.K, block))))
			if inRow == last {
				continue // large blocks cannot be so few: it is the case before
			}
			last = inRow
			list = append(list, random(fmt.Sprintf("b%d-d%g", block, 100*density), size, block, block, density, o.DType))
		}
	}
	return list
}

// blockShapes are those that kernels were tuned for.
var blockShapes = [][2]int{
	{16, 16}, {32, 32}, {64, 64}, {128, 128}, {256, 256}, {32, 64}, {64, 32}, {64, 128}, {128, 64}, {512, 112},
}

func blockSizes(o Settings) []Case {
	var list []Case
	for _, b := range blockShapes {
		list = append(list, random(fmt.Sprintf("b%dx%d", b[0], b[1]), shape(o), b[0], b[1], or(o.Density, 0.125), o.DType))
	}
	return list
}

var decodeColumns = []int{1, 8, 16, 32, 64, 128}

func decode(o Settings) []Case {
	var list []Case
	for _, n := range decodeColumns {
		size := shape(o)
		size.N = n
		c := random(fmt.Sprintf("n%d", n), size, or(o.BlockM, 64), or(o.BlockK, 64), or(o.Density, 0.2), o.DType)
		c.Graph = true
		list = append(list, c)
	}
	return list
}

func patterns(o Settings) []Case {
	var list []Case
	for _, name := range pattern.Names() {
		c := random(name, shape(o), or(o.BlockM, 64), or(o.BlockK, 64), or(o.Density, 0.125), o.DType)
		c.Pattern = name
		if uses, err := pattern.UsesDensity(name); err != nil || !uses {
			c.Density = 0 // it has its own
		}
		list = append(list, c)
	}
	return list
}

func files(o Settings) []Case {
	var list []Case
	seen := map[string]bool{}
	for _, f := range o.Files {
		name := filepath.Base(f.Path)
		if seen[name] {
			name = f.Path
		}
		seen[name] = true
		list = append(list, Case{Name: name, File: f, DType: o.DType,
			BlockM: cmp.Or(o.BlockM, f.Entries.BlockM, 64), BlockK: cmp.Or(o.BlockK, f.Entries.BlockK, 64),
			Shape: workload.Shape{M: f.Entries.Rows, N: or(o.N, 256), K: f.Entries.Cols}})
	}
	return list
}
