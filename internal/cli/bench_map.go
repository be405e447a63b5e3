// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/renameio/v2"

	"github.com/sparsek/sparsek/internal/bench"
	"github.com/sparsek/sparsek/internal/bench/shapemap"
	"github.com/sparsek/sparsek/internal/bench/shapemap/picture"
	"github.com/sparsek/sparsek/internal/sys/humanize"
	"github.com/sparsek/sparsek/internal/sys/term"
	sparsek "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/tuning"
)

// mapFlags say which part of the map is measured, and where it is kept.
type mapFlags struct {
	Types    []string      `placeholder:"NAMES" help:"Element types, with commas between them (default: bf16,fp32,fp64, and on the CPU fp32,fp64)."`
	Patterns []string      `placeholder:"NAMES" help:"${mappatterns}, with commas between them (default: all)."`
	Blocks   []int         `placeholder:"SIZES" help:"Sizes of square blocks (default: 1,2,3,4,6,8,12,16,24,32,48,64,96,128,256)."`
	Columns  []int         `placeholder:"NUMBERS" help:"Columns of B (default: 1,2,4,8,16,32,64,128,256 and, on a GPU, 1024,4096)."`
	Keep     string        `placeholder:"FILE" help:"Keep each cell here as soon as it is measured, a line of JSON each; another run goes on where this one ended."`
	Budget   time.Duration `placeholder:"TIME" help:"End after about so long for each type; what is missing is measured by another run with the same --keep (default: when all is measured)."`
}

// mapOnly are the flags of mapFlags.
var mapOnly = []string{"types", "patterns", "blocks", "columns", "keep", "budget"}

// notOfMaps are the flags of bench that a map does not take.
var notOfMaps = []string{"rounds", "repeats", "sustained", "launches", "csv", "markdown", "gobench", "method"}

func (o *benchCommand) grid() shapemap.Grid {
	return shapemap.Grid{Types: o.Types, Patterns: o.Patterns, Blocks: o.Blocks, N: o.Columns}
}

func (o *benchCommand) validateMap(e *environment) error {
	if o.Suite != bench.Map {
		for _, name := range mapOnly {
			if e.given[name] {
				return failf(exitUsage, "bench: --%s is for --suite map", name)
			}
		}
		return nil
	}
	for _, name := range notOfMaps {
		if e.given[name] {
			return failf(exitUsage, "bench: --%s is not for --suite map", name)
		}
	}
	switch {
	case len(o.Cases) > 0:
		return failf(exitUsage, "bench: the suite map has no cases: choose by --types, --patterns, --blocks and --columns")
	case o.Budget < 0:
		return failf(exitUsage, "bench: --budget %v: give a time above 0", o.Budget)
	}
	if err := errors.Join(o.grid().Check(), bench.CheckMapPeers(o.Against.names)); err != nil {
		return fail(exitUsage, fmt.Errorf("bench: %w", err))
	}
	return nil
}

// benchMap measures a map, as far as its file lacks it, and reports all that is there.
func benchMap(ctx context.Context, e *environment, o *benchCommand) (err error) {
	engine, err := o.open(e)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	backend := engine.Info().Backend
	against := o.Against.names
	if against == nil {
		against = bench.DefaultMapPeers(backend)
	}
	header, err := mapHeader(e, engine, o.Seed, against)
	if err != nil {
		return err
	}
	journal, err := shapemap.Open(o.Keep, header)
	if err != nil {
		return fail(exitBadFile, fmt.Errorf("bench: --keep %w", err))
	}
	defer func() { err = errors.Join(err, journal.Close()) }()
	runner, err := bench.NewMapRunner(engine, o.Seed, against)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, runner.Close()) }()
	measured := measureMap(ctx, e, o.grid().Whole(backend), o.Budget, journal, runner)
	for _, a := range runner.Absent() {
		e.progress.Printf("%s is not there in %d cells: %s", a.Peer, len(a.Cases), a.Reason)
	}
	return errors.Join(o.reportMap(e, &journal.Map), measured, mapFaults(&journal.Map))
}

// mapRunner is what measures the cells of a map.
type mapRunner interface {
	Measure(ctx context.Context, m shapemap.Matrix, budget func() time.Duration, done func(shapemap.Cell) error) error
}

// The time that the kernels of a cell take turns for, beyond the one turn that each has: at most, and as a share of what
// is left for a cell of a type.
const (
	longestCell = 20 * time.Millisecond
	shareOfCell = 0.3
)

// errSpent is that of a type whose time is over.
var errSpent = errors.New("the time for this type is over")

