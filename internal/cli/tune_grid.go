// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sparsek/sparsek/internal/bench/tunereval"
	"github.com/sparsek/sparsek/internal/machine/gpu"
	"github.com/sparsek/sparsek/internal/sys/term"
	sparsek "github.com/sparsek/sparsek/wrapper"
)

// What a grid is judged by.
const (
	tunedWithin     = 0.03 // of the fastest: every tuned choice
	predictedWithin = 0.05 // of the fastest: the cost model's choice in most cases
	// The fastest should take a tenth of cuSPARSE's time where at most half of the blocks are stored and that time is long.
	timesCuSPARSE     = 10
	cuSPARSEDensity   = 0.5
	cuSPARSELeastTime = 200 * time.Microsecond
	gridBudget        = 300 * time.Millisecond // of a case, twice
	gridBudgetOnCPUs  = 2 * time.Second
)

// gridResult is what tune --grid prints as JSON.
type gridResult struct {
	Seed      uint64        `json:"seed"`
	Backend   string        `json:"backend"`
	Device    *gridDevice   `json:"device,omitempty"` // of the CUDA back-end
	Cases     []gridCase    `json:"cases"`
	Summary   []gridSummary `json:"summary"`
	Unmatched []string      `json:"failed"` // cases without a verdict, and why
}

// gridDevice is what the cost model knows of a GPU: sparsek::cuda::DeviceRates.
type gridDevice struct {
	Name       string  `json:"name"`
	SMs        int     `json:"sm_count"`
	ClockHz    int64   `json:"clock_hz"`
	MemoryRate float64 `json:"memory_bytes_per_second"`
	L2Bytes    int64   `json:"l2_bytes"`
}

type gridCase struct {
	Number     int                  `json:"number"`
	M          int                  `json:"m"`
	N          int                  `json:"n"`
	K          int                  `json:"k"`
	BlockM     int                  `json:"block_m"`
	BlockK     int                  `json:"block_k"`
	Pattern    string               `json:"pattern"`
	Blocks     int                  `json:"blocks"`
	Density    float64              `json:"density"`
	Rows64     tunereval.GroupLoads `json:"groups_of_64_rows"`
	Rows128    tunereval.GroupLoads `json:"groups_of_128_rows"`
	Ordered    int64                `json:"ordered_loads"`
	LongestRow int                  `json:"longest_row"` // blocks of it
	Fastest    string               `json:"fastest"`
	Tuned      gridChoice           `json:"tuned"`
	Predicted  gridChoice           `json:"predicted"`
	Candidates []candidate          `json:"candidates"`
}

type gridChoice struct {
	Kernel  string  `json:"kernel"`
	Seconds float64 `json:"seconds"`
	Slower  float64 `json:"slower"` // than the fastest: 0.03 is 3 % more time
}

// gridSummary is one thing that the grid shows.
type gridSummary struct {
	What  string `json:"what"`
	Holds int    `json:"holds"`
	Of    int    `json:"of"`
}

// tuneMany is tune with --grid or --typical.
func tuneMany(ctx context.Context, e *environment, o *tuneCommand) (err error) {
	only := []string{"matrix", "pattern", "size", "n", "block", "density", "sparsity", "dtype", "a-dtype", "op", "column-major", "quick", "out-dtype", "bias", "activation"}
	if o.Typical {
		only = append(only, "cases", "seed", "json")
	} else {
		only = append(only, "allow-dense")
	}
	for _, name := range only {
		if e.given[name] {
			return failf(exitUsage, "tune: --%s does not go with --grid or --typical", name)
		}
	}
	engine, err := o.open(e)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	budget := gridBudget
	if engine.Info().Backend == sparsek.CPU {
		budget = gridBudgetOnCPUs
	}
	if o.Budget != nil {
		budget = *o.Budget
	}
	if o.Typical && engine.Info().Backend == sparsek.CPU {
		return failf(exitNoDevice, "tune: --typical tunes products of a GPU's size, and there is no GPU here: tune your own with --matrix or --size")
	}
	if o.Typical {
		return tuneTypical(ctx, e, o, engine, budget)
	}
	if !e.given["seed"] {
		o.Seed = tunereval.Seed
	}
	return tuneGrid(ctx, e, o, engine, budget)
}

func tuneGrid(ctx context.Context, e *environment, o *tuneCommand, engine *sparsek.Engine, budget time.Duration) (err error) {
	result := &gridResult{Seed: o.Seed, Backend: backendLine(engine.Info())}
	if result.Device, err = describeDevice(engine); err != nil {
		return err
	}
	cases := tunereval.Draw(o.Seed, int(o.Cases))
	bar := e.progress.Bar("tune", int64(len(cases)), term.Count)
	for _, one := range cases {
		v, failed := tunereval.Judge(ctx, engine, one, budget)
		if err = ctx.Err(); err != nil {
			break
		}
		if failed != nil {
			result.Unmatched = append(result.Unmatched, fmt.Sprintf("%v: %v", one, failed))
		} else {
			result.Cases = append(result.Cases, newGridCase(v))
		}
		bar.Add(1)
	}
	bar.End(err)
	result.summarise()
	if o.JSON {
		return errors.Join(err, printJSON(e.stdout, result))
	}
	return errors.Join(err, printGrid(e, result))
}

