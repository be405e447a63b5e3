// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"

	"github.com/sparsek/sparsek/internal/bench/workload"
	sparsek "github.com/sparsek/sparsek/wrapper"
)

// attentionSuite is attention, dense, by rules and over layouts of whole blocks, forward and backward; small on the CPU.
func attentionSuite(o Settings) []Case {
	if o.Backend != sparsek.CUDA {
		return cpuAttention(o)
	}
	base := workload.Attention{Batch: 1, HeadsQ: 32, HeadsK: 32, Seq: 16384, HeadSize: 128, Pattern: workload.AllBlocks}
	var list, backward []Case
	add := func(name string, reach Reach, change func(*workload.Attention)) {
		a := base
		change(&a)
		c := attentionCase(name, a, o.DType)
		c.Reach = reach
		list = append(list, c)
		c.Name, c.Backward, c.Reach = name+"-backward", true, backwardReach[name]
		backward = append(backward, c)
		reach, ok := anyOrderReach[name]
		if !ok {
			return
		}
		a.AnyOrder = true
		c = attentionCase(name+"-backward-any-order", a, o.DType)
		c.Backward, c.Reach = true, reach
		backward = append(backward, c)
	}
	dense := func(share float64) Reach { return Reach{Share: share, Of: "dense", By: FA3} }
	add("dense", dense(0.97), func(*workload.Attention) {})
	add("causal", Reach{Share: 0.97, Of: "causal", By: FA3}, func(a *workload.Attention) { a.Causal = true })
	add("dense-d64", Reach{Share: 0.95, Of: "dense-d64", By: FA3}, func(a *workload.Attention) { a.HeadSize = 64 })
	add("window-1024-gqa", Reach{TFLOPs: 560}, func(a *workload.Attention) { a.HeadsQ, a.HeadsK, a.Causal, a.Window = 64, 8, true, 1024 })
	random := func(block int, density, share float64) {
		add(fmt.Sprintf("b%d-random-%g", block, 100*density), dense(share), func(a *workload.Attention) {
			a.BlockQ, a.BlockK, a.Pattern, a.Density, a.LayoutHeads = block, block, "random", density, a.HeadsQ
		})
	}
	random(128, 0.5, 0.92)
	random(128, 0.25, 0.90)
	random(128, eighth, 0.88)
	random(64, 0.5, 0.80)
	random(64, 0.25, 0.77)
	random(64, eighth, 0.73)
	add("b64-window", dense(0.88), func(a *workload.Attention) { a.BlockQ, a.BlockK, a.Pattern, a.Density = 64, 64, "window", eighth })
	add("b64-causal", Reach{Share: 0.88, Of: "causal", By: FA3}, func(a *workload.Attention) { a.BlockQ, a.BlockK, a.Pattern, a.Causal = 64, 64, "causal", true })
	add("video", Reach{TFLOPs: 430}, func(a *workload.Attention) {
		const top = 64 // blocks for each block of queries
		a.HeadsQ, a.HeadsK, a.Seq, a.BlockQ, a.BlockK, a.Pattern, a.LayoutHeads = 7, 7, 109632, 64, 64, "random", 7
		a.Density = top / float64(a.Seq/a.BlockK)
	})
	return append(append(list, fp8Attention(list)...), backward...)
}

// fp8Attention are some of the cases in e4m3, in turn with bf16.
func fp8Attention(all []Case) (list []Case) {
	for _, c := range all {
		switch c.Name {
		case "dense", "causal", "b128-random-25", "b128-random-12.5":
			c.Name, c.DType, c.Reach = "e4m3-"+c.Name, workload.Float8E4M3.Name, Reach{}
			list = append(list, c)
		}
	}
	return list
}

// backwardReach is what backward passes are to reach, whose bits are the same each time.
var backwardReach = map[string]Reach{
	"dense": {TFLOPs: 500}, "causal": {TFLOPs: 500}, "window-1024-gqa": {TFLOPs: 350},
	"b128-random-50": {TFLOPs: 500}, "b128-random-25": {TFLOPs: 500}, "b128-random-12.5": {TFLOPs: 500},
	"b64-random-50": {TFLOPs: 400}, "b64-random-25": {TFLOPs: 400}, "b64-random-12.5": {TFLOPs: 400},
}

// anyOrderReach is what those are to reach that may add the gradient of Q in any order. Of other layouts the library
// takes the order that is the same each time, as it is faster, or the difference is small.
var anyOrderReach = map[string]Reach{
	"dense": {TFLOPs: 560}, "causal": {TFLOPs: 560}, "dense-d64": {}, "window-1024-gqa": {},
	"b128-random-50": {TFLOPs: 560}, "b128-random-25": {}, "b128-random-12.5": {}, "b64-random-50": {},
}

// cpuAttention are small ones, forward and backward.
func cpuAttention(o Settings) []Case {
	base := workload.Attention{Batch: 1, HeadsQ: 4, HeadsK: 4, Seq: 1024, HeadSize: 64, Pattern: workload.AllBlocks}
	var list []Case
	add := func(name string, change func(*workload.Attention)) {
		a := base
		change(&a)
		c := attentionCase(name, a, o.DType)
		list = append(list, c)
		c.Name, c.Backward = name+"-backward", true
		list = append(list, c)
	}
	add("dense", func(*workload.Attention) {})
	add("causal", func(a *workload.Attention) { a.Causal = true })
	add("window-128-gqa", func(a *workload.Attention) { a.HeadsK, a.Causal, a.Window = 1, true, 128 })
	add("b64-random-25", func(a *workload.Attention) {
		a.BlockQ, a.BlockK, a.Pattern, a.Density, a.LayoutHeads = 64, 64, "random", 0.25, 4
	})
	return list
}

// attentionCase is a case of the attention, of the suite's seed.
func attentionCase(name string, a workload.Attention, dtype string) Case {
	a.Seed = rooflineSeed
	return Case{Name: name, Shape: workload.Shape{M: a.Seq, N: a.HeadSize, K: a.Seq}, BlockM: a.BlockQ, BlockK: a.BlockK, DType: dtype,
		Pattern: a.Rules(), Density: a.Density, Attention: &a}
}