func measureMap(ctx context.Context, e *environment, grid shapemap.Grid, budget time.Duration, journal *shapemap.Journal, runner mapRunner) error {
	var todo []shapemap.Matrix
	left := map[string]int{} // cells by type
	total := 0
	for _, m := range grid.Matrices() {
		if m.N = journal.Missing(m); len(m.N) > 0 {
			todo = append(todo, m)
			left[m.DType] += len(m.N)
			total += len(m.N)
		}
	}
	bar := e.progress.Bar("map", int64(total), term.Count)
	var begin time.Time
	for i, m := range todo {
		if i == 0 || m.DType != todo[i-1].DType {
			begin = time.Now()
		}
		if budget > 0 && time.Since(begin) > budget {
			continue
		}
		ofCell := func() time.Duration {
			if budget == 0 {
				return longestCell
			}
			share := shareOfCell * float64(budget-time.Since(begin)) / float64(max(1, left[m.DType]))
			return min(longestCell, max(0, time.Duration(share)))
		}
		err := runner.Measure(ctx, m, ofCell, func(c shapemap.Cell) error {
			left[m.DType]--
			bar.Add(1)
			if err := journal.Add(c); err != nil {
				return failf(exitBadOutput, "write --keep: %w", err)
			}
			if budget > 0 && time.Since(begin) > budget {
				return errSpent
			}
			return ctx.Err()
		})
		if err != nil && !errors.Is(err, errSpent) {
			bar.End(err)
			return err
		}
	}
	bar.End(nil)
	return nil
}

// mapFaults says which cells have no time, by their exit code.
func mapFaults(m *shapemap.Map) error {
	failures := m.Failures()
	if len(failures) == 0 {
		return nil
	}
	code, first := exitUnsupported, failures[0]
	if i := slices.IndexFunc(failures, func(c *shapemap.Cell) bool { return c.Wrong }); i >= 0 {
		code, first = exitWrongResult, failures[i]
	}
	return failf(code, "bench: %d cells of the map have no time: the first is %s, %s, block %d, N = %d: %s", len(failures), first.DType,
		first.Pattern, first.Block, first.N, first.Failed)
}

// mapHeader says with what the cells are measured.
func mapHeader(e *environment, engine *sparsek.Engine, seed uint64, against []string) (shapemap.Header, error) {
	facts, err := describeRun(engine, e.args)
	if err != nil {
		return shapemap.Header{}, err
	}
	shipped, err := tuning.Shipped(engine.Library())
	if err != nil {
		return shapemap.Header{}, err
	}
	h := shapemap.Header{Command: facts.command, Version: facts.version, Commit: facts.commit, Build: shipped.Build, Backend: backendName(engine.Info()),
		Device: facts.device, Driver: facts.driver, Date: facts.date, Seed: seed, Rivals: against, KeptValues: engine.Info().Backend == sparsek.CUDA}
	device, err := describeDevice(engine)
	if device != nil {
		h.Rates = &shapemap.Rates{SMs: device.SMs, ClockHz: device.ClockHz, MemoryRate: device.MemoryRate, L2Bytes: device.L2Bytes}
	}
	return h, errors.Join(err, shipped.Close())
}

// reportMap prints a map and writes its files.
func (o *benchCommand) reportMap(e *environment, m *shapemap.Map) error {
	if len(m.Cells) == 0 {
		return nil
	}
	var err error
	if o.JSON {
		err = printJSON(e.stdout, m)
	} else {
		err = printMap(e, m)
	}
	return errors.Join(err, o.writeMap(e, m))
}

func printMap(e *environment, m *shapemap.Map) error {
	for _, s := range m.Sources() {
		fmt.Fprintf(e.stdout, "map of %s, sparsek %s, commit %s, %s: %d cells\n", s.Device, s.Version, bench.ShortCommit(s.Commit), s.Date, s.Count)
	}
	fmt.Fprintln(e.stdout)
	t := &table{left: 2}
	t.add("figure", "type", "cells", "worst", "median", "worse than", "so many")
	for _, s := range m.Summaries() {
		t.add(s.Figure, s.DType, fmt.Sprint(s.Cells), humanize.Digits(s.Worst), humanize.Digits(s.Median), humanize.Digits(s.Fair), fmt.Sprint(s.Below))
	}
	return t.print(e.stdout)
}

// writeMap writes the page and the pictures, each as far as it can be.
func (o *benchCommand) writeMap(e *environment, m *shapemap.Map) error {
	var all error
	wrote := func(path, text string) {
		if err := renameio.WriteFile(path, []byte(text), 0o644); err != nil {
			all = errors.Join(all, failf(exitBadOutput, "write %s: %w", path, err))
			return
		}
		e.progress.Printf("wrote %s", path)
	}
	if o.HTML != "" {
		var page strings.Builder
		if err := picture.Page(&page, m); err != nil {
			return err
		}
		wrote(o.HTML, page.String())
	}
	if o.Plots != "" {
		if err := os.MkdirAll(o.Plots, 0o755); err != nil {
			return errors.Join(all, fail(exitBadOutput, err))
		}
		for name, text := range picture.Pictures(m) {
			wrote(filepath.Join(o.Plots, name), text)
		}
	}
	return all
}

// readMaps reads the files of a map, nil where the first is none of a map, or is not there.
func readMaps(paths []string) (*shapemap.Map, error) {
	var maps []*shapemap.Map
	for i, path := range paths {
		m, err := readMap(path)
		if i == 0 && (errors.Is(err, shapemap.ErrNoMap) || errors.Is(err, os.ErrNotExist)) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		maps = append(maps, m)
	}
	return shapemap.Merge(maps)
}

func readMap(path string) (*shapemap.Map, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	m, _, err := shapemap.Read(file)
	if err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return m, errors.Join(err, file.Close())
}
