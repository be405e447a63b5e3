// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"

	"github.com/sparsek/sparsek/internal/bench/workload"
	sparsek "github.com/sparsek/sparsek/wrapper"
)

// asFast is the share of the rate of A B with the same entries that a product with A^T, or with A on the right, is to
// reach, however its operands lie.
const asFast = 0.96

// trainingSuite are the products that training needs besides A B. Cases of one group are held against the first or second
// of it, which are A B of the pattern and of its transpose.
func trainingSuite(Settings) []Case {
	var list []Case
	for _, block := range []int{64, 128} {
		for _, pattern := range []string{"random", "window", "causal"} {
			layouts := []string{"", "bc"}
			if pattern == "random" {
				layouts = []string{"", "b", "c", "bc"}
			}
			list = append(list, layoutsOf(block, pattern, layouts)...)
		}
	}
	sampled := func(name string, block int, pattern string, density float64, reach Reach) {
		c := cube("sdd-"+name, 8192, block, block, pattern, density, reach)
		c.Form.Op = sparsek.SDD
		list = append(list, c)
	}
	sampled("b128-random", 128, "random", eighth, Reach{TFLOPs: 640})
	sampled("b128-random-50", 128, "random", 0.5, Reach{TFLOPs: 700})
	sampled("b64-random", 64, "random", eighth, Reach{TFLOPs: 450})
	sampled("b64-window", 64, "window", eighth, Reach{TFLOPs: 650})
	sampled("b64-causal", 64, "causal", 0, Reach{TFLOPs: 700})
	sampled("b32-random", 32, "random", eighth, Reach{TFLOPs: 190})
	sampled("b16-random", 16, "random", eighth, Reach{TFLOPs: 105})
	for _, even := range []struct {
		block   int
		density float64
	}{{16, 0.3}, {32, 0.5}, {64, 0.9}, {128, 0.95}} { // where the dense product is to be no faster
		sampled(fmt.Sprintf("b%d-even-%g", even.block, 100*even.density), even.block, "random", even.density, Reach{DenseShare: even.density})
	}
	list = append(append(list, heads()...), perceptron()...)
	list = append(list, expertsCase("experts-8", workload.Experts{Count: 8, Tokens: 2 * 4096, Width: 4096, Hidden: 14336, Block: 128}, "bf16"))
	list[len(list)-1].Reach = Reach{TFLOPs: 620}
	for i := range list {
		list[i].Graph = false
	}
	return list
}

// layoutsOf are A^T B, B A and B A^T with their operands in some layouts, against A B.
func layoutsOf(block int, pattern string, layouts []string) []Case {
	density := eighth
	if pattern == "causal" {
		density = 0 // it has its own
	}
	name := func(what string) string { return fmt.Sprintf("b%d-%s-%s", block, pattern, what) }
	of := func(op sparsek.Op, layout string, reference string) Case {
		c := cube(name(op.String()), 8192, block, block, pattern, density, Reach{Share: asFast, Of: name(reference)})
		if layout != "" {
			c.Name += "-" + layout
		}
		c.Form.Op = op
		for _, operand := range layout {
			if operand == 'b' {
				c.Form.OrderB = sparsek.ColumnMajor
			} else {
				c.Form.OrderC = sparsek.ColumnMajor
			}
		}
		return c
	}
	plain, transposed := of(sparsek.DSD, "", ""), of(sparsek.DSD, "", "")
	plain.Reach, transposed.Reach = Reach{}, Reach{}
	transposed.Name, transposed.Transposed = name("transposed-dsd"), true
	list := []Case{plain, transposed}
	for _, layout := range layouts {
		list = append(list, of(sparsek.DSDT, layout, "transposed-dsd"))
	}
	for _, layout := range layouts {
		list = append(list, of(sparsek.DDS, layout, "transposed-dsd"), of(sparsek.DDST, layout, "dsd"))
	}
	return list
}

// heads are many small products in one, each with a pattern of its own: the scores of attention, and a batch.
func heads() []Case {
	const scores, batch = 16, 64
	attention := cube("sdd-heads-16", scores*8192, 64, 64, "random", eighth, Reach{Seconds: scoreSeconds(scores)})
	attention.Shape.N, attention.Diagonal, attention.Form.Op = 128, scores, sparsek.SDD
	const inRow = 3 // blocks: 20 % of 16
	ragged := cube("batch-64", batch*1024, 64, 64, "random", inRow/16., Reach{Share: 0.9, Of: "batch-1"})
	ragged.Shape.N, ragged.Diagonal = 128, batch
	whole := cube("batch-1", batch*1024, 64, 64, "random", inRow/16./batch, Reach{}) // with as many blocks
	whole.Shape.N = 128
	return []Case{attention, whole, ragged}
}

// scoreSeconds is nine tenths of the rate at which memory takes the blocks of so many heads: on an H200.
func scoreSeconds(heads int) float64 {
	const share, bytesPerSecond = 0.9, 4.3e12
	blocks := float64(heads) * 128 * 16
	return blocks * 64 * 64 * 2 / bytesPerSecond / share
}

// perceptron are the products of a training step of y = x W^T, 8192 rows of x, W 16384 x 4096: y, dx = dy W and
// dW = dy^T x where W has blocks, with x, y and dy row-major. Each is to take a fifth of the dense one's time.
func perceptron() []Case {
	of := func(name string, form workload.Form) Case {
		c := cube("mlp-"+name, 8192, 64, 64, "random", eighth, Reach{DenseShare: 5 * eighth})
		c.Shape = workload.Shape{M: 16384, N: 8192, K: 4096}
		c.Form = form
		return c
	}
	return []Case{
		of("forward", workload.Form{Op: sparsek.DDST}),
		of("dx", workload.Form{Op: sparsek.DDS}),
		of("dw", workload.Form{Op: sparsek.SDD, OrderX: sparsek.ColumnMajor}),
	}
}
