// SPDX-License-Identifier: Apache-2.0

package tunereval

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sparsek/sparsek/internal/bench/workload"
	sparsek "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/tuning"
)

// Verdict is what a case of the grid came to.
type Verdict struct {
	Case       Case
	Blocks     int
	Density    float64
	LongestRow int        // blocks of it
	Rows64     GroupLoads // of groups of 64 rows
	Rows128    GroupLoads
	// Of groups of 128 rows, in the order that the planner gives the block rows.
	OrderedLoads int64
	// All candidates that serve, measured for this verdict, after the choices were made.
	Candidates []tuning.Candidate
	Fastest    tuning.Candidate
	Tuned      Choice // by measuring
	Predicted  Choice // by the cost model alone
}

// Choice is a kernel that was chosen, as it was then measured.
type Choice struct {
	Kernel string
	Time   time.Duration
	Slower float64 // than the fastest: 0.03 is 3 % more time
}

type element = sparsek.BFloat16

// Judge has the tuner choose for a case, within the budget, and measures every candidate once more, for as long.
// Nothing is kept in the tuning cache.
func Judge(ctx context.Context, engine *sparsek.Engine, one Case, budget time.Duration) (v *Verdict, err error) {
	pattern, err := one.Generate()
	if err != nil {
		return nil, err
	}
	p := workload.Problem[element]{Alpha: 1, A: workload.RandomA[element](pattern, one.M, one.K, one.BlockM, one.BlockK, one.Seed)}
	m, err := p.Matrix(ctx, engine)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	v = &Verdict{Case: one, Blocks: pattern.Blocks(), Density: pattern.Density(),
		LongestRow: int(LoadsOf(pattern, one.M, one.BlockM, one.BlockM).Longest),
		Rows64:     LoadsOf(pattern, one.M, one.BlockM, 64), Rows128: LoadsOf(pattern, one.M, one.BlockM, 128)}
	chosen, err := measure(ctx, m, one.N, tuning.Options{Budget: budget})
	if err != nil {
		return nil, err
	}
	v.Candidates, err = measure(ctx, m, one.N, tuning.Options{Budget: budget, All: true})
	if err != nil {
		return nil, err
	}
	var tuned tuning.Candidate
	for _, candidate := range chosen {
		if candidate.Best {
			tuned = candidate
		}
	}
	for _, candidate := range v.Candidates {
		if candidate.Runs > 0 && (v.Fastest.Kernel == "" || candidate.Median < v.Fastest.Median) {
			v.Fastest = candidate
		}
	}
	if v.Tuned, err = v.choice(tuned.Kernel); err != nil {
		return nil, err
	}
	if v.OrderedLoads, err = orderedLoads(ctx, m, v); err != nil {
		return nil, err
	}
	predicted, err := m.Plan(ctx, sparsek.PlanOptions{N: one.N, AllowDense: true})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, predicted.Close()) }()
	if predicted.Info().ChosenBy != sparsek.ChosenByModel {
		return nil, fmt.Errorf("%v: the tuning cache knows it: set SPARSEK_TUNING_CACHE=off", one)
	}
	v.Predicted, err = v.choice(predicted.Info().Kernel)
	return v, err
}

// orderedLoads reads the loads of groups of 128 rows off a plan by a measured kernel with such tiles; without one they are
// those in the order of the matrix.
func orderedLoads(ctx context.Context, m *sparsek.Matrix, v *Verdict) (loads int64, err error) {
	loads = v.Rows128.Loads
	if v.Case.BlockM > 128 { // a row group is a part of a block row, of which a plan counts the entries once
		return loads, nil
	}
	for _, candidate := range v.Candidates {
		if candidate.Runs == 0 {
			continue
		}
		plan, err := m.Plan(ctx, sparsek.PlanOptions{N: v.Case.N, Kernel: candidate.Kernel, AllowDense: true})
		if err != nil {
			return 0, err
		}
		info := plan.Info()
		if err := plan.Close(); err != nil {
			return 0, err
		}
		if info.TileM == 128 {
			return min(loads, info.Entries), nil
		}
	}
	return loads, nil
}

func (v *Verdict) choice(kernel string) (Choice, error) {
	for _, candidate := range v.Candidates {
		if candidate.Kernel == kernel && candidate.Runs > 0 {
			return Choice{kernel, candidate.Median, candidate.Median.Seconds()/v.Fastest.Median.Seconds() - 1}, nil
		}
	}
	return Choice{}, fmt.Errorf("%v: %q was chosen and cannot be measured", v.Case, kernel)
}

// measure tunes to the end of the budget, or until the ranking is clear, and gives what was found. Nothing is kept.
func measure(ctx context.Context, m *sparsek.Matrix, n int, options tuning.Options) (list []tuning.Candidate, err error) {
	tuner, err := tuning.NewTuner(ctx, m, sparsek.PlanOptions{N: n, AllowDense: true}, options)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, tuner.Close()) }()
	return run(ctx, tuner)
}

// run steps to the end of the budget, or until the ranking is clear.
func run(ctx context.Context, tuner *tuning.Tuner) ([]tuning.Candidate, error) {
	for {
		if _, more, err := tuner.Step(ctx); err != nil {
			return nil, err
		} else if !more {
			return tuner.Candidates()
		}
	}
}
