// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/sparsek/sparsek/internal/bench"
	"github.com/sparsek/sparsek/internal/bench/interleave"
	"github.com/sparsek/sparsek/internal/bench/roofline"
	"github.com/sparsek/sparsek/internal/bench/workload"
	"github.com/sparsek/sparsek/internal/machine/nvsmi"
	sparsek "github.com/sparsek/sparsek/wrapper"
)

// result makes one with a rate in TFLOP/s.
func result(c roofline.Case, rate float64, dense time.Duration, bounds ...roofline.Bound) *roofline.Result {
	const median = 123456 * time.Nanosecond
	r := &roofline.Result{
		Case: c, Density: 0.1284, Plan: sparsek.PlanInfo{Kernel: "tma_bf16_64x2_256"}, PlanTime: 234 * time.Microsecond, DevicePlanTime: 187 * time.Microsecond,
		Timing: workload.Timing{Runs: 48, Median: median, Quarter: median - 8000, ThreeQuarters: median + 9000},
		Work:   roofline.Work{FLOP: rate * 1e12 * median.Seconds()}, Bounds: bounds,
	}
	if c.GraphReach != (roofline.Reach{}) {
		r.Graph = &roofline.GraphTiming{Products: 66, Timing: workload.Timing{Runs: 24, Median: median / 4, Quarter: median / 4, ThreeQuarters: median / 4}}
	}
	if dense > 0 {
		r.Dense = &workload.Timing{Runs: 24, Median: dense}
	}
	return r
}

// filled is a result of all cases, with the longest that columns hold.
func filled(t *testing.T, dense time.Duration) *rooflineResult {
	t.Helper()
	r := &rooflineResult{Command: "sparsek bench --suite roofline --markdown", Commit: "0123456789abcdef", GPU: "NVIDIA H200",
		Driver: "580.65.06 (CUDA 13.0)", Date: "2026-11-21", Rounds: 6, Peak: 1070.53}
	var measured []*roofline.Result
	for i, c := range roofline.Cases() {
		seconds := 101e-6
		if i%2 == 1 {
			seconds = 126e-6 // faster than that
		}
		measured = append(measured, result(c, 523.4, dense, roofline.Bound{Name: "tensor", Seconds: seconds}))
	}
	r.fill(measured)
	return r
}

func TestRooflineFits(t *testing.T) {
	var out bytes.Buffer
	if err := printRoofline(&out, filled(t, 1589*time.Microsecond)); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 120 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	for _, want := range []string{"NVIDIA H200, 1071 TFLOP/s at most, driver 580.65.06 (CUDA 13.0), commit 0123456789abcdef", "b512x112-random", "102 %!",
		"82 %", "1.59 ms", "12.9", "13.8 %", "234, 187", "the bound is wrong", "decode-64 graph", "decode-64 launch", "share of the time of a CUDA graph"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing:\n%s", want, out.String())
		}
	}
}

func TestRooflineMarkdown(t *testing.T) {
	r := filled(t, 0)
	r.NoDense, r.Interrupted, r.Method = "cuBLAS is not there", "interrupted after 20 of 22 cases", []string{"how it was measured"}
	r.fail([]caseError{{"b64-zipf", context.Canceled}, {"b16-random", errors.New("no kernel")}})
	var out bytes.Buffer
	if err := printRooflineMarkdown(&out, r); err != nil {
		t.Fatal(err)
	}
	columns := 0
	for line := range strings.Lines(out.String()) {
		if !strings.HasPrefix(line, "|") {
			continue
		}
		if n := strings.Count(line, "|"); columns != 0 && n != columns {
			t.Errorf("%d cells beside %d: %s", n, columns, line)
		} else {
			columns = n
		}
	}
	for _, want := range []string{"`sparsek bench --suite roofline --markdown`", "0123456789abcdef", "NVIDIA H200", "580.65.06", "2026-11-21", "at 1071 TFLOP/s",
		"8192x8192x8288", "512x112", "window, rows shuffled, 12.8 %", "95 % of b64-window", "1.05 x cuBLAS's dense rate", "10.0 us", "8.5 us",
		"tma_bf16_64x2_256", "cuBLAS is not there", "interrupted after 20 of 22 cases", "how it was measured", "b64-zipf has no result: interrupted", "b16-random has no result: no kernel"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing:\n%s", want, out.String())
		}
	}
}

