// SPDX-License-Identifier: Apache-2.0

// Package roofline times block-sparse products beside dense ones of the full size by cuBLAS, and holds both against
// what the chip allows.
package roofline

import (
	"fmt"
	"strings"

	"github.com/sparsek/sparsek/internal/bench/workload"
	"github.com/sparsek/sparsek/internal/matrix/pattern"
	"github.com/sparsek/sparsek/internal/matrix/rng"
	"github.com/sparsek/sparsek/wrapper/bsr"
)

// Case is a product of bfloat16 that is timed.
type Case struct {
	Name           string
	M, N, K        int
	BlockM, BlockK int
	Pattern        string // of internal/matrix/pattern
	Density        float64
	Shuffled       bool // the pattern's block rows are permuted
	Reach          Reach
	GraphReach     Reach // what its products are to reach in a CUDA graph; empty: they are not timed in one
}

// Reach is what a case is to reach: one of its kinds.
type Reach struct {
	TFLOPs     float64 // effective
	Seconds    float64
	DenseShare float64 // effective rate as a share of cuBLAS's rate at the dense product of the size
	Share      float64 // effective rate as a share of that of the case Of
	Of         string
}

// String says it in words.
func (r Reach) String() string {
	switch {
	case r.TFLOPs > 0:
		return fmt.Sprintf("%g TFLOP/s", r.TFLOPs)
	case r.Seconds > 0:
		return fmt.Sprintf("%.1f us", r.Seconds*1e6)
	case r.DenseShare > 0:
		return fmt.Sprintf("%.2f x cuBLAS's dense rate", r.DenseShare)
	case r.Share > 0:
		return fmt.Sprintf("%g %% of %s", 100*r.Share, r.Of)
	}
	return ""
}

// Seed is that of every case's pattern and values. It was fixed before anything was tuned, and stays.
const Seed = 1

// streamShuffle follows those that internal/bench/workload splits off a seed.
const streamShuffle = 16

// eighth is the density of most cases. A window of it at blocks of 64 has 8 blocks on either side of the diagonal:
// 12.8 % of all.
const eighth = 0.125

// Cases are the cases, in the order in which they are shown.
func Cases() []Case {
	return []Case{
		cube("b64-random-4096", 4096, 64, 64, "random", eighth, Reach{TFLOPs: 460}),
		cube("b64-random", 8192, 64, 64, "random", eighth, Reach{TFLOPs: 520}),
		cube("b64-random-2", 8192, 64, 64, "random", 0.023, Reach{TFLOPs: 400}),
		cube("b64-random-50", 8192, 64, 64, "random", 0.5, Reach{TFLOPs: 650}),
		cube("b64-causal", 8192, 64, 64, "causal", 0, Reach{TFLOPs: 800}),
		cube("b64-window", 8192, 64, 64, "window", eighth, Reach{TFLOPs: 710}),
		shuffled(cube("b64-shuffled", 8192, 64, 64, "window", eighth, Reach{Share: 0.95, Of: "b64-window"})),
		cube("b64-zipf", 8192, 64, 64, "zipf", eighth, Reach{Share: 0.95, Of: "b64-random"}),
		cube("b128-random", 8192, 128, 128, "random", eighth, Reach{TFLOPs: 700}),
		cube("b128-random-50", 8192, 128, 128, "random", 0.5, Reach{DenseShare: 1.05}),
		cube("b128-causal", 8192, 128, 128, "causal", 0, Reach{DenseShare: 1.05}),
		cube("b256-random-25", 8192, 256, 256, "random", 0.25, Reach{DenseShare: 1.05}),
		cube("b32-random", 8192, 32, 32, "random", eighth, Reach{TFLOPs: 300}),
		cube("b32-window", 8192, 32, 32, "window", eighth, Reach{TFLOPs: 650}),
		cube("b16-random", 8192, 16, 16, "random", eighth, Reach{TFLOPs: 195}),
		cube("b16-window", 8192, 16, 16, "window", eighth, Reach{TFLOPs: 600}),
		cube("b64x32-random", 8192, 64, 32, "random", eighth, Reach{TFLOPs: 480}),
		cube("b32x64-random", 8192, 32, 64, "random", eighth, Reach{TFLOPs: 306}),
		cube("b128x64-random", 8192, 128, 64, "random", eighth, Reach{TFLOPs: 690}),
		{"b512x112-random", 8192, 8192, 8288, 512, 112, "random", 16. / 74, false, Reach{DenseShare: 1}, Reach{}},
		{"decode-16", 8192, 16, 8192, 64, 64, "random", 0.2, false, Reach{Seconds: 10e-6}, Reach{Seconds: 8e-6}},
		{"decode-64", 8192, 64, 8192, 64, 64, "random", 0.2, false, Reach{Seconds: 10e-6}, Reach{Seconds: 8.5e-6}},
	}
}

func cube(name string, size, blockM, blockK int, pattern string, density float64, reach Reach) Case {
	return Case{name, size, size, size, blockM, blockK, pattern, density, false, reach, Reach{}}
}

func shuffled(c Case) Case {
	c.Shuffled = true
	return c
}

// Find gives the cases of those names, or all where there are none.
func Find(names []string) ([]Case, error) {
	all := Cases()
	if len(names) == 0 {
		return all, nil
	}
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

// Generate makes the case's pattern.
func (c Case) Generate() (bsr.Pattern, error) {
	p, err := pattern.Generate(pattern.Spec{
		Name: c.Pattern, BlockRows: blocks(c.M, c.BlockM), BlockCols: blocks(c.K, c.BlockK), Density: c.Density,
		Seed: workload.PatternSeed(Seed),
	})
	if err != nil || !c.Shuffled {
		return p, err
	}
	return shuffleRows(p), nil
}

func (c Case) shape() workload.Shape { return workload.Shape{M: c.M, N: c.N, K: c.K} }

func blocks(extent, block int) int { return (extent + block - 1) / block }

func shuffleRows(p bsr.Pattern) bsr.Pattern {
	order := make([]int, p.BlockRows)
	for i := range order {
		order[i] = i
	}
	rng.Shuffle(rng.New(rng.Split(Seed, streamShuffle)), order)
	out := bsr.Pattern{BlockRows: p.BlockRows, BlockCols: p.BlockCols, RowPtr: []int32{0}}
	for _, r := range order {
		out.ColIdx = append(out.ColIdx, p.Row(r)...)
		out.RowPtr = append(out.RowPtr, int32(len(out.ColIdx)))
	}
	return out
}
