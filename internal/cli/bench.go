// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"

	"github.com/sparsek/sparsek/internal/bench"
	"github.com/sparsek/sparsek/internal/bench/roofline"
	"github.com/sparsek/sparsek/internal/bench/workload"
	sparsek "github.com/sparsek/sparsek/wrapper"
)

// suiteRoofline is the suite of package roofline; the others are package bench's.
const suiteRoofline = "roofline"

// benchFlags are the flags of bench.
type benchFlags struct {
	suite    string
	matrices []string
	size     sizeFlag
	n        int
	block    blockFlag
	density  *densityFlag
	dtype    dtypeFlag
	seed     uint64
	device   deviceFlag
	threads  int
	rounds   int
	repeats  int
	launch   int
	against  []string // nil: the back-end's own
	out      outputFlags
	cases    []string

	given map[string]bool
}

func newBenchFlags(flags *flag.FlagSet) *benchFlags {
	o := &benchFlags{given: map[string]bool{}}
	flags.StringVar(&o.suite, "suite", bench.Basic, "`name`: "+strings.Join(suiteNames(), ", "))
	flags.Func("matrix", "A from a `file` in place of a suite: .mtx, .mtx.gz, .npz; may come more than once",
		func(path string) error {
			o.matrices = append(o.matrices, path)
			return nil
		})
	flags.Func("against", "`names`: "+strings.Join(bench.Peers(), ",")+", or none (default: the dense product)",
		func(text string) (err error) {
			o.against, err = bench.ParsePeers(text)
			return err
		})
	flags.Var(&o.size, "size", "`MxNxK`: A is M x K, B is K x N (default: the suite's)")
	flags.IntVar(&o.n, "n", 256, "of --matrix: columns of B")
	flags.Var(&o.block, "block", "`BMxBK`, or one number for both (default 64, or the suite's)")
	o.density = densityFlags(flags, 0)
	flags.Var(&o.dtype, "dtype", "element `type`: "+strings.Join(dtypes, ", ")+" (default: bf16 on a GPU, fp32 on the CPU)")
	flags.Uint64Var(&o.seed, "seed", 0, "of patterns, values and B (default 0); roofline's is fixed")
	flags.Var(&o.device, "device", "`name`: auto, cpu, gpu or gpu:N")
	flags.IntVar(&o.threads, "threads", 0, "of the CPU back-end (default: one for each core)")
	flags.IntVar(&o.rounds, "rounds", bench.DefaultRounds, "how often those that are timed take turns")
	flags.IntVar(&o.repeats, "repeats", 0, "products that each times in a round (default: by their time, 8 at most)")
	flags.IntVar(&o.launch, "launch", 0, "of roofline: launch each case that often and time nothing, under a profiler; with --json")
	o.out.define(flags)
	return o
}

// suiteNames are those that --suite takes.
func suiteNames() []string {
	names := slices.DeleteFunc(bench.Suites(), func(name string) bool { return name == bench.Files })
	return append(names, suiteRoofline)
}

func runBench(ctx context.Context, e *environment, args []string) error {
	flags := newFlags("bench")
	o := newBenchFlags(flags)
	if err := parse(e, flags, args, true); err != nil {
		return err
	}
	o.cases = flags.Args()
	flags.Visit(func(f *flag.Flag) { o.given[f.Name] = true })
	if err := o.validate(); err != nil {
		return err
	}
	if o.suite == suiteRoofline {
		return benchRoofline(ctx, e, o, args)
	}
	return benchSuite(ctx, e, o, args)
}

// ofSuites are the flags that not every suite takes, beside those that a suite takes by itself.
var ofSuites = []string{"size", "n", "block", "density", "sparsity", "dtype", "seed", "threads", "repeats", "launch", "against"}

// validate refuses what does not go together.
func (o *benchFlags) validate() error {
	if len(o.matrices) > 0 {
		if o.given["suite"] {
			return failf(exitUsage, "bench: --matrix is in place of a suite: leave out --suite")
		}
		o.suite = bench.Files
	} else if !slices.Contains(suiteNames(), o.suite) {
		return failf(exitUsage, "bench: --suite %s: want one of %s, or --matrix FILE", o.suite, strings.Join(suiteNames(), ", "))
	}
	for _, name := range ofSuites {
		if o.given[name] && !o.takes(name) {
			return failf(exitUsage, "bench: --%s is not for %s", name, o.suiteInWords())
		}
	}
	for _, name := range o.cases {
		if strings.HasPrefix(name, "-") {
			return failf(exitUsage, "bench: %s comes behind a case: flags go first", name)
		}
	}
	switch {
	case o.repeats < 0 || o.given["repeats"] && o.repeats == 0:
		return failf(exitUsage, "bench: --repeats %d: want a positive number", o.repeats)
	case o.rounds < 1:
		return failf(exitUsage, "bench: --rounds %d: want a positive number", o.rounds)
	case o.n < 1:
		return failf(exitUsage, "bench: --n %d: want a positive number", o.n)
	case o.density.from != "" && o.density.value == 0:
		return failf(exitUsage, "bench: --%s leaves no blocks to multiply", o.density.from)
	case o.launch < 0 || o.given["launch"] && o.launch == 0:
		return failf(exitUsage, "bench: --launch %d: want a positive number", o.launch)
	case o.launch > 0 && (!o.out.json || o.out.files()):
		return failf(exitUsage, "bench: --launch wants --json, and no other output: it prints what was launched")
	}
	return o.out.validate()
}

// takes tells whether the suite takes a flag of ofSuites.
func (o *benchFlags) takes(name string) bool {
	if o.suite == suiteRoofline {
		return name == "launch"
	}
	if name == "sparsity" {
		name = "density"
	}
	switch name {
	case "seed", "threads", "repeats", "against":
		return true
	}
	return slices.Contains(bench.Takes(o.suite), name)
}

func (o *benchFlags) suiteInWords() string {
	if o.suite == bench.Files {
		return "--matrix"
	}
	return "--suite " + o.suite
}

// settings are what the flags say of a suite's cases.
func (o *benchFlags) settings(backend sparsek.Backend, files []*bench.File) bench.Settings {
	return bench.Settings{
		Backend: backend, DType: string(o.dtype), Shape: workload.Shape{M: o.size.m, N: o.size.n, K: o.size.k},
		BlockM: o.block.m, BlockK: o.block.k, Density: o.density.value, Seed: o.seed, N: o.n, Files: files,
	}
}

// checkCases refuses names that the suite does not have, before a device is opened.
func (o *benchFlags) checkCases() error {
	var err error
	switch {
	case o.suite == suiteRoofline:
		_, err = roofline.Find(o.cases)
	case o.suite != bench.Files && len(o.cases) > 0:
		_, err = bench.Cases(o.suite, o.settings(o.device.backend, nil), o.cases)
	}
	if err != nil {
		return fail(exitUsage, fmt.Errorf("bench: %w", err))
	}
	return nil
}
