// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sparsek/sparsek/internal/bench/shapemap"
)

func TestMapFlags(t *testing.T) {
	for _, c := range []struct {
		args  []string
		speak string
	}{
		{[]string{"--types", "fp32"}, "--types is for --suite map"},
		{[]string{"--suite", "map", "--types", "fp8"}, "no type fp8"},
		{[]string{"--suite", "map", "--patterns", "spiral"}, "no pattern spiral"},
		{[]string{"--suite", "map", "--blocks", "5"}, "no block 5"},
		{[]string{"--suite", "map", "--columns", "3"}, "no N 3"},
		{[]string{"--suite", "map", "--size", "8x8x8"}, "--size is not for --suite map"},
		{[]string{"--suite", "map", "--dtype", "fp32"}, "--dtype is not for --suite map"},
		{[]string{"--suite", "map", "--rounds", "3"}, "--rounds is not for --suite map"},
		{[]string{"--suite", "map", "--csv"}, "--csv is not for --suite map"},
		{[]string{"--suite", "map", "--budget", "-1s"}, "a time above 0"},
		{[]string{"--suite", "map", "--against", "cublas"}, "not with cublas"},
		{[]string{"--suite", "map", "b16"}, "has no cases"},
	} {
		err := runBench(io.Discard, c.args...)
		if exitCode(err) != exitUsage || !strings.Contains(err.Error(), c.speak) {
			t.Errorf("%v: %v, want it to speak of %q", c.args, err, c.speak)
		}
	}
}

// A part of the map on the CPU: kept, gone on with, reported, with its page and pictures.
func TestBenchMap(t *testing.T) {
	needLibrary(t)
	folder := t.TempDir()
	keep, page, plots := filepath.Join(folder, "map.jsonl"), filepath.Join(folder, "map.html"), filepath.Join(folder, "plots")
	part := []string{"--suite", "map", "--device", "cpu", "--threads", "1", "--types", "fp32", "--patterns", "random-1", "--blocks", "16,64", "--against", "none", "--keep", keep, "--json"}
	measured := func(more ...string) *shapemap.Map {
		var out bytes.Buffer
		if err := runBench(&out, append(part, more...)...); err != nil {
			t.Fatal(err)
		}
		var m shapemap.Map
		if err := json.Unmarshal(out.Bytes(), &m); err != nil {
			t.Fatal(err)
		}
		return &m
	}
	first := measured("--columns", "1")
	if len(first.Cells) != 2 || first.Backend != "CPU" {
		t.Fatalf("%+v", first)
	}
	again := measured("--columns", "1,8", "--html", page, "--plots", plots)
	if len(again.Cells) != 4 || again.Cells[0].Seconds != first.Cells[0].Seconds {
		t.Errorf("%+v", again.Cells)
	}
	for _, c := range again.Cells {
		if c.M != 4096 && c.K != 4096 || c.Kernel == "" || !(c.Seconds > 0) || !c.Checked || c.LongestRow < 1 || c.Rows64.Loads < 1 || len(c.Timed) < 1 {
			t.Errorf("%+v", c)
		}
	}
	if none := measured("--columns", "64", "--budget", "1ns"); len(none.Cells) > 5 {
		t.Errorf("%d cells within a budget", len(none.Cells))
	}
	var text bytes.Buffer
	if err := runBench(&text, "--from", keep); err != nil || !strings.Contains(text.String(), "map of ") {
		t.Errorf("%s, %v", text.String(), err)
	}
	// Cells of another build, which one file does not take, are drawn on one map.
	text.Reset()
	whole, err := os.ReadFile(keep)
	if err != nil {
		t.Fatal(err)
	}
	another := filepath.Join(folder, "another.jsonl")
	if err := os.WriteFile(another, bytes.Replace(whole, []byte(`"build":"`), []byte(`"build":"another`), 1), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := runBench(&text, "--from", keep, "--from", another); err != nil || strings.Count(text.String(), "map of ") != 2 {
		t.Errorf("%s, %v", text.String(), err)
	}
	if err := runBench(io.Discard, "--from", keep, "--from", page); exitCode(err) != exitBadFile || !strings.Contains(err.Error(), "no map of") {
		t.Error(err)
	}
	for _, path := range []string{page, filepath.Join(plots, "map-choice-fp32.svg")} {
		if at, err := os.Stat(path); err != nil || at.Size() < 1000 {
			t.Errorf("%s: %v, %v", path, at, err)
		}
	}
	if err := runBench(io.Discard, append(part, "--seed", "9")...); exitCode(err) != exitBadFile || !strings.Contains(err.Error(), "another seed") {
		t.Error(err)
	}
}

// fakeMapRunner gives each cell a time, until it is stopped.
type fakeMapRunner struct {
	budgets []time.Duration
	stop    func()
	left    int
}

func (f *fakeMapRunner) Measure(_ context.Context, m shapemap.Matrix, budget func() time.Duration, done func(shapemap.Cell) error) error {
	for _, n := range m.N {
		f.budgets = append(f.budgets, budget())
		if f.left--; f.left == 0 {
			f.stop()
		}
		if err := done(shapemap.Cell{Key: shapemap.Key{DType: m.DType, Pattern: m.Pattern, Block: m.Block, N: n}, Seconds: 1}); err != nil {
			return err
		}
	}
	return nil
}

// A map that is interrupted keeps what was measured; the next run measures the rest, and no cell twice.
func TestMapInterrupted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "map.jsonl")
	grid := shapemap.Grid{Types: []string{"bf16", "fp32"}, Patterns: []string{"window"}, Blocks: []int{1, 2}, N: []int{1, 8}}
	measure := func(stopAfter int) (*fakeMapRunner, int, error) {
		j, err := shapemap.Open(path, shapemap.Header{})
		if err != nil {
			t.Fatal(err)
		}
		defer j.Close()
		ctx, stop := context.WithCancel(context.Background())
		defer stop()
		f := &fakeMapRunner{stop: stop, left: stopAfter}
		err = measureMap(ctx, &environment{stdout: io.Discard, stderr: io.Discard}, grid, time.Hour, j, f)
		return f, len(j.Cells), err
	}
	if f, cells, err := measure(3); !errors.Is(err, context.Canceled) || cells != 3 || len(f.budgets) != 3 {
		t.Fatalf("%d cells, %v", cells, err)
	}
	f, cells, err := measure(0)
	if err != nil || cells != 8 || len(f.budgets) != 5 {
		t.Fatalf("%d cells, %d measured, %v", cells, len(f.budgets), err)
	}
	for _, b := range f.budgets {
		if b <= 0 || b > longestCell {
			t.Errorf("a budget of %v", b)
		}
	}
}
