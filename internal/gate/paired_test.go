// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sparsek/sparsek/internal/build/kernelreport"
	"github.com/sparsek/sparsek/internal/gate/gatetest"
	"github.com/sparsek/sparsek/internal/gate/pair"
	"github.com/sparsek/sparsek/internal/gate/profile"
)

// kernelsOf is the report of a build whose only kernel has that machine code.
func kernelsOf(sass string) *kernelreport.Report {
	f := kernelreport.Function{Symbol: gatetest.Symbol, SASS: sass, Opcodes: map[string]int{"HGMMA": 4, "LDS": 2}}
	return &kernelreport.Report{Kernels: []kernelreport.Kernel{{Name: "tma", Source: kernelreport.Source{Functions: []kernelreport.Function{f}}}}}
}

// comparison has all cases at that ratio, within a thousandth.
func comparison(ratio float64, change func(c *pair.Case)) *pair.Comparison {
	r := &pair.Comparison{Date: time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC), GPU: "NVIDIA H200", Commit: gatetest.Commit}
	r.Libraries = [2]pair.Library{{SHA256: "11"}, {SHA256: "22"}}
	plan := pair.Plan{Kernel: "tma", Plan: profile.Plan{Tile: [3]int{128, 256, 64}, Tiles: 512, Entries: 4096}}
	for _, name := range names {
		c := pair.Case{Name: name, Interval: pair.Interval{Ratio: ratio, Low: ratio - 0.001, High: ratio + 0.001},
			Seconds: [2]float64{1e-4, 1e-4 * ratio}, Plans: [2]pair.Plan{plan, plan}, Rounds: make([]float64, 8)}
		if change != nil {
			change(&c)
		}
		r.Cases = append(r.Cases, c)
	}
	return r
}

func noteOf(r *Result) string {
	text := strings.Join(append(append([]string{}, r.Reasons...), r.Notes...), "\n")
	for _, c := range r.Cases {
		text += "\n" + c.Why + "\n" + c.Cause + "\n" + c.Note
	}
	return text
}

func TestPairs(t *testing.T) {
	s := newWorld(t).open()
	wide := func(low, high float64) *pair.Comparison {
		return comparison(1, func(c *pair.Case) { c.Interval = pair.Interval{Ratio: (low + high) / 2, Low: low, High: high} })
	}
	isNew := func(c *pair.Case) { *c = pair.Case{Name: c.Name, New: "it does not know dsd_t"} }
	otherPlan := func(c *pair.Case) { c.Plans[1].Entries++ }
	otherKernel := func(c *pair.Case) { c.Plans[1].Kernel = "gather" }
	digests := func(a, b string) func(c *pair.Case) {
		return func(c *pair.Case) { c.Plans[0].Digest, c.Plans[1].Digest = a, b }
	}
	for _, c := range []struct {
		what          string
		first, second *pair.Comparison
		sass          string
		want          Verdict
		speaksOf      string
	}{
		{"the same", comparison(1, nil), nil, "aa", Pass, ""},
		{"faster", comparison(0.9, nil), nil, "aa", Pass, ""},
		{"another code, as fast", comparison(1, nil), nil, "bb", Stale, "other machine code"},
		{"another code, 1 % slower", comparison(1.01, nil), comparison(1.01, nil), "bb", Fail, causeCode},
		{"0.7 % slower", comparison(1.007, nil), comparison(1.0065, nil), "bb", Fail, causeCode},
		{"0.5 % slower", comparison(1.005, nil), nil, "bb", Stale, ""},
		{"slower once", comparison(1.05, nil), comparison(1.005, nil), "bb", Stale, "slower once"},
		{"measured once", comparison(1.05, nil), nil, "bb", Ambiguous, "not measured a second time"},
		{"another plan", comparison(1.05, otherPlan), comparison(1.05, otherPlan), "aa", Fail, causePlan},
		{"another digest", comparison(1.05, digests("1", "2")), comparison(1.05, nil), "aa", Fail, causePlan},
		{"a product that is new", comparison(1, isNew), nil, "aa", Stale, "does not serve this product"},
		{"a digest on one side", comparison(1.05, digests("", "2")), comparison(1.05, nil), "aa", Drift, causeEnvironment},
		{"another kernel", comparison(1.05, otherKernel), comparison(1.05, otherKernel), "aa", Fail, causeCode},
		{"another kernel, as fast", comparison(1, otherKernel), nil, "aa", Stale, "another kernel is chosen"},
		// With neither changed nothing fails, however slow it is.
		{"unexplained, 1 %", comparison(1.01, nil), comparison(1.01, nil), "aa", Pass, causeEnvironment},
		{"unexplained, 5 %", comparison(1.05, nil), comparison(1.05, nil), "aa", Drift, causeEnvironment},
		{"unexplained, twofold", comparison(2, nil), comparison(2, nil), "aa", Drift, causeEnvironment},
		{"unexplained, once", comparison(1.05, nil), comparison(1, nil), "aa", Pass, "slower once"},
		// What the interval cannot decide.
		{"undecided", wide(0.99, 1.02), nil, "aa", Pass, ""},
		{"blurred", wide(0.97, 1.04), nil, "aa", Ambiguous, "vary so much"},
	} {
		r := JudgePairs(s, c.first, c.second, kernelsOf(c.sass), names)
		if text := noteOf(r); r.Verdict != c.want || !strings.Contains(text, c.speaksOf) || len(r.Cases) != len(names) {
			t.Errorf("%s: %s, want %s with %q in\n%s", c.what, r.Verdict, c.want, c.speaksOf, text)
		}
		if wantsMore := c.second == nil && c.first.Cases[0].Low > 1+pair.Margin; (len(r.PairSuspects()) > 0) != wantsMore {
			t.Errorf("%s: to be measured again: %q", c.what, r.PairSuspects())
		}
		if slow := r.Slow(); (len(slow) > 0) != (c.second != nil && c.second.Cases[0].Low > 1+pair.Margin) {
			t.Errorf("%s: slow: %q", c.what, slow)
		}
	}
}

