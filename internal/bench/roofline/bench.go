// SPDX-License-Identifier: Apache-2.0

package roofline

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/sparsek/sparsek/internal/bench/interleave"
	"github.com/sparsek/sparsek/internal/bench/workload"
	"github.com/sparsek/sparsek/internal/machine/nvsmi"
	sparsek "github.com/sparsek/sparsek/wrapper"
)

// Result is what was measured of a case.
type Result struct {
	Case     Case
	Blocks   int
	Density  float64 // share of blocks that are stored
	Plan     sparsek.PlanInfo
	PlanTime time.Duration // wall clock, on the host
	// The same on the GPU, for an index in its memory; 0 without one.
	DevicePlanTime time.Duration
	Timing         workload.Timing
	Rounds         interleave.Series // what Timing sums up
	Graph          *GraphTiming      // nil where the case is not timed in a CUDA graph
	Dense          *workload.Timing  // cuBLAS at the dense product of the size; nil where there is no cuBLAS
	DenseRounds    interleave.Series
	Work           Work
	Bounds         []Bound // the one that binds first
	// How the GPU stood before the first round, and after the last while the product ran.
	Before, After nvsmi.State
}

// GraphTiming is of products that are replayed as a CUDA graph.
type GraphTiming struct {
	Products        int // in the graph
	workload.Timing     // of a product: a replay's time divided by their number
	Rounds          interleave.Series
}

// Effective is the rate on stored blocks, in TFLOP/s, at the median of a timing.
func (r *Result) Effective(t workload.Timing) float64 { return r.Work.FLOP / t.Median.Seconds() / 1e12 }

// DenseRate is cuBLAS's, in TFLOP/s; 0 where it was not measured.
func (r *Result) DenseRate() float64 {
	if r.Dense == nil {
		return 0
	}
	return r.Case.DenseFLOP() / r.Dense.Median.Seconds() / 1e12
}

// SpeedUp is the time of the dense product over ours; 0 where it was not measured.
func (r *Result) SpeedUp() float64 {
	if r.Dense == nil {
		return 0
	}
	return r.Dense.Median.Seconds() / r.Timing.Median.Seconds()
}

// Tie tells whether neither our product nor the dense one is to be called faster.
func (r *Result) Tie() bool { return r.Dense != nil && r.Timing.Tie(*r.Dense) }

// RateTie tells whether the effective rate is not to be told from the dense product's.
func (r *Result) RateTie() bool {
	if r.Dense == nil {
		return false
	}
	return math.Abs(r.Effective(r.Timing)/r.DenseRate()-1) <= max(r.Timing.Spread(), r.Dense.Spread())
}

// Fraction is the share of what the binding bound allows, at the median of a timing. Above 1 the bound is wrong.
func (r *Result) Fraction(t workload.Timing) float64 { return r.Bounds[0].Seconds / t.Median.Seconds() }

// Bench times cases on a GPU.
type Bench struct {
	context  *sparsek.Engine
	operands *workload.Sets[element]
	l2       int64
	chip     Ceilings
	rounds   int
	noDense  error // why there is no cuBLAS
}

// DefaultRounds is how often a case and its dense product take turns.
const DefaultRounds = 6

// New prepares the operands of cases.
func New(c *sparsek.Engine, cases []Case, rounds int) (*Bench, error) {
	devices, err := c.Library().Devices()
	if err != nil {
		return nil, err
	}
	var device sparsek.DeviceInfo // none on the CPU
	if c.Info().Backend == sparsek.CUDA {
		device = devices[c.Info().Device]
	}
	b := &Bench{context: c, rounds: rounds, l2: device.L2Bytes, chip: CeilingsOf(device)}
	var shapes []workload.Shape
	for _, one := range cases {
		shapes = append(shapes, one.shape())
	}
	b.operands, err = workload.NewSets[element](c, shapes, shapes, Seed)
	return b, err
}

// Chip are the ceilings that the bounds are made of.
func (b *Bench) Chip() Ceilings { return b.chip }

// NoDense is why there are no dense products to compare with; nil where there are.
func (b *Bench) NoDense() error { return b.noDense }

// Close frees the operands.
func (b *Bench) Close() error { return b.operands.Close() }

