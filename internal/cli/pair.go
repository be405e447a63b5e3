// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/sparsek/sparsek/internal/bench"
	"github.com/sparsek/sparsek/internal/gate/pair"
	"github.com/sparsek/sparsek/internal/machine/nvsmi"
	"github.com/sparsek/sparsek/internal/sys/term"
	sparsek "github.com/sparsek/sparsek/wrapper"
)

// pairCommand is "sparsek pair".
type pairCommand struct {
	Against string        `required:"" placeholder:"FILE" help:"The library to compare with."`
	Library string        `placeholder:"FILE" help:"The library that is compared (default: the one that the program uses)."`
	Budget  time.Duration `default:"12s" placeholder:"TIME" help:"Time after which no case that is close to the gate's margin gets more rounds."`
	Seed    uint64        `default:"1" placeholder:"N" help:"Of operands and of the order of turns."`
	Swap    bool          `help:"Open the two libraries in the opposite order."`
	Cases   []string      `arg:"" optional:"" name:"case" help:"Cases of the suite gate (default: all)."`
	jsonFlag
}

func (*pairCommand) Help() string {
	return `Examples:
  sparsek pair --against old/libsparsek.so
  sparsek pair --against old/libsparsek.so --swap --seed 2 b64-random`
}

// Run compares two builds of the library.
func (o *pairCommand) Run(ctx context.Context, e *environment) error {
	cases, err := bench.GateCases(o.Cases)
	if err != nil {
		return failf(exitUsage, "pair: %w", err)
	}
	result, err := o.measure(ctx, e, cases)
	if err != nil {
		return err
	}
	if o.JSON {
		return printJSON(e.stdout, result)
	}
	return printPair(e, result)
}

// measure compares on the first GPU. What is on it is seen through the library under test.
func (o *pairCommand) measure(ctx context.Context, e *environment, cases []bench.Case) (r *pair.Comparison, err error) {
	lib, err := sparsek.Default()
	if o.Library != "" {
		lib, err = sparsek.Open(o.Library)
	}
	if err != nil {
		return nil, fail(exitNoLibrary, err)
	}
	devices, err := lib.Devices()
	if err != nil {
		return nil, err
	}
	if len(devices) == 0 || !devices[0].Usable {
		return nil, failf(exitNoDevice, "pair: there is no GPU that the CUDA back-end runs on")
	}
	// Kernels are those that the libraries choose by themselves, whatever was measured on this machine.
	if err := os.Setenv("SPARSEK_TUNING_CACHE", "off"); err != nil {
		return nil, err
	}
	against, remove, err := apart(o.Against, lib.Path())
	if err != nil {
		return nil, fail(exitBadFile, err)
	}
	defer func() { err = errors.Join(err, remove()) }()
	build, err := lib.BuildInfo()
	if err != nil {
		return nil, err
	}
	r = &pair.Comparison{GPU: devices[0].Name, Commit: build.Commit, Swapped: o.Swap, Seed: o.Seed, Date: now()}
	for i, file := range []string{against, lib.Path()} {
		if r.Libraries[i], err = pair.Describe(file); err != nil {
			return nil, fail(exitBadFile, err)
		}
	}
	looked := make(chan nvsmi.State, 1)
	go func() { looked <- nvsmi.Look(ctx, nvsmi.Program, 0) }() // once: asking holds up the driver's other callers
	bar := e.progress.Bar("compare", int64(len(cases)), term.Count)
	r.Cases, err = pair.Measure(ctx, pair.Options{
		Libraries: [2]string{against, lib.Path()}, CandidateFirst: o.Swap, GPU: true, Products: pair.ProductsOf(cases),
		Margin: pair.Margin, Budget: o.Budget, Seed: o.Seed, Progress: func() { bar.Add(1) },
	})
	bar.End(err)
	r.State = <-looked
	r.Driver, r.State.UUID = r.State.Driver, ""
	r.Elapsed = time.Since(r.Date).Seconds()
	return r, err
}

// apart gives the file, or a copy of it where it is the very library that is compared with it: the loader would open
// that only once.
func apart(file, other string) (name string, remove func() error, err error) {
	a, err := os.Stat(file)
	if err != nil {
		return "", nil, err
	}
	b, err := os.Stat(other)
	if err != nil {
		return "", nil, err
	}
	if !os.SameFile(a, b) {
		return file, func() error { return nil }, nil
	}
	dir, err := os.MkdirTemp("", "sparsek-pair-")
	if err != nil {
		return "", nil, err
	}
	text, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, filepath.Base(file)), text, 0o755)
	}
	return filepath.Join(dir, filepath.Base(file)), func() error { return os.RemoveAll(dir) }, err
}

func printPair(e *environment, r *pair.Comparison) error {
	fmt.Fprintf(e.stdout, "%s: time of a product, and its ratio to that by %s\n\n", r.GPU, r.Libraries[0].Path)
	t := &table{left: 2}
	t.add("case", "kernel", "time", "ratio", "99 % interval", "rounds")
	for i := range r.Cases {
		c := &r.Cases[i]
		if c.New != "" {
			t.add(c.Name, "", "", "", "not served by the other library", "")
			continue
		}
		t.add(c.Name, c.Plans[1].Kernel, formatSeconds(c.Seconds[1]), fmt.Sprintf("%.4f", c.Ratio),
			fmt.Sprintf("%.4f to %.4f", c.Low, c.High), fmt.Sprint(len(c.Rounds)))
	}
	return t.print(e.stdout)
}