// describeDevice gives nil on CPUs. What the driver does not report is 0.
func describeDevice(engine *sparsek.Engine) (*gridDevice, error) {
	if engine.Info().Backend != sparsek.CUDA {
		return nil, nil
	}
	devices, err := engine.Library().Devices()
	if err != nil {
		return nil, err
	}
	device := devices[engine.Info().Device]
	described := &gridDevice{Name: device.Name, SMs: device.SMs, ClockHz: device.ClockHz, L2Bytes: device.L2Bytes}
	if driver, err := gpu.Query(); err == nil && engine.Info().Device < len(driver.Devices) {
		described.MemoryRate = driver.Devices[engine.Info().Device].MemoryRate
	}
	return described, nil
}

// tuneTypical tunes a list of products; what was measured before it is stopped stays in the cache.
func tuneTypical(ctx context.Context, e *environment, o *tuneCommand, engine *sparsek.Engine, budget time.Duration) (err error) {
	cases := tunereval.Typical()
	bar := e.progress.Bar("tune", int64(len(cases)), term.Count)
	t := &table{left: 3}
	t.add("MxNxK", "block", "pattern", "time", "kernel")
	for _, one := range cases {
		info, failed := tunereval.Remember(ctx, engine, one, budget, o.AllowDense)
		if err = errors.Join(failed, ctx.Err()); err != nil {
			err = fmt.Errorf("%v: %w", one, err)
			break
		}
		if info.Warning != "" {
			e.progress.Printf("warning: %s", info.Warning)
		}
		size, block := sizeFlag{one.M, one.N, one.K}, blockFlag{one.BlockM, one.BlockK}
		t.add(size.String(), block.String(), one.Pattern+" "+percent(one.Density), formatSeconds(info.Measured.Seconds()), info.Kernel)
		bar.Add(1)
	}
	bar.End(err)
	return errors.Join(err, t.print(e.stdout))
}

func newGridCase(v *tunereval.Verdict) gridCase {
	one := v.Case
	g := gridCase{
		Number: one.Number, M: one.M, N: one.N, K: one.K, BlockM: one.BlockM, BlockK: one.BlockK, Pattern: one.Pattern,
		Blocks: v.Blocks, Density: v.Density, Rows64: v.Rows64, Rows128: v.Rows128, Ordered: v.OrderedLoads, LongestRow: v.LongestRow, Fastest: v.Fastest.Kernel,
		Tuned:     gridChoice{v.Tuned.Kernel, v.Tuned.Time.Seconds(), v.Tuned.Slower},
		Predicted: gridChoice{v.Predicted.Kernel, v.Predicted.Time.Seconds(), v.Predicted.Slower},
	}
	r := &tuneResult{}
	r.fill(v.Candidates, 2*float64(v.Blocks)*float64(one.BlockM)*float64(one.BlockK)*float64(one.N))
	g.Candidates = r.Candidates
	return g
}

// summarise counts in how many of the cases it holds what the tuner is to do.
func (r *gridResult) summarise() {
	tuned := gridSummary{What: fmt.Sprintf("tuned choice at most %s slower than the fastest", percent(tunedWithin))}
	predicted := gridSummary{What: fmt.Sprintf("cost model's choice at most %s slower than the fastest", percent(predictedWithin))}
	vendor := gridSummary{What: fmt.Sprintf("fastest at least %d x %s, where that takes %v or more and at most %s of the blocks are stored",
		timesCuSPARSE, cuSPARSE, cuSPARSELeastTime, percent(cuSPARSEDensity))}
	for _, c := range r.Cases {
		tuned.count(c.Tuned.Slower <= tunedWithin)
		predicted.count(c.Predicted.Slower <= predictedWithin)
		slow, best := 0., 0.
		for _, k := range c.Candidates {
			if k.Kernel == cuSPARSE {
				slow = k.Seconds
			}
			if k.Kernel == c.Fastest {
				best = k.Seconds
			}
		}
		if slow >= cuSPARSELeastTime.Seconds() && c.Density <= cuSPARSEDensity {
			vendor.count(slow >= timesCuSPARSE*best)
		}
	}
	r.Summary = []gridSummary{tuned, predicted}
	if vendor.Of > 0 {
		r.Summary = append(r.Summary, vendor)
	}
}

func (s *gridSummary) count(holds bool) {
	s.Of++
	if holds {
		s.Holds++
	}
}

func printGrid(e *environment, r *gridResult) error {
	fmt.Fprintf(e.stdout, "grid of seed %d, %s\n\n", r.Seed, r.Backend)
	t := &table{left: 3}
	t.add("MxNxK", "block", "pattern", "stored", "fastest", "time", "tuned", "", "model", "")
	for _, c := range r.Cases {
		size, block := sizeFlag{c.M, c.N, c.K}, blockFlag{c.BlockM, c.BlockK}
		var fastest float64
		for _, k := range c.Candidates {
			if k.Kernel == c.Fastest {
				fastest = k.Seconds
			}
		}
		t.add(size.String(), block.String(), c.Pattern, percent(c.Density), c.Fastest, formatSeconds(fastest),
			choiceWord(c.Tuned, c.Fastest), "+"+percent(c.Tuned.Slower), choiceWord(c.Predicted, c.Fastest), "+"+percent(c.Predicted.Slower))
	}
	if err := t.print(e.stdout); err != nil {
		return err
	}
	fmt.Fprintln(e.stdout)
	for _, s := range r.Summary {
		fmt.Fprintf(e.stdout, "%s: %d of %d\n", s.What, s.Holds, s.Of)
	}
	for _, failed := range r.Unmatched {
		fmt.Fprintf(e.stdout, "no verdict: %s\n", failed)
	}
	return nil
}

// choiceWord names a choice where it is not the fastest.
func choiceWord(c gridChoice, fastest string) string {
	if c.Kernel == fastest {
		return "="
	}
	return c.Kernel
}
