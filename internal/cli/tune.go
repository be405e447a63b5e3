// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sparsek/sparsek/internal/bench/workload"
	sparsek "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/tuning"
)

// tuneCommand is "sparsek tune".
type tuneCommand struct {
	productFlags
	Budget  *time.Duration `group:"Measuring" placeholder:"TIME" help:"About how long to measure, as 500ms or 10s (default: 10s); each kernel is measured once even so."`
	Quick   bool           `group:"Measuring" help:"Measure only what the cost model thinks worth it, as a plan that is tuned does."`
	Typical bool           `group:"For maintainers" xor:"many" help:"Tune a list of typical products for a GPU and remember them, instead of one product."`
	Grid    bool           `group:"For maintainers" xor:"many" help:"Judge the tuner by a grid of products drawn by --seed, instead of one product."`
	Cases   count          `group:"For maintainers" default:"${gridcases}" placeholder:"N" help:"Products of --grid."`
}

func (*tuneCommand) Help() string {
	return `Examples:
  sparsek tune --size 4096x4096x4096 --density 0.1
  sparsek tune --matrix A.npz --block 16 --n 512 --budget 2s`
}

// budget is the time to measure for.
func (o *tuneCommand) budget() time.Duration {
	if o.Budget == nil {
		return 10 * time.Second
	}
	return *o.Budget
}

// tuneResult is what tune prints as JSON.
type tuneResult struct {
	Config        string      `json:"config"`
	M             int         `json:"m"`
	N             int         `json:"n"`
	K             int         `json:"k"`
	BlockM        int         `json:"block_m"`
	BlockK        int         `json:"block_k"`
	DType         string      `json:"dtype"`
	ADType        string      `json:"a_dtype,omitempty"` // of A, where DType is of B alone
	OutDType      string      `json:"out_dtype"`
	Blocks        int         `json:"blocks"`
	Density       float64     `json:"density"`
	Backend       string      `json:"backend"`
	BackendReason string      `json:"backend_reason"`
	Best          string      `json:"best"`
	Warning       string      `json:"warning,omitempty"` // of the tuning cache
	Candidates    []candidate `json:"candidates"`        // in the order of priority
}

// candidate is tuning.Candidate in JSON.
type candidate struct {
	Kernel    string  `json:"kernel"`
	Note      string  `json:"note,omitempty"`
	Serves    bool    `json:"serves"`
	Runs      int     `json:"runs"`
	Predicted float64 `json:"predicted_seconds"`
	Seconds   float64 `json:"seconds,omitempty"` // the median
	Spread    float64 `json:"spread,omitempty"`  // distance of the quartiles as a share of it
	Setup     float64 `json:"setup_seconds,omitempty"`
	Effective float64 `json:"effective_tflops,omitempty"`
	// The time of cusparse_bsr over this one's; 0 where either was not measured.
	OverCuSPARSE float64 `json:"speed_up_over_cusparse_bsr,omitempty"`
}

// Run tunes.
func (o *tuneCommand) Run(ctx context.Context, e *environment) error {
	if o.budget() < 0 {
		return failf(exitUsage, "tune: --budget %v: want a positive time", o.budget())
	}
	if o.Grid || o.Typical {
		return tuneMany(ctx, e, o)
	}
	if e.given["cases"] {
		return failf(exitUsage, "tune: --cases is for --grid")
	}
	if o.Matrix == "" && o.Pattern == "" {
		o.Pattern = "random"
		if o.Size == nil {
			return failf(exitUsage, "tune: give --matrix FILE, or --size MxNxK for a random pattern")
		}
	}
	if err := o.validate(e, ""); err != nil {
		return err
	}
	switch o.DType {
	case "bf16":
		return tuneTyped(ctx, e, o, workload.BFloat16)
	case "fp16":
		return tuneTyped(ctx, e, o, workload.Float16)
	case "fp64":
		return tuneTyped(ctx, e, o, workload.Float64)
	}
	return tuneTyped(ctx, e, o, workload.Float32)
}

