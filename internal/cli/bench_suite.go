// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sparsek/sparsek/internal/bench"
	"github.com/sparsek/sparsek/internal/bench/workload"
	"github.com/sparsek/sparsek/internal/sys/term"
	sparsek "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/matio"
)

// benchSuite times a suite of package bench, or the user's own matrices.
func benchSuite(ctx context.Context, e *environment, o *benchCommand) (err error) {
	if err := o.checkCases(); err != nil {
		return err
	}
	files, err := readFiles(ctx, o.Matrix)
	if err != nil {
		return err
	}
	suite, err := bench.FindSuite(o.Suite)
	if err != nil {
		return fail(exitUsage, err)
	}
	on := o.engineFlags
	if suite.GPU {
		on.Device.backend = sparsek.CUDA
	}
	engine, err := on.open(e)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	cases, err := bench.Cases(o.Suite, o.settings(engine.Info().Backend, files), o.Cases)
	if err != nil {
		return fail(exitUsage, fmt.Errorf("bench: %w", err))
	}
	against := o.Against.names
	if against == nil {
		against = suite.Against
	}
	if against == nil {
		against = bench.DefaultPeers(engine.Info().Backend)
	}
	if err := checkMemory(availableMemory(), need{"the operands", bench.HostBytes(cases, engine.Info().Backend, bench.AnyDense(against))}); err != nil {
		return err
	}
	sustained := suite.Sustained
	if o.Sustained != nil {
		sustained = *o.Sustained
	}
	runner, err := bench.NewRunner(engine, cases, bench.Options{Rounds: int(o.Rounds), Repeats: int(o.Repeats), Against: against, Sustained: sustained})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, runner.Close()) }()
	if o.Launches > 0 {
		return launchCases(ctx, e, engine, runner, cases, int(o.Launches))
	}
	r, err := newBenchReport(e, engine, o, sustained)
	if err != nil {
		return err
	}
	r.Chip, r.Narrowed = runner.Chip(), runner.Narrowed()
	if err := runner.NoEnergy(); err != nil {
		r.NoEnergy = err.Error()
	}
	return reportSuite(ctx, e, o, r, cases, runner)
}

// suiteTimer is what times the cases of a suite.
type suiteTimer interface {
	Measure(ctx context.Context, c bench.Case) (*bench.Result, error)
	Absent() []bench.Absence
}

// reportSuite measures the cases and reports them. Where the work is stopped, what was measured is printed and written.
func reportSuite(ctx context.Context, e *environment, o *benchCommand, r *bench.Report, cases []bench.Case, m suiteTimer) error {
	bar := e.progress.Bar("bench", int64(len(cases)), term.Count)
	r.Run(ctx, cases, m.Measure, func() { bar.Add(1) })
	r.Absent = append(r.Absent, m.Absent()...)
	failed := benchFaults(ctx, r)
	bar.End(failed)
	if len(r.Cases) == 0 {
		return failed
	}
	return errors.Join(o.report(e, r), failed)
}

// benchFaults says what went wrong, by its exit code.
func benchFaults(ctx context.Context, r *bench.Report) error {
	var all error
	for _, f := range r.Failed {
		err := fmt.Errorf("%s: %w", f.Name, f.Err)
		switch {
		case errors.Is(f.Err, workload.ErrWrong):
			err = fail(exitWrongResult, err)
		case errors.Is(f.Err, bench.ErrOverflow):
			err = fail(exitOverflow, err)
		case errors.Is(f.Err, bench.ErrNotFinite):
			err = fail(exitBadFile, err)
		}
		all = errors.Join(all, err)
	}
	if r.Interrupted {
		all = errors.Join(all, ctx.Err())
	}
	return all
}

// readFiles reads the user's own matrices.
func readFiles(ctx context.Context, paths []string) ([]*bench.File, error) {
	var list []*bench.File
	for _, path := range paths {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		entries, err := matio.ReadSparse(path)
		if err != nil {
			return nil, fail(exitBadFile, err)
		}
		if entries.Rows == 0 || entries.Cols == 0 || len(entries.Value) == 0 {
			return nil, failf(exitBadSizes, "%s: the matrix of %d x %d holds nothing to multiply", path, entries.Rows, entries.Cols)
		}
		list = append(list, &bench.File{Path: path, Entries: entries})
	}
	return list, nil
}

// newBenchReport says what is run, where and when.
func newBenchReport(e *environment, engine *sparsek.Engine, o *benchCommand, sustained time.Duration) (*bench.Report, error) {
	facts, err := describeRun(engine, e.args)
	if err != nil {
		return nil, err
	}
	method := bench.Method(engine.Info().Backend, int(o.Rounds), sustained)
	switch o.Suite {
	case bench.AttentionSuite:
		method = bench.AttentionMethod(engine.Info().Backend, int(o.Rounds))
	case bench.Shared:
		method = append(method, bench.HeldMethod)
	case bench.Training:
		method = append(method, bench.ExpertsMethod)
	case bench.Steps:
		method = append(method, bench.DynamicMethod, bench.HeldMethod)
	}
	return &bench.Report{
		Format: bench.ReportFormat, Command: facts.command, Version: facts.version, Commit: facts.commit, Suite: o.Suite,
		Backend: backendName(engine.Info()), Device: facts.device, Driver: facts.driver, Date: facts.date, Rounds: int(o.Rounds),
		Sustained: sustained.Seconds(),
		Method:    method, Cases: []*bench.Result{}, Failed: []bench.Fault{}, Absent: []bench.Absence{},
	}, nil
}
