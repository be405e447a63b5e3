// SPDX-License-Identifier: Apache-2.0

package bench

import "github.com/sparsek/sparsek/internal/bench/workload"

// dynamicSuite are products of which the pattern is new each time: short ones, where making the plan counts, and one
// that is worth a plan with matched rows.
func dynamicSuite(Settings) []Case {
	short := func(name string, m, n, k, block int, density float64) Case {
		return random(name, workload.Shape{M: m, N: n, K: k}, block, block, density, workload.BFloat16.Name)
	}
	list := []Case{
		short("b64-n256", 8192, 256, 8192, 64, 0.125),
		short("b16-n512", 8192, 512, 8192, 16, 0.125),
		short("b128-n1024", 4096, 1024, 4096, 128, 0.25),
		short("decode-16", 4096, 16, 4096, 64, 0.2),
		short("b64-n8192", 8192, 8192, 8192, 64, 0.125),
	}
	for i := range list {
		list[i].Held = []int{1}
	}
	return list
}
