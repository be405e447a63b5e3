// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/sparsek/sparsek/internal/bench/interleave"
	"github.com/sparsek/sparsek/internal/bench/workload"
	"github.com/sparsek/sparsek/internal/machine/nvml"
	"github.com/sparsek/sparsek/internal/machine/nvsmi"
)

// Sustained is one that ran for seconds without a pause.
type Sustained struct {
	Products int     `json:"products"`
	Took     float64 `json:"took_seconds"` // all of them
	Seconds  float64 `json:"seconds"`      // of a product

	Effective       float64 `json:"effective_tflops"`
	DenseEquivalent float64 `json:"dense_equivalent_tflops"`

	// 0 where there is no energy counter.
	Watts            float64 `json:"watts,omitempty"`
	Joules           float64 `json:"joules,omitempty"` // a product
	EffectivePerWatt float64 `json:"effective_tflops_per_watt,omitempty"`

	// Ours is so many times as fast under load. 0 for ours.
	SpeedUp float64 `json:"speed_up,omitempty"`

	State nvsmi.State `json:"gpu"` // in the middle of it
}

// sustain runs ours and the dense product of the same matrix without a pause, one after the other, each after a rest.
func (r *Runner) sustain(ctx context.Context, out *Result, entrants []entrant) error {
	if r.options.Sustained <= 0 {
		return nil
	}
	for _, e := range entrants {
		own := e.name == Ours || e.name == OursGraph
		if e.run == nil || !own && (!e.dense || e.full) {
			continue
		}
		one := out.Find(e.name)
		s, err := r.load(ctx, e, one.Seconds)
		if err != nil {
			return fmt.Errorf("run %s for %v: %w", e.name, r.options.Sustained, err)
		}
		s.Effective, s.DenseEquivalent = out.EffectiveFLOP/s.Seconds/1e12, out.DenseFLOP/s.Seconds/1e12
		if s.Joules > 0 {
			s.EffectivePerWatt = out.EffectiveFLOP / s.Joules / 1e12
		}
		if ours := out.Find(Ours).Sustained; !own && ours != nil {
			s.SpeedUp = s.Seconds / ours.Seconds
		}
		one.Sustained = s
	}
	return nil
}

// load runs products, each of which takes about so many seconds when the GPU is rested.
func (r *Runner) load(ctx context.Context, e entrant, each float64) (*Sustained, error) {
	least := r.options.Sustained
	if err := interleave.Sleep(ctx, workload.Rest(r.engine)); err != nil {
		return nil, err
	}
	looked := make(chan nvsmi.State, 1)
	middle := time.AfterFunc(least/2, func() { looked <- r.look(ctx) })
	var meter *nvml.Meter
	if r.counter != nil {
		meter = r.counter.Measure()
	}
	start := time.Now()
	products, err := e.run(ctx, max(2, int(math.Ceil(least.Seconds()/each))))
	took := time.Since(start)
	s := &Sustained{Products: products, Took: took.Seconds(), Seconds: took.Seconds() / float64(max(1, products))}
	if meter != nil {
		s.Watts = meter.Stop()
		s.Joules = s.Watts * s.Seconds
	}
	if !middle.Stop() { // it began to look
		s.State = <-looked
	}
	return s, err
}
