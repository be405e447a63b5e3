// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"github.com/sparsek/sparsek/internal/bench/roofline"
	"github.com/sparsek/sparsek/internal/bench/workload"
)

// FromRoofline is a result of the roofline suite as one of this package.
func FromRoofline(r *roofline.Result) *Result {
	c := r.Case
	out := &Result{
		Name: c.Name, M: c.M, N: c.N, K: c.K, BlockM: c.BlockM, BlockK: c.BlockK, DType: workload.BFloat16.Name, Pattern: c.Pattern,
		Seed: roofline.Seed, Blocks: r.Blocks, Density: r.Density, Kernel: r.Plan.Kernel, KernelReason: r.Plan.Reason,
		PlanSeconds: r.PlanTime.Seconds(), EffectiveFLOP: r.Work.FLOP, DenseFLOP: c.DenseFLOP(), Bytes: r.Work.DRAM, Bounds: r.Bounds,
		Before: r.Before, After: r.After,
	}
	if c.Shuffled {
		out.Pattern += ", rows shuffled"
	}
	out.Timed = append(out.Timed, newTimed(Ours, r.Plan.Kernel, false, r.Rounds, out.EffectiveFLOP, out.DenseFLOP))
	if g := r.Graph; g != nil {
		one := newTimed(OursGraph, r.Plan.Kernel, false, g.Rounds, out.EffectiveFLOP, out.DenseFLOP)
		one.Products = g.Products
		out.Timed = append(out.Timed, one)
	}
	if r.Dense != nil {
		out.Timed = append(out.Timed, newTimed(CUBLAS, "cuBLAS GEMM", true, r.DenseRounds, out.EffectiveFLOP, out.DenseFLOP))
	}
	out.compare()
	return out
}
