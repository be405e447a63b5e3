// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sparsek/sparsek/internal/gate"
)

var date = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func metrics(cycles, tensor float64, v gate.Verdict) []gate.Metric {
	second := cycles + 1
	return []gate.Metric{
		{Name: "tensor_core", Baseline: 65.8, First: tensor, Worse: (65.8 - tensor) / 65.8, Limit: 0.05, Verdict: gate.Pass},
		{Name: "cycles", Baseline: 82000, First: cycles, Second: &second, Worse: cycles/82000 - 1, Limit: 0.073, Verdict: v},
		{Name: "duration_ns", Baseline: 45000, First: 45120, Worse: 0.003},
		{Name: "l2_bytes", Baseline: 4e8, First: 4e8, Limit: 0.05, Verdict: gate.Pass},
		{Name: "dram_bytes", Baseline: 8e7, First: 8e7},
	}
}

// result has a case of each verdict, and text that no format may take for its own.
func result() *gate.Result {
	return &gate.Result{
		Verdict: gate.Fail, Reasons: []string{`ci/baseline/log.jsonl & <b>"x"</b> | y`}, Notes: []string{"driver 590, the baseline has 580"},
		Date: date, GPU: "NVIDIA H200", Driver: "590", NCU: "2025.3.1", Commit: "0123456789abcdef0123",
		Baseline: &gate.Origin{Commit: "fedcba9876543210fedc", Date: date, Driver: "580", Noise: gate.Noise{Runs: 6, Starts: 2}},
		Cases: []gate.Case{
			{Name: "good", Kernel: "tma", Verdict: gate.Pass, Metrics: metrics(82001, 65.8, gate.Pass), FLOP: 17e9, Folder: "nvidia-h200"},
			{Name: "slow", Kernel: "tma", Verdict: gate.Fail, Cause: "the machine code", Metrics: metrics(99000, 50, gate.Fail), FLOP: 17e9,
				Code: []gate.Difference{{Opcode: "HGMMA", Was: 4, Is: 2}}, Folder: "nvidia-h200"},
			{Name: "unsure", Kernel: "slab", Verdict: gate.Ambiguous, Why: "measured once"},
			{Name: "stale", Kernel: "slab", Verdict: gate.Stale, Why: "the baseline is of other machine code"},
			{Name: "unmeasured", Verdict: gate.NotMeasurable, Why: "it was not measured"},
		},
	}
}

func history() (list []gate.Record) {
	for i, v := range []gate.Verdict{gate.Blessed, gate.Pass, gate.Fail, gate.NotMeasurable} {
		list = append(list, gate.Record{Date: date.Add(time.Duration(i) * time.Hour), Commit: "0123456789abcdef", GPU: "NVIDIA H200", Verdict: v,
			Cycles: map[string]float64{"good": 82000 + float64(i), "slow": 82000 * (1 + 0.1*float64(i))}})
	}
	return list
}

