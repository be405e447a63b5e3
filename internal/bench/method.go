// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"time"

	"github.com/sparsek/sparsek/internal/bench/interleave"
	sparsek "github.com/sparsek/sparsek/wrapper"
)

// The constants of the method, beside those of package interleave.
const (
	// DefaultRounds is how often ours and its peers take turns.
	DefaultRounds = 6
	// DefaultSustained is how long a product runs without a pause, where that is timed.
	DefaultSustained = 2 * time.Second

	fullPerRound = 4 // dense products of a full matrix that are timed in a round

	fewestInGraph = 64 // products, so that the start of a graph does not count
	replays       = 4  // of a graph in a round

	// Products that take less than this are enqueued hardly faster than they run: more of them go before a timed one.
	short       = 50 * time.Microsecond
	shortBefore = 12
	// Products that take more than this on the CPU need no warm-up each time.
	long = 10 * time.Millisecond

	// largestDense is how many bytes a dense A may have: beyond, there are no dense products to compare with.
	largestDense = 4 << 30

	// Noisy is the spread from which on a time is called rough.
	Noisy = 0.1
)

// AttentionMethod says how the figures of attention were measured.
func AttentionMethod(backend sparsek.Backend, rounds int) []string {
	list := []string{
		"Layouts come from their name and seed, for each head another one where a case says so; values are random, from [-1, 1).",
		fmt.Sprintf("Ours and its peers take turns in %d rounds, so that clocks and cooling are the same for all.", rounds),
		"Before a case is timed, every element of the outputs must have been written, and those of the first, the middle and the last 64 queries must be within their error bounds.",
		"sdpa and fa3 know no layout, and sdpa no window: they compute every other pair of a query and a key, causal where the case is; fa3 is given the window of a case without a layout. Peers are compared with float64 in some queries of three heads.",
	}
	if backend == sparsek.CUDA {
		list = append(list,
			fmt.Sprintf("Before each turn the GPU rests for %v, so that all begin as cool.", interleave.Rest),
			"Times are of single calls, by CUDA events; a call before a timed one keeps the GPU busy while it is enqueued.",
			"nvidia-smi reports clocks and what slows them down just before the first round, and after the last while our attention runs on.")
	} else {
		list = append(list, "Times are by the CPU's clock; before one that takes less than 10 ms another call runs, which is not timed.")
	}
	return append(list,
		"A time is the median over all rounds, and spread the distance of the quartiles as a share of it. Where two medians differ by no more than the larger distance of quartiles, that is a tie: neither is called faster.",
		"Effective TFLOP/s count the operations on kept pairs of a query and a key: 4 D forward and 10 D backward, D being the head size; dense-equivalent TFLOP/s those on every pair, or every causal one.",
		"Speed-up is the time of another over ours.")
}

// Method says how the figures of a report were measured, a sentence each.
func Method(backend sparsek.Backend, rounds int, sustained time.Duration) []string {
	list := []string{
		"Patterns come from their name and seed; values are random, from [-1, 1), except those of a matrix from a file.",
		fmt.Sprintf("Ours and its peers take turns in %d rounds, so that clocks and cooling are the same for all.", rounds),
		"Before a case is timed, every element of C must have been written, and the first, the middle and the last block row must be within their error bounds.",
		"The dense product multiplies the same matrix with its zeros, as one would without a sparse format.",
	}
	if backend == sparsek.CUDA {
		list = append(list,
			"cublas_full multiplies a matrix without zeros: it draws more power, so that cuBLAS is slower. It is a second figure.",
			fmt.Sprintf("Before each turn the GPU rests for %v, so that all begin as cool.", interleave.Rest),
			"Times are of single launched products, by CUDA events; products before a timed one keep the GPU busy while it is enqueued.",
			"A, B and C are rotated, so that L2 is cold: it holds none of the last product.",
			"nvidia-smi reports clocks and what slows them down just before the first round, and after the last while our product runs on.")
	} else {
		list = append(list,
			"Times are by the CPU's clock; before one that takes less than 10 ms another product runs, which is not timed.",
			"B and C are rotated; A stays where it is, in caches that it fits into.")
	}
	if sustained > 0 {
		list = append(list, fmt.Sprintf("Sustained: ours, then the dense product, each for at least %v without a pause, by the wall clock over all its products. "+
			"Power is the slope of the driver's energy counter (NVML) between its first and its last step in that time.", sustained))
	}
	return append(list,
		"A time is the median over all rounds, and spread the distance of the quartiles as a share of it. Where two medians differ by no more than the larger distance of quartiles, that is a tie: neither is called faster.",
		"Effective TFLOP/s count the operations on stored blocks alone, 2 nnzb bm bk N; dense-equivalent TFLOP/s those of a dense product of the size, 2 M N K.",
		"Speed-up is the time of another over ours.")
}
