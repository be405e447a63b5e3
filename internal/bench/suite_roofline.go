// SPDX-License-Identifier: Apache-2.0

package bench

import "github.com/sparsek/sparsek/internal/bench/workload"

// rooflineSeed is that of every case's pattern and values. It was fixed before anything was tuned, and stays.
const rooflineSeed = 1

// eighth is the density of most cases. A window of it at blocks of 64 has 8 blocks on either side of the diagonal:
// 12.8 % of all.
const eighth = 0.125

// rooflineSuite are the cases that the project holds itself to, in the order in which they are shown.
func rooflineSuite(Settings) []Case {
	tall := cube("b512x112-random", 8192, 512, 112, "random", 16./74, Reach{DenseShare: 1})
	tall.Shape.K = 8288
	shuffled := cube("b64-shuffled", 8192, 64, 64, "window", eighth, Reach{Share: 0.95, Of: "b64-window"})
	shuffled.Shuffled = true
	return []Case{
		cube("b64-random-4096", 4096, 64, 64, "random", eighth, Reach{TFLOPs: 460}),
		cube("b64-random", 8192, 64, 64, "random", eighth, Reach{TFLOPs: 520}),
		cube("b64-random-2", 8192, 64, 64, "random", 0.023, Reach{TFLOPs: 400}),
		cube("b64-random-50", 8192, 64, 64, "random", 0.5, Reach{TFLOPs: 650}),
		cube("b64-causal", 8192, 64, 64, "causal", 0, Reach{TFLOPs: 800}),
		cube("b64-window", 8192, 64, 64, "window", eighth, Reach{TFLOPs: 710}),
		shuffled,
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
		tall,
		narrow("decode-16", 16, Reach{Seconds: 10e-6}, Reach{Seconds: 8e-6}),
		narrow("decode-64", 64, Reach{Seconds: 10e-6}, Reach{Seconds: 8.5e-6}),
		// What memory limits: a short form of the map.
		neighbours("b3-stencil-fp32-n1", 48, 3, 1, workload.Float32.Name, 33e-6),
		neighbours("b3-stencil-fp32-n8", 48, 3, 8, workload.Float32.Name, 38e-6),
		neighbours("b3-stencil-fp32-n128", 48, 3, 128, workload.Float32.Name, 130e-6),
		neighbours("b3-stencil-fp64-n8", 48, 3, 8, workload.Float64.Name, 68e-6),
		neighbours("b8-stencil-n8", 30, 8, 8, workload.BFloat16.Name, 28e-6),
		neighbours("b8-stencil-n128", 30, 8, 128, workload.BFloat16.Name, 60e-6),
		scattered("b1-random-fp32-n1", "random", 262144, 1, 16, 1, 35e-6),
		scattered("b1-power-law-fp32-n1", "zipf", 262144, 1, 16, 1, 35e-6),
		scattered("b4-random-fp32-n64", "random", 65536, 4, 16, 64, 260e-6),
	}
}

// neighbours is the 27-point stencil of a cubic grid of so many nodes along each side, with a block for each pair.
func neighbours(name string, side, block, n int, dtype string, seconds float64) Case {
	size := side * side * side * block
	return fewColumns(Case{Name: name, Shape: workload.Shape{M: size, N: n, K: size}, BlockM: block, BlockK: block, DType: dtype, Pattern: "stencil27"}, seconds)
}

// scattered has so many block rows of `perRow` blocks on average.
func scattered(name, pattern string, blockRows, block, perRow, n int, seconds float64) Case {
	size := blockRows * block
	return fewColumns(Case{Name: name, Shape: workload.Shape{M: size, N: n, K: size}, BlockM: block, BlockK: block, DType: workload.Float32.Name,
		Pattern: pattern, Density: float64(perRow) / float64(blockRows)}, seconds)
}

// fewColumns is to take so long, launched or in a graph.
func fewColumns(c Case, seconds float64) Case {
	c.Reach = Reach{Seconds: seconds}
	c.Graph, c.GraphReach = c.Shape.N <= 64, Reach{}
	if c.Graph {
		c.GraphReach = Reach{Seconds: seconds}
	}
	return c
}

func cube(name string, size, blockM, blockK int, pattern string, density float64, reach Reach) Case {
	return Case{Name: name, Shape: workload.Shape{M: size, N: size, K: size}, BlockM: blockM, BlockK: blockK, DType: workload.BFloat16.Name,
		Pattern: pattern, Density: density, Reach: reach}
}

func narrow(name string, n int, reach, graphReach Reach) Case {
	c := cube(name, 8192, 64, 64, "random", 0.2, reach)
	c.Shape.N, c.Graph, c.GraphReach = n, true, graphReach
	return c
}
