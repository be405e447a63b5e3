// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sparsek/sparsek/internal/build/kernelreport"
	"github.com/sparsek/sparsek/internal/gate/gatetest"
	"github.com/sparsek/sparsek/internal/gate/ncu"
	"github.com/sparsek/sparsek/internal/gate/profile"
	"github.com/sparsek/sparsek/internal/machine/nvsmi"
)

var names = []string{headlineCase, "decode-16"}

// world is a checkout with a baseline that was blessed twice.
type world struct {
	t    testing.TB
	root string
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{t, t.TempDir()}
	w.bless("the first", w.one("cycles", 1.01))
	w.blessStarts("the second", nil)
	return w
}

// blessStarts blesses one profile, with the noise of three more starts of the machine.
func (w *world) blessStarts(reason string, figures func(name string, f ncu.Figures)) *Baseline {
	w.t.Helper()
	o := BlessOptions{Root: w.root, Reason: reason, Cases: names, Runs: []*profile.Profile{w.profile(nil, figures)},
		Date: time.Date(2026, 11, 21, 13, 0, 0, 0, time.UTC)}
	for _, start := range []string{"b", "c", "d"} {
		o.Noise = append(o.Noise, w.profile(func(p *profile.Profile) { p.Start = start }, figures))
	}
	b, err := Bless(o)
	if err != nil {
		w.t.Fatal(err)
	}
	return b
}

// otherPlan makes a profile one of other plans, so that what moved has a cause.
func otherPlan(p *profile.Profile) {
	for i := range p.Cases {
		p.Cases[i].Plan.Entries++
	}
}

func (w *world) profile(change func(p *profile.Profile), figures func(name string, f ncu.Figures)) *profile.Profile {
	w.t.Helper()
	return gatetest.Profile(w.t, filepath.Join(w.t.TempDir(), "p"), names, change, figures)
}

// one changes a metric of the headline case by a factor, and the plan.
func (w *world) one(metric string, factor float64) *profile.Profile {
	w.t.Helper()
	return w.profile(otherPlan, func(name string, f ncu.Figures) {
		if name == headlineCase {
			f[metric] *= factor
		}
	})
}

func (w *world) bless(reason string, runs ...*profile.Profile) *Baseline {
	w.t.Helper()
	b, err := Bless(BlessOptions{Root: w.root, Reason: reason, Cases: names, Runs: runs, Date: time.Date(2026, 11, 21, 13, 0, 0, 0, time.UTC)})
	if err != nil {
		w.t.Fatal(err)
	}
	return b
}

