// SPDX-License-Identifier: Apache-2.0

package tunereval

import (
	"context"
	"errors"
	"time"

	"github.com/sparsek/sparsek/internal/bench/workload"
	sparsek "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/tuning"
)

// Typical are products as applications have them: what a table that is shipped with the library should know.
func Typical() (list []Case) {
	type kind struct {
		pattern string
		density float64
	}
	kinds := []kind{{"random", 0.05}, {"random", 0.125}, {"random", 0.25}, {"random", 0.5}, {"window", 0.125}, {"window", 0.25}, {"causal", 0}}
	for _, size := range []int{4096, 8192} {
		for _, n := range []int{1, 16, 64, 256, 1024, size} {
			for _, block := range []int{16, 32, 64, 128} {
				for _, k := range kinds {
					list = append(list, Case{
						Number: len(list) + 1, M: size, N: n, K: size, BlockM: block, BlockK: block,
						Pattern: k.pattern, Density: k.density, Seed: 1,
					})
				}
			}
		}
	}
	return list
}

// Remember tunes a case, within the budget, and keeps what was measured in the tuning cache. It gives the plan's
// description.
func Remember(ctx context.Context, engine *sparsek.Engine, one Case, budget time.Duration, allowDense bool) (info sparsek.PlanInfo, err error) {
	pattern, err := one.Generate()
	if err != nil {
		return info, err
	}
	p := workload.Problem[element]{Alpha: 1, A: workload.RandomA[element](pattern, one.M, one.K, one.BlockM, one.BlockK, one.Seed)}
	m, err := p.Matrix(ctx, engine)
	if err != nil {
		return info, err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	tuner, err := tuning.NewTuner(ctx, m, sparsek.PlanOptions{N: one.N, AllowDense: allowDense}, tuning.Options{Budget: budget})
	if err != nil {
		return info, err
	}
	defer func() { err = errors.Join(err, tuner.Close()) }()
	if _, err := run(ctx, tuner); err != nil {
		return info, err
	}
	plan, err := tuner.Finish()
	if err != nil {
		return info, err
	}
	return plan.Info(), plan.Close()
}
