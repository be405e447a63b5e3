// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"

	"github.com/sparsek/sparsek/internal/bench"
	benchreport "github.com/sparsek/sparsek/internal/bench/report"
	"github.com/sparsek/sparsek/internal/bench/roofline"
	"github.com/sparsek/sparsek/internal/bench/workload"
	"github.com/sparsek/sparsek/internal/sys/term"
	sparsek "github.com/sparsek/sparsek/wrapper"
)

// rooflineResult is what bench --suite roofline prints as JSON.
type rooflineResult struct {
	Command     string           `json:"command"`
	Commit      string           `json:"commit"`
	GPU         string           `json:"gpu"`
	Driver      string           `json:"driver"` // the GPU's driver, and the CUDA version it serves
	Date        string           `json:"date"`   // UTC
	Rounds      int              `json:"rounds"`
	Peak        float64          `json:"tensor_peak_tflops"`  // what the tensor bounds are made of
	NoDense     string           `json:"no_cublas,omitempty"` // why there is nothing to compare with
	Method      []string         `json:"method"`
	Clocks      string           `json:"clocks,omitempty"`      // that were seen, and what slowed them down
	Interrupted string           `json:"interrupted,omitempty"` // after how many cases
	Cases       []rooflineReport `json:"cases"`
	Failed      []rooflineFault  `json:"failed"`
}

type rooflineFault struct {
	Name  string `json:"name"`
	Error string `json:"error"`
}

type rooflineReport struct {
	Name     string  `json:"name"`
	M        int     `json:"m"`
	N        int     `json:"n"`
	K        int     `json:"k"`
	BlockM   int     `json:"block_m"`
	BlockK   int     `json:"block_k"`
	Pattern  string  `json:"pattern"`
	Shuffled bool    `json:"shuffled"` // block rows
	Blocks   int     `json:"blocks"`
	Density  float64 `json:"density"`

	Kernel      string           `json:"kernel"`
	PlanSeconds float64          `json:"plan_seconds"`        // on the host
	DevicePlan  float64          `json:"device_plan_seconds"` // on the GPU, for an index in its memory
	Bounds      []roofline.Bound `json:"bounds"`              // the one that binds first

	timeReport              // each product launched on a stream
	InGraph    *graphReport `json:"in_graph,omitempty"`
	Dense      *denseReport `json:"cublas,omitempty"`
}

// timeReport is what a timing comes to.
type timeReport struct {
	Runs      int     `json:"runs"`
	Seconds   float64 `json:"seconds"` // of a product, the median
	Spread    float64 `json:"spread"`  // distance of the quartiles as a share of the median
	Effective float64 `json:"effective_tflops"`

	Reach       string  `json:"reach"`
	ReachTFLOPs float64 `json:"reach_tflops,omitempty"` // the same as a rate, where the run tells
	OfReach     float64 `json:"of_reach,omitempty"`

	Fraction   float64 `json:"fraction_of_bound"`
	WrongBound bool    `json:"wrong_bound"` // faster than the bound allows
}

// graphReport is of products replayed as a CUDA graph; its runs are replays.
type graphReport struct {
	Products int `json:"products"` // in the graph
	timeReport
}

// denseReport is cuBLAS's product of the full size.
type denseReport struct {
	Runs      int     `json:"runs"`
	Seconds   float64 `json:"seconds"`
	Spread    float64 `json:"spread"`
	TFLOPs    float64 `json:"tflops"`
	RateShare float64 `json:"rate_share"` // our effective rate as a share of cuBLAS's
	SpeedUp   float64 `json:"speed_up"`
	Tie       bool    `json:"tie"`      // the times differ by no more than the spread
	RateTie   bool    `json:"rate_tie"` // so do the rates
}

