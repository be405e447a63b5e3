// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sparsek/sparsek/internal/bench"
	"github.com/sparsek/sparsek/internal/bench/workload"
	sparsek "github.com/sparsek/sparsek/wrapper"
)

// benchCommand is "sparsek bench".
type benchCommand struct {
	Suite        string     `group:"What is timed" default:"basic" placeholder:"NAME" help:"${suites}."`
	List         bool       `group:"What is timed" help:"List the suites with their cases, or those of --suite, and time nothing."`
	From         []string   `group:"What is timed" sep:"none" placeholder:"FILE" help:"Report what --json wrote to a file, and time nothing. May be given more than once, with --markdown or for one map."`
	Matrix       []string   `group:"What is timed" sep:"none" placeholder:"FILE" help:"A from a file in place of a suite: .mtx, .mtx.gz, .npz. May be given more than once."`
	Against      peersFlag  `group:"What is timed" placeholder:"NAMES" help:"${peers}, with commas between them, or none (default: the dense product, or the suite's)."`
	Size         *sizeFlag  `group:"Product" placeholder:"MxNxK" help:"A is M x K, B is K x N (default: the suite's)."`
	N            count      `group:"Product" default:"256" placeholder:"N" help:"Columns of B, for --matrix."`
	Block        *blockFlag `group:"Product" placeholder:"BMxBK" help:"Blocks of A; one number stands for both (default: the suite's, or those of a bsr .npz, or 64x64)."`
	densityFlags `group:"Product" set:"density=the suite's"`
	DType        dtypeFlag `name:"dtype" group:"Product" placeholder:"TYPE" help:"Element type of A and B: bf16, fp16, fp32 or fp64 (default: bf16 on a GPU, fp32 on the CPU)."`
	Seed         uint64    `group:"Product" placeholder:"N" help:"Of patterns, values and B (default: 0); those of the suites roofline, peers, shared, nonfinite, dynamic, training, gate and attention are fixed."`
	mapFlags     `group:"The suite map"`
	engineFlags  `group:"Device and time"`
	Rounds       count          `group:"Device and time" default:"${rounds}" placeholder:"N" help:"How often all that is timed takes turns."`
	Repeats      count          `group:"Device and time" placeholder:"N" help:"Products that each times in a round (default: by their time, at most 8)."`
	Sustained    *time.Duration `group:"Device and time" placeholder:"TIME" help:"How long ours and the dense product run without a pause, as in 2s; 0: not at all (default: 2s in the suite roofline)."`
	outputFlags  `group:"Output"`
	Launches     count `group:"For maintainers" placeholder:"N" help:"Launch each case that often on a GPU and time nothing, under a profiler; with --json."`

	Cases []string `arg:"" optional:"" name:"case" help:"Cases of the suite (default: all)."`
}

func (*benchCommand) Help() string {
	return `Examples:
  sparsek bench --matrix A.npz --block 16 --n 512 --html A.html
  sparsek bench --suite map --types fp32 --keep map.jsonl --html map.html`
}

// suiteNames are those that --suite takes.
func suiteNames() []string {
	var names []string
	for _, s := range bench.Suites() {
		if s.Name != bench.Files {
			names = append(names, s.Name)
		}
	}
	return append(names, bench.Map)
}

// Run times.
func (o *benchCommand) Run(ctx context.Context, e *environment) error {
	if err := o.validate(e); err != nil {
		return err
	}
	switch {
	case o.List:
		return o.list(e)
	case len(o.From) > 0:
		return o.printFrom(e)
	case o.Suite == bench.Map:
		return benchMap(ctx, e, o)
	}
	return benchSuite(ctx, e, o)
}

// ofSuites are the flags that not every suite takes, beside those that a suite takes by itself.
var ofSuites = []string{"size", "n", "block", "density", "sparsity", "dtype", "seed"}

// validate refuses what does not go together.
func (o *benchCommand) validate(e *environment) error {
	if len(o.Matrix) > 0 {
		if e.given["suite"] {
			return failf(exitUsage, "bench: --matrix is in place of a suite: leave out --suite")
		}
		o.Suite = bench.Files
	} else if !slices.Contains(suiteNames(), o.Suite) {
		return failf(exitUsage, "bench: --suite %s: want one of %s, or --matrix FILE", o.Suite, strings.Join(suiteNames(), ", "))
	}
	if err := o.validateMap(e); err != nil {
		return err
	}
	for _, name := range ofSuites {
		if e.given[name] && !o.takes(name) {
			return failf(exitUsage, "bench: --%s is not for %s", name, o.suiteInWords())
		}
	}
	switch {
	case o.densityFlags.given() != "" && o.value(0) == 0:
		return failf(exitUsage, "bench: --%s leaves no blocks to multiply", o.densityFlags.given())
	case o.Launches > 0 && (!o.JSON || o.files()):
		return failf(exitUsage, "bench: --launches needs --json, and no other output: it prints what was launched")
	}
	switch {
	case o.Launches > 0 && o.Suite == bench.AttentionSuite:
		return failf(exitUsage, "bench: --launches is for products: leave out --suite %s", o.Suite)
	case o.Sustained != nil && (*o.Sustained < 0 || *o.Sustained > longestSustained):
		return failf(exitUsage, "bench: --sustained %v: give a time from 0 to %v", *o.Sustained, longestSustained)
	case o.gpuOnly() && o.Device.backend == sparsek.CPU:
		return failf(exitUsage, "bench: --suite %s times a GPU: leave out --device cpu", o.Suite)
	}
	return o.outputFlags.validate()
}

// longestSustained keeps a slip of the pen from heating a GPU for hours.
const longestSustained = time.Minute

// takes reports whether the suite takes a flag of ofSuites.
func (o *benchCommand) takes(name string) bool {
	if name == "sparsity" {
		name = "density"
	}
	if o.Suite == bench.Map {
		return name == "seed"
	}
	s, err := bench.FindSuite(o.Suite)
	return err == nil && slices.Contains(s.Takes, name)
}

// gpuOnly reports whether the suite is one for a GPU alone.
func (o *benchCommand) gpuOnly() bool {
	s, err := bench.FindSuite(o.Suite)
	return err == nil && s.GPU
}

func (o *benchCommand) suiteInWords() string {
	if o.Suite == bench.Files {
		return "--matrix"
	}
	return "--suite " + o.Suite
}

// settings are what the flags say of a suite's cases.
func (o *benchCommand) settings(backend sparsek.Backend, files []*bench.File) bench.Settings {
	set := bench.Settings{Backend: backend, DType: string(o.DType), Density: o.value(0), Seed: o.Seed, N: int(o.N), Files: files}
	if o.Size != nil {
		set.Shape = workload.Shape{M: o.Size.m, N: o.Size.n, K: o.Size.k}
	}
	if o.Block != nil {
		set.BlockM, set.BlockK = o.Block.m, o.Block.k
	}
	return set
}

// checkCases refuses names that the suite does not have, before a device is opened. Where that may be a GPU or the CPU,
// names that either has are right for now.
func (o *benchCommand) checkCases() error {
	if o.Suite == bench.Files || len(o.Cases) == 0 {
		return nil
	}
	backends := []sparsek.Backend{o.Device.backend}
	if o.Device.backend == sparsek.Auto {
		backends = []sparsek.Backend{sparsek.CPU, sparsek.CUDA}
	}
	var err error
	for _, backend := range backends {
		if _, err = bench.Cases(o.Suite, o.settings(backend, nil), o.Cases); err == nil {
			return nil
		}
	}
	return fail(exitUsage, fmt.Errorf("bench: %w", err))
}
