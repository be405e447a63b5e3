// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sparsek/sparsek/internal/bench/workload"
	"github.com/sparsek/sparsek/internal/matrix/pattern"
	sparsek "github.com/sparsek/sparsek/wrapper"
)

// The suites.
const (
	Basic     = "basic"     // a first look
	Sweep     = "sweep"     // densities from 1 to 100 %, to the break-even with a dense product
	Blocks    = "blocks"    // block sizes at one density
	Decode    = "decode"    // few columns
	Patterns  = "patterns"  // all of internal/matrix/pattern at one size
	Roofline  = "roofline"  // what the project holds itself to
	PeerTable = "peers"     // a few cases beside all that one would take without this library
	Shared    = "shared"    // some SMs are held by another kernel
	InfAndNaN = "nonfinite" // B holds Inf or NaN
	Steps     = "dynamic"   // a new pattern with each step
	Training  = "training"  // A^T B, B A, B A^T and SDD
	Gate      = "gate"      // what must not get slower: roofline and some of training
	Files     = "files"     // the user's own matrices

	AttentionSuite = "attention" // attention over layouts, by rules and dense
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

// Suite is a list of cases with what belongs to it.
type Suite struct {
	Name    string
	Summary string
	// The settings that it takes, by the names of their flags: of "size", "dtype", "density", "block", "n", "matrix" and
	// "seed".
	Takes     []string
	GPU       bool          // its sizes are a GPU's
	Sustained time.Duration // how long each is timed without a pause, unless the user says otherwise
	Against   []string      // peers, unless the user says otherwise; nil: the back-end's own

	seed  uint64 // where it does not take one
	cases func(Settings) []Case
}

// Suites are all there are.
func Suites() []Suite {
	return []Suite{
		{Name: Basic, Summary: "a first look: some patterns, block sizes and types", Takes: []string{"seed"}, cases: basic},
		{Name: Sweep, Summary: "densities from 1 to 100 %, to the break-even with the dense product", Takes: []string{"size", "dtype", "seed"}, cases: sweep},
		{Name: Blocks, Summary: "each block size that kernels were tuned for", Takes: []string{"size", "dtype", "density", "seed"}, cases: blockSizes},
		{Name: Decode, Summary: "few columns, on a GPU also in a CUDA graph", Takes: []string{"dtype", "density", "block", "seed"}, cases: decode},
		{Name: Patterns, Summary: "every pattern at one size", Takes: []string{"size", "dtype", "density", "block", "seed"}, cases: patterns},
		{Name: Roofline, Summary: "the cases that the project holds itself to, with bounds, goals and sustained load; on a GPU",
			GPU: true, Sustained: DefaultSustained, seed: rooflineSeed, cases: rooflineSuite},
		{Name: PeerTable, Summary: "typical cases beside torch, cuSPARSE and the dense product; on a GPU",
			GPU: true, Against: []string{CUBLAS, CUSPARSE, Torch}, seed: rooflineSeed, cases: peersSuite},
		{Name: Shared, Summary: "the time while another kernel holds some of the SMs, ours and the dense product's; on a GPU",
			GPU: true, Against: []string{CUBLAS}, seed: rooflineSeed, cases: sharedSuite},
		{Name: InfAndNaN, Summary: "the time where B holds Inf or NaN, of every family of kernels; on a GPU",
			GPU: true, Against: []string{NonFinite}, seed: rooflineSeed, cases: nonFiniteSuite},
		{Name: Steps, Summary: "a new pattern with each step, also while another stream is busy: the step's time and the host's part of it; on a GPU",
			GPU: true, Against: []string{Dynamic}, seed: rooflineSeed, cases: dynamicSuite},
		{Name: Training, Summary: "the products that training needs besides A B, in every layout, with goals; on a GPU",
			GPU: true, Against: []string{CUBLAS, Torch}, seed: rooflineSeed, cases: trainingSuite},
		{Name: Gate, Summary: "what the gate measures: the cases of roofline and some of training, without their goals; on a GPU",
			GPU: true, seed: rooflineSeed, cases: gateSuite},
		{Name: AttentionSuite, Summary: "attention, dense, by rules and over layouts, beside torch's and FlashAttention-3's", Takes: []string{"dtype"},
			Against: attentionPeers, seed: rooflineSeed, cases: attentionSuite},
		{Name: Files, Summary: "the user's own matrices", Takes: []string{"dtype", "block", "n", "matrix", "seed"}, cases: files},
	}
}

// FindSuite gives the suite of that name.
func FindSuite(name string) (Suite, error) {
	var names []string
	for _, s := range Suites() {
		if s.Name == name {
			return s, nil
		}
		names = append(names, s.Name)
	}
	return Suite{}, fmt.Errorf("there is no suite %q: take one of %s", name, strings.Join(names, ", "))
}

// Cases are those of a suite that have one of the names, in that order, or all where there are none.
func Cases(name string, o Settings, names []string) ([]Case, error) {
	s, err := FindSuite(name)
	if err != nil {
		return nil, err
	}
	if o.DType == "" {
		o.DType = workload.Float32.Name // the one that dense libraries on the CPU have too
		if o.Backend == sparsek.CUDA {
			o.DType = workload.BFloat16.Name
		}
	}
	seed := s.seed
	if slices.Contains(s.Takes, "seed") {
		seed = o.Seed
	}
	all := s.cases(o)
	for i := range all {
		all[i].Seed = seed
	}
	if len(names) == 0 {
		return suitable(all, name, o.Backend), nil
	}
	return pick(all, names)
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

// shape is the size of a suite, unless the user has another: smaller on the CPU, so that it takes about a minute there
// at most.
func shape(o Settings) workload.Shape {
	own := workload.Shape{M: 2048, N: 256, K: 2048}
	if o.Backend == sparsek.CUDA {
		own = workload.Shape{M: 8192, N: 8192, K: 8192}
	}
	if o.Shape != (workload.Shape{}) {
		return o.Shape
	}
	return own
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
		list = append(list, random(fmt.Sprintf("b%dx%d", b[0], b[1]), shape(o), b[0], b[1], cmp.Or(o.Density, 0.125), o.DType))
	}
	return list
}

var decodeColumns = []int{1, 8, 16, 32, 64, 128}

func decode(o Settings) []Case {
	var list []Case
	for _, n := range decodeColumns {
		size := shape(o)
		size.N = n
		c := random(fmt.Sprintf("n%d", n), size, cmp.Or(o.BlockM, 64), cmp.Or(o.BlockK, 64), cmp.Or(o.Density, 0.2), o.DType)
		c.Graph = true
		list = append(list, c)
	}
	return list
}

func patterns(o Settings) []Case {
	var list []Case
	for _, name := range pattern.Names() {
		c := random(name, shape(o), cmp.Or(o.BlockM, 64), cmp.Or(o.BlockK, 64), cmp.Or(o.Density, 0.125), o.DType)
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
			Shape: workload.Shape{M: f.Entries.Rows, N: cmp.Or(o.N, 256), K: f.Entries.Cols}})
	}
	return list
}