func (w *world) open() *Store {
	w.t.Helper()
	s, err := Open(w.root)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// judge judges a profile that was measured twice with the same outcome.
func (w *world) judge(p *profile.Profile) *Result {
	w.t.Helper()
	return Judge(w.open(), p, p, names)
}

func wantVerdict(t testing.TB, what string, r *Result, want Verdict, speaksOf string) {
	t.Helper()
	text := strings.Join(append(append([]string{}, r.Reasons...), r.Notes...), "\n")
	for _, c := range r.Cases {
		text += "\n" + c.Name + " " + c.Why + " " + c.Cause
		for _, m := range c.Metrics {
			if m.Verdict != Pass || m.Note != "" {
				text += "\n" + m.Name + " " + string(m.Verdict) + " " + m.Note
			}
		}
	}
	if r.Verdict != want || !strings.Contains(text, speaksOf) {
		t.Errorf("%s: %s, want %s and a word of %q:\n%s", what, r.Verdict, want, speaksOf, text)
	}
}

func TestRule(t *testing.T) {
	w := newWorld(t)
	if s := w.open(); len(s.Faults) > 0 || len(s.Log) != 2 {
		t.Fatalf("%d lines, faults %q", len(s.Log), s.Faults)
	}
	for _, c := range []struct {
		what     string
		metric   string
		factor   float64
		want     Verdict
		speaksOf string
	}{
		{"the same", "cycles", 1, Pass, ""},
		{"cycles 6 % up", "cycles", 1.06, Fail, causePlan},
		{"cycles 4 % up", "cycles", 1.04, Pass, ""},
		{"tensor core 6 % down", "tensor_core", 0.94, Fail, "tensor_core FAIL"},
		{"tensor core 4 % down", "tensor_core", 0.96, Pass, ""},
		{"SM active 6 % down", "sm_active", 0.94, Fail, "sm_active FAIL"},
		{"DRAM 6 % down", "dram_bw", 0.94, Fail, "dram_bw FAIL"},
		{"DRAM 6 % up", "dram_bw", 1.06, Pass, "better"},
		{"L2 bytes 6 % up", "l2_bytes", 1.06, Fail, "l2_bytes FAIL"},
		{"cycles 6 % down", "cycles", 0.94, Pass, "better"},
		{"slower clock", "duration_ns", 1.5, Pass, ""},
		{"more bytes from DRAM", "dram_bytes", 1.5, Pass, ""},
		{"more registers", "registers", 1.2, Pass, ""},
		{"occupancy halved", "occupancy", 0.5, Pass, ""},
	} {
		wantVerdict(t, c.what, w.judge(w.one(c.metric, c.factor)), c.want, c.speaksOf)
	}
	spilled := w.profile(otherPlan, func(_ string, f ncu.Figures) { f["spill_stores"] = 1 })
	r := w.judge(spilled)
	wantVerdict(t, "the first spill", r, Fail, "spill_stores FAIL")
	for _, m := range r.Cases[0].Metrics {
		if m.Name == "spill_stores" && m.Worse != 1 { // JSON has no infinity
			t.Errorf("from 0 to 1 is worse by %v", m.Worse)
		}
	}
}

// A faster kernel may take a smaller share of DRAM's rate; one that is no faster may not, and none may spill for it.
func TestFasterKernel(t *testing.T) {
	w := newWorld(t)
	both := func(cycles float64, metric string, value float64) *profile.Profile {
		return w.profile(otherPlan, func(name string, f ncu.Figures) {
			f["cycles"] *= cycles
			f[metric] = value
		})
	}
	wantVerdict(t, "faster, less DRAM", w.judge(both(0.9, "dram_bw", 30)), Pass, "the kernel is faster")
	wantVerdict(t, "no faster, less DRAM", w.judge(both(0.995, "dram_bw", 30)), Fail, "dram_bw FAIL")
	wantVerdict(t, "faster, spilling", w.judge(both(0.9, "spill_loads", 100)), Fail, "spill_loads FAIL")
}

// A regression must show twice; without a second measurement the verdict is open.
func TestShownTwice(t *testing.T) {
	w := newWorld(t)
	s, slow, good := w.open(), w.one("cycles", 1.06), w.profile(nil, nil)
	once := Judge(s, slow, nil, names)
	wantVerdict(t, "measured once", once, Ambiguous, "second time")
	if got := once.Suspects(); !slices.Equal(got, names[:1]) {
		t.Errorf("a second measurement is asked for of %q", got)
	}
	again := Judge(s, slow, good, names)
	wantVerdict(t, "not the second time", again, Pass, "worse once")
	if more := append(again.Suspects(), Judge(s, good, nil, names).Suspects()...); len(more) > 0 {
		t.Errorf("one more measurement is asked for of %q", more)
	}
	// It may be of the suspects alone.
	alone := w.one("cycles", 1.06)
	alone.Cases = alone.Cases[:1]
	wantVerdict(t, "the suspect alone, again", Judge(s, slow, alone, names), Fail, "cycles FAIL")
	wantVerdict(t, "another metric the second time", Judge(s, slow, w.one("dram_bw", 0.9), names), Pass, "worse once")
	for what, change := range map[string]func(p *profile.Profile){
		"another library": func(p *profile.Profile) { p.Library = "22" },
		"another GPU":     func(p *profile.Profile) { p.GPU = "NVIDIA H100" },
		"another ncu":     func(p *profile.Profile) { p.NCU = "2024.1.0" },
	} {
		wantVerdict(t, "a second measurement of "+what, Judge(s, slow, w.profile(change, nil), names), NotMeasurable, "another library, GPU or version")
	}
}

// Launches of either measurement that are further apart than the step they are to show decide nothing.
func TestUnsteadyLaunches(t *testing.T) {
	w := newWorld(t)
	slow := w.one("cycles", 1.06)
	for _, c := range []struct {
		apart float64 // quartiles; the step is 4920
		want  Verdict
	}{{17000, Ambiguous}, {5000, Ambiguous}, {4900, Fail}} {
		slow.Cases[0].Samples["cycles"] = []float64{86920 - c.apart, 86920, 86920 + c.apart}
		r := w.judge(slow)
		if wantVerdict(t, "unsteady", r, c.want, "cycles"); r.Verdict == Ambiguous {
			wantVerdict(t, "unsteady", r, c.want, "apart")
		}
	}
}

func TestUnsteadySecond(t *testing.T) {
	w := newWorld(t)
	slow, second := w.one("cycles", 1.06), w.one("cycles", 1.06)
	second.Cases[0].Samples["cycles"] = []float64{70000, 86920, 104000}
	wantVerdict(t, "unsteady the second time", Judge(w.open(), slow, second, names), Ambiguous, "apart")
}

func TestCauses(t *testing.T) {
	w := newWorld(t)
	slower := func(change func(c *profile.Case)) *profile.Profile {
		p := w.one("cycles", 1.2)
		change(&p.Cases[0])
		return p
	}
	wantVerdict(t, "plan", w.judge(slower(func(c *profile.Case) { c.Plan.Entries += 2 })), Fail, causePlan)
	recompiled := func(c *profile.Case) {
		c.Plan.Entries--
		c.SASS, c.Opcodes = "bb", map[string]int{"HGMMA": 2, "LDS": 2, "NOP": 1}
	}
	r := w.judge(slower(recompiled))
	wantVerdict(t, "machine code", r, Fail, causeCode)
	if diff := cmp.Diff([]Difference{{"HGMMA", 4, 2}, {"NOP", 0, 1}}, r.Cases[0].Code); diff != "" {
		t.Errorf("instructions (-want +got):\n%s", diff)
	}
	// As fast as before, but not what was blessed.
	stale := w.profile(nil, nil)
	stale.Cases[0].Plan.Entries++
	recompiled(&stale.Cases[0])
	wantVerdict(t, "recompiled", w.judge(stale), Stale, "other machine code")
	renamed := w.profile(nil, nil)
	renamed.Cases[0].Symbol = "other"
	wantVerdict(t, "renamed", w.judge(renamed), Stale, "another function")
}

func TestNotMeasurable(t *testing.T) {
	w := newWorld(t)
	for what, c := range map[string]struct {
		change   func(p *profile.Profile)
		speaksOf string
	}{
		"another GPU":         {func(p *profile.Profile) { p.GPU = "NVIDIA H100 PCIe" }, "H100"},
		"another ncu":         {func(p *profile.Profile) { p.NCU = "2024.1.0" }, "2024.1.0"},
		"throttled":           {func(p *profile.Profile) { p.State.Reasons = 0x40 }, "too hot"},
		"a case not measured": {func(p *profile.Profile) { p.Cases = p.Cases[:1] }, "not measured"},
	} {
		wantVerdict(t, what, w.judge(w.profile(c.change, nil)), NotMeasurable, c.speaksOf)
	}
	driver := w.profile(func(p *profile.Profile) { p.Driver = "590.2" }, nil)
	wantVerdict(t, "another driver", w.judge(driver), Pass, "590.2")
	silent := w.profile(func(p *profile.Profile) { p.State = nvsmi.State{} }, nil)
	wantVerdict(t, "no nvidia-smi", w.judge(silent), Pass, "it is not known whether")
	more := append([]string{"new"}, names...)
	p := gatetest.Profile(t, t.TempDir(), more, nil, nil)
	wantVerdict(t, "a new case", Judge(w.open(), p, p, more), Stale, "no such case")
}

// What nothing explains never fails: it is a note or, where it is large and shows twice, drift.
func TestUnexplained(t *testing.T) {
	w := newWorld(t)
	same := func(metric string, factor float64) *profile.Profile {
		p := w.one(metric, factor)
		p.Cases[0].Plan.Entries--
		p.Cases[1].Plan.Entries--
		return p
	}
	const note = "neither machine code nor plan changed"
	wantVerdict(t, "cycles 9 % up, tensor core 9 % down", w.judge(same("cycles", 1.09)), Pass, note)
	wantVerdict(t, "tensor core 9 % down", w.judge(same("tensor_core", 0.91)), Pass, note)
	wantVerdict(t, "cycles 11 % up", w.judge(same("cycles", 1.11)), Drift, causeEnvironment)
	wantVerdict(t, "twice as many", w.judge(same("cycles", 2)), Drift, causeEnvironment)
	if got := Judge(w.open(), same("cycles", 1.09), nil, names).Suspects(); len(got) > 0 {
		t.Errorf("what cannot matter is measured again: %q", got)
	}
	if got := Judge(w.open(), same("cycles", 1.11), nil, names).Suspects(); !slices.Equal(got, names[:1]) {
		t.Errorf("to be measured again: %q", got)
	}
	// The digests of work lists count where both are known.
	digest := func(text string) *profile.Profile {
		p := same("cycles", 1.06)
		p.Cases[0].Plan.Digest = text
		return p
	}
	wantVerdict(t, "a digest on one side", w.judge(digest("1")), Pass, note)
	if a, b := (profile.Plan{Tiles: 1, Digest: "1"}), (profile.Plan{Tiles: 1, Digest: "2"}); a.Same(b) || !a.Same(a) || !a.Same(profile.Plan{Tiles: 1}) {
		t.Error("digests of plans")
	}
}

// Noise that was measured widens the limit; what was measured over one start does not count.
func TestNoise(t *testing.T) {
	w := &world{t, t.TempDir()}
	run := func(start string, minute int, cycles float64) *profile.Profile {
		return w.profile(func(p *profile.Profile) {
			p.State.UUID, p.State.SMClock = "GPU-1", 1980-float64(minute)
			p.Start, p.Date = start, p.Date.Add(time.Duration(minute)*time.Minute)
		}, func(name string, f ncu.Figures) {
			if name == headlineCase {
				f["cycles"] = cycles
			}
		})
	}
	b := w.bless("one start", run("a", 1, 80000), run("a", 2, 88000))
	if b.Noise.Starts != 0 || len(b.Cases[0].Noise) != 0 {
		t.Errorf("one start gave noise: %+v", b)
	}
	wantVerdict(t, "no noise floors", w.judge(w.profile(nil, nil)), Pass, "fewer than 4 starts")
	b = w.bless("two starts", run("a", 1, 80000), run("a", 1, 80000), run("b", 2, 88000), run("b", 3, 80000))
	if want := (Noise{3, 2}); b.Noise != want || b.Cases[0].Noise["cycles"] != 0.1 || b.Cases[1].Noise["cycles"] != 0 {
		t.Errorf("%+v, %v, %v", b.Noise, b.Cases[0].Noise, b.Cases[1].Noise)
	}
	if b.State.SMClock != 1977 || b.State.Seen != 4 || b.State.UUID != "" {
		t.Errorf("state of the GPU: %+v", b.State)
	}
	if got := b.Cases[0].Figures["cycles"]; got != 80000.5 { // the median of all launches of the four runs
		t.Errorf("cycles %v", got)
	}
	run2 := func(start string, minute int, cycles float64) *profile.Profile {
		p := run(start, minute, cycles)
		otherPlan(p)
		return p
	}
	wantVerdict(t, "two starts are too few to fail", w.judge(run2("c", 4, 99000)), Ambiguous, "not measured over 4 starts")
	b = w.bless("four starts", run("a", 1, 80000), run("b", 2, 88000), run("c", 3, 80000), run("d", 4, 80000))
	if want := (Noise{4, 4}); b.Noise != want || b.Cases[0].Noise["cycles"] != 0.1 {
		t.Errorf("%+v, %v", b.Noise, b.Cases[0].Noise)
	}
	wantVerdict(t, "within the noise", w.judge(run2("c", 4, 87000)), Pass, "4 runs over 4 starts")
	noFaster := w.profile(otherPlan, func(_ string, f ncu.Figures) { f["cycles"], f["dram_bw"] = 0.95*80000, 30 })
	wantVerdict(t, "a gain within the noise excuses nothing", w.judge(noFaster), Fail, "dram_bw FAIL")
	wantVerdict(t, "beyond the noise", w.judge(run2("c", 4, 89000)), Fail, "cycles FAIL")
	// A later blessing of one run keeps the floors.
	if b = w.bless("one run", run("c", 5, 80000)); b.Noise.Starts != 4 || b.Cases[0].Noise["cycles"] != 0.1 {
		t.Errorf("the noise floors are gone: %+v", b.Noise)
	}
}

func TestInspect(t *testing.T) {
	w := newWorld(t)
	kernels := func(sass string) *kernelreport.Report {
		f := kernelreport.Function{Symbol: gatetest.Symbol, SASS: sass, Opcodes: map[string]int{"HGMMA": 4, "LDS": 2}}
		return &kernelreport.Report{Kernels: []kernelreport.Kernel{{Name: "tma", Source: kernelreport.Source{Functions: []kernelreport.Function{f}}}}}
	}
	now := time.Now()
	wantVerdict(t, "the same build", Inspect(w.open(), kernels("aa"), now), Intact, "")
	wantVerdict(t, "another build", Inspect(w.open(), kernels("bb"), now), Stale, "other machine code")
	wantVerdict(t, "a kernel is gone", Inspect(w.open(), &kernelreport.Report{}, now), Stale, "no such function")
	wantVerdict(t, "no build", Inspect(w.open(), nil, now), Intact, "no")
	r := Inspect(w.open(), nil, now)
	r.Block("no GPU")
	wantVerdict(t, "no GPU", r, NotMeasurable, "no GPU")
}

// Every metric has a direction, and the verdicts their order.
func TestTables(t *testing.T) {
	for _, m := range ncu.Metrics() {
		if _, ok := directions[m.Name]; !ok {
			t.Errorf("%s has no direction", m.Name)
		}
	}
	if len(directions) != len(ncu.Metrics()) {
		t.Error("a direction has no metric")
	}
	order := []Verdict{"", Pass, Intact, Drift, Stale, Ambiguous, NotMeasurable, Fail}
	for i, mild := range order {
		for _, bad := range order[i:] {
			if worse(mild, bad) != bad || worse(bad, mild) != bad {
				t.Errorf("%q is not worse than %q", bad, mild)
			}
		}
	}
}

func TestHistory(t *testing.T) {
	w := newWorld(t)
	file := filepath.Join(t.TempDir(), "deep", "history.jsonl")
	if list, err := ReadHistory(file); err != nil || list != nil {
		t.Errorf("%v, %v", list, err)
	}
	if _, err := AddToHistory(file, w.judge(w.one("cycles", 1.5))); err != nil {
		t.Fatal(err)
	}
	list, err := AddToHistory(file, w.judge(w.profile(nil, nil)))
	if err != nil || len(list) != 2 || list[0].Verdict != Fail || list[0].Cycles[headlineCase] != 123000 || list[1].Verdict != Pass {
		t.Errorf("%+v, %v", list, err)
	}
	if read, err := ReadHistory(file); err != nil || !cmp.Equal(list, read) {
		t.Errorf("%+v, %v", read, err)
	}
	if blessed := w.open().Log.Records("NVIDIA H200"); len(blessed) != 2 || blessed[1].Cycles[headlineCase] != 82000 || blessed[0].Verdict != Blessed {
		t.Errorf("%+v", blessed)
	}
}