func text(t *testing.T, write func(io.Writer) error) string {
	t.Helper()
	var out bytes.Buffer
	if err := write(&out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func wantAll(t *testing.T, text string, words ...string) {
	t.Helper()
	for _, word := range words {
		if !strings.Contains(text, word) {
			t.Errorf("%q is missing in\n%s", word, text)
		}
	}
}

func TestTerminal(t *testing.T) {
	out := text(t, func(w io.Writer) error { return Terminal(w, result()) })
	wantAll(t, out, "NVIDIA H200, driver 590, ncu 2025.3.1, commit 0123456789ab", "noise over 6 runs and 2 starts",
		"slow: cycles 82000 -> 99000, again 99001 (20.7 % worse, limit 7.3 %)", "slow: cause: the machine code",
		"slow: instructions: HGMMA 4 -> 2", "unsure: measured once", "driver 590", `log.jsonl & <b>"x"</b> | y`)
	if !strings.HasSuffix(out, "\nFAIL: something got worse twice, or the baseline was changed by hand\n") {
		t.Errorf("the verdict is not the last line:\n%s", out)
	}
	if strings.Contains(out, "good: ") {
		t.Errorf("much ado about a case that passed:\n%s", out)
	}
	intact := &gate.Result{Verdict: gate.Intact, Cases: []gate.Case{{Name: "good", Verdict: gate.Intact}}}
	if out := text(t, func(w io.Writer) error { return Terminal(w, intact) }); out != "INTACT: the baseline is as it was blessed; nothing was measured\n" {
		t.Errorf("got %q", out)
	}
}

func TestMarkdown(t *testing.T) {
	out := text(t, func(w io.Writer) error { return Markdown(w, result()) })
	wantAll(t, out, "## Profile gate: FAIL", "**slow** (tma): FAIL", `&amp; &lt;b>"x"&lt;/b> \| y`, "| slow | tma | cycles | 82000 | 99000 | 99001 | 20.7 % worse | 7.3 % | FAIL |",
		"| reported |")
	columns := 0
	for line := range strings.Lines(out) {
		if !strings.HasPrefix(line, "|") {
			continue
		}
		n := strings.Count(strings.ReplaceAll(line, `\|`, ""), "|")
		if columns == 0 {
			columns = n
		}
		if n != columns {
			t.Errorf("%d columns, the head has %d: %s", n, columns, line)
		}
	}
}

func TestJUnit(t *testing.T) {
	var got junitSuites
	if err := xml.Unmarshal([]byte(text(t, func(w io.Writer) error { return JUnit(w, result()) })), &got); err != nil {
		t.Fatal(err)
	}
	s := got.Suites[0]
	if s.Tests != 6 || s.Failures != 3 || s.Errors != 2 || len(s.Cases) != 6 {
		t.Errorf("%+v", s)
	}
	whole, good, slow, unsure := s.Cases[0], s.Cases[1], s.Cases[2], s.Cases[3]
	if whole.Failure == nil || !strings.Contains(whole.Failure.Message, `<b>"x"</b>`) || good.Failure != nil || good.Error != nil ||
		slow.Failure == nil || slow.Failure.Type != "FAIL" || !strings.Contains(slow.Failure.Text, "cycles 82000 -> 99000") || unsure.Error == nil {
		t.Errorf("%+v", s.Cases)
	}
}

func TestSARIF(t *testing.T) {
	var got sarifLog
	if err := json.Unmarshal([]byte(text(t, func(w io.Writer) error { return SARIF(w, result()) })), &got); err != nil {
		t.Fatal(err)
	}
	rules := map[string]bool{}
	for _, r := range got.Runs[0].Tool.Driver.Rules {
		rules[r.ID] = true
	}
	seen := map[string]string{}
	for _, r := range got.Runs[0].Results {
		if !rules[r.Rule] || r.Message.Text == "" || len(r.Locations) != 1 || r.Locations[0].Physical.Region.StartLine != 1 {
			t.Errorf("%+v", r)
		}
		seen[r.Locations[0].Physical.Artifact.URI] += r.Rule + "/" + r.Level + " "
	}
	if got.Version != "2.1.0" || seen["ci/baseline/nvidia-h200/slow.norm.txt"] != "fail/error " ||
		seen["ci/baseline/log.jsonl"] != "fail/error ambiguous/warning stale/error not-measurable/error " || seen["ci/baseline/nvidia-h200/good.norm.txt"] != "" {
		t.Errorf("%v", seen)
	}
}

// Where nothing is measured, a baseline that is stale is a warning, as the exit code has it; with a GPU it is a failure.
func TestStaleIsAWarningWithoutAGPU(t *testing.T) {
	stale := gate.Case{Name: "b", Kernel: "tma", Verdict: gate.Stale, Why: "the baseline is of other machine code"}
	for _, c := range []struct {
		metrics  []gate.Metric
		failures int
		level    string
	}{{nil, 0, "warning"}, {metrics(82000, 65.8, gate.Pass), 1, "error"}} {
		stale.Metrics = c.metrics
		r := &gate.Result{Verdict: gate.Stale, Cases: []gate.Case{stale}}
		out := text(t, func(w io.Writer) error { return JUnit(w, r) })
		var got junitSuites
		if err := xml.Unmarshal([]byte(out), &got); err != nil || got.Suites[0].Failures != c.failures || got.Suites[0].Errors != 0 {
			t.Errorf("%v, want %d failures in %s", err, c.failures, out)
		}
		wantAll(t, out, "STALE", "other machine code")
		wantAll(t, text(t, func(w io.Writer) error { return SARIF(w, r) }), `"level": "`+c.level+`"`)
	}
}

func TestHTML(t *testing.T) {
	out := text(t, func(w io.Writer) error { return HTML(w, result(), history()) })
	wantAll(t, out, "<h2>Roofline</h2>", "Roofline of L2", "Roofline of DRAM", "<h2>Trend of the cycles</h2>", "&lt;b&gt;&#34;x&#34;", "slow: 377 TFLOP/s",
		`class="bad" cx=`, `class="blessed" cx=`, `class="doubt" cx=`, "82000 to 106600")
	// It is one file: nothing is fetched.
	for _, word := range []string{"http://", "https://", "<script", "<link", "src=", "url(", "NaN", "Inf", "<no value>", "ZgotmplZ"} {
		if strings.Contains(out, word) {
			t.Errorf("the page has %q", word)
		}
	}
	decoder := xml.NewDecoder(strings.NewReader(strings.ReplaceAll(out, "<!DOCTYPE html>", "")))
	decoder.Strict, decoder.AutoClose, decoder.Entity = false, []string{"meta"}, xml.HTMLEntity
	for {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("the page is not well formed: %v", err)
		}
	}
	// Nothing measured, no history: no charts, and still a page.
	empty := text(t, func(w io.Writer) error {
		return HTML(w, &gate.Result{Verdict: gate.NotMeasurable, Reasons: []string{"no ncu"}}, nil)
	})
	if wantAll(t, empty, "NOT MEASURABLE", "no ncu"); strings.Contains(empty, "<svg") {
		t.Error("charts of nothing")
	}
}

// Points lie where their figures say, and the roof bends at the ridge.
func TestRoof(t *testing.T) {
	r := result()
	chart, ok := newRoof(r, "L2", "l2_bytes", 10e12, 1000e12)
	if !ok || len(chart.Points) != 2 {
		t.Fatalf("%+v", chart)
	}
	p := chart.Points[0] // 42.5 FLOP a byte, 17e9 FLOP in 45.12 us
	if p.X <= left || p.X >= width-right || p.Y <= top || p.Y >= height-foot || !strings.Contains(p.Title, "377 TFLOP/s at 42.5 FLOP/byte, 89 % of the roof") {
		t.Errorf("%+v", p)
	}
	// The roof stays within the chart, also where it comes in from below.
	for _, rate := range []float64{1e12, 5e12, 10e12, 40e12} {
		chart, _ := newRoof(r, "L2", "l2_bytes", rate, 1000e12)
		for place := range strings.FieldsSeq(chart.Line) {
			var x, y float64
			if _, err := fmt.Sscanf(place, "%f,%f", &x, &y); err != nil || x < left || x > width-right+0.1 || y < top || y > height-foot+0.1 {
				t.Errorf("rate %g: the roof is at %s, %v", rate, place, err)
			}
		}
	}
	a := axis{1, 100, 0, 10}
	if a.at(10) != 5 || a.at(1) != 0 || len(a.ticks()) != 7 {
		t.Errorf("axis: %v, %v, %v", a.at(10), a.at(1), a.ticks())
	}
	for _, c := range chart.Points {
		if math.IsNaN(c.X) || math.IsNaN(c.Y) {
			t.Errorf("%+v", c)
		}
	}
}

func TestTrends(t *testing.T) {
	runs := history()
	slices.Reverse(runs) // those of several machines come one after the other
	list := trends(runs)
	if len(list) != 2 || list[1].Name != "slow" || len(list[1].Dots) != 4 || list[1].Last != "106600" {
		t.Fatalf("%+v", list)
	}
	// A step of one cycle in 82000 is next to nothing, one of ten percent a lot.
	if d := list[0].Dots; math.Abs(d[0].Y-d[1].Y) > 0.1 {
		t.Errorf("a step of one cycle takes %v", d[0].Y-d[1].Y)
	}
	if d := list[1].Dots; d[0].Y-d[1].Y < 10 || d[0].X >= d[1].X || d[2].Class != "bad" {
		t.Errorf("%+v", d)
	}
}

func TestWrite(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "deep", "reports")
	if err := Write(dir, result(), history()); err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if info, err := os.Stat(filepath.Join(dir, f.name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", f.name, err)
		}
	}
	var read gate.Result
	raw, err := os.ReadFile(filepath.Join(dir, "gate.json"))
	if err == nil {
		err = json.Unmarshal(raw, &read)
	}
	if err != nil || read.Verdict != gate.Fail || *read.Cases[1].Metrics[1].Second != 99001 {
		t.Errorf("%+v, %v", read, err)
	}
}
