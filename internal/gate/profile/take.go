// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sparsek/sparsek/internal/build/kernelreport"
	"github.com/sparsek/sparsek/internal/build/sass"
	"github.com/sparsek/sparsek/internal/gate/ncu"
	"github.com/sparsek/sparsek/internal/machine/nvsmi"
)

// Errors of Take, wrapped, besides those of package ncu.
var ErrThrottled = errors.New("the GPU was slowed down while it was measured")

// Options say what is measured, and with what.
type Options struct {
	Program  string   // path of sparsek itself
	Cases    []string // by name; none: all
	Launches int      // that are measured of each case
	Kernels  *kernelreport.Report
	Profiler string // path of ncu
	NCU      string // its version
	Driver   string // version, where nvidia-smi does not report it
	SMI      string // nvidia-smi; "" for the one on PATH
}

// DefaultLaunches is how many launches of each case are measured.
const DefaultLaunches = 5

// Take measures the cases in one start of the program: the same operands serve all of them.
func Take(ctx context.Context, o Options) (*Profile, error) {
	start, err := machineStart()
	if err != nil {
		return nil, err
	}
	// The first launch of a case is the one that is checked, and warms up.
	args := []string{o.Program, "bench", "--suite", "gate", "--device", "gpu", "--json", "--launches", strconv.Itoa(o.Launches)}
	command := ncu.Command{
		Profiler: o.Profiler, Program: append(args, o.Cases...), Kernels: functionNames(o.Kernels), Metrics: ncu.Metrics(),
	}
	smi := o.SMI
	if smi == "" {
		smi = nvsmi.Program
	}
	stop := nvsmi.Watch(ctx, smi)
	result, err := command.Run(ctx)
	state := stop()
	if err != nil {
		return nil, err
	}
	var launched Launched
	if err := json.Unmarshal([]byte(withoutNotes(result.Stdout)), &launched); err != nil {
		return nil, fmt.Errorf("profiling: what was launched cannot be read: %w", err)
	}
	p := &Profile{
		Format: format, Date: time.Now().UTC().Truncate(time.Second), Commit: launched.Commit, Library: o.Kernels.Library,
		GPU: launched.GPU, Driver: o.Driver, NCU: o.NCU, Start: start, Launches: o.Launches, State: state,
	}
	if state.Driver != "" {
		p.Driver = state.Driver
	}
	if p.Cases, err = split(result.CSV, launched.Cases, o.Kernels); err != nil {
		return nil, fmt.Errorf("profiling: %w", err)
	}
	if why := state.Throttled(); why != "" {
		return p, fmt.Errorf("%w: %s", ErrThrottled, why)
	}
	return p, nil
}

// functionNames are those of the functions of all kernels in the list, each once.
func functionNames(r *kernelreport.Report) []string {
	var names []string
	for _, k := range r.Kernels {
		for _, f := range k.Functions {
			if name := sass.BaseName(f.Symbol); name != "" && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// withoutNotes drops the lines that the profiler puts between those of the program.
func withoutNotes(stdout string) string {
	var kept strings.Builder
	for line := range strings.Lines(stdout) {
		if !strings.HasPrefix(line, "==") {
			kept.WriteString(line)
		}
	}
	return kept.String()
}

// split gives each case its launches: they are in the order in which they were launched.
func split(csv []byte, launched []LaunchedCase, kernels *kernelreport.Report) ([]Case, error) {
	raw, err := ncu.ParseRaw(csv)
	if err != nil {
		return nil, err
	}
	want := 0
	for _, l := range launched {
		want += l.Launches
	}
	if len(raw.Rows) != want {
		return nil, fmt.Errorf("%w: it has %d launches, the program made %d", ncu.ErrTruncated, len(raw.Rows), want)
	}
	var cases []Case
	at := 0
	for _, l := range launched {
		text := raw.Slice(at+1, at+l.Launches).String() // without the first
		at += l.Launches
		launches, err := ncu.Parse(strings.NewReader(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", l.Name, err)
		}
		f, ok := kernels.Function(l.Kernel, launches[0].Kernel)
		if !ok {
			return nil, fmt.Errorf("%s: ncu measured %s, which is no function of kernel %s: build again", l.Name, launches[0].Kernel, l.Kernel)
		}
		c := Case{
			Name: l.Name, Kernel: l.Kernel, Symbol: f.Symbol, SASS: f.SASS, Opcodes: f.Opcodes, Plan: l.Plan, FLOP: l.FLOP,
			SHA256: ncu.Hash([]byte(text)), CSV: []byte(text),
		}
		if err := c.read(l.Launches - 1); err != nil {
			return nil, err
		}
		cases = append(cases, c)
	}
	return cases, nil
}