func TestRooflineJSON(t *testing.T) {
	var out bytes.Buffer
	if err := printJSON(&out, filled(t, time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	var back rooflineResult
	if err := json.Unmarshal(out.Bytes(), &back); err != nil || len(back.Cases) != len(roofline.Cases()) {
		t.Fatalf("%d cases, %v", len(back.Cases), err)
	}
	one := back.Cases[1]
	if one.Dense == nil || math.Abs(one.Dense.SpeedUp-8.1) > 0.01 || !one.WrongBound || one.Bounds[0].Name != "tensor" || one.Reach != "520 TFLOP/s" {
		t.Errorf("%+v", one)
	}
	if one.InGraph != nil {
		t.Errorf("%s was not timed in a graph: %+v", one.Name, one.InGraph)
	}
	decode := back.Cases[slices.IndexFunc(back.Cases, func(r rooflineReport) bool { return r.Name == "decode-16" })]
	graph := decode.InGraph
	if graph == nil || graph.Products != 66 || graph.Reach != "8.0 us" || decode.Reach != "10.0 us" {
		t.Fatalf("%+v, %+v", decode, graph)
	}
	near := func(a, b float64) bool { return math.Abs(a/b-1) < 1e-3 }
	if !near(graph.Seconds, 30.864e-6) || !near(graph.Effective, 4*decode.Effective) || !near(graph.OfReach, 8/30.864) || !near(decode.OfReach, 10/123.456) ||
		!near(graph.Fraction, 4*decode.Fraction) || !graph.WrongBound || decode.WrongBound {
		t.Errorf("%+v, %+v", decode.timeReport, graph.timeReport)
	}
}

// Where there is no graph the rows are as many as the cases; a graph's row is compared with its own reach, and with no
// launched product.
func TestRooflineRows(t *testing.T) {
	r := filled(t, time.Millisecond)
	for i := range r.Cases {
		rows := r.Cases[i].rows()
		if r.Cases[i].InGraph == nil {
			if len(rows) != 1 || rows[0].name != r.Cases[i].Name || rows[0].dense == nil {
				t.Errorf("%s: %+v", r.Cases[i].Name, rows)
			}
			continue
		}
		if len(rows) != 2 || rows[0].dense != nil || rows[1].dense == nil || rows[0].times.Seconds != r.Cases[i].InGraph.Seconds || rows[1].times.Seconds != r.Cases[i].Seconds {
			t.Errorf("%s: %+v", r.Cases[i].Name, rows)
		}
		if graph, launched := rows[0].cells(), rows[1].cells(); len(graph) != len(launched) || rows[0].planned || !rows[1].planned {
			t.Errorf("%q, %q", graph, launched)
		}
	}
}

func TestReach(t *testing.T) {
	bound := roofline.Bound{Name: "L2", Seconds: 1e-4}
	size := roofline.Case{M: 1000, N: 1000, K: 1000}
	with := func(name string, reach roofline.Reach) roofline.Case {
		c := size
		c.Name, c.Reach = name, reach
		return c
	}
	r := &rooflineResult{}
	r.fill([]*roofline.Result{
		result(with("rate", roofline.Reach{TFLOPs: 400}), 200, 0, bound),
		result(with("dense", roofline.Reach{DenseShare: 1.05}), 210, 10*time.Microsecond, bound),
		result(with("dense, not measured", roofline.Reach{DenseShare: 1.05}), 210, 0, bound),
		result(with("other", roofline.Reach{Share: 0.95, Of: "rate"}), 190, 0, bound),
		result(with("other, not measured", roofline.Reach{Share: 0.95, Of: "elsewhere"}), 190, 0, bound),
		result(with("time", roofline.Reach{Seconds: 61728e-9}), 100, 0, bound),
	})
	for i, want := range []float64{0.5, 1, 0, 1, 0, 0.5} {
		if got := r.Cases[i].OfReach; math.Abs(got-want) > 1e-9 {
			t.Errorf("%s: %v of its reach, want %v", r.Cases[i].Name, got, want)
		}
	}
}

// A case that fails costs no other; one after which nothing works ends it, and what was measured stays.
func TestMeasureAll(t *testing.T) {
	cases := roofline.Cases()[:4]
	for name, c := range map[string]struct {
		fault    error
		measured int
	}{
		"unsupported": {sparsek.ErrUnsupportedBlock, 3},
		"wrong":       {workload.ErrWrong, 3},
		"device":      {sparsek.ErrCUDA, 1},
		"memory":      {sparsek.ErrOutOfMemory, 1},
		"interrupted": {context.Canceled, 1},
	} {
		ctx, stop := context.WithCancel(context.Background())
		measured, failed := measureAll(ctx, func(_ context.Context, one roofline.Case) (*roofline.Result, error) {
			if one.Name != cases[1].Name {
				return &roofline.Result{Case: one}, nil
			}
			if c.fault == context.Canceled {
				stop()
			}
			return nil, c.fault
		}, cases, nil)
		stop()
		if len(measured) != c.measured || len(failed) != 1 || !errors.Is(failed[0], c.fault) || !strings.HasPrefix(failed[0].Error(), cases[1].Name) {
			t.Errorf("%s: %d measured, failed %v", name, len(measured), failed)
		}
	}
}

// A speed-up within the spread is a tie, in the table and in JSON.
func TestRooflineTie(t *testing.T) {
	r := filled(t, 0)
	for _, c := range []struct {
		dense time.Duration
		want  bool
	}{{123456*time.Nanosecond + 17000, true}, {123456*time.Nanosecond + 17001, false}} {
		r.Cases = nil
		r.fill([]*roofline.Result{result(roofline.Cases()[0], 500, c.dense, roofline.Bound{Name: "L2", Seconds: 1e-4})})
		cells := r.Cases[0].rows()[0].cells()
		if got := cells[len(cells)-1] == "tie"; got != c.want || r.Cases[0].Dense.Tie != c.want {
			t.Errorf("%v: %q, %+v", c.dense, cells, r.Cases[0].Dense)
		}
	}
}

// So is a share of cuBLAS's rate.
func TestRooflineRateTie(t *testing.T) {
	c := roofline.Cases()[0]
	const dense = 100 * time.Microsecond
	rate := c.DenseFLOP() / dense.Seconds() / 1e12
	for share, want := range map[float64]bool{1.1: true, 0.9: true, 1.2: false, 0.8: false} { // at a spread of 14 %
		r := &rooflineResult{}
		r.fill([]*roofline.Result{result(c, share*rate, dense, roofline.Bound{Name: "L2", Seconds: 1e-4})})
		cells := r.Cases[0].rows()[0].cells()
		if got := cells[len(cells)-2] == "tie"; got != want || r.Cases[0].Dense.RateTie != want {
			t.Errorf("%v: %q, %+v", share, cells, r.Cases[0].Dense)
		}
	}
}

// What a report of all suites tells of the suite: the clocks around each case, and what is missing.
func TestRooflineReport(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	cases := roofline.Cases()[:2]
	r := &bench.Report{Chip: &roofline.Ceilings{Tensor: 1e15}}
	measured := []*roofline.Result{result(cases[0], 500, 0, roofline.Bound{Name: "L2", Seconds: 1e-4})}
	measured[0].Rounds = interleave.Series{{123456}}
	measured[0].Before, measured[0].After = nvsmi.State{Known: true, SMClock: 1980}, nvsmi.State{Known: true, SMClock: 1500, Reasons: 4}
	addRoofline(r, len(cases), measured)
	stop()
	addFaults(ctx, r, []caseError{{cases[1].Name, context.Canceled}}, sparsek.ErrNoLibrary)
	if !r.Interrupted || len(r.Failed) != 0 || len(r.Cases) != 1 || len(r.Absent) != 1 || r.Absent[0].Peer != bench.CUBLAS {
		t.Errorf("%+v", r)
	}
	own := newRooflineResult(r, measured, nil, sparsek.ErrNoLibrary)
	if own.Interrupted != "interrupted after 1 of 2 cases" || own.Clocks != "SM clocks under load: 1500 to 1500 MHz; slowed down by: power cap" || own.NoDense == "" {
		t.Errorf("%+v", own)
	}
}
