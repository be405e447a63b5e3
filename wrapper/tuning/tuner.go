// SPDX-License-Identifier: Apache-2.0

// Package tuning measures by which kernel a product is computed the fastest, and reads and changes the files in which the
// results are kept. Applications that need no more than a tuned plan set sparsek.PlanOptions.Tuning.
package tuning

import (
	"context"
	"math"
	"runtime"
	"time"

	sparsek "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/internal/bridge"
	"github.com/sparsek/sparsek/wrapper/internal/native"
)

// Options say how long and how much is measured.
type Options struct {
	Budget time.Duration // about; each candidate that seems worth it is measured once even so
	All    bool          // measure every candidate that serves, however slow it is predicted to be
}

// Candidate is a kernel that a product could be computed by, and what is known of it.
type Candidate struct {
	Kernel    string
	Note      string        // why it is not measured, or no longer; empty where neither is so
	Serves    bool          // whether it can compute this product; Note says why not
	Best      bool          // the winner so far
	Runs      int           // products that were timed
	Predicted time.Duration // by the cost model; 0: the model does not know this kernel
	Median    time.Duration // of the runs; 0 where there are none
	Spread    float64       // distance of the quartiles as a share of the median
	Setup     time.Duration // what new values cost beside their copy, where the kernel has a layout of its own
}

// Tuner measures what the products of a matrix could be computed by, step by step, so that a caller can show the progress
// and stop it. It is not for several goroutines at once.
type Tuner struct {
	tuner bridge.Tuner
}

// NewTuner lists the candidates and takes memory for operands of its own: B, C and, on a GPU, twice the size of L2. The
// matrix's values must be there; plan names no kernel, and its Tuning is not used.
func NewTuner(ctx context.Context, m *sparsek.Matrix, plan sparsek.PlanOptions, o Options) (*Tuner, error) {
	tuner, err := bridge.NewTuner(ctx, m, plan, native.TunerOptions{Seconds: o.Budget.Seconds(), All: o.All})
	if err != nil {
		return nil, err
	}
	t := &Tuner{tuner}
	runtime.AddCleanup(t, bridge.Tuner.Close, tuner)
	return t, nil
}

// Step measures one candidate a little further and gives its place in [Tuner.Candidates]. more is false, and nothing was
// measured, where the budget is spent or the ranking is clear. ctx is looked at before it begins; where
// [sparsek.SetValues] is at work, Step waits for it, or for the end of ctx.
func (t *Tuner) Step(ctx context.Context) (place int, more bool, err error) {
	place, err = t.tuner.Step(ctx)
	if err != nil {
		return 0, false, err
	}
	return place, place >= 0, nil
}

// Candidates are those of the tuner, in the order of priority: of two that are equally fast the first is the best.
func (t *Tuner) Candidates() ([]Candidate, error) {
	list, err := t.tuner.Candidates()
	var candidates []Candidate
	for _, c := range list {
		candidates = append(candidates, Candidate{
			Kernel: c.Kernel, Note: c.Note, Serves: c.Serves, Best: c.Best, Runs: c.Runs,
			Predicted: duration(c.Predicted), Median: duration(c.Median), Spread: c.Spread, Setup: duration(c.Setup),
		})
	}
	return candidates, err
}

// Finish makes a plan by the best so far, and keeps in the tuning cache what was measured. No step may follow.
func (t *Tuner) Finish() (*sparsek.Plan, error) {
	plan, err := t.tuner.Finish()
	if err != nil {
		return nil, err
	}
	return plan.(*sparsek.Plan), nil
}

// Close frees the tuner and its operands. Closing again does nothing.
func (t *Tuner) Close() error {
	t.tuner.Close()
	return nil
}

func duration(seconds float64) time.Duration {
	return time.Duration(math.Round(seconds * float64(time.Second)))
}