func benchRoofline(ctx context.Context, e *environment, o *benchCommand) (err error) {
	cases, err := roofline.Find(o.Cases)
	if err != nil {
		return failf(exitUsage, "bench: %w", err)
	}
	if o.Device.backend == sparsek.CPU {
		return failf(exitUsage, "bench: --suite roofline times a GPU: leave out --device cpu")
	}
	device := o.Device
	device.backend = sparsek.CUDA
	c, err := openEngine(device, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	b, err := roofline.New(c, cases, int(o.Rounds))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	if o.Launches > 0 {
		return launchCases(ctx, e, c, b, cases, int(o.Launches))
	}
	r, err := newBenchReport(e, c, o)
	if err != nil {
		return err
	}
	chip := b.Chip()
	r.Chip = &chip
	measured, failed := measureAll(ctx, b.Measure, cases, e.progress.Bar("bench", int64(len(cases)), term.Count))
	addRoofline(r, len(cases), measured)
	addFaults(ctx, r, failed, b.NoDense())
	return errors.Join(printRooflineReport(e, o, r, newRooflineResult(r, measured, failed, b.NoDense())), o.write(e, r), rooflineFaults(failed))
}

// printRooflineReport prints in the suite's own forms, which tell of bounds and reach, and the others in those of all.
func printRooflineReport(e *environment, o *benchCommand, r *bench.Report, own *rooflineResult) error {
	switch {
	case o.JSON:
		return printJSON(e.stdout, own)
	case o.Markdown:
		return printRooflineMarkdown(e.stdout, own)
	case o.printer() != nil:
		return printReport(e.stdout, o.printer(), r)
	}
	return printRoofline(e.stdout, own)
}

// addRoofline takes over what was measured of so many cases into a report of all suites.
func addRoofline(r *bench.Report, planned int, measured []*roofline.Result) {
	r.Planned = planned
	for _, m := range measured {
		r.Cases = append(r.Cases, bench.FromRoofline(m))
	}
}

// addFaults tells a report what is missing.
func addFaults(ctx context.Context, r *bench.Report, failed []caseError, noDense error) {
	r.Interrupted = ctx.Err() != nil && len(r.Cases) < r.Planned
	for _, f := range failed {
		if !errors.Is(f.err, context.Canceled) {
			r.Failed = append(r.Failed, bench.Fault{Name: f.name, Error: f.err.Error(), Err: f.err})
		}
	}
	if noDense == nil {
		return
	}
	a := bench.Absence{Peer: bench.CUBLAS, Reason: noDense.Error(), Mend: bench.MendCUBLAS}
	for _, c := range r.Cases {
		a.Cases = append(a.Cases, c.Name)
	}
	r.Absent = append(r.Absent, a)
}

// newRooflineResult is what the suite tells by itself.
func newRooflineResult(r *bench.Report, measured []*roofline.Result, failed []caseError, noDense error) *rooflineResult {
	own := &rooflineResult{
		Command: r.Command, Commit: r.Commit, GPU: r.Device, Driver: r.Driver, Date: r.Date, Rounds: r.Rounds, Peak: r.Chip.Tensor / 1e12,
		Method: r.Method, Clocks: benchreport.Clocks(r), Cases: []rooflineReport{}, Failed: []rooflineFault{},
	}
	if r.Interrupted {
		own.Interrupted = benchreport.State(r)
	}
	if noDense != nil {
		own.NoDense = noDense.Error()
	}
	own.fill(measured)
	own.fail(failed)
	return own
}

// rooflineFaults says what went wrong, by its exit code.
func rooflineFaults(failed []caseError) error {
	var all error
	for _, f := range failed {
		var err error = f
		if errors.Is(f, workload.ErrWrong) {
			err = fail(exitWrongResult, f)
		}
		all = errors.Join(all, err)
	}
	return all
}

// caseError is why a case has no result.
type caseError struct {
	name string
	err  error
}

func (c caseError) Error() string { return c.name + ": " + c.err.Error() }
func (c caseError) Unwrap() error { return c.err }

// measureAll measures one case after the other. One that fails is left out; where the work is stopped or the device
// is broken, so are those after it.
func measureAll(ctx context.Context, measure func(context.Context, roofline.Case) (*roofline.Result, error), cases []roofline.Case,
	bar *term.Bar) (measured []*roofline.Result, failed []caseError) {
	for _, one := range cases {
		r, err := measure(ctx, one)
		if err == nil {
			measured = append(measured, r)
		} else {
			failed = append(failed, caseError{one.Name, err})
		}
		if ctx.Err() != nil || errors.Is(err, sparsek.ErrCUDA) || errors.Is(err, sparsek.ErrOutOfMemory) {
			break
		}
		bar.Add(1)
	}
	if len(failed) > 0 {
		bar.End(failed[len(failed)-1])
	} else {
		bar.End(nil)
	}
	return measured, failed
}

// fill takes over what was measured.
func (r *rooflineResult) fill(measured []*roofline.Result) {
	rates := map[string]float64{}
	for _, m := range measured {
		rates[m.Case.Name] = m.Effective(m.Timing)
	}
	for _, m := range measured {
		c := m.Case
		one := rooflineReport{
			Name: c.Name, M: c.M, N: c.N, K: c.K, BlockM: c.BlockM, BlockK: c.BlockK, Pattern: c.Pattern, Shuffled: c.Shuffled,
			Blocks: m.Blocks, Density: m.Density, Kernel: m.Plan.Kernel, PlanSeconds: m.PlanTime.Seconds(),
			DevicePlan: m.DevicePlanTime.Seconds(), Bounds: m.Bounds,
			timeReport: newTimeReport(m, m.Timing, c.Reach, rates),
		}
		if g := m.Graph; g != nil {
			one.InGraph = &graphReport{g.Products, newTimeReport(m, g.Timing, c.GraphReach, rates)}
		}
		if d := m.Dense; d != nil {
			one.Dense = &denseReport{d.Runs, d.Median.Seconds(), d.Spread(), m.DenseRate(), one.Effective / m.DenseRate(), m.SpeedUp(), m.Tie(), m.RateTie()}
		}
		r.Cases = append(r.Cases, one)
	}
}

func newTimeReport(m *roofline.Result, t workload.Timing, to roofline.Reach, rates map[string]float64) timeReport {
	one := timeReport{
		Runs: t.Runs, Seconds: t.Median.Seconds(), Spread: t.Spread(), Effective: m.Effective(t),
		Reach: to.String(), ReachTFLOPs: reachRate(to, m, rates), Fraction: m.Fraction(t), WrongBound: m.Fraction(t) > 1,
	}
	if one.ReachTFLOPs > 0 {
		one.OfReach = one.Effective / one.ReachTFLOPs
	}
	return one
}

// reachRate is what a case is to reach, as an effective rate in TFLOP/s; 0 where the run does not tell.
func reachRate(to roofline.Reach, m *roofline.Result, rates map[string]float64) float64 {
	switch {
	case to.TFLOPs > 0:
		return to.TFLOPs
	case to.Seconds > 0:
		return m.Work.FLOP / to.Seconds / 1e12
	case to.DenseShare > 0:
		return to.DenseShare * m.DenseRate()
	default:
		return to.Share * rates[to.Of]
	}
}

func (r *rooflineResult) fail(failed []caseError) {
	for _, f := range failed {
		text := f.err.Error()
		if errors.Is(f.err, context.Canceled) {
			text = "interrupted"
		}
		r.Failed = append(r.Failed, rooflineFault{f.name, text})
	}
}
