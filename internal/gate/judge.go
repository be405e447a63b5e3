// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/sparsek/sparsek/internal/build/kernelreport"
	"github.com/sparsek/sparsek/internal/gate/ncu"
	"github.com/sparsek/sparsek/internal/gate/profile"
	"github.com/sparsek/sparsek/internal/machine/nvsmi"
)

// Result is what the gate found.
type Result struct {
	Verdict  Verdict      `json:"verdict"`
	Reasons  []string     `json:"reasons,omitempty"` // of the whole: why nothing could be measured, what was changed by hand
	Notes    []string     `json:"notes,omitempty"`
	Date     time.Time    `json:"date"`
	GPU      string       `json:"gpu,omitempty"`
	Driver   string       `json:"driver,omitempty"`
	NCU      string       `json:"ncu,omitempty"`
	Commit   string       `json:"commit,omitempty"` // of the library that was measured
	State    *nvsmi.State `json:"state,omitempty"`  // of the GPU while it was measured first
	Baseline *Origin      `json:"baseline,omitempty"`
	Cases    []Case       `json:"cases"`
}

// Origin is where a baseline comes from.
type Origin struct {
	Commit string      `json:"commit"`
	Date   time.Time   `json:"date"`
	Driver string      `json:"driver"`
	Noise  Noise       `json:"noise"`
	State  nvsmi.State `json:"state"`

	Library string `json:"library_sha256"`
	Paired  bool   `json:"paired"` // products of this very library took turns with the candidate's
}

// Case is what was found of one case.
type Case struct {
	Name    string       `json:"name"`
	Kernel  string       `json:"kernel"`
	Verdict Verdict      `json:"verdict"`
	Why     string       `json:"why,omitempty"`
	Note    string       `json:"note,omitempty"`
	Paired  *Paired      `json:"paired,omitempty"` // nil where figures are compared with recorded ones
	Cause   string       `json:"cause,omitempty"`  // where figures moved
	Metrics []Metric     `json:"metrics,omitempty"`
	Code    []Difference `json:"instructions,omitempty"` // where the machine code changed
	FLOP    float64      `json:"flop,omitempty"`
	Folder  string       `json:"-"` // of its baseline
}

// Difference is an instruction that a kernel has more or less often than it had.
type Difference struct {
	Opcode string `json:"opcode"`
	Was    int    `json:"was"`
	Is     int    `json:"is"`
}

// Causes of figures that moved.
const (
	causeEnvironment = "the environment: neither the machine code nor the plan changed"
	causePlan        = "the plan: the machine code is the same, its work list is not"
	causeCode        = "the machine code"
)

// Unmeasurable is the result where there is not even a baseline to look at.
func Unmeasurable(why error, date time.Time) *Result {
	return &Result{Verdict: NotMeasurable, Reasons: []string{why.Error()}, Date: date, Cases: []Case{}}
}

// Inspect judges a baseline without measuring: whether it is as it was blessed, and whether it is of the machine code
// that the build gives. kernels may be nil, where there is no build.
func Inspect(s *Store, kernels *kernelreport.Report, date time.Time) *Result {
	r := &Result{Verdict: Intact, Date: date, Cases: []Case{}}
	r.addFaults(s)
	for _, b := range s.Baselines {
		for i := range b.Cases {
			e := &b.Cases[i]
			c := Case{Name: e.Name, Kernel: e.Kernel, Verdict: Intact, Folder: b.folder()}
			if kernels != nil {
				f, ok := kernels.Function(e.Kernel, e.Symbol)
				c.compareCode(e, f.SASS, f.Opcodes, ok)
			}
			r.add(c)
		}
	}
	if kernels == nil {
		r.Notes = append(r.Notes, "there is no build here: whether the baseline is of this source tree's machine code was not checked")
	}
	return r
}

func (r *Result) addFaults(s *Store) {
	for _, fault := range s.Faults {
		r.Verdict = Fail
		r.Reasons = append(r.Reasons, fault)
	}
}

func (r *Result) add(c Case) {
	r.Cases = append(r.Cases, c)
	r.Verdict = worse(r.Verdict, c.Verdict)
}

// Block makes the result NOT MEASURABLE, for that reason, unless it is worse already.
func (r *Result) Block(why string) {
	r.Verdict = worse(r.Verdict, NotMeasurable)
	r.Reasons = append(r.Reasons, why)
}

// compareCode finds out whether an entry is stale.
func (c *Case) compareCode(e *Entry, sass string, opcodes map[string]int, known bool) (same bool) {
	switch {
	case !known:
		c.Verdict, c.Why = worse(c.Verdict, Stale), "the build has no such function of the kernel any more"
	case sass != e.SASS:
		c.Verdict, c.Why = worse(c.Verdict, Stale), "the baseline is of other machine code"
		c.Code = differences(e.Opcodes, opcodes)
	default:
		return true
	}
	return false
}

// differences lists the instructions whose number changed.
func differences(was, is map[string]int) []Difference {
	var list []Difference
	for _, name := range slices.Sorted(maps.Keys(union(was, is))) {
		if was[name] != is[name] {
			list = append(list, Difference{name, was[name], is[name]})
		}
	}
	return list
}

func union(a, b map[string]int) map[string]int {
	all := maps.Clone(a)
	if all == nil {
		all = map[string]int{}
	}
	maps.Copy(all, b)
	return all
}

