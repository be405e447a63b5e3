// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	buildreport "github.com/sparsek/sparsek/internal/build/kernelreport"
	"github.com/sparsek/sparsek/internal/gate"
	"github.com/sparsek/sparsek/internal/gate/gatetest"
	"github.com/sparsek/sparsek/internal/gate/ncu"
	"github.com/sparsek/sparsek/internal/gate/pair"
	"github.com/sparsek/sparsek/internal/gate/profile"
	"github.com/sparsek/sparsek/internal/sys/term"
)

// fakeComparer gives the ratios of one case, one for each measurement; all others are as fast as they were.
type fakeComparer struct {
	t      *testing.T
	ratios []float64
	errs   []error
	cases  [][]string
	agains []bool
}

func (f *fakeComparer) compare(_ context.Context, cases []string, again bool) (*pair.Comparison, error) {
	n := len(f.cases)
	f.cases, f.agains = append(f.cases, cases), append(f.agains, again)
	if n >= len(f.ratios) {
		f.t.Fatal("one measurement more than was expected")
	}
	if f.errs != nil && f.errs[n] != nil {
		return nil, f.errs[n]
	}
	r := &pair.Comparison{GPU: "NVIDIA H200", Commit: gatetest.Commit, Libraries: [2]pair.Library{{SHA256: "11"}, {SHA256: "22"}}}
	if len(cases) == 0 {
		cases = suite()
	}
	plan := pair.Plan{Kernel: "tma", Plan: profile.Plan{Tile: [3]int{128, 256, 64}, Tiles: 512, Entries: 4096}}
	for _, name := range cases {
		ratio := 1.
		if name == "b64-random-50" {
			ratio = f.ratios[n]
		}
		r.Cases = append(r.Cases, pair.Case{Name: name, Interval: pair.Interval{Ratio: ratio, Low: ratio - 0.001, High: ratio + 0.001},
			Plans: [2]pair.Plan{plan, plan}, Seconds: [2]float64{1e-3, ratio * 1e-3}, Rounds: make([]float64, 8)})
	}
	return r, nil
}

// Libraries that take turns: what is measured, what comes of it, and what the reports say.
func TestGateInTurn(t *testing.T) {
	report := func(sass string) *buildreport.Report {
		f := buildreport.Function{Symbol: gatetest.Symbol, SASS: sass}
		return &buildreport.Report{Kernels: []buildreport.Kernel{{Name: "tma", Source: buildreport.Source{Functions: []buildreport.Function{f}}}}}
	}
	counters := func(dir string) (*profile.Profile, error) {
		return gatetest.Profile(t, dir, []string{"b64-random-50"}, nil, func(_ string, f ncu.Figures) { f["l2_bytes"] *= 1.5 }), nil
	}
	broken := errors.New("broken")
	for what, c := range map[string]struct {
		ratios   []float64
		errs     []error
		sass     string
		counters func(string) (*profile.Profile, error)
		want     gate.Verdict
		speaksOf string
	}{
		"as fast":                {[]float64{1}, nil, "aa", nil, gate.Pass, ""},
		"slower":                 {[]float64{1.02, 1.02}, nil, "bb", counters, gate.Fail, "1.0200"},
		"slower, nothing is why": {[]float64{1.05, 1.05}, nil, "aa", counters, gate.Drift, "the environment"},
		"slower once":            {[]float64{1.02, 1}, nil, "bb", nil, gate.Stale, "slower once"},
		"no counters": {[]float64{1.02, 1.02}, nil, "bb", func(string) (*profile.Profile, error) { return nil, ncu.ErrPermission },
			gate.Fail, "no counters of the slower cases"},
		"second fails": {[]float64{1.02, 1}, []error{nil, broken}, "bb", nil, gate.Ambiguous, "broken"},
	} {
		t.Run(what, func(t *testing.T) {
			blessOne(t)
			store, err := gate.Open(".")
			if err != nil {
				t.Fatal(err)
			}
			f := &fakeComparer{t: t, ratios: c.ratios, errs: c.errs}
			taker := &fakeTaker{t: t}
			if c.counters != nil {
				taker.takes = append(taker.takes, c.counters)
			}
			o := &gateCommand{Root: ".", Reports: reportDir, History: historyFile, Launches: 5}
			var out bytes.Buffer
			e := &environment{stdout: &out, stderr: &bytes.Buffer{}, progress: term.New(&bytes.Buffer{})}
			r, err := o.judge(t.Context(), e, store, fakeMachine{taker: taker, comparer: f, report: report(c.sass)})
			if err != nil || r.Verdict != c.want || len(f.cases) != len(c.ratios) || len(taker.takes) > 0 {
				t.Fatalf("%+v, %v, measured %q", r, err, f.cases)
			}
			if len(f.cases) == 2 && (f.agains[0] || !f.agains[1] || !slices.Equal(f.cases[1], []string{"b64-random-50"})) {
				t.Errorf("measured %q, again %v", f.cases, f.agains)
			}
			if c.counters != nil && !slices.Equal(taker.cases[0], []string{"b64-random-50"}) {
				t.Errorf("counters of %q", taker.cases[0])
			}
			_ = o.finish(e, r, store)
			for _, name := range []string{"gate.json", "gate.md", "junit.xml", "gate.sarif", "gate.html"} {
				text, err := os.ReadFile(filepath.Join(reportDir, name))
				if wanted := c.want != gate.Pass && c.want != gate.Stale; err != nil || wanted && !bytes.Contains(text, []byte("b64-random-50")) {
					t.Errorf("%s: %v", name, err)
				}
				if c.want == gate.Fail && name != "gate.json" && !bytes.Contains(text, []byte("1.0200 (1.0190 to 1.0210)")) {
					t.Errorf("%s does not give the ratio: %s", name, text)
				}
			}
			if !strings.Contains(out.String(), c.speaksOf) {
				t.Errorf("no word of %q in\n%s", c.speaksOf, out.String())
			}
		})
	}
}

// fakeProgram stands in for the program itself: it keeps its arguments and prints a comparison.
func TestChildComparer(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	text, err := json.Marshal(pair.Comparison{GPU: "NVIDIA H100", Seed: 7})
	if err != nil {
		t.Fatal(err)
	}
	write(t, "out.json", string(text))
	if err := os.WriteFile("program", []byte("#!/bin/sh\necho \"$@\" > args\ncat out.json\n"), 0o777); err != nil {
		t.Fatal(err)
	}
	c := &childComparer{filepath.Join(dir, "program"), "old.so", "new.so"}
	for again, want := range map[bool]string{
		false: "pair --json --against old.so --library new.so b64-random\n",
		true:  "pair --json --against old.so --library new.so --swap --seed 2 b64-random\n",
	} {
		r, err := c.compare(t.Context(), []string{"b64-random"}, again)
		if err != nil || r.GPU != "NVIDIA H100" || r.Seed != 7 {
			t.Errorf("%+v, %v", r, err)
		}
		if args, err := os.ReadFile("args"); err != nil || string(args) != want {
			t.Errorf("arguments %q, want %q", args, want)
		}
	}
	write(t, "out.json", "no JSON")
	if _, err := c.compare(t.Context(), nil, false); err == nil {
		t.Error("what cannot be read was taken")
	}
}
