// SPDX-License-Identifier: Apache-2.0

package roofline

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sparsek/sparsek/internal/bsr"
	"github.com/sparsek/sparsek/internal/matio"
	"github.com/sparsek/sparsek/internal/product"
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
	Timing         product.Timing
	Graph          *GraphTiming    // nil where the case is not timed in a CUDA graph
	Dense          *product.Timing // cuBLAS at the dense product of the size; nil where there is no cuBLAS
	Work           Work
	Bounds         []Bound // the one that binds first
}

// GraphTiming is of products that are replayed as a CUDA graph.
type GraphTiming struct {
	Products       int // in the graph
	product.Timing     // of a product: a replay's time divided by their number
}

// Effective is the rate on stored blocks, in TFLOP/s, at the median of a timing.
func (r *Result) Effective(t product.Timing) float64 { return r.Work.FLOP / t.Median.Seconds() / 1e12 }

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

// Fraction is the share of what the binding bound allows, at the median of a timing. Above 1 the bound is wrong.
func (r *Result) Fraction(t product.Timing) float64 { return r.Bounds[0].Seconds / t.Median.Seconds() }

// Bench times cases on a GPU.
type Bench struct {
	context  *sparsek.Context
	operands *operands
	l2       int64
	chip     Ceilings
	rounds   int
	noDense  error // why there is no cuBLAS
}

// DefaultRounds is how often a case and its dense product take turns.
const DefaultRounds = 6

// New prepares the operands of cases.
func New(c *sparsek.Context, cases []Case, rounds int) (*Bench, error) {
	devices, err := c.Library().Devices()
	if err != nil {
		return nil, err
	}
	var device sparsek.Device // none on the CPU
	if c.Info().Backend == sparsek.CUDA {
		device = devices[c.Info().Device]
	}
	b := &Bench{context: c, rounds: rounds, l2: device.L2Bytes, chip: ceilingsOf(device)}
	b.operands, err = newOperands(c, cases)
	return b, err
}

// Chip are the ceilings that the bounds are made of.
func (b *Bench) Chip() Ceilings { return b.chip }

// NoDense is why there are no dense products to compare with; nil where there are.
func (b *Bench) NoDense() error { return b.noDense }

// Close frees the operands.
func (b *Bench) Close() error { return b.operands.close() }