// Judge compares a profile with the baselines. Where a metric got worse it requires a second one, taken after it, of
// those cases at least; nil where there is none. cases are those that the first should have.
func Judge(s *Store, first, second *profile.Profile, cases []string) *Result {
	r := &Result{Verdict: Pass, Date: first.Date, GPU: first.GPU, Driver: first.Driver, NCU: first.NCU, Commit: first.Commit, State: &first.State,
		Cases: []Case{}}
	r.addFaults(s)
	b, err := s.Baseline(first.GPU)
	if err != nil {
		r.Block(fmt.Sprintf("%v; measure on that GPU, or bless a profile of this one", err))
		return r
	}
	r.Baseline = &Origin{Commit: b.Commit, Date: b.Date, Driver: b.Driver, Noise: b.Noise, State: b.State, Library: b.Library}
	if why := first.State.Throttled(); why != "" {
		r.Block("the GPU was slowed down while it was measured: " + why + "; let it cool down and measure again")
	}
	if first.NCU != b.NCU {
		r.Block(fmt.Sprintf("measured with ncu %s, the baseline with %s, whose counters may mean something else; "+
			"use that version, or bless anew", first.NCU, b.NCU))
	}
	if second != nil && (second.Library != first.Library || second.GPU != first.GPU || second.NCU != first.NCU) {
		r.Block("the second measurement is of another library, GPU or version of ncu; measure both again")
		second = nil
	}
	if r.Verdict == NotMeasurable {
		return r
	}
	r.addNotes(b, first)
	for _, name := range cases {
		r.add(judgeCase(b, name, find(first, name), find(second, name)))
	}
	return r
}

func (r *Result) addNotes(b *Baseline, p *profile.Profile) {
	if p.Driver != b.Driver {
		r.Notes = append(r.Notes, fmt.Sprintf("driver %s, the baseline has %s", p.Driver, b.Driver))
	}
	r.Notes = append(r.Notes, fmt.Sprintf("compared with recorded figures, since the blessed library was not at hand; "+
		"noise floors of %d runs over %d starts of the machine", b.Noise.Runs, b.Noise.Starts))
	if b.Noise.Starts < startsToFail {
		r.Notes = append(r.Notes, fmt.Sprintf("noise floors over fewer than %d starts do not show what is usual: nothing can fail by them", startsToFail))
	}
	if !p.State.Known {
		r.Notes = append(r.Notes, "nvidia-smi reports no clocks, nor why they are low: it is not known whether the GPU was slowed down")
	}
}

func find(p *profile.Profile, name string) *profile.Case {
	if p == nil {
		return nil
	}
	for i := range p.Cases {
		if p.Cases[i].Name == name {
			return &p.Cases[i]
		}
	}
	return nil
}

// judgeCase judges one case; first is nil where it was not measured, second where it was not measured again.
func judgeCase(b *Baseline, name string, first, second *profile.Case) Case {
	c := Case{Name: name, Verdict: Pass, Folder: b.folder()}
	if first == nil {
		c.Verdict, c.Why = NotMeasurable, "it was not measured: measure all cases"
		return c
	}
	c.Kernel, c.FLOP = first.Kernel, first.FLOP
	e, ok := b.Find(name)
	if !ok {
		c.Verdict, c.Why = Stale, "the baseline has no such case: bless anew"
		return c
	}
	var again ncu.Figures
	if second != nil {
		again = second.Figures()
	}
	figures := first.Figures()
	for _, m := range ncu.Metrics() {
		spread := first.Samples.Spread(m.Name)
		if second != nil {
			spread = max(spread, second.Samples.Spread(m.Name))
		}
		c.Metrics = append(c.Metrics, compare(e, m.Name, figures, again, spread))
	}
	sameCode := c.compareCode(e, first.SASS, first.Opcodes, first.Symbol == e.Symbol)
	if sameCode && first.Plan.Same(e.Plan) {
		for i := range c.Metrics {
			c.Metrics[i].unexplained()
		}
	}
	moved := false
	for i := range c.Metrics {
		m := &c.Metrics[i]
		if m.Verdict == Fail && b.Noise.Starts < startsToFail {
			m.Verdict, m.Note = Ambiguous, fmt.Sprintf("worse twice, but its noise was not measured over %d starts of the machine", startsToFail)
		}
		c.Verdict = worse(c.Verdict, m.Verdict)
		moved = moved || slices.Contains([]Verdict{Fail, Ambiguous, Drift}, m.Verdict)
	}
	if first.Symbol != e.Symbol {
		c.Why = "another function of a kernel was run: " + first.Kernel + " instead of " + e.Kernel
		c.Code = differences(e.Opcodes, first.Opcodes)
	}
	if moved {
		switch {
		case !sameCode:
			c.Cause = causeCode
		case !first.Plan.Same(e.Plan):
			c.Cause = causePlan
		default:
			c.Cause = causeEnvironment
		}
	}
	return c
}

// Suspects names the cases of which a second measurement could change the verdict.
func (r *Result) Suspects() []string {
	var names []string
	for i := range r.Cases {
		unsure := func(m Metric) bool { return m.Verdict == Ambiguous && m.Second == nil }
		if slices.ContainsFunc(r.Cases[i].Metrics, unsure) {
			names = append(names, r.Cases[i].Name)
		}
	}
	return names
}