func tuneTyped[T sparsek.Element](ctx context.Context, e *environment, o *tuneCommand, in workload.Element[T]) (err error) {
	engine, err := o.open(e)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	loaded, err := load(ctx, &o.productFlags, operandFlags{Alpha: 1}, in, in)
	if err != nil {
		return err
	}
	p := loaded.problem
	m, err := p.Matrix(ctx, engine)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	result := &tuneResult{
		M: p.A.Rows, N: p.N(), K: p.A.Cols, BlockM: p.A.BlockM, BlockK: p.A.BlockK,
		DType: in.Name, OutDType: string(o.outputOf(o.DType)), Blocks: p.A.Blocks(), Density: p.A.Density(),
		Backend: backendName(engine.Info()), BackendReason: engine.Info().Reason,
	}
	if o.narrows() {
		result.ADType = string(o.ADType)
	}
	result.Config = configName(result)
	if !o.JSON {
		fmt.Fprintf(e.stdout, "Auto-tuning sparse BSR for config %s:\n", result.Config)
	}
	tuner, err := tuning.NewTuner(ctx, m, sparsek.PlanOptions{
		N: p.N(), Op: p.Op, OrderX: p.OrderX, OrderB: p.OrderB, OrderC: p.OrderC, DTypeB: dtypeOf(o.DType), Output: dtypeOf(o.outputOf(o.DType)), Bias: o.Bias.Bias,
		Activation: o.Activation.Activation, AllowDense: o.AllowDense,
	}, tuning.Options{Budget: o.budget(), All: !o.Quick})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tuner.Close()) }()
	stopped := measureCandidates(ctx, e, tuner, o.budget())
	if stopped != nil && !errors.Is(stopped, context.Canceled) {
		return stopped
	}
	candidates, err := tuner.Candidates()
	if err != nil {
		return err
	}
	plan, err := tuner.Finish() // what was measured is kept, also where it was stopped
	if err != nil {
		return errors.Join(stopped, err)
	}
	defer func() { err = errors.Join(err, plan.Close(), stopped) }()
	result.Best, result.Warning = plan.Info().Kernel, plan.Info().Warning
	result.fill(candidates, p.EffectiveFLOP())
	if o.JSON {
		return printJSON(e.stdout, result)
	}
	return printTuning(e, result)
}

// measureCandidates steps until there is nothing left to do, or until it is stopped.
func measureCandidates(ctx context.Context, e *environment, tuner *tuning.Tuner, budget time.Duration) error {
	step := e.progress.Step(fmt.Sprintf("measure kernels for about %v", budget))
	for {
		_, more, err := tuner.Step(ctx)
		if err != nil || !more {
			step.End(err)
			return err
		}
	}
}

// configName is the product in one word: M_N_K_bs<block>_sp<share of blocks that are absent>.
func configName(r *tuneResult) string {
	block := fmt.Sprint(r.BlockM)
	if r.BlockK != r.BlockM {
		block += fmt.Sprintf("x%d", r.BlockK)
	}
	return fmt.Sprintf("%d_%d_%d_bs%s_sp%.2f", r.M, r.N, r.K, block, 1-r.Density)
}

const cuSPARSE = "cusparse_bsr"

func (r *tuneResult) fill(candidates []tuning.Candidate, flop float64) {
	var slow time.Duration
	for _, c := range candidates {
		if c.Kernel == cuSPARSE {
			slow = c.Median
		}
	}
	for _, c := range candidates {
		one := candidate{
			Kernel: c.Kernel, Note: c.Note, Serves: c.Serves, Runs: c.Runs, Predicted: c.Predicted.Seconds(),
			Seconds: c.Median.Seconds(), Spread: c.Spread, Setup: c.Setup.Seconds(),
		}
		if c.Runs > 0 {
			one.Effective = rate(flop, c.Median)
			one.OverCuSPARSE = slow.Seconds() / c.Median.Seconds()
		}
		r.Candidates = append(r.Candidates, one)
	}
}

// printTuning prints a line for each candidate, the slowest first, and the reasons why some were not measured.
func printTuning(e *environment, r *tuneResult) error {
	sorted := slices.Clone(r.Candidates)
	slices.SortStableFunc(sorted, func(a, b candidate) int { return cmp.Compare(b.Seconds, a.Seconds) })
	width := 20
	for _, c := range sorted {
		width = max(width, len(c.Kernel))
	}
	var best candidate
	for _, c := range sorted {
		if c.Runs == 0 {
			continue
		}
		mark := ""
		if c.Kernel == r.Best {
			best, mark = c, " ✅"
		}
		ratio := ""
		if c.OverCuSPARSE > 0 && c.Kernel != cuSPARSE {
			ratio = fmt.Sprintf("  %5.1f x %s", c.OverCuSPARSE, cuSPARSE)
		}
		setup := ""
		if c.Setup > 0 {
			setup = fmt.Sprintf("  and %.3f ms for new values", c.Setup*1e3)
		}
		rate := fmt.Sprintf("%6.1f", c.Effective)
		if c.Effective < 1 {
			rate = fmt.Sprintf("%6.3f", c.Effective)
		}
		fmt.Fprintf(e.stdout, "  %-*s: %7.3f ms → %s TFLOPS%s%s%s\n", width, c.Kernel, c.Seconds*1e3, rate, mark, ratio, setup)
	}
	_, err := fmt.Fprintf(e.stdout, "  Best: %s (%.3f ms)\n", best.Kernel, best.Seconds*1e3)
	for _, c := range sorted {
		if c.Runs == 0 {
			_, err = fmt.Fprintf(e.stdout, "  not measured: %s: %s\n", c.Kernel, c.Note)
		}
	}
	if r.Warning != "" {
		fmt.Fprintf(e.stderr, "sparsek: warning: %s\n", r.Warning)
	}
	if err != nil {
		return failf(exitBadOutput, "print the result: %w", err)
	}
	return nil
}

func dtypeOf(name dtypeFlag) sparsek.DType {
	switch name {
	case "bf16":
		return sparsek.BF16
	case "fp16":
		return sparsek.FP16
	case "fp64":
		return sparsek.FP64
	}
	return sparsek.FP32
}
