// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"

	"github.com/sparsek/sparsek/internal/bench/interleave"
	sparsek "github.com/sparsek/sparsek/wrapper"
)

// Method says how the figures of a report came about, a sentence each.
func Method(backend sparsek.Backend, roundCount int) []string {
	list := []string{
		"Patterns come from their name and seed; values are random, from [-1, 1), but for those of a matrix from a file.",
		fmt.Sprintf("Ours and the others take turns in %d rounds, so that clocks and cooling are the same for all.", roundCount),
		"Before a case is timed, every element of C must have been written, and the first, the middle and the last block row must be within their error bounds.",
	}
	if backend == sparsek.CUDA {
		list = append(list,
			fmt.Sprintf("Before each turn the GPU rests for %v, so that all begin as cool: under load without rests it is slower, the dense product as well.", interleave.Rest),
			"Times are of single launched products, by CUDA events; products before a timed one keep the GPU busy while it is enqueued.",
			"A, B and C are rotated, so that L2 is cold: it holds none of the last product.",
			"nvidia-smi tells clocks and what slows them down just before the first round, and after the last while our product runs on.")
	} else {
		list = append(list,
			"Times are by the CPU's clock; before one that takes less than 10 ms another product runs, which is not timed.",
			"B and C are rotated; A stays where it is, in caches that it fits into.")
	}
	return append(list,
		"A time is the median over all rounds, and spread the distance of the quartiles as a share of it. Where two medians differ by no more than the distance of the quartiles of either, that is a tie: neither is called faster.",
		"Effective TFLOP/s count the operations on stored blocks alone, 2 nnzb bm bk N; dense-equivalent TFLOP/s those of a dense product of the size, 2 M N K.",
		"Speed-up is the time of another over ours.")
}
