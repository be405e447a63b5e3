// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/sparsek/sparsek/internal/bench"
	buildreport "github.com/sparsek/sparsek/internal/build/kernelreport"
	"github.com/sparsek/sparsek/internal/gate/ncu"
	"github.com/sparsek/sparsek/internal/gate/profile"
	"github.com/sparsek/sparsek/internal/machine/doctor"
	"github.com/sparsek/sparsek/internal/sys/term"
	sparsek "github.com/sparsek/sparsek/wrapper"
)

// profileDir is where profile puts what it measures, gate too, and where bless takes it from.
const profileDir = "build/profile"

// profileCommand is "sparsek profile".
type profileCommand struct {
	Out      string   `default:"build/profile" placeholder:"FOLDER" help:"For what is measured."`
	Launches count    `default:"${launches}" placeholder:"N" help:"Launches of each case that are measured."`
	Runs     count    `default:"1" placeholder:"N" help:"How often all is measured; more than one go into folders run-1, run-2 ..."`
	Cases    []string `arg:"" optional:"" name:"case" help:"Cases of the suite gate (default: all)."`
	jsonFlag
}

func (*profileCommand) Help() string {
	return `Examples:
  sparsek profile
  sparsek profile b64-random-50 --launches 10`
}

// Run measures.
func (o *profileCommand) Run(ctx context.Context, e *environment) error {
	if _, err := bench.GateCases(o.Cases); err != nil {
		return failf(exitUsage, "profile: %w", err)
	}
	m, err := newMeasurer(ctx, int(o.Launches))
	if err != nil {
		return err
	}
	bar := e.progress.Bar("profile", int64(o.Runs), term.Count)
	var taken []*profile.Profile
	for i := range int(o.Runs) {
		dir := o.Out
		if o.Runs > 1 {
			dir = filepath.Join(o.Out, fmt.Sprintf("run-%d", i+1))
		}
		p, err := m.measure(ctx, dir, o.Cases)
		if err != nil {
			bar.End(err)
			return err
		}
		taken = append(taken, p)
		bar.Add(1)
	}
	bar.Done()
	if o.JSON {
		return printJSON(e.stdout, newProfileResult(taken))
	}
	return printProfile(e, taken[len(taken)-1], o)
}

// measurer takes profiles on this machine.
type measurer struct{ options profile.Options }

// newMeasurer looks whether the machine can measure. Where it cannot, the error is a *profile.NotMeasurable.
func newMeasurer(ctx context.Context, launches int) (*measurer, error) {
	lib, kernels, err := kernelReport()
	if err != nil {
		return nil, err
	}
	build, err := lib.BuildInfo()
	if err != nil {
		return nil, err
	}
	machine := doctor.Look(ctx, os.DirFS("/"))
	if err := profile.Ready(machine.Judge(build.CUDA)); err != nil {
		return nil, fail(exitNotMeasurable, err)
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find the program's own file: %w", err)
	}
	return &measurer{profile.Options{
		Program: self, Launches: launches, Kernels: kernels,
		Profiler: machine.Profiler, NCU: machine.ProfilerVersion, Driver: machine.Module,
	}}, nil
}

// kernelReport opens the library and reads what the build said of its kernels.
func kernelReport() (*sparsek.Library, *buildreport.Report, error) {
	lib, err := sparsek.Default()
	if err != nil {
		return nil, nil, fail(exitNoLibrary, err)
	}
	r, err := buildreport.Read(filepath.Join(filepath.Dir(lib.Path()), "..", "report", "kernels.json"), lib.Path())
	if err != nil {
		return nil, nil, fail(exitBadFile, err)
	}
	return lib, r, nil
}

// measure takes a profile of the cases, all where none is named, and writes it to dir.
func (m *measurer) measure(ctx context.Context, dir string, cases []string) (*profile.Profile, error) {
	if err := profile.Remove(dir); err != nil { // so that an old one is never taken for the new
		return nil, fail(exitBadOutput, err)
	}
	options := m.options
	options.Cases = cases
	p, err := profile.Take(ctx, options)
	if err != nil {
		err = profile.Explain(err)
		var not *profile.NotMeasurable
		if errors.As(err, &not) {
			return p, fail(exitNotMeasurable, err)
		}
		return nil, err
	}
	return p, fail(exitBadOutput, p.Write(dir))
}

// profileResult is what profile prints as JSON: a run, or several.
type profileResult struct {
	Runs []profileRun `json:"runs"`
}

type profileRun struct {
	*profile.Profile
	Figures map[string]ncu.Figures `json:"figures"` // medians, by case
}

func newProfileResult(taken []*profile.Profile) profileResult {
	var r profileResult
	for _, p := range taken {
		run := profileRun{p, map[string]ncu.Figures{}}
		for i := range p.Cases {
			run.Figures[p.Cases[i].Name] = p.Cases[i].Figures()
		}
		r.Runs = append(r.Runs, run)
	}
	return r
}

// printProfile prints the figures of a run.
func printProfile(e *environment, p *profile.Profile, o *profileCommand) error {
	fmt.Fprintf(e.stdout, "%s, driver %s, ncu %s, commit %s: medians of %d launches\n\n", p.GPU, p.Driver, p.NCU, or(p.Commit, "unknown"), p.Launches)
	t := &table{left: 2}
	t.add("", "", "", "", "SM", "tensor", "DRAM", "L2", "DRAM", "", "", "occu-")
	t.add("case", "kernel", "cycles", "time", "active", "core", "rate", "bytes", "bytes", "registers", "spills", "pancy")
	for i := range p.Cases {
		c := &p.Cases[i]
		f := c.Figures()
		t.add(c.Name, c.Kernel, fmt.Sprintf("%.0f", f["cycles"]), formatSeconds(f["duration_ns"]/1e9), percent(f["sm_active"]/100),
			percent(f["tensor_core"]/100), percent(f["dram_bw"]/100), term.FormatBytes(int64(f["l2_bytes"])),
			term.FormatBytes(int64(f["dram_bytes"])), fmt.Sprintf("%.0f", f["registers"]),
			fmt.Sprintf("%.0f", f["spill_loads"]+f["spill_stores"]), percent(f["occupancy"]/100))
	}
	if err := t.print(e.stdout); err != nil {
		return err
	}
	_, err := fmt.Fprintf(e.stdout, "\nwritten to %s\n", o.Out)
	return fail(exitBadOutput, err)
}