// Nothing is compared with another library than the blessed one, and faults of the store stay faults.
func TestPairedWithAnother(t *testing.T) {
	w := newWorld(t)
	other := comparison(1, nil)
	other.Libraries[0].SHA256 = "33"
	if r := JudgePairs(w.open(), other, nil, kernelsOf("aa"), names); r.Verdict != NotMeasurable || !strings.Contains(noteOf(r), "not the blessed library") {
		t.Errorf("%s: %s", r.Verdict, noteOf(r))
	}
	again := comparison(1.1, nil)
	again.Libraries[1].SHA256 = "33"
	if r := JudgePairs(w.open(), comparison(1.1, nil), again, kernelsOf("bb"), names); r.Verdict != NotMeasurable {
		t.Errorf("a second measurement of another library: %s", r.Verdict)
	}
	short := comparison(1, nil)
	short.Cases = short.Cases[:1]
	if r := JudgePairs(w.open(), short, nil, kernelsOf("aa"), names); r.Verdict != NotMeasurable || !strings.Contains(noteOf(r), "measure all") {
		t.Errorf("a case is missing: %s", r.Verdict)
	}
	// The library that was blessed on one GPU is the reference on another that has no baseline.
	h100 := comparison(1, nil)
	h100.GPU = "NVIDIA H100 80GB HBM3"
	if r := JudgePairs(w.open(), h100, nil, kernelsOf("aa"), names); r.Verdict != Pass || !strings.Contains(noteOf(r), "no baseline for NVIDIA H100") {
		t.Errorf("another GPU: %s, %s", r.Verdict, noteOf(r))
	}
	w.edit(headlineFile, "72.30", "52.30")
	if r := JudgePairs(w.open(), comparison(1, nil), nil, kernelsOf("aa"), names); r.Verdict != Fail {
		t.Errorf("a store that was edited: %s", r.Verdict)
	}
}

// Counters of slower cases are shown and judge nothing.
func TestCounters(t *testing.T) {
	w := newWorld(t)
	s := w.open()
	r := JudgePairs(s, comparison(1.05, nil), comparison(1.05, nil), kernelsOf("aa"), names)
	before := r.Verdict
	p := w.one("cycles", 1.5)
	p.Cases = p.Cases[:1]
	r.AddCounters(s, p)
	metrics := r.Cases[0].Metrics
	at := slices.IndexFunc(metrics, func(m Metric) bool { return m.Name == "cycles" })
	if at < 0 || metrics[at].First != 123000 || metrics[at].Baseline != 82000 || metrics[at].Gated() || r.Verdict != before || len(r.Cases[1].Metrics) > 0 {
		t.Errorf("%+v", r.Cases)
	}
}
