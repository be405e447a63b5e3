// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/sparsek/sparsek/internal/product"
	"github.com/sparsek/sparsek/internal/roofline"
	"github.com/sparsek/sparsek/internal/term"
	sparsek "github.com/sparsek/sparsek/wrapper"
)

// rooflineResult is what bench --suite roofline prints as JSON.
type rooflineResult struct {
	Command string           `json:"command"`
	Commit  string           `json:"commit"`
	GPU     string           `json:"gpu"`
	Driver  string           `json:"driver"` // the GPU's driver, and the CUDA version it serves
	Date    string           `json:"date"`   // UTC
	Rounds  int              `json:"rounds"`
	Peak    float64          `json:"tensor_peak_tflops"`  // what the tensor bounds are made of
	NoDense string           `json:"no_cublas,omitempty"` // why there is nothing to compare with
	Cases   []rooflineReport `json:"cases"`
	Failed  []rooflineFault  `json:"failed"`
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
}

func benchRoofline(ctx context.Context, e *environment, o benchFlags, args []string) (err error) {
	cases, err := roofline.Find(o.cases)
	if err != nil {
		return failf(exitUsage, "bench: %w", err)
	}
	if o.device.backend == sparsek.CPU {
		return failf(exitUsage, "bench: --suite roofline times a GPU: leave out --device cpu")
	}
	device := o.device
	device.backend = sparsek.CUDA
	c, err := newContext(device, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	result, err := describeRun(c, o, args)
	if err != nil {
		return err
	}
	b, err := roofline.New(c, cases, o.rounds)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	if o.launch > 0 {
		return launchCases(ctx, e, c, b, cases, o.launch)
	}
	result.Peak = b.Chip().Tensor / 1e12
	measured, failed := measureAll(ctx, b.Measure, cases, e.progress.Bar("bench", int64(len(cases)), term.Count))
	if why := b.NoDense(); why != nil {
		result.NoDense = why.Error()
	}
	result.fill(measured)
	result.fail(failed)
	switch {
	case o.json:
		err = printJSON(e.stdout, result)
	case o.markdown:
		err = printRooflineMarkdown(e.stdout, result)
	default:
		err = printRoofline(e.stdout, result)
	}
	for _, f := range failed {
		if errors.Is(f, product.ErrWrong) {
			err = errors.Join(err, fail(exitWrongResult, f))
		} else {
			err = errors.Join(err, f)
		}
	}
	return err
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
		endBar(bar, failed[len(failed)-1])
	} else {
		endBar(bar, nil)
	}
	return measured, failed
}

// describeRun says what is run, where and when.
func describeRun(c *sparsek.Context, o benchFlags, args []string) (*rooflineResult, error) {
	build, err := c.Library().BuildInfo()
	if err != nil {
		return nil, err
	}
	devices, err := c.Library().Devices()
	if err != nil {
		return nil, err
	}
	gpu := devices[c.Info().Device]
	return &rooflineResult{
		Command: "sparsek bench " + strings.Join(args, " "), Commit: or(build.Commit, "unknown"), GPU: gpu.Name,
		Driver: strings.TrimSpace(fmt.Sprintf("%s (CUDA %d.%d)", driverVersion(), gpu.DriverVersion/1000, gpu.DriverVersion%1000/10)),
		Date:   time.Now().UTC().Format(time.DateOnly), Rounds: o.rounds,
		Cases: []rooflineReport{}, Failed: []rooflineFault{},
	}, nil
}

var driverPattern = regexp.MustCompile(`Kernel Module.*?\s(\d+\.[\d.]+)\s`)

// driverVersion is that of NVIDIA's kernel module; "" where the system does not tell.
func driverVersion() string {
	text, err := os.ReadFile("/proc/driver/nvidia/version")
	if err != nil {
		return ""
	}
	return findDriver(string(text))
}

func findDriver(text string) string {
	if found := driverPattern.FindStringSubmatch(text); found != nil {
		return found[1]
	}
	return ""
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
			one.Dense = &denseReport{d.Runs, d.Median.Seconds(), d.Spread(), m.DenseRate(), one.Effective / m.DenseRate(), m.SpeedUp()}
		}
		r.Cases = append(r.Cases, one)
	}
}

func newTimeReport(m *roofline.Result, t product.Timing, to roofline.Reach, rates map[string]float64) timeReport {
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