// Measure checks and times a case.
func (b *Bench) Measure(ctx context.Context, c Case) (r *Result, err error) {
	p, err := c.Generate()
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	a := workload.RandomA[element](p, c.M, c.K, c.BlockM, c.BlockK, Seed)
	rotation, err := workload.NewRotation(ctx, b.context, a, workload.RotationOptions{N: c.N, Copies: b.copies(c, len(a.Values))})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rotation.Close()) }()
	if err := workload.CheckSample(ctx, b.context, a, c.N, rotation, b.operands); err != nil {
		return nil, err
	}
	r = &Result{
		Case: c, Blocks: p.Blocks(), Density: p.Density(), Plan: rotation.Info(),
		Work: WorkOf(c, p, rotation.Info()),
	}
	if r.PlanTime, err = workload.HostPlanTime(ctx, b.context, a, c.N); err != nil {
		return nil, err
	}
	if b.context.Info().Backend == sparsek.CUDA {
		if r.DevicePlanTime, err = workload.DevicePlanTime(ctx, b.context, a, c.N); err != nil {
			return nil, err
		}
	}
	r.Bounds = r.Work.Bounds(b.chip)
	if err := b.time(ctx, rotation, r); err != nil {
		return nil, err
	}
	return r, nil
}

const (
	// Products that take less than this are enqueued hardly faster than they run: more of them go before a timed one.
	short       = 50 * time.Microsecond
	shortBefore = 12
	// So many that the start of a graph does not count.
	fewestInGraph = 64

	densePer   = 4 // dense products that are timed in a round
	replaysPer = 4 // of a graph
)

// copies is the number of A's that are rotated.
func (b *Bench) copies(c Case, values int) int {
	return workload.ColdCopies(b.l2, elementBytes, values, c.M, c.N, c.K)
}

// time runs the rounds and fills in the timings.
func (b *Bench) time(ctx context.Context, rotation *workload.Rotation[element], r *Result) error {
	sparseSets, denseSets := b.operands.Sparse(r.Case.shape()), workload.DenseOperands(b.operands, r.Case.shape())
	between := rotation.Copies()
	first, err := rotation.Time(ctx, sparseSets, between, 1)
	if err != nil {
		return err
	}
	if first[0] < short {
		between = max(between, shortBefore)
	}
	turns := []interleave.Turn{{Time: func(ctx context.Context, repeats int) ([]time.Duration, error) {
		return rotation.Time(ctx, sparseSets, between, repeats)
	}, Repeats: interleave.Repeats(first[0])}}
	inGraph, dense := -1, -1 // their places among the turns
	if r.Case.GraphReach != (Reach{}) && b.context.Info().Backend == sparsek.CUDA {
		inGraph = len(turns)
		r.Graph = &GraphTiming{}
		turns = append(turns, interleave.Turn{Time: func(ctx context.Context, repeats int) (times []time.Duration, err error) {
			r.Graph.Products, times, err = rotation.TimeGraph(ctx, sparseSets, fewestInGraph, repeats)
			return times, err
		}, Repeats: replaysPer})
	}
	if b.noDense == nil {
		dense = len(turns)
		turns = append(turns, interleave.Turn{Time: func(ctx context.Context, repeats int) ([]time.Duration, error) {
			return sparsek.TimeDense(ctx, b.context, sparsek.DenseTimeOptions[element]{Operands: denseSets, Warmup: 1, Repeats: repeats})
		}, Repeats: densePer})
	}
	look := func(ctx context.Context) nvsmi.State { return workload.GPUState(ctx, b.context, nvsmi.Program) }
	r.Before = look(ctx)
	rest := workload.Rest(b.context)
	all, err := interleave.Interleave(ctx, b.rounds, rest, turns)
	if dense >= 0 && errors.Is(err, sparsek.ErrNoLibrary) {
		b.noDense = err
		all, err = interleave.Interleave(ctx, b.rounds, rest, turns[:dense])
	}
	if err != nil {
		return err
	}
	r.After, err = nvsmi.LookWhile(ctx, look, func(ctx context.Context) error {
		_, err := turns[0].Time(ctx, interleave.MostRepeats)
		return err
	})
	if err != nil {
		return err
	}
	r.Rounds = all[0]
	r.Timing = workload.Summarise(all[0].All())
	if inGraph >= 0 {
		r.Graph.Timing, r.Graph.Rounds = workload.Summarise(all[inGraph].All()), all[inGraph]
	}
	if dense >= 0 && b.noDense == nil {
		timing := workload.Summarise(all[dense].All())
		r.Dense, r.DenseRounds = &timing, all[dense]
	}
	return nil
}