// Measure checks and times a case.
func (b *Bench) Measure(ctx context.Context, c Case) (r *Result, err error) {
	p, err := c.Generate()
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	a := product.RandomA[element](p, c.M, c.K, c.BlockM, c.BlockK, Seed)
	copies := b.copies(c, len(a.Values))
	rotation, err := product.NewRotation(ctx, b.context, a, c.N, copies)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rotation.Close()) }()
	if err := b.check(ctx, c, a, rotation); err != nil {
		return nil, err
	}
	r = &Result{
		Case: c, Blocks: p.Blocks(), Density: p.Density(), Plan: rotation.Info(), PlanTime: rotation.PlanTime(),
		Work: WorkOf(c, p, rotation.Info()),
	}
	if b.context.Info().Backend == sparsek.CUDA {
		if r.DevicePlanTime, err = product.DevicePlanTime(ctx, b.context, a, c.N); err != nil {
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
	fewestCopies, mostCopies = 2, 16
	// Products that take less than this are enqueued hardly faster than they run: more of them go before a timed one.
	short       = 50 * time.Microsecond
	shortBefore = 12
	// So many that the start of a graph does not count.
	fewestInGraph = 64
)

// copies is the number of A's so that twice L2's size goes by between two uses of the same.
func (b *Bench) copies(c Case, values int) int {
	product := elementBytes * (int64(values) + int64(c.K)*int64(c.N) + int64(c.M)*int64(c.N))
	// Small B and C stay in L2, whatever is done.
	if product < b.l2 {
		product = elementBytes * int64(values)
	}
	return int(min(mostCopies, max(fewestCopies, 1+(2*b.l2+product-1)/max(1, product))))
}

// time runs the rounds and fills in the timings.
func (b *Bench) time(ctx context.Context, rotation *product.Rotation[element], r *Result) error {
	sparseSets, denseSets := b.operands.sparse(r.Case), b.operands.dense(r.Case)
	between := rotation.Copies()
	first, err := rotation.Time(ctx, sparseSets, between, 1)
	if err != nil {
		return err
	}
	if first[0] < short {
		between = max(between, shortBefore)
	}
	turns := []turn{{func(ctx context.Context, repeats int) ([]time.Duration, error) {
		return rotation.Time(ctx, sparseSets, between, repeats)
	}, oursPer(first[0])}}
	inGraph, dense := -1, -1 // their places among the turns
	if r.Case.GraphReach != (Reach{}) && b.context.Info().Backend == sparsek.CUDA {
		inGraph = len(turns)
		r.Graph = &GraphTiming{}
		turns = append(turns, turn{func(ctx context.Context, repeats int) (times []time.Duration, err error) {
			r.Graph.Products, times, err = rotation.TimeGraph(ctx, sparseSets, fewestInGraph, repeats)
			return times, err
		}, replaysPer})
	}
	if b.noDense == nil {
		dense = len(turns)
		turns = append(turns, turn{func(ctx context.Context, repeats int) ([]time.Duration, error) {
			return sparsek.TimeDense(ctx, b.context, sparsek.DenseTimeOptions[element]{Operands: denseSets, Warmup: 1, Repeats: repeats})
		}, densePer})
	}
	all, err := interleave(ctx, b.rounds, turns)
	if dense >= 0 && errors.Is(err, sparsek.ErrNoLibrary) {
		b.noDense = err
		all, err = interleave(ctx, b.rounds, turns[:dense])
	}
	if err != nil {
		return err
	}
	r.Timing = product.Summarise(all[0])
	if inGraph >= 0 {
		r.Graph.Timing = product.Summarise(all[inGraph])
	}
	if dense >= 0 && b.noDense == nil {
		timing := product.Summarise(all[dense])
		r.Dense = &timing
	}
	return nil
}

// ErrWrong is what Measure returns, wrapped, where a product is wrong: its time would say nothing.
var ErrWrong = errors.New("wrong result")

// check runs one product and makes sure that every element was written, that none was computed again and that the
// first, the middle and the last block row hold what they should.
func (b *Bench) check(ctx context.Context, c Case, a bsr.Matrix[element], rotation *product.Rotation[element]) error {
	const nan = 0xff // in every byte
	if err := b.operands.sets[0].c.Fill(nan); err != nil {
		return err
	}
	if err := rotation.Multiply(ctx, 0, b.operands.sparse(c)[0]); err != nil {
		return err
	}
	out := matio.Dense[element]{Rows: c.M, Cols: c.N, Data: b.operands.result[:c.M*c.N]}
	if err := b.operands.sets[0].c.Read(out.Data); err != nil {
		return err
	}
	for i, v := range out.Data {
		if v&0x7fff > 0x7f80 { // the exponent of infinity with a fraction
			return fmt.Errorf("%w by %s: C[%d, %d] is NaN or was not written", ErrWrong, rotation.Info().Kernel, i/c.N, i%c.N)
		}
	}
	again, err := rotation.Recomputed()
	if err != nil {
		return err
	}
	if again > 0 { // of finite operands
		return fmt.Errorf("%w by %s: sums were NaN, and %d slabs of C were computed again", ErrWrong, rotation.Info().Kernel, again)
	}
	right := matio.Dense[element]{Rows: c.K, Cols: c.N, Data: b.operands.hostB(0)[:c.K*c.N]}
	for _, r := range []int{0, a.BlockRows / 2, a.BlockRows - 1} {
		report, err := product.CheckBlockRow(b.context.Library(), a, right, out, r, rotation.Info().UnitRoundoff)
		if errors.Is(err, sparsek.ErrCheckFailed) {
			return fmt.Errorf("%w by %s: block row %d has %d elements beyond their bound, the first at C[%d, %d]", ErrWrong,
				rotation.Info().Kernel, r, report.Failures, int64(r*c.BlockM)+report.FirstRow, report.FirstCol)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
